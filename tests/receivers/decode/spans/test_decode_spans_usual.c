// SPDX-License-Identifier: Apache-2.0
// What is read of a line in one pass is what the general way reads of it: recorded lines, and each
// of them changed in many ways. A space in front leaves a line to the general way.
#include "base/simd.h"
#include "pipeline/model/span_event.h"
#include "receivers/decode/spans/spans.h"
#include "receivers/decode/spans/usual.h"
#include "tests/receivers/decode/decode_record.h"

#include <glob.h>

enum { RECORD_MAX = 4096, CHANGES = 12 };

static struct decoded decoded;
static struct arena arena;
static uint64_t dice_state;

static void setup(void) {
    decoded = decoded_open(&decoder_spans, 99);
    arena_init(&arena, 4096);
    dice_state = 88172645463325252u;
}

static void teardown(void) {
    arena_release(&arena);
    decoded_close(&decoded);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static size_t dice(size_t sides) {
    dice_state ^= dice_state << 13;
    dice_state ^= dice_state >> 7;
    dice_state ^= dice_state << 17;
    return (size_t)(dice_state >> 16) % sides;
}

// As ck_assert(), which writes down each that holds and takes most of the time with so many.
#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg("%s", #condition);                                                        \
    } while (0)

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static void same_double(double a, double b) {
    HOLDS(bits_of(a) == bits_of(b));
}

static void same_text(struct slice a, struct slice b) {
    HOLDS((a.data == NULL) == (b.data == NULL));
    if (!slice_equal(a, b))
        ck_abort_msg("%.*s, %.*s", (int)a.size, a.data, (int)b.size, b.data);
}

static void same_annotation(const struct span_annotation *a, const struct span_annotation *b) {
    HOLDS((a == NULL) == (b == NULL));
    if (a == NULL)
        return;
    HOLDS(a->count == b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        same_text(a->tags[i], b->tags[i]);
        same_text(a->ids[i], b->ids[i]);
    }
}

static void same_tasks(const struct span_event *a, const struct span_event *b) {
    HOLDS(a->task_count == b->task_count);
    for (uint32_t i = 0; i < a->task_count; i++) {
        same_text(a->tasks[i].key, b->tasks[i].key);
        same_text(a->tasks[i].group, b->tasks[i].group);
        same_annotation(a->tasks[i].annotation, b->tasks[i].annotation);
        HOLDS(a->tasks[i].nbytes == b->tasks[i].nbytes);
        HOLDS(a->tasks[i].first == b->tasks[i].first);
    }
    same_text(a->code, b->code);
    same_text(a->collections, b->collections);
    same_text(a->default_id, b->default_id);
}

static void same_transition(const struct span_event *a, const struct span_event *b) {
    same_text(a->key, b->key);
    HOLDS(a->to == b->to);
    HOLDS(a->nbytes == b->nbytes);
    HOLDS(a->action_count == b->action_count);
    for (uint32_t i = 0; i < a->action_count; i++) {
        same_text(a->actions[i].name, b->actions[i].name);
        same_double(a->actions[i].start_s, b->actions[i].start_s);
        same_double(a->actions[i].stop_s, b->actions[i].stop_s);
    }
}

static void same_metrics(const struct span_event *a, const struct span_event *b) {
    HOLDS(a->metric_count == b->metric_count);
    for (uint32_t i = 0; i < a->metric_count; i++) {
        const struct span_metric *left = &a->metrics[i], *right = &b->metrics[i];
        HOLDS(left->entry == right->entry);
        HOLDS(left->refused == right->refused);
        same_text(left->span_id, right->span_id);
        same_text(left->key, right->key);
        HOLDS(left->is_known_time == right->is_known_time);
        HOLDS(left->whole == right->whole);
        HOLDS(left->integer == right->integer);
        same_double(left->number, right->number);
    }
}

