// SPDX-License-Identifier: Apache-2.0
// Golden cases of detectors: a folder with events.jsonl (tagged lines, and telemetry) and
// expectation.md, whose block `json expect` says what verdicts must come out.
#pragma once

#include "receivers/decode/tagged/tagged.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "tests/support/detector.h"

#include <jansson.h>

struct golden_case {
    char *events;
    struct slice *lines;
    uint32_t line_count;
    json_t *expect;
};

static inline char *golden_read(const char *folder, const char *name) {
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    size_t capacity = 1 << 16, size = 0, got;
    char *text = memory_take(capacity);
    while ((got = fread(text + size, 1, capacity - size - 1, file)) > 0) {
        size += got;
        if (size + 1 == capacity)
            text = memory_resize(text, capacity *= 2);
    }
    text[size] = '\0';
    fclose(file);
    return text;
}

static inline struct golden_case golden_open(const char *folder) {
    struct golden_case golden = {.events = golden_read(folder, "events.jsonl")};
    uint32_t capacity = 0;
    for (char *at = golden.events; *at != '\0';) {
        size_t size = strcspn(at, "\n");
        if (golden.line_count == capacity) {
            capacity = capacity == 0 ? 64 : capacity * 2;
            golden.lines = memory_resize(golden.lines, capacity * sizeof *golden.lines);
        }
        if (size > 0)
            golden.lines[golden.line_count++] = (struct slice){at, size};
        at += size + (at[size] == '\n');
    }
    char *text = golden_read(folder, "expectation.md");
    char *from = strstr(text, "```json expect\n");
    ck_assert_msg(from != NULL, "%s has no block `json expect`", folder);
    from += strlen("```json expect\n");
    *strstr(from, "```") = '\0';
    json_error_t error;
    golden.expect = json_loads(from, 0, &error);
    ck_assert_msg(golden.expect != NULL, "%s: %s", folder, error.text);
    memory_give(text);
    return golden;
}

static inline void golden_close(struct golden_case *golden) {
    json_decref(golden->expect);
    memory_give(golden->lines);
    memory_give(golden->events);
}

enum { GOLDEN_EVENTS_PER_LINE = 64 };

// A line without a `source` is telemetry.
static inline bool golden_is_telemetry(struct slice line) {
    return memmem(line.data, line.size, "\"source\"", strlen("\"source\"")) == NULL;
}

static inline uint32_t golden_decode_telemetry(const struct golden_case *golden, uint32_t line,
                                               void *state, struct arena *arena,
                                               struct event *event) {
    struct decode_fault fault;
    *event = (struct event){.position = line + 1};
    enum decode_category category =
        decoder_stormlog.decode(state, golden->lines[line], arena, event, &fault);
    ck_assert_msg(category == DECODE_OK, "line %u: %s: %s", line + 1, fault.field, fault.detail);
    return 1;
}

// The events of one tagged line; returns how many.
static inline uint32_t golden_decode(const struct golden_case *golden, uint32_t line, void *state,
                                     struct arena *arena, struct event *events) {
    struct decode_fault fault = {.told = false};
    uint32_t count = 0;
    memset(events, 0, sizeof *events);
    enum decode_category category =
        decoder_tagged.decode(state, golden->lines[line], arena, events, &fault);
    if (decode_refused(category) && fault.told) {
        events->position = line + 1;
        return 1;
    }
    // Of a message that breaks off nothing is taken.
    ck_assert_msg(!decode_refused(category) || category == DECODE_TRUNCATED, "line %u: %s: %s",
                  line + 1, fault.field, fault.detail);
    while (!decode_refused(category) && category != DECODE_END) {
        if (category == DECODE_OK)
            events[count++].position = line + 1;
        ck_assert_uint_lt(count, GOLDEN_EVENTS_PER_LINE);
        memset(&events[count], 0, sizeof *events);
        category = decoder_tagged.next(state, arena, &events[count], &fault);
    }
    return count;
}

// All lines through the decoder and the detector, `size` a batch (0: all), then the last
// evaluation. Each batch's events die with it.
static inline void golden_run(const struct golden_case *golden, struct detector *detector,
                              uint32_t size) {
    size = size == 0 ? golden->line_count : size;
    void *state = memory_zero(1, decoder_tagged.state_size);
    void *telemetry = memory_zero(1, decoder_stormlog.state_size);
    struct event *events = memory_zero(size * GOLDEN_EVENTS_PER_LINE, sizeof *events);
    for (uint32_t at = 0; at < golden->line_count;) {
        uint32_t count = 0;
        for (uint32_t lines = 0; lines < size && at < golden->line_count; at++, lines++)
            count += golden_is_telemetry(golden->lines[at])
                         ? golden_decode_telemetry(golden, at, telemetry, &detector->arena,
                                                   events + count)
                         : golden_decode(golden, at, state, &detector->arena, events + count);
        detector_feed(detector, events, count);
    }
    detector_finish(detector);
    decoder_tagged.release(state);
    memory_give(events);
    decoder_tagged.release(state);
    memory_give(state);
    memory_give(telemetry);
}

static inline void golden_shuffle(struct golden_case *golden, uint64_t seed) {
    for (uint32_t i = golden->line_count; i > 1; i--) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint32_t j = (uint32_t)(seed >> 33) % i;
        struct slice line = golden->lines[i - 1];
        golden->lines[i - 1] = golden->lines[j];
        golden->lines[j] = line;
    }
}

