// SPDX-License-Identifier: Apache-2.0
// A configuration bound to the components of this build: everything checked, nothing started.
//
// plan_build reads and merges the files, expands ${…}, applies --set, checks every key, fills each
// component's config struct, and checks that pipelines fit together. It reports every problem at
// once.
#pragma once

#include "base/log.h"
#include "config/problem.h"
#include "pipeline/component/component.h"

struct forms;
struct node;
struct plan_test; // pipeline/plan/tests.h

enum { PLAN_FORM_FILES_MAX = 256 };

// A file of rows of what logs say, and where it is named.
struct plan_form_file {
    const char *path;
    struct location where;
};

// Makes rows of files (cli/form_files.h); a plan knows nothing more of them.
struct form_maker {
    // One set of all files and of the rows that are built in. NULL: something is wrong, and in
    // `problems` at its place. `with_samples`: each row must read its own samples, too.
    struct forms *(*make)(const struct plan_form_file *files, uint32_t count, bool with_samples,
                          struct problem_list *problems);
    void (*release)(struct forms *forms);
};

struct plan_component {
    const struct component_type *type;
    const char *id;     // "file/ranks"
    const void *config; // type->config_size bytes
    struct location where;
    bool used;               // listed by a pipeline or by service.extensions
    const struct node *node; // as it was written; NULL: all defaults
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
    const struct node *node; // as it was written
};

// `service`, without `pipelines`.
struct log_config {
    int level;    // enum log_level
    int encoding; // enum log_encoding
};

struct metrics_config {
    const char *endpoint; // NULL: none
};

struct telemetry_config {
    struct log_config logs;
    struct metrics_config metrics;
};

struct control_config {
    bool enabled;
    const char *socket; // a path; NULL: at the usual place (pipeline/runtime/control/place.h)
};

struct service_settings {
    struct text_list extensions;         // ids
    int64_t batch_size;                  // events a batch at most; default 1024
    struct duration checkpoint_interval; // default 5s
    struct duration shutdown_timeout;    // default 20s
    int64_t threads;                     // that read to an end, or evaluate; 0: one for each core
    struct telemetry_config telemetry;
    struct control_config control;
};

struct plan {
    struct arena arena;                    // holds everything below
    struct component_set components_known; // of this build
    // By kind, each in order of appearance; those that only a preset adds come last.
    struct plan_component *components;
    uint32_t component_count;
    struct plan_pipeline *pipelines;
    uint32_t pipeline_count;
    const struct plan_test *tests; // in order of appearance
    uint32_t test_count;
    struct service_settings settings;
    const struct node *root, *service; // as they were written
    struct text_list form_files;       // `forms`, from where culprit runs; patterns among them
    // Rows of these files; NULL: those that are built in. They belong to the plan: a service that
    // runs it, and with it all decoders, is freed before. A reload makes a plan with rows of its
    // own, so no decoder ever meets others than those it began with. Any thread may read them.
    struct forms *forms;
    const struct form_maker *form_maker;
};

struct plan_input {
    struct component_set components;
    const char *const *files; // --config, in order; later ones win
    uint32_t file_count;
    const char *text;        // instead of files: a configuration in memory …
    const char *text_name;   // … and its name in messages
    const char *const *sets; // --set key=value, after the files
    uint32_t set_count;
    const struct form_maker *form_maker; // NULL: files of rows are not read
    const char *const *form_files;       // more of them, which go before those of `forms`
    uint32_t form_file_count;
    bool no_environment; // ${env:NAME} and ${file:…} are not looked up but taken as some text,
                         // and files of rows that are not there are none
    bool check_places;   // also whether the directories that are written to are there, and whether
                         // rows read their own samples
    bool ends_unused;    // … nor in receivers, exporters and extensions: others take their places
};

// STATUS_CONFIG when there are problems (all of them are in `problems`, whose texts live in its
// arena), STATUS_NOT_FOUND and the like when a file cannot be read. On failure `plan` holds
// nothing. Warnings (a secret written out) do not fail; they are in `warnings`. The plan does not
// need the input after this. No problem or warning shows what ${…} stands for.
enum status plan_build(struct plan *plan, const struct plan_input *input,
                       struct problem_list *problems, struct problem_list *warnings,
                       struct error *error) MUST_USE;
void plan_release(struct plan *plan);

// Whether a processor, or an exporter that is given events, looks at such events.
bool plan_pipeline_takes(const struct plan *plan, const struct plan_pipeline *pipeline,
                         uint32_t class);
