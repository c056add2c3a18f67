// SPDX-License-Identifier: Apache-2.0
// Measures of phases: how long each rank was in each, and how much longer than the median of the
// ranks.
#pragma once

#include "processors/spans/phase_rows.h"

struct visit_measure {
    uint32_t row;                // of the phase_rank
    struct span_phase_rank sums; // of this one opening; lag: over the median of those that ended;
                                 // slowest: the last to leave, of several that all left
};

struct phase_measure {
    double thread_s, busy_s;
    const struct visit_measure *visits;
    uint32_t count;
};

// An opening as things are; `id` is that of its span. All lies in the arena.
void phase_measure(const struct span_phases *phases, const struct span_tree_row *tree,
                   const struct phase_opening *opening, struct slice id, struct arena *arena,
                   struct phase_measure *measure);
// The phases of a job's tree, by label; NULL when it is none.
const struct span_phase *span_phases_of(const struct span_phases *phases,
                                        const struct span_tree_row *tree, struct arena *arena,
                                        uint32_t *count);
