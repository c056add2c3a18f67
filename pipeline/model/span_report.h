// SPDX-License-Identifier: Apache-2.0
// What the spans stage shows at an evaluation: trees of spans that can be asked, and how the time
// of a job's ranks went by phase.
//
// Nothing is worked out before it is asked: the functions of `ask` look into the stage's own
// memory, which stands still while exporters encode. Reports and what lies in them die with the
// batch; answers lie in the arena that is handed in. One thread. Meanings, sources and formulas:
// docs/spans.md.
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "pipeline/model/span_event.h"

// A value of a metric, or bytes: whole as long as all that was added is.
struct span_number {
    bool whole;
    __int128 integer;
    double number;
};
static inline double span_number_value(const struct span_number *number) {
    return number->whole ? (double)number->integer : number->number;
}

struct span_duration {
    struct slice action;
    double seconds;
};

struct span_metric_sum {
    struct slice key; // a compact JSON array: ["execute","fwd","gpu","seconds"]
    struct span_number value;
};

struct span_interval {
    double begin_s, end_s;
    int64_t threads;
};

struct span_group_answer {
    struct slice name;
    double start_s, stop_s; // 0: not yet
    bool done;
    uint64_t states[TASK_STATE_COUNT];
    const struct span_duration *durations; // by action, in order of first appearance
    uint32_t duration_count;
    double duration_s; // their sum
    __int128 nbytes;
};

// What one span, or several merged, answers. Sums are over its tree.
struct span_answer {
    struct slice id;          // "(merged)" for a merge
    const struct slice *name; // tags from the root to itself
    uint32_t name_count;
    struct slice parent;          // its id; data NULL: none
    const struct slice *children; // ids
    uint32_t child_count;
    bool annotated;                     // false: the default span, and a merge
    const struct slice *annotation_ids; // along the parents, the root first
    uint32_t annotation_id_count;
    double enqueued_s, start_s, stop_s; // start 0: nothing ended computing yet
    bool done;
    uint64_t states[TASK_STATE_COUNT];
    const struct span_duration *durations;
    uint32_t duration_count;
    double duration_s;
    __int128 nbytes_total;
    // With the idle time as its last or replaced entry.
    const struct span_metric_sum *metrics;
    uint32_t metric_count;
    double idle_s; // "idle or other spans", of it
    const struct span_interval *intervals;
    uint32_t interval_count;
    double active_cpu_s;      // thread seconds that it had
    const struct slice *code; // JSON arrays
    uint32_t code_count;
    bool has_metadata;
    struct slice collections;               // JSON values between commas
    const struct span_group_answer *groups; // its own, in order of creation
    uint32_t group_count;
    uint64_t folded; // finished spans that were taken up into its totals to bound memory
};

enum span_query_result {
    SPAN_RESULT_ERROR,
    SPAN_RESULT_SPAN,
    SPAN_RESULT_SPANS,
    SPAN_RESULT_IDS,
    SPAN_RESULT_TASK
};

struct span_query_answer {
    struct slice query; // as it was asked: a JSON object without white space around it
    enum span_query_result kind;
    struct slice error; // "unknown-span"
    const struct span_answer *spans;
    uint32_t span_count;
    const struct slice *ids;
    uint32_t id_count;
    struct {
        struct slice group;
        struct slice span; // data NULL: none
        enum task_state state;
        int64_t nbytes; // -1: none yet
    } task;
};

struct span_refused {
    uint64_t line; // as the source counts them, from 1
    int64_t entry; // of `metrics`, from 0; -1: the line itself
    enum span_refusal refusal;
};

struct span_thread_point {
    double time_s;
    int64_t threads;
};

// A rank in a phase.
struct span_phase_rank {
    int32_t rank;
    uint64_t openings; // how often it was in the phase
    double busy_s;     // how long altogether
    double lag_s;      // how much longer than the median of the ranks, opening by opening; those in
                       // which it was faster count nothing
    uint64_t slowest;  // openings in which it was the last to leave
    bool inside;       // it is in it now
};

// All openings of a phase together: the ranks enter, each in its time, and leave.
struct span_phase {
    struct slice label; // as phase attribution says it: "train / forward"
    uint32_t depth;     // parts of the label
    uint64_t openings;  // the n-th time of every rank is one opening
    double thread_s;    // from the first rank's entering to the last one's leaving, times the
                        // threads that the job had meanwhile
    double busy_s;      // of it: ranks inside
    double idle_s;      // of it: ranks that waited, or were elsewhere
    const struct span_phase_rank *ranks; // by lag, the largest first
    uint32_t rank_count;
};

struct span_tree;

struct span_asker {
    // The spans in order of creation, or the roots: false at the end. Begin with *at = 0.
    bool (*next)(const struct span_tree *tree, uint32_t *at, uint32_t *span);
    bool (*next_root)(const struct span_tree *tree, uint32_t *at, uint32_t *span);
    // Its children in order: NULL-terminated walk as above. Begin with *at = 0.
    bool (*next_child)(const struct span_tree *tree, uint32_t span, uint32_t *at, uint32_t *child);
    // What it answers at the clock `now_s`. Costs about its tree.
    void (*answer)(const struct span_tree *tree, uint32_t span, double now_s, struct arena *arena,
                   struct span_answer *answer);
    // What several answer together, `count` at least 1.
    void (*merge)(const struct span_tree *tree, const uint32_t *spans, uint32_t count, double now_s,
                  struct arena *arena, struct span_answer *answer);
};

struct span_report {
    struct slice source; // the path of the stream; of a job's phases data NULL
    string_id job;       // whose ranks the workers are; STRING_NONE: a stream that names none
    bool from_telemetry; // made of phase boundaries
    bool started;        // nothing else is there before
    uint64_t accepted;
    const struct span_refused *refused; // in order of occurrence
    uint32_t refused_count;
    uint64_t refused_not_listed; // beyond a bound
    double now_s; // ts of the last accepted event; at the end the one asked for; 0: neither
    const struct span_thread_point *history; // in order of occurrence
    uint32_t history_count;
    uint64_t span_count; // that are there now
    uint64_t folded;     // finished ones that were taken up into their parents' totals
    uint64_t task_count; // that are not forgotten
    struct slice notes[4];
    uint32_t note_count;
    const struct span_query_answer *queries;
    uint32_t query_count;
    const struct span_phase *phases; // from_telemetry: by label
    uint32_t phase_count;
    const struct span_tree *tree;
    const struct span_asker *ask;
};

struct span_report_list {
    const struct span_report *items; // by source, then job
    uint32_t count;
};
