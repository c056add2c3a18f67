// SPDX-License-Identifier: Apache-2.0
// Trees of spans made by hand, without the stage that keeps them: rows that the functions of
// `struct span_asker` look into. A span has all its threads from its begin to its end; several
// together have the sums.
#pragma once

#include "base/memory.h"
#include "pipeline/model/batch.h"

#include <check.h>

struct fake_span {
    const char *name;
    int32_t parent; // index; -1: a root
    double begin_s, end_s;
    int64_t threads;
    double measured_s; // of metrics; 0: none
    int64_t nbytes;
    uint64_t processing, waiting, erred, memory;
};

struct span_tree {
    const struct fake_span *spans;
    uint32_t count;
    uint32_t asked; // answers and merges
};

static inline bool fake_next_child(const struct span_tree *tree, int32_t parent, uint32_t *at,
                                   uint32_t *child) {
    for (; *at < tree->count; ++*at)
        if (tree->spans[*at].parent == parent) {
            *child = (*at)++;
            return true;
        }
    return false;
}

static inline bool fake_next(const struct span_tree *tree, uint32_t *at, uint32_t *span) {
    *span = *at;
    return (*at)++ < tree->count;
}

static inline bool fake_root(const struct span_tree *tree, uint32_t *at, uint32_t *span) {
    return fake_next_child(tree, -1, at, span);
}

static inline bool fake_child(const struct span_tree *tree, uint32_t span, uint32_t *at,
                              uint32_t *child) {
    return fake_next_child(tree, (int32_t)span, at, child);
}

static inline struct slice fake_id(struct arena *room, uint32_t span) {
    return slice_of(arena_format(room, "id-%u", span));
}

// Adds what a span and all below it have.
static inline void fake_sum(const struct span_tree *tree, uint32_t span, struct span_answer *answer,
                            double *known) {
    const struct fake_span *from = &tree->spans[span];
    answer->states[TASK_PROCESSING] += from->processing;
    answer->states[TASK_WAITING] += from->waiting;
    answer->states[TASK_ERRED] += from->erred;
    answer->states[TASK_MEMORY] += from->memory;
    answer->nbytes_total += from->nbytes;
    *known += from->measured_s;
    for (uint32_t at = 0, child; fake_child(tree, span, &at, &child);)
        fake_sum(tree, child, answer, known);
}

static inline void fake_merge(const struct span_tree *tree, const uint32_t *spans, uint32_t count,
                              double now_s, struct arena *room, struct span_answer *answer) {
    (void)now_s;
    ((struct span_tree *)(uintptr_t)tree)->asked++;
    *answer = (struct span_answer){.id = SLICE("(merged)"), .done = true};
    struct slice *name = arena_take(room, sizeof *name);
    name[0] = SLICE("(merged)");
    answer->name = name;
    answer->name_count = 1;
    struct span_interval *intervals = arena_take(room, count * sizeof *intervals);
    struct slice *children = arena_take(room, count * sizeof *children);
    double known = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct fake_span *from = &tree->spans[spans[i]];
        intervals[i] = (struct span_interval){from->begin_s, from->end_s, from->threads};
        children[i] = fake_id(room, spans[i]);
        answer->active_cpu_s += (from->end_s - from->begin_s) * (double)from->threads;
        if (i == 0 || from->begin_s < answer->enqueued_s)
            answer->enqueued_s = from->begin_s;
        if (from->end_s > answer->stop_s)
            answer->stop_s = from->end_s;
        fake_sum(tree, spans[i], answer, &known);
    }
    answer->start_s = answer->enqueued_s;
    answer->intervals = intervals;
    answer->interval_count = count;
    answer->children = children;
    answer->child_count = count;
    for (int i = TASK_WAITING; i <= TASK_PROCESSING; i++)
        answer->done = answer->done && answer->states[i] == 0;
    answer->idle_s = answer->active_cpu_s - known;
    struct span_metric_sum *metrics = arena_zero(room, 2, sizeof *metrics);
    metrics[0] = (struct span_metric_sum){SLICE("[\"execute\",\"f\",\"cpu\",\"seconds\"]"),
                                          {.number = known}};
    metrics[known > 0] =
        (struct span_metric_sum){SLICE("[\"execute\",\"N/A\",\"idle or other spans\",\"seconds\"]"),
                                 {.number = answer->idle_s}};
    answer->metrics = metrics;
    answer->metric_count = known > 0 ? 2 : 1;
}

static inline void fake_answer(const struct span_tree *tree, uint32_t span, double now_s,
                               struct arena *room, struct span_answer *answer) {
    fake_merge(tree, &span, 1, now_s, room, answer);
    const struct fake_span *from = &tree->spans[span];
    uint32_t depth = 1;
    for (int32_t at = from->parent; at >= 0; at = tree->spans[at].parent)
        depth++;
    struct slice *name = arena_take(room, depth * sizeof *name);
    struct slice *ids = arena_take(room, depth * sizeof *ids);
    int32_t at = (int32_t)span;
    for (uint32_t i = depth; i > 0; i--, at = tree->spans[at].parent) {
        name[i - 1] = slice_of(tree->spans[at].name);
        ids[i - 1] = fake_id(room, (uint32_t)at);
    }
    answer->id = ids[depth - 1];
    answer->name = name;
    answer->name_count = depth;
    answer->annotated = true;
    answer->annotation_ids = ids;
    answer->annotation_id_count = depth;
    if (from->parent >= 0)
        answer->parent = ids[depth - 2];
    struct slice *children = arena_take(room, tree->count * sizeof *children);
    answer->children = children;
    answer->child_count = 0;
    for (uint32_t next = 0, child; fake_child(tree, span, &next, &child);)
        children[answer->child_count++] = fake_id(room, child);
}

static const struct span_asker fake_asker = {
    .next = fake_next,
    .next_root = fake_root,
    .next_child = fake_child,
    .answer = fake_answer,
    .merge = fake_merge,
};

static inline struct span_report fake_stream(const struct span_tree *tree, const char *source) {
    static const struct span_thread_point history[] = {{1700000000.0, 8}};
    return (struct span_report){
        .source = slice_of(source),
        .job = STRING_NONE,
        .started = true,
        .accepted = 1000,
        .now_s = 1700000100.0,
        .history = history,
        .history_count = 1,
        .span_count = tree->count,
        .task_count = 12,
        .tree = tree,
        .ask = &fake_asker,
    };
}

// Phases of four ranks of which rank 2 lags.
static const struct span_phase_rank fake_ranks[] = {
    {.rank = 2, .openings = 10, .busy_s = 14, .lag_s = 4.5, .slowest = 9},
    {.rank = 0, .openings = 10, .busy_s = 9.5, .lag_s = 0.5, .slowest = 1},
    {.rank = 1, .openings = 10, .busy_s = 9, .lag_s = 0.001, .inside = true},
    {.rank = 3, .openings = 10, .busy_s = 9},
};

static inline struct span_report fake_job(const struct span_tree *tree,
                                          const struct span_phase *phases, uint32_t count,
                                          const char *job) {
    struct span_report report = fake_stream(tree, "");
    report.source = (struct slice){NULL, 0};
    report.job = job == NULL ? STRING_NONE : intern(slice_of(job));
    report.from_telemetry = true;
    report.phases = phases;
    report.phase_count = count;
    return report;
}
