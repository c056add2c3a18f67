// SPDX-License-Identifier: Apache-2.0
// The keys under `service` and under one pipeline, as option rows: for binding, schema and print.
#pragma once

#include "pipeline/plan/plan.h"

// `service`, without `pipelines`.
struct log_config {
    int level;    // enum log_level
    int encoding; // enum log_encoding
};

struct metrics_config {
    const char *endpoint;
};

struct telemetry_config {
    struct log_config logs;
    struct metrics_config metrics;
};

struct service_config {
    struct text_list extensions;
    int64_t batch_size;
    struct duration checkpoint_interval;
    struct duration shutdown_timeout;
    struct telemetry_config telemetry;
};

enum preset { PRESET_NONE, PRESET_MEMORY, PRESET_ALL };

// `service.pipelines.NAME`
struct pipeline_config {
    struct text_list receivers;
    int preset; // enum preset
    struct text_list processors;
    struct text_list exporters;
    struct pipeline_timing timing;
};

struct option_rows {
    const struct option *rows;
    size_t count;
};

struct option_rows plan_service_rows(void);
struct option_rows plan_pipeline_rows(void);
// The processors that a preset stands for, in order.
struct text_list plan_preset_processors(enum preset preset);
// "receivers": the top-level key of a kind.
const char *plan_section(enum component_kind kind);
enum { PLAN_SECTION_COUNT = COMPONENT_EXTENSION + 1 };
