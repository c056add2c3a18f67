// SPDX-License-Identifier: Apache-2.0
// The verdict `memory_first_cause` in words and figures. Kinds: leak, common_growth, swing; what
// each means and how it is decided is in README.md.
#pragma once

#include "base/arena.h"
#include "pipeline/model/evaluation.h"
#include "pipeline/model/verdict.h"

struct memory_finding {
    const struct evaluation *evaluation;
    const struct cause *cause;
    const struct phase_attribution *phases; // one for each of cause->suspects
    bool replaced;                          // named before, but another rank turned out to be first
    int32_t replaced_by;                    // that rank
};

// Texts and arrays lie in `arena`; `state` is left to the ledger.
void memory_verdict_build(const struct memory_finding *finding, struct arena *arena,
                          struct verdict *out);
// What makes the same verdict worth another line: its phase, and its growth in steps of a quarter.
uint64_t memory_verdict_weight(const struct memory_finding *finding);