static bool compare_at(struct slice record, enum simd_level level) {
    struct span_event usual = {0};
    simd_limit(level);
    char spaced[RECORD_MAX + 1] = " ";
    arena_reset(&arena);
    char *copy = memory_take(record.size + (record.size == 0)); // a read past its end is seen
    memcpy(copy, record.data, record.size);
    bool read = span_read_usual((struct slice){copy, record.size}, &arena, &usual);
    if (read) {
        memcpy(spaced + 1, record.data, record.size);
        if (decoded_run(&decoded, (struct slice){spaced, record.size + 1}) != DECODE_OK)
            ck_abort_msg("%.*s: %s", (int)record.size, record.data, decoded.fault.detail);
        const struct span_event *general = decoded.event.span;
        HOLDS(usual.kind == general->kind);
        HOLDS(usual.refused == SPAN_ACCEPTED);
        same_double(usual.time_s, general->time_s);
        same_tasks(&usual, general);
        if (usual.kind == SPAN_TRANSITION)
            same_transition(&usual, general);
        same_metrics(&usual, general);
    }
    memory_give(copy);
    return read;
}

// Whether it was read in one pass, which all levels agree in.
static bool compare(struct slice record) {
    bool read = compare_at(record, SIMD_BASELINE);
    if (compare_at(record, SIMD_LEVEL_COUNT - 1) != read)
        ck_abort_msg("%.*s", (int)record.size, record.data);
    return read;
}

// Bytes of it are replaced, put in or taken out, mostly by such as have a meaning.
static size_t change(char *line, size_t size) {
    static const char bytes[] = "0123456789999..--\"\"\\,,::[]{}eE xn\x01\x7f\x80";
    for (size_t times = 1 + dice(3); times > 0; times--) {
        size_t at = dice(size), count = 1 + dice(8), action = dice(4);
        if (action == 0 && size > at + count) {
            memmove(line + at, line + at + count, size - at - count);
            size -= count;
        } else if (action == 1 && size + count < RECORD_MAX && size > at + count) {
            memmove(line + at + count, line + at, size - at); // repeated
            size += count;
        } else {
            line[at] = bytes[dice(sizeof bytes - 1)];
        }
    }
    return size;
}

START_TEST(recorded_and_changed) {
    glob_t streams;
    char *text = NULL, line[RECORD_MAX];
    size_t capacity = 0, read[2] = {0};
    ck_assert_int_eq(glob(TESTS_DIR "/golden/spans/*/events.jsonl", 0, NULL, &streams), 0);
    for (size_t i = 0; i < streams.gl_pathc; i++) {
        FILE *file = fopen(streams.gl_pathv[i], "r");
        ck_assert_ptr_nonnull(file);
        for (ssize_t size; (size = getline(&text, &capacity, file)) > 0;) {
            size -= text[size - 1] == '\n';
            if (size == 0 || size > RECORD_MAX / 2)
                continue;
            read[0] += compare((struct slice){text, (size_t)size});
            for (int k = 0; k < CHANGES; k++) {
                memcpy(line, text, (size_t)size);
                read[1] += compare((struct slice){line, change(line, (size_t)size)});
            }
        }
        fclose(file);
    }
    free(text);
    globfree(&streams);
    ck_assert_uint_gt(read[0], 1500); // of 2,600
    ck_assert_uint_gt(read[1], 2500);
}
END_TEST

START_TEST(numbers) {
    char line[256];
    size_t read = 0;
    for (int i = 0; i < 40000; i++) {
        char digits[2][32];
        for (int k = 0; k < 2; k++) {
            size_t count = dice(22);
            for (size_t j = 0; j < count; j++)
                digits[k][j] = (char)('0' + (dice(3) == 0 ? 0 : dice(10)));
            digits[k][count] = '\0';
        }
        int size = snprintf(line, sizeof line,
                            "{\"ev\":\"metrics\",\"ts\":1700000000.%s,\"worker\":\"w\",\"data\":"
                            "[[\"execute\",\"s\",\"a\",\"b\",%s%s%s%s]]}",
                            digits[0], dice(4) == 0 ? "-" : "", digits[0], dice(2) == 0 ? "." : "",
                            digits[1]);
        read += compare((struct slice){line, (size_t)size});
    }
    ck_assert_uint_gt(read, 4000);
}
END_TEST

