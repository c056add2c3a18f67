// SPDX-License-Identifier: Apache-2.0
// What people read of a GPU, or of a node, that is slowed by heat.
#pragma once

#include "processors/thermal_throttle/window.h"
#include "processors/verdict_draft.h"

enum thermal_kind {
    THERMAL_HARDWARE,
    THERMAL_SOFTWARE,
    THERMAL_MEMORY_HOT,
    THERMAL_BY_COUNTER,
    THERMAL_NODE,
    THERMAL_KIND_COUNT
};

struct thermal_confidence {
    int of[THERMAL_KIND_COUNT];
};

// The verdict about one GPU: everything but its state.
void thermal_verdict_gpu(const struct thermal_window *window,
                         const struct thermal_incident *incident,
                         const struct thermal_confidence *confidence, struct verdict_draft *draft);
// About a node: `members` are the incidents of its GPUs by start, then address.
void thermal_verdict_node(const struct thermal_window *window, const uint32_t *members,
                          uint32_t member_count, bool ended,
                          const struct thermal_confidence *confidence, struct verdict_draft *draft);
