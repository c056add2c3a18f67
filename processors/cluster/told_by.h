// SPDX-License-Identifier: Apache-2.0
// What the verdicts of other detectors already tell of.
//
// A stage behind them finds their verdicts in the batch at each evaluation, those that did not
// change as well. An event that one of these names as evidence is told of by it; who would tell of
// it again can leave that, and take its own verdict back.
#pragma once

#include "base/arena.h"
#include "pipeline/model/batch.h"

struct told_item {
    struct slice uid; // of the evidence
    const struct verdict *by;
};

struct told_by {
    const struct told_item *items; // by uid, then by id of the verdict
    uint32_t count;
};

// All evidence of the verdicts of these patterns (ended by NULL) that stand; in the arena, and the
// texts in the batch. O(evidence · log).
struct told_by told_by_gather(const struct batch *batch, const char *const *patterns,
                              struct arena *arena);
// The verdict that has this evidence, of several the one with the least id; NULL: none.
const struct verdict *told_by_find(const struct told_by *told, const char *uid);
// Whether the verdict with this id was taken back at this evaluation.
bool told_by_ended(const struct batch *batch, const char *id);
