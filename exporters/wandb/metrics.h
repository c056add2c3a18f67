// SPDX-License-Identifier: Apache-2.0
// How W&B is to draw the keys of a live run's rows: over the seconds since its job started.
//
// What `define_metric` says, in the two forms that wandb 0.31.0 gives it: the list config._wandb.m,
// and records of a log.
#pragma once

#include <stdbool.h>

#define WANDB_STEP_METRIC "culprit_elapsed_s"

// All but the first are drawn over the first. A glob stands for what begins so: one key a rank, of
// which W&B makes no panels when there is a chart of all ranks (log_tables).
static const struct wandb_metric {
    const char *name;
    bool is_glob;
} WANDB_METRICS[] = {
    {WANDB_STEP_METRIC, false},
    {"device_used_bytes/*", true},
    {"allocated_bytes/*", true},
    {"reserved_bytes/*", true},
    {"utilization_percent/*", true},
    {"culprit_verdict_count", false},
    {"culprit_open_verdict_count", false},
    {"culprit_severity_level", false},
};
enum { WANDB_METRIC_COUNT = sizeof WANDB_METRICS / sizeof WANDB_METRICS[0] };
