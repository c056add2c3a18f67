// SPDX-License-Identifier: Apache-2.0
// For tests of readers of messages: what the events of some lines say, as text.
//
//     1 oom_kill; pid=4711; process=python3
//     2 refused truncated
//
// One line for each event or refusal, in the order of the numbers of their first records. Facts in
// the order of enum fact_key.
#pragma once

#include "base/memory.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/log/log.h"
#include "tests/receivers/decode/found.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAID_SIZE = 16 << 10 };

struct said {
    char text[SAID_SIZE];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static inline void said_add(struct said *said,
                                                                  const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(said->text + said->size, SAID_SIZE - said->size, format, arguments);
    va_end(arguments);
    ck_assert(size >= 0 && said->size + (size_t)size < SAID_SIZE);
    said->size += (size_t)size;
}

static inline void said_slice(struct said *said, const char *name, struct slice text) {
    if (text.size > 0)
        said_add(said, "; %s=%.*s", name, (int)text.size, text.data);
}

static inline void said_address(struct said *said, const char *name, pci_address address) {
    char text[PCI_TEXT_MAX] = "none";
    if (address != PCI_NONE)
        pci_format_function(address, text);
    said_add(said, "; %s=%s", name, text);
}

static inline void said_kernel(struct said *said, const struct kernel_line *line) {
    static const char *const fatal[] = {"unknown", "false", "true"};
    said_address(said, "at", line->address);
    if (line->kind == KERNEL_XID || line->kind == KERNEL_SXID)
        said_add(said, "; code=%u", line->code);
    if (line->pid >= 0)
        said_add(said, "; pid=%" PRId64, line->pid);
    said_slice(said, "process", line->process);
    if (line->link >= 0)
        said_add(said, "; link=%d", line->link);
    if (line->fatal != KERNEL_FATAL_UNKNOWN)
        said_add(said, "; fatal=%s", fatal[line->fatal]);
    said_slice(said, "unit", line->unit);
    said_slice(said, "action", line->action);
    if (line->caused_by != 0)
        said_add(said, "; caused_by_xid=%u", line->caused_by);
    said_slice(said, "gpu_uuid", line->uuid);
}

static inline void said_fact(struct said *said, const struct fact *fact) {
    const char *name = fact_name(fact->key);
    switch (fact_type(fact->key)) {
    case FACT_NUMBER:
        said_add(said, "; %s=%" PRId64, name, fact->number);
        break;
    case FACT_TEXT:
        said_add(said, "; %s=%.*s", name, (int)fact->text.size, fact->text.data);
        break;
    case FACT_YES_NO:
        said_add(said, "; %s=%s", name, fact->yes ? "true" : "false");
        break;
    case FACT_PCI_ADDRESS:
        said_address(said, name, fact->address);
        break;
    }
}

static inline void said_event(struct said *said, const struct event *event) {
    said_add(said, "%" PRIu64 " %s", event->position, event_class_name(event_class(event)));
    if (event->timeless)
        said_add(said, "; timeless");
    if (event->lines != 1)
        said_add(said, "; lines=%" PRIu32, event->lines);
    if (event->kind == EVENT_KERNEL) {
        said_kernel(said, event->kernel);
    } else {
        ck_assert_int_eq(event->kind, EVENT_OBSERVATION);
        for (uint32_t i = 0; i < event->observation->fact_count; i++)
            said_fact(said, &event->observation->facts[i]);
    }
    said_add(said, "\n");
}

struct said_source {
    const struct decoder_type *decoder;
    void *state;
    struct arena arena;
    struct event event;
    struct decode_fault fault;
};

static inline struct said_source said_open(const struct decoder_type *decoder) {
    // Booted on 2026-03-02T06:00:00Z, read on 2026-03-20.
    struct decoder_input input = {.path = SLICE("log"),
                                  .boot_ns = UINT64_C(1772431200000000000),
                                  .observed_ns = UINT64_C(1773964800000000000),
                                  .is_file = true};
    struct said_source source = {.decoder = decoder, .state = memory_zero(1, decoder->state_size)};
    decoder->begin(source.state, &input);
    arena_init(&source.arena, 16 << 10);
    return source;
}

static inline void said_close(struct said_source *source) {
    source->decoder->release(source->state);
    memory_give(source->state);
    arena_release(&source->arena);
}

// What `category` was; false at the end.
static inline bool said_take(struct said *said, struct said_source *source,
                             enum decode_category category) {
    if (category == DECODE_OK)
        said_event(said, &source->event);
    else if (decode_refused(category))
        said_add(said, "%" PRIu64 " refused %s\n", source->event.position,
                 decode_category_name(category));
    return category != DECODE_END;
}

static inline void said_rest(struct said *said, struct said_source *source) {
    while (said_take(
        said, source,
        source->decoder->next(source->state, &source->arena, &source->event, &source->fault))) {
    }
}

// A record, in a block of its own size, so that a read past its end is seen.
static inline void said_record(struct said *said, struct said_source *source, struct slice line,
                               uint64_t position) {
    char *copy = malloc(line.size == 0 ? 1 : line.size);
    if (line.size > 0)
        memcpy(copy, line.data, line.size);
    source->event = (struct event){.position = position, .lines = 1, .rank = RANK_NONE};
    source->fault = (struct decode_fault){0};
    enum decode_category category =
        source->decoder->decode(source->state, (struct slice){copy, line.size}, &source->arena,
                                &source->event, &source->fault);
    found_by_search(source->decoder, line, category);
    said_take(said, source, category);
    said_rest(said, source);
    free(copy);
}

static inline void said_finish(struct said *said, struct said_source *source) {
    source->decoder->finish(source->state);
    said_rest(said, source);
}

static inline int said_compare(const void *a, const void *b) {
    const char *const *left = a, *const *right = b;
    unsigned long long x = strtoull(*left, NULL, 10), y = strtoull(*right, NULL, 10);
    return x == y ? (*left > *right) - (*left < *right) : x < y ? -1 : 1;
}

// Blocks are given when they end, behind lines that came later.
static inline void said_sort(struct said *said) {
    enum { LINES_MAX = 256 };
    const char *lines[LINES_MAX];
    size_t count = 0;
    for (const char *at = said->text; *at != '\0'; at = strchr(at, '\n') + 1) {
        ck_assert_uint_lt(count, LINES_MAX);
        lines[count++] = at;
    }
    qsort(lines, count, sizeof *lines, said_compare);
    char sorted[SAID_SIZE];
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = (size_t)(strchr(lines[i], '\n') - lines[i]) + 1;
        memcpy(sorted + size, lines[i], length);
        size += length;
    }
    ck_assert_uint_eq(size, said->size);
    memcpy(said->text, sorted, size);
}

// What the lines of `text` say, each with `front` in front of it and `end` behind.
static inline void said_lines(struct said *said, const struct decoder_type *decoder,
                              struct slice text, const char *front, const char *end) {
    struct said_source source = said_open(decoder);
    uint64_t position = 0;
    said->size = 0;
    said->text[0] = '\0';
    while (text.size > 0) {
        const char *newline = memchr(text.data, '\n', text.size);
        size_t size = newline == NULL ? text.size : (size_t)(newline - text.data);
        char line[4096];
        int whole = snprintf(line, sizeof line, "%s%.*s%s", front, (int)size, text.data, end);
        ck_assert(whole > 0 && (size_t)whole < sizeof line);
        said_record(said, &source, (struct slice){line, (size_t)whole}, ++position);
        size += newline != NULL;
        text = (struct slice){text.data + size, text.size - size};
    }
    said_finish(said, &source);
    said_close(&source);
    said_sort(said);
}
