// SPDX-License-Identifier: Apache-2.0
// An incident drawn as lanes: who, from above to below, over time, from left to right.
#pragma once

#include "exporters/report/page/parts.h"
#include "exporters/report/story.h"

// One lane for each device, node, pod and rank that its verdicts name, the ranks that were struck
// on one together. What happened is numbered as in the list of steps; arrows lead from cause to
// consequence. Nothing when nobody is named.
void page_lanes_append(struct page_view *view, const struct story *story);
