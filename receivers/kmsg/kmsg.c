// SPDX-License-Identifier: Apache-2.0
// The kmsg receiver as a component: its options, and its life from start to stop.
#include "pipeline/component/component.h"

#include "base/memory.h"
#include "config/problem.h"
#include "receivers/kmsg/receiver.h"

#include <assert.h>

static const char *const start_choices[] = {"boot", "now", NULL};

static const struct option options[] = {
    OPTION(struct kmsg_config, path, OPTION_TEXT, .default_value = "/dev/kmsg",
           .help = "the device; or a Unix socket of the type SOCK_SEQPACKET that gives each "
                   "connection the records from the oldest on, one a packet"),
    OPTION(struct kmsg_config, start_at, OPTION_CHOICE, .default_value = "boot",
           .choices = start_choices,
           .help = "where to begin when the store keeps no record of this receiver: with what the "
                   "kernel still has since boot, or with what comes from now on; after a reboot it "
                   "is always the boot"),
    RECORD_OWN_NODE_OPTION(struct kmsg_config, records),
    RECORD_JOB_OPTION(struct kmsg_config, records),
    QUARANTINE_OPTIONS(struct kmsg_config, records),
};

static void kmsg_validate(const void *config, struct problem_list *problems) {
    const struct kmsg_config *kmsg = config;
    if (kmsg->path[0] != '/')
        problem_add(problems, "path", "not an absolute path, such as /dev/kmsg");
    record_options_check(&kmsg->records, problems);
}

static const struct metric_family lost = {
    .name = "culprit_kmsg_receiver_lost_records_total",
    .help = "Records that the kernel had overwritten before they were read.",
    .type = METRIC_COUNTER};
static const struct metric_family user_records = {
    .name = "culprit_kmsg_receiver_user_records_total",
    .help = "Records that programs wrote into the kernel's log, which are not read.",
    .type = METRIC_COUNTER};

static enum status kmsg_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct kmsg_receiver *receiver = instance;
    assert(receiver->magic == 0);
    receiver->magic = KMSG_RECEIVER_MAGIC;
    receiver->config = config;
    receiver->context = context;
    receiver->device.descriptor = -1;
    receiver->counters =
        (struct kmsg_counters){.lost = METRIC(&lost, "receiver", context->id),
                               .user_records = METRIC(&user_records, "receiver", context->id)};
    receiver->boot = boot_id_now();
    enum status status = record_own_node(&receiver->config->records, receiver->node, error);
    if (status == STATUS_OK)
        status = record_sink_open(&receiver->sink, &receiver->config->records,
                                  (struct byte_size){KMSG_RECORD_MAX}, context, error);
    if (status != STATUS_OK)
        return status;
    return wall_clock_init(&receiver->wall, context->store, context->id, context->copy,
                           receiver->boot, error);
}

static void kmsg_stop(void *instance) {
    struct kmsg_receiver *receiver = instance;
    if (receiver->magic != KMSG_RECEIVER_MAGIC)
        return;
    kmsg_device_close(&receiver->device);
    record_sink_close(&receiver->sink);
    buffer_release(&receiver->line);
    memory_give(receiver->block);
    receiver->block = NULL;
    receiver->magic = 0;
}

static enum status kmsg_list(void *instance, struct source_list *sources, struct error *error) {
    struct kmsg_receiver *receiver = instance;
    enum status status = kmsg_device_open(&receiver->device, receiver->config->path, error);
    kmsg_device_close(&receiver->device);
    if (status == STATUS_OK)
        source_list_add(sources, slice_of(receiver->config->path));
    return status;
}

static void kmsg_guarantee(const void *config, const char *id, bool store, struct buffer *out) {
    const struct kmsg_config *kmsg = config;
    if (store)
        buffer_append_format(out,
                             " %s goes on behind the last record that it read; what the kernel "
                             "overwrote meanwhile is lost, and counted.",
                             id);
    else if (kmsg->start_at == KMSG_START_BOOT)
        buffer_append_format(out,
                             " After a crash or restart %s reads again what the kernel still has "
                             "since boot (start_at: boot), and verdicts may come again.",
                             id);
    else
        buffer_append_format(out,
                             " After a crash or restart %s goes on with new records (start_at: "
                             "now): what came meanwhile is not read.",
                             id);
}

const struct component_type receiver_kmsg = {
    .name = "kmsg",
    .summary = "Follows the kernel's log of this machine (/dev/kmsg).",
    .kind = COMPONENT_RECEIVER,
    .stability = STABILITY_BETA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct kmsg_config),
    .instance_size = sizeof(struct kmsg_receiver),
    .validate = kmsg_validate,
    .start = kmsg_start,
    .stop = kmsg_stop,
    .receiver = {.each_pipeline = true,
                 .run = kmsg_run,
                 .guarantee = kmsg_guarantee,
                 .list = kmsg_list,
                 .read = kmsg_read_once},
};
