// SPDX-License-Identifier: Apache-2.0
// For tests of the readers of how processes ended: lines of several writers, whose prefixes are
// peeled already, and the events that they become, as text.
//
// A line is "[rank3]: message", "[time] message" (its time is then TIME) or a message. An event
// reads "2+4 exception | rank=3 | exception=KeyError …": the number of its first line, how many
// lines it takes, its kind, the time in seconds where the message says one, rank, node, and its
// facts.
#pragma once

#include "base/hash/hash.h"
#include "base/intern.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text/cut.h"
#include "receivers/decode/line/reading.h"
#include "receivers/decode/log/log.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { EVENTS_MAX = 64, EVENT_TEXT_MAX = 1400 };
static const uint64_t OBSERVED = UINT64_C(1773964800000000000);
static const uint64_t TIME = UINT64_C(1773453018000000000);

struct told {
    uint64_t position;
    bool truncated;
    uint32_t kind;
    char text[EVENT_TEXT_MAX];
};

struct reading_log {
    void *state;
    struct arena arena;
    uint64_t position;
    uint32_t count;
    struct told events[EVENTS_MAX];
};

static inline void tell(struct told *told, const char *format, ...) PRINTF_LIKE(2, 3);
static inline void tell(struct told *told, const char *format, ...) {
    size_t used = strlen(told->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(told->text + used, sizeof told->text - used, format, arguments);
    va_end(arguments);
}

static inline void tell_fact(struct told *told, const struct fact *fact) {
    tell(told, " | %s=", fact_name(fact->key));
    switch (fact_type(fact->key)) {
    case FACT_NUMBER:
        tell(told, "%lld", (long long)fact->number);
        break;
    case FACT_TEXT:
        tell(told, "%.*s", (int)(fact->text.size > 700 ? 700 : fact->text.size), fact->text.data);
        break;
    case FACT_YES_NO:
        tell(told, "%s", fact->yes ? "yes" : "no");
        break;
    case FACT_PCI_ADDRESS:
        ck_abort_msg("no reader of ends tells of a device");
    }
}

static inline void tell_event(struct told *told, const struct event *event) {
    *told = (struct told){.position = event->position, .kind = event_class(event)};
    tell(told, "%llu+%u %s", (unsigned long long)event->position, event->lines,
         event_class_name(event_class(event)));
    if (!event->timeless)
        tell(told, " | at=%llu.%03llu", (unsigned long long)(event->time_ns / 1000000000),
             (unsigned long long)(event->time_ns / 1000000 % 1000));
    if (event->rank != RANK_NONE)
        tell(told, " | rank=%d", event->rank);
    if (event->node != STRING_NONE)
        tell(told, " | node=%.*s", (int)intern_slice(event->node).size,
             intern_slice(event->node).data);
    ck_assert_int_eq(event->kind, EVENT_OBSERVATION);
    for (uint32_t i = 0; i < event->observation->fact_count; i++)
        tell_fact(told, &event->observation->facts[i]);
    told->truncated = observation_is(event->observation, FACT_TRUNCATED, false);
}

static inline void keep(struct reading_log *log, enum decode_category category,
                        const struct event *event) {
    ck_assert_int_ne(category, DECODE_BAD_JSON);
    if (category != DECODE_OK)
        return;
    ck_assert_uint_lt(log->count, EVENTS_MAX);
    // In the order of lines: blocks are told when they are over.
    uint32_t at = log->count++;
    for (; at > 0 && log->events[at - 1].position > event->position; at--)
        log->events[at] = log->events[at - 1];
    tell_event(&log->events[at], event);
}

static inline void take_rest(struct reading_log *log) {
    struct event event = {.rank = RANK_NONE};
    struct decode_fault fault = {0};
    enum decode_category category;
    while ((category = log_next(log->state, &log->arena, &event, &fault)) != DECODE_END)
        keep(log, category, &event);
    arena_reset(&log->arena);
}

static inline struct frame frame_of(struct slice line, uint64_t position) {
    struct frame frame;
    struct slice rest = line;
    uint64_t rank;
    frame_clear(&frame, line, position);
    if (text_skip(&rest, SLICE("[rank")) && text_take_number(&rest, 1, 5, &rank) &&
        text_skip(&rest, SLICE("]: "))) {
        frame.message = rest;
        frame.rank = (int32_t)rank;
        frame.key = rank + 1;
        frame.has_writer = true;
        return frame;
    }
    rest = line;
    if (text_skip(&rest, SLICE("[time] "))) {
        frame.message = rest;
        frame.time_ns = TIME;
    }
    return frame;
}

static inline void take_line(struct reading_log *log, struct slice line, bool truncated) {
    struct event event = {.rank = RANK_NONE};
    struct decode_fault fault = {0};
    // In a block of its own, so that a read past its end is seen.
    char *copy = memory_take(line.size + (line.size == 0));
    if (line.size > 0)
        memcpy(copy, line.data, line.size);
    struct frame frame = frame_of((struct slice){copy, line.size}, ++log->position);
    frame.truncated = truncated;
    keep(log, log_decode_message(log->state, &frame, false, &log->arena, &event, &fault), &event);
    take_rest(log);
    memory_give(copy);
}

// `size` bytes of the text, line by line; one without its newline was cut when there was more.
static inline void read_log(struct reading_log *log, struct slice text, size_t size) {
    struct decoder_input input = {.path = SLICE("log"), .observed_ns = OBSERVED, .is_file = true};
    struct slice rest = {text.data, size};
    memset(log, 0, sizeof *log);
    log->state = memory_zero(1, LOG_STATE_SIZE);
    arena_init(&log->arena, 4096);
    log_begin(log->state, &input, FORM_ANY);
    while (rest.size > 0) {
        bool whole = memchr(rest.data, '\n', rest.size) != NULL || size == text.size;
        take_line(log, text_take_line(&rest), !whole);
    }
    log_finish(log->state);
    take_rest(log);
    log_release(log->state);
    memory_give(log->state);
    arena_release(&log->arena);
}