static inline const char *golden_text(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static inline void golden_check_entities(const json_t *want, const json_t *got, unsigned number) {
    size_t i, j;
    json_t *entity, *other;
    json_array_foreach(json_object_get(want, "entities"), i, entity) {
        bool found = false;
        json_array_foreach(json_object_get(got, "entities"), j, other) found =
            found || json_equal(entity, other);
        ck_assert_msg(found, "verdict %u: %s %s is not there as %s", number,
                      golden_text(entity, "kind"), golden_text(entity, "name"),
                      golden_text(entity, "role"));
    }
    json_array_foreach(json_object_get(got, "entities"), j, other) {
        bool named = strcmp(golden_text(other, "role"), "culprit") != 0;
        json_array_foreach(json_object_get(want, "entities"), i, entity) named =
            named || json_equal(entity, other);
        ck_assert_msg(named, "verdict %u: %s %s must not be named culprit", number,
                      golden_text(other, "kind"), golden_text(other, "name"));
    }
}

static inline void golden_check_texts(const json_t *want, const json_t *got, unsigned number) {
    static const char *const same[] = {"pattern", "kind", "severity", "completeness", "action"};
    static const char *const texts[] = {"headline", "remediation"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        ck_assert_msg(strcmp(golden_text(want, same[i]), golden_text(got, same[i])) == 0,
                      "verdict %u: %s is %s, not %s", number, same[i], golden_text(got, same[i]),
                      golden_text(want, same[i]));
    size_t at;
    json_t *word;
    for (size_t i = 0; i < 2; i++)
        json_array_foreach(json_object_get(want, texts[i]), at, word)
            ck_assert_msg(strcasestr(golden_text(got, texts[i]), json_string_value(word)) != NULL,
                          "verdict %u: the %s \"%s\" does not say %s", number, texts[i],
                          golden_text(got, texts[i]), json_string_value(word));
    json_t *attributes = json_object_get(want, "attributes");
    for (void *item = json_object_iter(attributes); item != NULL;
         item = json_object_iter_next(attributes, item)) {
        const char *key = json_object_iter_key(item);
        if (strcmp(key, "culprit.root") == 0) // a later stage says it
            continue;
        const json_t *value = json_object_get(json_object_get(got, "attributes"), key);
        ck_assert_msg(value != NULL && json_equal(value, json_object_iter_value(item)),
                      "verdict %u: attribute %s differs", number, key);
    }
}

static inline void golden_check_verdict(const json_t *want, const json_t *got, unsigned number) {
    golden_check_texts(want, got, number);
    golden_check_entities(want, got, number);
    json_t *range = json_object_get(want, "confidence");
    json_int_t confidence = json_integer_value(json_object_get(got, "confidence"));
    ck_assert_msg(confidence >= json_integer_value(json_array_get(range, 0)) &&
                      confidence <= json_integer_value(json_array_get(range, 1)),
                  "verdict %u: confidence %d", number, (int)confidence);
    size_t at, trail_at = 0;
    json_t *uid, *trail = json_object_get(got, "evidence_trail");
    json_array_foreach(json_object_get(want, "evidence"), at, uid) {
        while (trail_at < json_array_size(trail) &&
               strcmp(golden_text(json_array_get(trail, trail_at), "uid"),
                      json_string_value(uid)) != 0)
            trail_at++;
        ck_assert_msg(trail_at++ < json_array_size(trail),
                      "verdict %u: evidence %s is missing or out of order", number,
                      json_string_value(uid));
    }
}

// The lines of one run over everything, so all verdicts in them are open.
static inline void golden_check(const struct golden_case *golden, const char *lines) {
    json_t *wanted = json_object_get(golden->expect, "verdicts");
    unsigned count = 0;
    while (*lines != '\0') {
        size_t size = strcspn(lines, "\n");
        json_error_t error;
        json_t *got = json_loadb(lines, size, 0, &error);
        ck_assert_msg(got != NULL, "%s in %.*s", error.text, (int)size, lines);
        ck_assert_msg(count < json_array_size(wanted), "one verdict too many: %.*s", (int)size,
                      lines);
        golden_check_verdict(json_array_get(wanted, count), got, count + 1);
        json_decref(got);
        count++;
        lines += size + 1;
    }
    ck_assert_uint_eq(count, json_array_size(wanted));
}

// The whole of it: what is expected, and the same bytes at every size of batch and order of lines.
// `reorder`: the case may be shuffled.
static inline void golden_judge(const struct component_type *type, const char *folder,
                                bool reorder) {
    struct golden_case golden = golden_open(folder);
    static const uint32_t sizes[] = {0, 1, 7};
    char *first = NULL;
    for (uint32_t round = 0; round < (reorder ? 40u : 3u); round++) {
        if (round >= 3)
            golden_shuffle(&golden, round);
        struct detector detector = detector_open(type);
        detector_start(&detector);
        golden_run(&golden, &detector, sizes[round % 3]);
        const char *lines = detector_lines(&detector);
        golden_check(&golden, lines);
        if (first == NULL)
            first = memory_copy_text(lines, strlen(lines));
        ck_assert_str_eq(lines, first);
        detector_close(&detector);
    }
    memory_give(first);
    golden_close(&golden);
}
