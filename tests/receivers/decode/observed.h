// SPDX-License-Identifier: Apache-2.0
// For tests of readers: an input is decoded line by line, or as one record, and what came out is
// written as text, an event a line, to be compared with what is expected:
//
//     "3+1 ras_peer_dead @1773453017000000000 host=10.20.0.8 pid=90012 nvml_device=5\n"
//
// that is the position and the number of lines, the kind, the time ('-': none of its own), node and
// rank where they are known, and the facts in their order. A refusal is "9 refused truncated\n".
// Lines of no interest are not written, but counted: each line that is not empty must be one of the
// three.
#pragma once

#include "base/memory.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/observation.h"
#include "tests/receivers/decode/found.h"

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBSERVED_MAX = 1 << 19 };

struct observed {
    char text[OBSERVED_MAX];
    size_t size;
    uint64_t lines; // event, refused or of no interest
};

static const uint64_t OBSERVED_NOW = UINT64_C(1773964800000000000); // 2026-03-20T00:00:00Z

// Whether inputs end; then what sums up other records is told, too.
static bool observed_ends;

__attribute__((format(printf, 2, 3))) static inline void observed_put(struct observed *observed,
                                                                      const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(observed->text + observed->size, OBSERVED_MAX - observed->size, format,
                         arguments);
    va_end(arguments);
    ck_assert_int_lt(size, (int)(OBSERVED_MAX - observed->size));
    observed->size += (size_t)size;
}

static inline void observed_fact(struct observed *observed, const struct fact *fact) {
    observed_put(observed, " %s=", fact_name(fact->key));
    switch (fact_type(fact->key)) {
    case FACT_NUMBER:
        observed_put(observed, "%" PRId64, fact->number);
        break;
    case FACT_TEXT:
        observed_put(observed, "%.*s", (int)fact->text.size, fact->text.data);
        break;
    case FACT_YES_NO:
        observed_put(observed, "%s", fact->yes ? "yes" : "no");
        break;
    case FACT_PCI_ADDRESS:
        observed_put(observed, "%08x", (unsigned)fact->address);
        break;
    }
}

static inline void observed_event(struct observed *observed, const struct event *event) {
    ck_assert_int_eq(event->kind, EVENT_OBSERVATION);
    ck_assert_uint_ne(event->time_ns, 0);
    const struct observation *seen = event->observation;
    observed_put(observed, "%" PRIu64 "+%u %s ", event->position, event->lines,
                 observation_name(seen->kind));
    if (event->timeless)
        observed_put(observed, "-");
    else
        observed_put(observed, "@%" PRIu64, event->time_ns);
    if (event->node != STRING_NONE) {
        struct slice node = intern_slice(event->node);
        observed_put(observed, " host=%.*s", (int)node.size, node.data);
    }
    if (event->rank != RANK_NONE)
        observed_put(observed, " rank=%d", (int)event->rank);
    for (uint32_t i = 0; i < seen->fact_count; i++)
        observed_fact(observed, &seen->facts[i]);
    observed_put(observed, "\n");
}

static inline void observed_settle(struct observed *observed, enum decode_category category,
                                   const struct event *event, const struct decode_fault *fault) {
    if (category == DECODE_HELD)
        return;
    observed->lines += event->lines;
    if (category == DECODE_OK || (category == DECODE_BESIDE && observed_ends))
        observed_event(observed, event);
    if (!decode_refused(category))
        return;
    ck_assert_int_eq(fault->category, category);
    ck_assert_uint_gt(strlen(fault->detail), 0);
    observed_put(observed, "%" PRIu64 " refused %s\n", event->position,
                 decode_category_name(category));
}

static inline void observed_more(struct observed *observed, const struct decoder_type *type,
                                 void *state, struct arena *arena, uint64_t position) {
    enum decode_category category = DECODE_END;
    do {
        struct event event = {.position = position, .lines = 1, .rank = RANK_NONE};
        struct decode_fault fault = {0};
        arena_reset(arena); // a batch may end behind any event
        category = type->next == NULL ? DECODE_END : type->next(state, arena, &event, &fault);
        if (category != DECODE_END)
            observed_settle(observed, category, &event, &fault);
    } while (category != DECODE_END);
}

