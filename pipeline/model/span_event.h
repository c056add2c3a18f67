// SPDX-License-Identifier: Apache-2.0
// EVENT_SPAN: one line of a span stream, what dask's scheduler knows of tasks and their spans.
//
// The format and what each event does stand in docs/spans.md. A line that is refused is an event
// too: what is wrong with it may depend on what came before it, which only the stage knows, so the
// stage names the first of the checks that fails. Payloads lie in the batch's arena; texts are
// decoded UTF-8, NULs in them were refused. Times are seconds since 1970.
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum span_event_kind {
    SPAN_START,
    SPAN_JOIN,
    SPAN_LEAVE,
    SPAN_THREADS,
    SPAN_TASKS,
    SPAN_DATA,
    SPAN_TRANSITION,
    SPAN_METRICS,
    SPAN_NO_KIND, // refused before it was known
};

// Why a line, or one entry of `metrics`, has no effect.
enum span_refusal {
    SPAN_ACCEPTED,
    SPAN_BAD_JSON,
    SPAN_BAD_EVENT,
    SPAN_BAD_FIELD,
    SPAN_NOT_STARTED,
    SPAN_ALREADY_STARTED,
    SPAN_DUPLICATE_WORKER,
    SPAN_UNKNOWN_WORKER,
    SPAN_BAD_SPAN,
    SPAN_GROUP_MISMATCH,
    SPAN_BAD_STATE,
    SPAN_UNKNOWN_TASK,
    SPAN_BAD_ENTRY,
    SPAN_UNKNOWN_SPAN,
    SPAN_LIMIT, // a bound of culprit was reached
    SPAN_REFUSAL_COUNT
};
const char *span_refusal_name(enum span_refusal refusal); // "bad-json"

// In this order wherever all are listed.
enum task_state {
    TASK_RELEASED,
    TASK_WAITING,
    TASK_NO_WORKER,
    TASK_QUEUED,
    TASK_PROCESSING,
    TASK_MEMORY,
    TASK_ERRED,
    TASK_FORGOTTEN,
    TASK_STATE_COUNT
};
const char *task_state_name(enum task_state state); // "no-worker"
// Waiting, no-worker, queued or processing: its span is not done.
static inline bool task_state_is_active(enum task_state state) {
    return state >= TASK_WAITING && state <= TASK_PROCESSING;
}

// Spans may stand this deep in one another; an annotation that is longer is refused (bad-span).
enum { SPAN_DEPTH_MAX = 1024 };

// Which span a task belongs to, from the root to the leaf.
struct span_annotation {
    const struct slice *tags;
    const struct slice *ids;
    uint32_t count; // at least 1
};

struct span_task {
    struct slice key;
    struct slice group;                       // its own, else the event's
    const struct span_annotation *annotation; // its own, else the event's; NULL: none
    int64_t nbytes;                           // SPAN_DATA; -1: not given
    uint32_t first; // index of the first task of this event with the same key; its own, if none
};

struct span_action {
    struct slice name;
    double start_s, stop_s; // on the worker's clock
};

// One entry of `metrics`, in the order of the line; those that the format drops are not there.
struct span_metric {
    uint32_t entry;            // its index in the line, from 0
    enum span_refusal refused; // SPAN_ACCEPTED or SPAN_BAD_ENTRY; else only `entry` is set
    struct slice span_id;
    // The context and all labels as a compact JSON array, the same text for the same key:
    // ["execute","fwd","gpu","seconds"].
    struct slice key;
    bool is_known_time; // first part execute, last part seconds
    bool whole;         // an integer, in `integer`; else `number`
    int64_t integer;
    double number;
};

struct span_event {
    enum span_event_kind kind;
    // The first thing that is wrong whatever came before. SPAN_ACCEPTED: nothing.
    enum span_refusal refused;
    // With `refused`: it is one of the checks up to that of `ts`, which come before those of the
    // state; with SPAN_TASKS and SPAN_DATA the groups of `tasks` were found right before it.
    bool refused_early;
    double time_s; // ts

    struct slice worker;     // JOIN, LEAVE
    int64_t threads;         // START, JOIN: nthreads; THREADS: total
    struct span_task *tasks; // TASKS, DATA; when refused those before, and the one that is wrong
    uint32_t task_count;     // once its group was right
    struct slice code;       // TASKS: one call stack, a compact JSON array of objects with all four
                             // members in the order code, filename, lineno_frame, lineno_relative;
                             // data NULL: none or empty
    struct slice collections; // TASKS: the array's items as they came, between commas, without the
                              // brackets; data NULL: not given; empty: an empty array
    struct slice default_id;  // TASKS; data NULL: none

    struct slice key; // TRANSITION
    enum task_state to;
    int64_t nbytes; // -1: not given
    const struct span_action *actions;
    uint32_t action_count;

    const struct span_metric *metrics; // METRICS
    uint32_t metric_count;
};
