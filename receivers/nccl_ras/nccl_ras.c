// SPDX-License-Identifier: Apache-2.0
// The nccl_ras receiver as a component: its options, and its life from start to stop.
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "config/option.h"
#include "config/problem.h"
#include "pipeline/component/component.h"
#include "receivers/nccl_ras/receiver.h"

#include <stdio.h>

static const char *const ask_choices[] = {"first", "all", NULL};

static const struct option options[] = {
    OPTION(struct ras_config, endpoints, OPTION_TEXT_LIST, .default_value = "[\"localhost:28028\"]",
           .help = "HOST:PORT of RAS, as NCCL_RAS_ADDR of the job says, or of processes of it on "
                   "other machines"),
    OPTION(struct ras_config, ask, OPTION_CHOICE, .default_value = "first", .choices = ask_choices,
           .help = "first: all are of one job, for which the first that answers speaks; all: each "
                   "is a job of its own"),
    OPTION(struct ras_config, interval, OPTION_DURATION, .default_value = "1m", .min = 1,
           .max = 86400,
           .help = "how often it is asked; each time RAS asks all processes of the job"),
    OPTION(struct ras_config, timeout, OPTION_DURATION, .default_value = "5s", .min = 1, .max = 600,
           .help = "how long RAS waits for the other processes of the job, in whole seconds"),
    OPTION(struct ras_config, follow, OPTION_BOOL, .default_value = "true",
           .help = "let RAS tell when a process does not answer (NCCL 2.29 and later), and ask "
                   "then, too"),
    OPTION(struct ras_config, pause, OPTION_DURATION, .default_value = "10s", .min = 1, .max = 3600,
           .help = "no sooner after a question is it asked again, whatever it tells"),
    OPTION(struct ras_config, max_reply_size, OPTION_SIZE, .default_value = "64MiB",
           .min = 64.0 * 1024, .max = 1024.0 * 1024 * 1024,
           .help = "a longer answer is refused; a rank takes about 600 bytes in each communicator"),
    RECORD_JOB_OPTION(struct ras_config, records),
    QUARANTINE_OPTIONS(struct ras_config, records),
};

static const struct metric_family running = {.name = "culprit_nccl_ras_receiver_job_running",
                                             .help =
                                                 "Whether a job answered when it was last asked.",
                                             .type = METRIC_GAUGE};
static const struct metric_family silences = {
    .name = "culprit_nccl_ras_receiver_silent_processes_total",
    .help = "Times that RAS told of a process that does not answer.",
    .type = METRIC_COUNTER};

static const char *endpoint_fault(const char *text, struct endpoint *endpoint) {
    const char *why = endpoint_parse(text, endpoint);
    if (why != NULL)
        return why;
    if (endpoint->is_unix)
        return "RAS listens on TCP only";
    return endpoint->port == 0 ? "the port is 0" : NULL;
}

static void ras_validate(const void *given, struct problem_list *problems) {
    const struct ras_config *config = given;
    if (config->endpoints.count == 0)
        problem_add(problems, "endpoints", "the list is empty; name at least one HOST:PORT");
    if (config->endpoints.count > RAS_TARGETS_MAX)
        problem_add(problems, "endpoints", "more than %d", RAS_TARGETS_MAX);
    for (uint32_t i = 0; i < config->endpoints.count; i++) {
        struct endpoint endpoint;
        const char *why = endpoint_fault(config->endpoints.items[i], &endpoint);
        if (why != NULL)
            problem_add(problems, "endpoints", "\"%s\": %s", config->endpoints.items[i], why);
        for (uint32_t other = 0; other < i; other++)
            if (strcmp(config->endpoints.items[i], config->endpoints.items[other]) == 0)
                problem_add(problems, "endpoints", "\"%s\" is there twice",
                            config->endpoints.items[i]);
    }
    record_options_check(&config->records, problems);
}

static void begin_target(struct ras_receiver *receiver, struct ras_target *target,
                         const char *name) {
    const char *id = receiver->context->id;
    const char *why = endpoint_fault(name, &target->endpoint);
    assert(why == NULL);
    (void)why;
    target->name = name;
    snprintf(target->source_name, sizeof target->source_name, "ras://%s", name);
    polled_begin(&target->polled, id, name, (struct log_site){"C9403", receiver->context->site},
                 (struct log_site){"C9404", receiver->context->site});
    target->running = METRIC(&running, "receiver", id, "target", name);
    target->silences = METRIC(&silences, "receiver", id, "target", name);
    ras_connection_init(&target->asking, false, receiver->config->max_reply_size.bytes);
    ras_connection_init(&target->following, true, RAS_OBJECT_MAX);
}

static enum status ras_start(void *instance, const void *config,
                             const struct component_context *context, struct error *error) {
    struct ras_receiver *receiver = instance;
    assert(!receiver->started);
    receiver->started = true;
    receiver->config = config;
    receiver->context = context;
    // As JSON text, in which a byte may be six.
    size_t record_max = receiver->config->max_reply_size.bytes * 6 + 4096;
    buffer_init(&receiver->record, record_max);
    receiver->target_count = receiver->config->endpoints.count;
    receiver->targets = memory_zero(receiver->target_count, sizeof *receiver->targets);
    for (uint32_t i = 0; i < receiver->target_count; i++)
        begin_target(receiver, &receiver->targets[i], receiver->config->endpoints.items[i]);
    return record_sink_open(&receiver->sink, &receiver->config->records,
                            (struct byte_size){record_max}, context, error);
}

static void ras_stop(void *instance) {
    struct ras_receiver *receiver = instance;
    if (!receiver->started)
        return;
    receiver->started = false;
    for (uint32_t i = 0; i < receiver->target_count; i++) {
        ras_connection_release(&receiver->targets[i].asking);
        ras_connection_release(&receiver->targets[i].following);
    }
    memory_give(receiver->targets);
    receiver->targets = NULL;
    buffer_release(&receiver->record);
    record_sink_close(&receiver->sink);
}

static enum status run(void *instance, struct feed *feed, struct error *error) {
    struct ras_receiver *receiver = instance;
    (void)error;
    assert(receiver->started);
    ras_run(receiver, feed);
    return STATUS_OK;
}

static void ras_guarantee(const void *config, const char *id, bool store, struct buffer *out) {
    (void)config;
    (void)store;
    buffer_append_format(out,
                         " %s asks for the state of the moment: what RAS told while culprit "
                         "was away is not asked for again.",
                         id);
}

const struct component_type receiver_nccl_ras = {
    .name = "nccl_ras",
    .summary = "Asks NCCL's RAS how far each rank of a job has come, and which do not answer.",
    .kind = COMPONENT_RECEIVER,
    .stability = STABILITY_BETA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct ras_config),
    .instance_size = sizeof(struct ras_receiver),
    .validate = ras_validate,
    .start = ras_start,
    .stop = ras_stop,
    .receiver = {.run = run, .guarantee = ras_guarantee},
};
