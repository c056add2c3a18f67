// SPDX-License-Identifier: Apache-2.0
// A build of made-up components, and plans made from texts.
#pragma once

#include "base/memory.h"
#include "pipeline/plan/plan.h"

#include <check.h>
#include <stdlib.h>

struct tail_config {
    struct text_list include;
    int start_at;
    struct byte_size max_line_size;
};

struct sink_config {
    const char *path;
    struct secret token;
    struct duration timeout;
    struct {
        struct byte_size max_size;
        int64_t max_backups;
        struct byte_size max_total;
    } rotation;
    struct text_list headers;
};

struct finder_config {
    double min_ratio;
    int64_t low, high;
    const char *name;
};

static const char *const START_AT[] = {"beginning", "end", NULL};

static const struct option TAIL_ROWS[] = {
    {.name = "include",
     .type = OPTION_TEXT_LIST,
     .offset = offsetof(struct tail_config, include),
     .required = true,
     .help = "files to read"},
    {.name = "start_at",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct tail_config, start_at),
     .default_value = "beginning",
     .choices = START_AT,
     .help = "where a file is read from"},
    {.name = "max_line_size",
     .type = OPTION_SIZE,
     .offset = offsetof(struct tail_config, max_line_size),
     .default_value = "1MiB",
     .min = 1024,
     .max = 1 << 30,
     .help = "bytes of a line"},
};

static const struct option ROTATION_ROWS[] = {
    {.name = "max_size",
     .type = OPTION_SIZE,
     .offset = 0,
     .default_value = "100MiB",
     .min = 1024,
     .max = 1 << 30,
     .help = "bytes of a file"},
    {.name = "max_backups",
     .type = OPTION_INT,
     .offset = sizeof(struct byte_size),
     .default_value = "100",
     .max = 1000,
     .help = "files to keep"},
    {.name = "max_total",
     .type = OPTION_SIZE,
     .offset = 16,
     .min = 1024,
     .max = 1 << 30,
     .help = "bytes of all of them"},
};

static const struct option SINK_ROWS[] = {
    {.name = "path",
     .type = OPTION_TEXT,
     .offset = offsetof(struct sink_config, path),
     .address = true,
     .help = "where to"},
    {.name = "token",
     .type = OPTION_SECRET,
     .offset = offsetof(struct sink_config, token),
     .help = "who may"},
    {.name = "timeout",
     .type = OPTION_DURATION,
     .offset = offsetof(struct sink_config, timeout),
     .default_value = "5s",
     .min = 0.1,
     .max = 3600,
     .special = "never",
     .help = "how long"},
    {.name = "rotation",
     .type = OPTION_GROUP,
     .offset = offsetof(struct sink_config, rotation),
     .rows = ROTATION_ROWS,
     .row_count = OPTION_COUNT(ROTATION_ROWS),
     .help = "old files"},
    OPTION(struct sink_config, headers, OPTION_TEXT_LIST, .hidden = true, .help = "what to send"),
};

static const struct option FINDER_ROWS[] = {
    {.name = "min_ratio",
     .type = OPTION_RATIO,
     .offset = offsetof(struct finder_config, min_ratio),
     .default_value = "0.10",
     .max = 1,
     .help = "how much"},
    {.name = "low",
     .type = OPTION_INT,
     .offset = offsetof(struct finder_config, low),
     .default_value = "1",
     .max = 100,
     .help = "from"},
    {.name = "high",
     .type = OPTION_INT,
     .offset = offsetof(struct finder_config, high),
     .default_value = "10",
     .max = 100,
     .help = "to"},
    {.name = "name",
     .type = OPTION_TEXT,
     .offset = offsetof(struct finder_config, name),
     .default_value = "auto",
     .help = "whom"},
};

static void finder_validate(const void *config, struct problem_list *problems) {
    const struct finder_config *options = config;
    if (options->low > options->high)
        problem_add(problems, "low", "is above high (%d); write at most that", (int)options->high);
    if (strchr(options->name, '$') != NULL)
        problem_add(problems, "name", "holds a dollar sign");
    if (options->high == 77)
        problem_add(problems, "missing.key", "is not there");
}

static const struct component_alias TAIL_ALIASES[] = {{"filelog", "it follows files"}};
static const struct component_type TAIL = {.name = "tail",
                                           .summary = "Reads files.",
                                           .aliases = TAIL_ALIASES,
                                           .alias_count = 1,
                                           .kind = COMPONENT_RECEIVER,
                                           .options = TAIL_ROWS,
                                           .option_count = OPTION_COUNT(TAIL_ROWS),
                                           .config_size = sizeof(struct tail_config)};
static const struct component_type SINK = {.name = "sink",
                                           .summary = "Writes verdicts.",
                                           .kind = COMPONENT_EXPORTER,
                                           .options = SINK_ROWS,
                                           .option_count = OPTION_COUNT(SINK_ROWS),
                                           .config_size = sizeof(struct sink_config),
                                           .needs = FACT_VERDICTS};
