// SPDX-License-Identifier: Apache-2.0
// Reads one line of a span stream, and says what is wrong with it whatever came before.
//
// One strict pass over the line finds its fields; then those of its kind are read in the order of
// the format's checks, so that the first that fails is the one that is told. Most lines never come
// to that (usual.h). Cost: each byte is scanned two to four times. Memory: the arena's, at most
// some 30 bytes for each byte of the line.
#include "receivers/decode/spans/spans.h"

#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/spans/read.h"
#include "receivers/decode/spans/usual.h"

#include <assert.h>

// By size.
static const struct slice slot_names[SPAN_SLOT_COUNT] = {
    [SLOT_EV] = {"ev", 2},
    [SLOT_TS] = {"ts", 2},
    [SLOT_TO] = {"to", 2},
    [SLOT_KEY] = {"key", 3},
    [SLOT_SPAN] = {"span", 4},
    [SLOT_CODE] = {"code", 4},
    [SLOT_DATA] = {"data", 4},
    [SLOT_TOTAL] = {"total", 5},
    [SLOT_TASKS] = {"tasks", 5},
    [SLOT_GROUP] = {"group", 5},
    [SLOT_WORKER] = {"worker", 6},
    [SLOT_NBYTES] = {"nbytes", 6},
    [SLOT_ACTIONS] = {"actions", 7},
    [SLOT_NTHREADS] = {"nthreads", 8},
    [SLOT_DEFAULT_ID] = {"default_id", 10},
    [SLOT_COLLECTIONS] = {"collections", 11},
};

// SPAN_SLOT_COUNT: none that is read.
static int find_slot(const struct token *key) {
    // The first name of each size, or of the next that there is.
    static const unsigned char firsts[] = {SLOT_EV,         SLOT_EV,         SLOT_EV,
                                           SLOT_KEY,        SLOT_SPAN,       SLOT_TOTAL,
                                           SLOT_WORKER,     SLOT_ACTIONS,    SLOT_NTHREADS,
                                           SLOT_DEFAULT_ID, SLOT_DEFAULT_ID, SLOT_COLLECTIONS};
    if (key->escaped || key->size == 0) {
        int slot = 0;
        while (slot < SPAN_SLOT_COUNT && !token_equals(key, slot_names[slot]))
            slot++;
        return slot;
    }
    if (key->size >= sizeof firsts)
        return SPAN_SLOT_COUNT;
    int slot = firsts[key->size];
    for (; slot < SPAN_SLOT_COUNT && slot_names[slot].size == key->size; slot++)
        if (slot_names[slot].data[0] == key->text[0] &&
            memcmp(slot_names[slot].data, key->text, key->size) == 0)
            return slot;
    return SPAN_SLOT_COUNT;
}

static const char *read_members(const char *at, const char *end, struct token *slots,
                                struct json_fault *fault) {
    struct json_members members = {.first = true};
    struct token key, ignored;
    while ((at = json_next_member(&members, at, end, &key, fault)) != NULL && !members.done) {
        if (!json_token_is_strict(&key, end, fault))
            return NULL;
        int slot = find_slot(&key);
        at = json_scan_strict_value(at, end, 1, slot < SPAN_SLOT_COUNT ? &slots[slot] : &ignored,
                                    fault);
    }
    return at;
}

// All of the line, its fields into the slots.
static bool read_fields(struct span_line *line, struct slice record) {
    const char *end = record.data + record.size;
    const char *at = record.size == 0 ? end : json_skip_space(record.data, end);
    struct json_fault json;
    if (json_peek(at, end) != '{') {
        line->event->refused = SPAN_BAD_JSON;
        fault_set(line->fault, DECODE_NOT_OBJECT, SLICE(""),
                  "not a JSON object; an event of a span stream is one");
        return false;
    }
    if (json_read_end(read_members(at, end, line->slots, &json), end, &json) != NULL)
        return true;
    line->event->refused = SPAN_BAD_JSON;
    fault_json(line->fault, record, &json);
    return false;
}

