// SPDX-License-Identifier: Apache-2.0
// Runs a plan until it is stopped, and reloads the configuration when asked to.
#pragma once

#include "cli/plan_load.h"
#include "cli/stop_signals.h"

struct live_run {
    const struct plan_request *request; // where the configuration came from, to load it again
    struct stop_signals *signals;
    bool once;
    bool level_given; // --log-level stands above what a configuration says
    // What services before the last reload took and refused.
    uint64_t accepted, refused;
};

// The plan is released. `*started` tells a failed start, which is about an input or output, from a
// failed run.
enum status live_run(struct live_run *run, struct plan *plan, bool *started,
                     struct error *error) MUST_USE;
