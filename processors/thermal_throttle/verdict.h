// SPDX-License-Identifier: Apache-2.0
// Builds the verdict about a GPU, or a node, that is slowed by heat.
#pragma once

#include "processors/cluster/verdict_builder.h"
#include "processors/thermal_throttle/window.h"

// The verdict about one GPU: everything but its state.
void thermal_verdict_gpu(const struct thermal_window *window,
                         const struct thermal_incident *incident, struct verdict_builder *builder);
// About a node: `members` are the incidents of its GPUs by start, then address.
void thermal_verdict_node(const struct thermal_window *window, const uint32_t *members,
                          uint32_t member_count, struct verdict_builder *builder);