static bool read_kind(struct span_line *line) {
    static const struct slice names[SPAN_NO_KIND] = {
        [SPAN_START] = {"start", 5},
        [SPAN_JOIN] = {"join", 4},
        [SPAN_LEAVE] = {"leave", 5},
        [SPAN_THREADS] = {"threads", 7},
        [SPAN_TASKS] = {"tasks", 5},
        [SPAN_DATA] = {"data", 4},
        [SPAN_TRANSITION] = {"transition", 10},
        [SPAN_METRICS] = {"metrics", 7},
    };
    const struct token *token = &line->slots[SLOT_EV];
    if (token->kind != TOKEN_STRING)
        return span_refuse_value(line, SPAN_BAD_EVENT, "ev", token, "the kind of the event");
    for (int kind = 0; kind < SPAN_NO_KIND; kind++) {
        if (token_equals(token, names[kind])) {
            line->event->kind = (enum span_event_kind)kind;
            return true;
        }
    }
    return span_refuse_choice(line, SPAN_BAD_EVENT, "ev", token,
                              "start, join, leave, threads, tasks, data, transition or metrics");
}

static bool read_time(struct span_line *line) {
    const struct token *token = &line->slots[SLOT_TS];
    if (!span_token_is_number(token))
        return span_refuse_value(line, SPAN_BAD_FIELD, "ts", token, "seconds since 1970, a number");
    double time_s = json_number_double(token);
    if (!(time_s > 0 && time_s <= SPAN_SECONDS_MAX))
        return span_refuse(line, SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "ts",
                           "found %g, expected seconds above 0, up to 1e11", time_s);
    line->event->time_s = time_s;
    return true;
}

static bool read_worker(struct span_line *line) {
    return span_read_text(line, SPAN_BAD_FIELD, "worker", &line->slots[SLOT_WORKER], false,
                          &line->event->worker);
}

static bool read_event(struct span_line *line) {
    struct span_event *event = line->event;
    const struct token *nthreads = &line->slots[SLOT_NTHREADS];
    switch (event->kind) {
    case SPAN_START:
        return nthreads->kind == TOKEN_NONE ||
               span_read_count(line, "nthreads", nthreads, &event->threads);
    case SPAN_JOIN:
        return read_worker(line) && span_read_count(line, "nthreads", nthreads, &event->threads);
    case SPAN_LEAVE:
        return read_worker(line);
    case SPAN_THREADS:
        return span_read_count(line, "total", &line->slots[SLOT_TOTAL], &event->threads);
    case SPAN_TASKS:
    case SPAN_DATA:
        return span_read_tasks(line, event->kind == SPAN_DATA);
    case SPAN_TRANSITION:
        return span_read_transition(line);
    case SPAN_METRICS:
        return span_read_metrics(line);
    case SPAN_NO_KIND:
        break;
    }
    return false;
}

// Nanoseconds of a time above 0: at least 1. Later than they can say (the year 2554): the last one,
// which nobody may take for the time that it is.
static void set_time(struct event *event, double time_s) {
    static const double EXACT = 0x1p52; // from here on doubles are whole, and so the sum is rounded
    assert(time_s > 0 && time_s <= SPAN_SECONDS_MAX);
    uint64_t whole_s = (uint64_t)time_s;
    event->timeless = whole_s >= UINT64_C(18446744073);
    event->time_ns = UINT64_MAX;
    if (!event->timeless) {
        double rest_ns = (time_s - (double)whole_s) * 1e9;
        event->time_ns = whole_s * UINT64_C(1000000000) + (uint64_t)(rest_ns + EXACT - EXACT);
    }
    if (event->time_ns == 0)
        event->time_ns = 1;
}

// Any line, in the order of the format's checks. What it needs of the stack is not made for others.
__attribute__((noinline)) static enum decode_category
decode_generally(struct slice record, struct arena *arena, struct event *event,
                 struct span_event *span, struct decode_fault *fault) {
    struct span_line line = {.arena = arena, .fault = fault, .event = span};
    *span = (struct span_event){.kind = SPAN_NO_KIND};
    bool timed = read_fields(&line, record) && read_kind(&line) && read_time(&line);
    if (timed && read_event(&line))
        return DECODE_OK;
    span->refused_early = !timed;
    event->time_ns = 0;
    event->timeless = true;
    fault->told = true;
    return fault->category;
}

static enum decode_category decode(void *state, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    (void)state;
    struct span_event *span = arena_take(arena, sizeof *span);
    *span = (struct span_event){0};
    event->kind = EVENT_SPAN;
    event->job = STRING_NONE;
    event->node = STRING_NONE;
    event->rank = RANK_NONE;
    event->span = span;
    if (!span_read_usual(record, arena, span)) {
        enum decode_category category = decode_generally(record, arena, event, span, fault);
        if (category != DECODE_OK)
            return category;
    }
    set_time(event, span->time_s);
    fault->category = DECODE_OK;
    return DECODE_OK;
}

const struct decoder_type decoder_spans = {
    .name = "spans",
    .decode = decode,
};
