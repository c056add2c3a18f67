// SPDX-License-Identifier: Apache-2.0
// Stops input while culprit holds too much memory.
//
// Asked before anything is read: at 80 % of the limit receivers of this pipeline stop reading (an
// HTTP client is told to retry later, a Kafka partition is paused, a file waits), so that what is
// under way has the rest. Counts what culprit's own code holds (base/memory.h), not libraries'
// memory. Costs two relaxed loads a batch.
#include "pipeline/component/component.h"

#include "base/control_group.h"
#include "base/log.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct memory_limiter_config {
    struct byte_size limit;
    int64_t limit_percentage;
};

struct memory_limiter {
    uint64_t soft_bytes;
    const char *site;
    bool refuses; // only for the log: may be told twice when two receivers ask at once
};

static const struct option OPTIONS[] = {
    OPTION(struct memory_limiter_config, limit, OPTION_SIZE, .min = 1 << 20, .max = 1e15,
           .help = "memory that culprit may use; input stops at 80 % of it"),
    OPTION(struct memory_limiter_config, limit_percentage, OPTION_INT, .default_value = "75",
           .min = 1, .max = 100,
           .help = "the same as a share of what the machine has, or the control group of "
                   "culprit or one around it allows; when limit is not given"),
};

// What the machine has; 0: not known.
static uint64_t memory_of_machine(void) {
    char text[4096];
    const char *at = NULL;
    if (control_group_text("/proc", "meminfo", text, sizeof text))
        at = strstr(text, "MemTotal:");
    return at == NULL ? 0 : strtoull(at + strlen("MemTotal:"), NULL, 10) * 1024;
}

// The least of what the machine has and its control groups allow.
static uint64_t memory_there(void) {
    uint64_t machine = memory_of_machine(), groups = control_groups_memory("");
    return groups > 0 && (machine == 0 || groups < machine) ? groups : machine;
}

static enum status limiter_start(void *instance, const void *config,
                                 const struct component_context *context, struct error *error) {
    struct memory_limiter *self = instance;
    const struct memory_limiter_config *options = config;
    uint64_t limit = options->limit.bytes;
    if (limit == 0)
        limit = memory_there() / 100 * (uint64_t)options->limit_percentage;
    if (limit == 0)
        return error_set(error, STATUS_OS,
                         "limit_percentage: the amount of memory is unknown here; set limit");
    self->soft_bytes = limit / 5 * 4;
    self->site = context->site;
    return STATUS_OK;
}

static bool limiter_admits(void *instance) {
    struct memory_limiter *self = instance;
    assert(self->soft_bytes > 0);
    uint64_t live = memory_figures().live_bytes;
    bool refuses = live >= self->soft_bytes;
    if (refuses != __atomic_exchange_n(&self->refuses, refuses, __ATOMIC_RELAXED))
        log_write(refuses ? LOG_WARN : LOG_INFO, (struct log_site){"C2003", self->site},
                  refuses ? "%llu MiB in use, over 80 %% of the limit: input stops"
                          : "%llu MiB in use: input resumes",
                  (unsigned long long)(live >> 20));
    return !refuses;
}

static void limiter_consume(void *instance, struct batch *batch) {
    (void)instance;
    (void)batch;
}

const struct component_type processor_memory_limiter = {
    .name = "memory_limiter",
    .summary = "Stops input while culprit uses too much memory.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct memory_limiter_config),
    .instance_size = sizeof(struct memory_limiter),
    .start = limiter_start,
    .processor = {.consume = limiter_consume, .admits = limiter_admits},
};