static const struct component_type RAW = {
    .name = "raw", .summary = "Writes events.", .kind = COMPONENT_EXPORTER};
static const struct component_type HEALTH = {
    .name = "health", .summary = "Answers probes.", .kind = COMPONENT_EXTENSION};
static const struct component_type FINDER = {.name = "spike_detect",
                                             .summary = "Finds spikes.",
                                             .kind = COMPONENT_PROCESSOR,
                                             .options = FINDER_ROWS,
                                             .option_count = OPTION_COUNT(FINDER_ROWS),
                                             .config_size = sizeof(struct finder_config),
                                             .validate = finder_validate,
                                             .presets = 1u << PRESET_MEMORY,
                                             .needs = FACT_SERIES | FACT_ALIGNMENT,
                                             .gives = FACT_SPIKES};

#define PLAIN_PROCESSOR(constant, type_name, preset, needed, given)                                \
    static const struct component_type constant = {.name = type_name,                              \
                                                   .summary = "Adds something.",                   \
                                                   .kind = COMPONENT_PROCESSOR,                    \
                                                   .presets = 1u << (preset),                      \
                                                   .needs = needed,                                \
                                                   .gives = given}
PLAIN_PROCESSOR(JOBS, "job_filter", PRESET_MEMORY, 0, FACT_JOBS);
PLAIN_PROCESSOR(GROUP, "rank_group", PRESET_MEMORY, FACT_JOBS, FACT_SERIES);
PLAIN_PROCESSOR(ALIGN, "align", PRESET_MEMORY, FACT_SERIES, FACT_ALIGNMENT);
PLAIN_PROCESSOR(CAUSE, "first_cause", PRESET_MEMORY, FACT_SPIKES, FACT_SUSPECTS);
PLAIN_PROCESSOR(PHASES, "phase_attribution", PRESET_MEMORY, FACT_SUSPECTS,
                FACT_PHASES | FACT_VERDICTS);
PLAIN_PROCESSOR(HANG, "hang", PRESET_ALL, 0, FACT_VERDICTS);

static const struct component_type *const TYPES[] = {
    &TAIL, &JOBS, &GROUP, &ALIGN, &FINDER, &CAUSE, &PHASES, &HANG, &SINK, &RAW, &HEALTH,
};
static const struct component_set BUILD = {TYPES, sizeof TYPES / sizeof TYPES[0]};

static struct arena arena; // of the problems
static struct problem_list problems, warnings;
static struct plan plan;
static struct error error;

static inline void plan_setup(void) {
    arena_init(&arena, 4096);
    problem_list_init(&problems, &arena);
    problem_list_init(&warnings, &arena);
}

static inline void plan_teardown(void) {
    plan_release(&plan);
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static inline const char *list_text(struct problem_list *list) {
    struct buffer out;
    buffer_init(&out, 1 << 20);
    problem_list_print(list, &out);
    const char *text = arena_text(&arena, buffer_slice(&out));
    buffer_release(&out);
    return text;
}

static inline enum status build_input(struct plan_input input) {
    plan_release(&plan);
    problem_list_init(&problems, &arena);
    problem_list_init(&warnings, &arena);
    input.components = BUILD;
    error = (struct error){0};
    return plan_build(&plan, &input, &problems, &warnings, &error);
}

static inline enum status build_set(const char *text, const char *const *sets, uint32_t count) {
    return build_input(
        (struct plan_input){.text = text, .text_name = "c.yaml", .sets = sets, .set_count = count});
}

static inline enum status build(const char *text) {
    return build_set(text, NULL, 0);
}

static inline void builds(const char *text) {
    enum status status = build(text);
    ck_assert_str_eq(list_text(&problems), "");
    ck_assert_int_eq(status, STATUS_OK);
}

static inline void refuses(const char *text, const char *expected) {
    ck_assert_int_eq(build(text), STATUS_CONFIG);
    ck_assert_str_eq(list_text(&problems), expected);
    ck_assert_uint_eq(plan.component_count, 0);
    ck_assert_uint_eq(plan.pipeline_count, 0);
}

static inline const struct plan_component *component(const char *id, enum component_kind kind) {
    for (uint32_t i = 0; i < plan.component_count; i++)
        if (strcmp(plan.components[i].id, id) == 0 && plan.components[i].type->kind == kind)
            return &plan.components[i];
    ck_abort_msg("no component %s", id);
    return NULL;
}

// "a b c": the ids of a pipeline's processors.
static inline const char *processors_of(uint32_t pipeline) {
    const char *text = "";
    for (uint32_t i = 0; i < plan.pipelines[pipeline].processor_count; i++)
        text = arena_format(&arena, "%s%s%s", text, i == 0 ? "" : " ",
                            plan.components[plan.pipelines[pipeline].processors[i]].id);
    return text;
}

static inline int run_plan_suite(const char *name, void (*add)(TCase *)) {
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    tcase_add_checked_fixture(cases, plan_setup, plan_teardown);
    add(cases);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
