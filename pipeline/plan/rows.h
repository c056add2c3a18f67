// SPDX-License-Identifier: Apache-2.0
// The keys of the document, of `service` and of one pipeline, as option rows: for binding, schema
// and print.
#pragma once

#include "pipeline/plan/plan.h"

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

// PLAN_ROOT_ROWS: what stands beside the sections; fields of struct plan.
extern const struct option_rows PLAN_ROOT_ROWS, PLAN_SERVICE_ROWS, PLAN_PIPELINE_ROWS;
// "receivers": the top-level key of a kind.
const char *plan_section(enum component_kind kind);
enum { PLAN_SECTION_COUNT = COMPONENT_EXTENSION + 1 };
