// SPDX-License-Identifier: Apache-2.0
// A configuration bound to the components of this build: everything checked, nothing started.
//
// plan_build reads and merges the files, expands ${…}, applies --set, checks every key, fills each
// component's config struct, and checks that pipelines fit together. It reports every problem at
// once.
#pragma once

#include "base/log.h"
#include "pipeline/component.h"

struct plan_component {
    const struct component_type *type;
    const char *id;     // "file/ranks"
    const void *config; // type->config_size bytes
    struct location where;
    bool used; // listed by a pipeline or by service.extensions
};

struct plan_pipeline {
    const char *name;
    const uint32_t *receivers; // indices into plan.components
    uint32_t receiver_count;
    const uint32_t *processors;
    uint32_t processor_count;
    const uint32_t *exporters;
    uint32_t exporter_count;
    struct pipeline_timing timing;
    struct location where;
};

struct plan {
    struct arena arena;                // holds everything below
    struct plan_component *components; // of all kinds, in order of appearance
    uint32_t component_count;
    struct plan_pipeline *pipelines;
    uint32_t pipeline_count;
    int64_t batch_size;             // service.batch_size: events a batch at most; default 1024
    enum log_level log_level;       // service.telemetry.logs.level; default info
    enum log_encoding log_encoding; // service.telemetry.logs.encoding; default auto
};

struct plan_input {
    struct component_set components;
    const char *const *files; // --config, in order; later ones win
    uint32_t file_count;
    const char *text;        // instead of files: a configuration in memory …
    const char *text_name;   // … and its name in messages
    const char *const *sets; // --set key=value, after the files
    uint32_t set_count;
    bool no_environment; // ${env:NAME} and ${file:…} are not looked up but taken as some text
};

// STATUS_CONFIG when there are problems (all of them are in `problems`, whose texts live in its
// arena), STATUS_NOT_FOUND and the like when a file cannot be read. On failure `plan` holds
// nothing. Warnings (a literal secret, a component nobody uses) do not fail; they are in
// `warnings`.
enum status plan_build(struct plan *plan, const struct plan_input *input,
                       struct problem_list *problems, struct problem_list *warnings,
                       struct error *error) MUST_USE;
void plan_release(struct plan *plan);