// With as many digits as a vector has room for, a few less and a few more, at every distance from
// the end of the line.
START_TEST(numbers_of_any_length) {
    char line[256];
    size_t read = 0;
    for (int before = 0; before <= 19; before += 1 + (before == 2) * 5)
        for (int behind = -1; behind <= 19; behind++)
            for (int more = 0; more < 24; more++) {
                int size = snprintf(line, sizeof line,
                                    "{\"ev\":\"transition\",\"ts\":1%s,\"key\":\"k\",\"to\":"
                                    "\"memory\",\"actions\":[[\"%.*s\",%.*s%s%.*s,%.*s%s%.*s]]",
                                    more % 2 == 0 ? "" : ".5", 1 + more % 3, "abc", before,
                                    "98765432109876543210", behind < 0 ? "" : ".",
                                    behind < 0 ? 0 : behind, "12345678901234567890", before,
                                    "10000000000000000000", behind < 0 ? "" : ".",
                                    behind < 0 ? 0 : behind, "00000000000000000001");
                if (more < 20)
                    size += snprintf(line + size, sizeof line - (size_t)size, ",\"nbytes\":%.*s}",
                                     more, "90071992547409931234");
                else
                    size += snprintf(line + size, sizeof line - (size_t)size, "}");
                read += compare((struct slice){line, (size_t)size});
            }
    ck_assert_uint_gt(read, 1000);
}
END_TEST

// Texts of any length, at every distance from the end of the line, and what they may not hold.
START_TEST(texts_of_any_length) {
    static const char *const ends[] = {"released", "waiting", "no-worker", "queued"};
    char line[256];
    size_t read = 0;
    for (int length = 0; length < 72; length++)
        for (int odd = -1; odd < length; odd++)
            for (int k = 0; k < 4; k++) {
                int size =
                    snprintf(line, sizeof line,
                             "{\"ev\":\"transition\",\"ts\":1,\"key\":\"%0*d\",\"to\":\"%s\"}",
                             length, 7, ends[k]);
                if (odd >= 0)
                    line[33 + odd] = "\"\\\x1f\xc3"[k];
                read += compare((struct slice){line, (size_t)size});
            }
    ck_assert_uint_gt(read, 60);
}
END_TEST

// Equal keys among many, also such as begin and end alike.
START_TEST(repeated_keys) {
    static char line[RECORD_MAX];
    for (int i = 0; i < 2000; i++) {
        size_t count = 1 + dice(120), kinds = 1 + dice(200);
        int size =
            snprintf(line, sizeof line, "{\"ev\":\"tasks\",\"ts\":1,\"group\":\"g\",\"tasks\":[");
        for (size_t k = 0; k < count; k++)
            size += snprintf(line + size, sizeof line - (size_t)size,
                             i % 2 == 0 ? "%s\"k%zu\"" : "%s\"begin-all-%zu-end-alike\"",
                             k == 0 ? "" : ",", dice(kinds));
        size += snprintf(line + size, sizeof line - (size_t)size, "]}");
        HOLDS(size < RECORD_MAX);
        HOLDS(compare((struct slice){line, (size_t)size}));
        const struct span_event *span = decoded.event.span;
        HOLDS(span->task_count == count);
        for (uint32_t k = 0; k < count; k++) {
            uint32_t first = 0;
            while (!slice_equal(span->tasks[first].key, span->tasks[k].key))
                first++;
            HOLDS(span->tasks[k].first == first);
        }
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_spans_usual");
    TCase *cases = tcase_create("decode_spans_usual");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, recorded_and_changed);
    tcase_add_test(cases, numbers);
    tcase_add_test(cases, numbers_of_any_length);
    tcase_add_test(cases, texts_of_any_length);
    tcase_add_test(cases, repeated_keys);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
