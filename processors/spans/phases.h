// SPDX-License-Identifier: Apache-2.0
// Phases of training processes as spans: ranks are workers, the n-th time that each rank enters a
// phase is one span, one visit of a rank is one task (docs/spans.md, "Training telemetry").
//
// Boundaries wait until a moment is judged and then take effect in the order of their times, so
// that nothing depends on how they arrived. Beside the tree it is kept how long each rank was in
// each phase, and how much longer than the median of the ranks. One thread.
#pragma once

#include "pipeline/model/batch.h"
#include "pipeline/model/telemetry_event.h"
#include "processors/spans/answer.h"

struct span_phases {
    struct span_forest *forest;
    struct table waiting;       // boundaries
    struct keyed_rows jobs;     // ranks known, by job
    struct keyed_rows labels;   // of a job
    struct keyed_rows ranks;    // of a label
    struct keyed_rows openings; // of a label
    struct table visits;        // of an opening
    struct arena scratch;       // of one boundary
    struct arena order;         // of one judgement
    int64_t threads;            // of a rank
    uint32_t spans_kept;        // of a job; older finished ones are folded
    struct {
        uint64_t left_out; // boundaries without room
    } kept;
};

void span_phases_init(struct span_phases *phases, struct span_forest *forest, int64_t threads,
                      uint32_t spans_kept);
void span_phases_release(struct span_phases *phases);
void span_phases_state(struct span_phases *phases, struct state_list *list);
void span_phases_restored(struct span_phases *phases);

// Keeps a boundary (telemetry->scope is not NULL) until it is judged.
void span_phases_add(struct span_phases *phases, const struct telemetry *telemetry);
// Lets those up to `until_ns` take effect, in the order of time, rank, sequence.
void span_phases_judge(struct span_phases *phases, uint64_t until_ns);
void span_phases_forget(struct span_phases *phases, const struct forgotten *forgotten);

// The phases of a job's tree, by label; NULL when it is none.
const struct span_phase *span_phases_of(const struct span_phases *phases,
                                        const struct span_tree_row *tree, struct arena *arena,
                                        uint32_t *count);
