// SPDX-License-Identifier: Apache-2.0
// Selects the events of one job when it is named. Under `auto` and `each` all events pass, and the
// choice among jobs is made at an evaluation, from the samples kept (a job that is the most
// frequent now may not be so later). Cost: one comparison an event, no memory kept.
#include "config/problem.h"
#include "pipeline/component/component.h"

#include <assert.h>

struct job_filter_config {
    const char *job_id;
    int64_t max_jobs;
    struct duration idle_jobs_expire;
};

struct job_filter {
    struct job_choice choice;
};

static const struct option OPTIONS[] = {
    OPTION(struct job_filter_config, job_id, OPTION_TEXT, .default_value = "auto",
           .help = "auto: the job with the most samples; each: every job by itself; or the id of "
                   "one job"),
    OPTION(struct job_filter_config, max_jobs, OPTION_INT, .default_value = "64", .min = 1,
           .max = 100000,
           .help = "jobs whose samples are kept at the same time; events of further jobs are "
                   "dropped, with a note"),
    OPTION(struct job_filter_config, idle_jobs_expire, OPTION_DURATION, .default_value = "1h",
           .min = 1, .max = 31536000, .special = "never",
           .help = "a job without a sample for so long, in event time, is forgotten and makes "
                   "room for another; inputs that end are always kept whole"),
};

static void job_filter_validate(const void *config, struct problem_list *problems) {
    const struct job_filter_config *options = config;
    if (options->job_id[0] == '\0')
        problem_add(problems, "job_id", "is empty; write auto, each or the id of a job");
}

static enum status job_filter_start(void *instance, const void *config,
                                    const struct component_context *context, struct error *error) {
    struct job_filter *self = instance;
    const struct job_filter_config *options = config;
    (void)context;
    assert(options->job_id != NULL && options->max_jobs > 0);
    self->choice.max_jobs = (uint32_t)options->max_jobs;
    if (options->idle_jobs_expire.ns != DURATION_SPECIAL)
        self->choice.idle_ns = (uint64_t)options->idle_jobs_expire.ns;
    if (strcmp(options->job_id, "auto") == 0) {
        self->choice.mode = JOB_AUTO;
    } else if (strcmp(options->job_id, "each") == 0) {
        self->choice.mode = JOB_EACH;
    } else {
        self->choice.mode = JOB_NAMED;
        self->choice.name = intern(slice_of(options->job_id));
        if (self->choice.name == STRING_REFUSED)
            return error_set(error, STATUS_LIMIT, "job_id: no room for more names");
    }
    return STATUS_OK;
}

static void select_named(const struct job_filter *self, struct batch *batch) {
    batch->selected = arena_zero(batch->arena, (batch->event_count + 63) / 64, sizeof(uint64_t));
    for (uint32_t i = 0; i < batch->event_count; i++)
        // What happened to a node, a GPU or a pod often names no job, and may be what broke this
        // one. A sample without a job may be any job's, so it would count for the wrong one.
        if (batch->events[i].job == self->choice.name ||
            (batch->events[i].kind != EVENT_TELEMETRY && batch->events[i].job == STRING_NONE))
            batch->selected[i / 64] |= UINT64_C(1) << (i % 64);
}

static void job_filter_consume(void *instance, struct batch *batch) {
    const struct job_filter *self = instance;
    batch->job_choice = &self->choice;
    if (self->choice.mode == JOB_NAMED && batch->event_count > 0)
        select_named(self, batch);
}

const struct component_type processor_job_filter = {
    .name = "job_filter",
    .summary = "Selects the training jobs to analyse.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_MEMORY | 1u << PRESET_ALL,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct job_filter_config),
    .instance_size = sizeof(struct job_filter),
    .gives = FACT_JOBS,
    .validate = job_filter_validate,
    .start = job_filter_start,
    .processor = {.consume = job_filter_consume},
};
