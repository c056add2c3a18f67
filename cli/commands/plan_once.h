// SPDX-License-Identifier: Apache-2.0
// Reduces a configuration to what can run once, over inputs that end.
#pragma once

#include "cli/plan_load.h"

// Takes out of the plan what only works while culprit keeps running, and logs each: receivers whose
// input has no end, exporters that are asked for what they know, pipelines that are left without a
// receiver or an exporter. STATUS_CONFIG when no pipeline is left; the plan is the caller's still.
enum status plan_keep_finite(struct plan *plan, struct error *error) MUST_USE;
