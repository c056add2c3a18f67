// SPDX-License-Identifier: Apache-2.0
// The threads that a span had at its disposal, and when (docs/spans.md, "Thread time").
#pragma once

#include "processors/spans/forest.h"

#include "base/sort.h"

struct span_activity {
    double time_s;
    bool on;
};

// Sets intervals and active_cpu_s of the answer, whose enqueued_s, stop_s and done are there, from
// the thread history since `point` and from when it was under way (in this order, not sorted).
// O((history + activity) · log).
void span_intervals(const struct span_forest *forest, uint32_t point,
                    const struct span_activity *activity, uint32_t activity_count,
                    struct arena *arena, struct span_answer *answer);