static inline void observed_record(struct observed *observed, const struct decoder_type *type,
                                   void *state, struct slice record, uint64_t position) {
    struct arena arena;
    struct event event = {.position = position, .lines = 1, .rank = RANK_NONE, .raw = record};
    struct decode_fault fault = {0};
    arena_init(&arena, 4096);
    // A block of its own size, so that a read past its end is seen.
    char *copy = memory_take(record.size + (record.size == 0));
    if (record.size > 0)
        memcpy(copy, record.data, record.size);
    enum decode_category category =
        type->decode(state, (struct slice){copy, record.size}, &arena, &event, &fault);
    found_by_search(type, record, category);
    observed_settle(observed, category, &event, &fault);
    observed_more(observed, type, state, &arena, position);
    memory_give(copy);
    arena_release(&arena);
}

static inline void *observed_open(const struct decoder_type *type, const char *node) {
    void *state = memory_zero(1, type->state_size + 1);
    struct decoder_input input = {.path = SLICE("input"),
                                  .observed_ns = OBSERVED_NOW,
                                  .node = slice_of(node),
                                  .is_file = true,
                                  .ends = observed_ends};
    if (type->begin != NULL)
        type->begin(state, &input);
    return state;
}

static inline void observed_close(struct observed *observed, const struct decoder_type *type,
                                  void *state) {
    struct arena arena;
    arena_init(&arena, 4096);
    if (type->finish != NULL) {
        type->finish(state);
        observed_more(observed, type, state, &arena, 0);
    }
    ck_assert(type->holds == NULL || !type->holds(state));
    if (type->release != NULL)
        type->release(state);
    memory_give(state);
    arena_release(&arena);
}

// Line by line; empty ones are left out, as receivers do.
static inline const struct observed *observed_lines(const struct decoder_type *type,
                                                    struct slice text) {
    static struct observed observed;
    observed.size = observed.lines = 0;
    observed.text[0] = '\0';
    void *state = observed_open(type, "");
    uint64_t number = 0, full = 0;
    while (text.size > 0) {
        const char *newline = memchr(text.data, '\n', text.size);
        size_t size = newline == NULL ? text.size : (size_t)(newline - text.data);
        number++;
        if (size > 0 && !(size == 1 && text.data[0] == '\r')) {
            full++;
            observed_record(&observed, type, state, (struct slice){text.data, size}, number);
        }
        size += newline != NULL;
        text = (struct slice){text.data + size, text.size - size};
    }
    observed_close(&observed, type, state);
    ck_assert_uint_eq(observed.lines, full);
    return &observed;
}

static inline const struct observed *observed_whole(const struct decoder_type *type,
                                                    struct slice record) {
    static struct observed observed;
    observed.size = observed.lines = 0;
    observed.text[0] = '\0';
    void *state = observed_open(type, "");
    observed_record(&observed, type, state, record, 1);
    observed_close(&observed, type, state);
    ck_assert_uint_eq(observed.lines, 1);
    return &observed;
}

// The same text with "\r\n" at the ends of its lines; to be given back.
static inline struct slice observed_crlf(struct slice text) {
    char *copy = memory_take(2 * text.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\n')
            copy[size++] = '\r';
        copy[size++] = text.data[i];
    }
    return (struct slice){copy, size};
}

// Decodes the lines as they are, with "\r\n", and every prefix; then all that is expected is there.
static inline void observed_check(const struct decoder_type *type, const char *lines,
                                  const char *expected) {
    struct slice text = slice_of(lines);
    ck_assert_str_eq(observed_lines(type, text)->text, expected);
    struct slice crlf = observed_crlf(text);
    ck_assert_str_eq(observed_lines(type, crlf)->text, expected);
    memory_give((void *)(uintptr_t)crlf.data);
    for (size_t size = 0; size < text.size; size++)
        observed_lines(type, (struct slice){text.data, size});
}
