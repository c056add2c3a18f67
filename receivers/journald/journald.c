// SPDX-License-Identifier: Apache-2.0
// The journald receiver as a component: its options, and its life from start to stop.
#include "pipeline/component/component.h"

#include "base/memory.h"
#include "config/problem.h"
#include "receivers/journald/library.h"
#include "receivers/journald/receiver.h"

#include <assert.h>
#include <stdio.h>

static const char *const start_choices[] = {"beginning", "boot", "now", NULL};

static const struct option options[] = {
    OPTION(struct journald_config, directory, OPTION_TEXT,
           .help = "directory with journal files, such as that of the host, mounted into a "
                   "container; otherwise the journal of this machine"),
    OPTION(struct journald_config, namespace, OPTION_TEXT,
           .help = "namespace of the journal (LogNamespace= of a unit); otherwise the default one"),
    OPTION(struct journald_config, kernel, OPTION_BOOL, .default_value = "true",
           .help = "read the kernel's messages (`_TRANSPORT=kernel`)"),
    OPTION(struct journald_config, units, OPTION_TEXT_LIST,
           .help = "read the messages of these units as well, such as "
                   "`nvidia-fabricmanager.service`"),
    OPTION(struct journald_config, matches, OPTION_TEXT_LIST,
           .help = "read as well what has all of these, each `FIELD=VALUE`; values of one field "
                   "are alternatives"),
    OPTION(struct journald_config, start_at, OPTION_CHOICE, .default_value = "boot",
           .choices = start_choices,
           .help = "where to begin when the store keeps no entry of this receiver: with all that "
                   "is kept, with what came since this machine booted, or with what comes from now "
                   "on"),
    OPTION(struct journald_config, max_message_size, OPTION_SIZE, .default_value = "64KiB",
           .min = 1024, .max = 1024.0 * 1024, .help = "of a longer message the beginning is read"),
    RECORD_NODE_OPTION(struct journald_config, records, "what each entry says (`_HOSTNAME`)"),
    RECORD_JOB_OPTION(struct journald_config, records),
    QUARANTINE_OPTIONS(struct journald_config, records),
};

static bool is_match(struct slice text) {
    size_t size = 0;
    while (size < text.size &&
           ((text.data[size] >= 'A' && text.data[size] <= 'Z') || text.data[size] == '_' ||
            (size > 0 && text.data[size] >= '0' && text.data[size] <= '9')))
        size++;
    return size > 0 && size < text.size && text.data[size] == '=';
}

static void journald_validate(const void *config, struct problem_list *problems) {
    const struct journald_config *journald = config;
    if (!journald->kernel && journald->units.count == 0 && journald->matches.count == 0)
        problem_add(problems, "kernel",
                    "false, and neither units nor matches say what else to read");
    if (journald->directory != NULL && journald->directory[0] != '/')
        problem_add(problems, "directory", "not an absolute path, such as /var/log/journal");
    if (journald->directory != NULL && journald->namespace != NULL)
        problem_add(problems, "namespace",
                    "cannot be given with directory; name the directory of the namespace");
    for (uint32_t i = 0; i < journald->units.count; i++)
        if (journald->units.items[i][0] == '\0' || strchr(journald->units.items[i], '.') == NULL)
            problem_add(problems, "units",
                        "\"%s\" is not the whole name of a unit, such as kubelet.service",
                        journald->units.items[i]);
    for (uint32_t i = 0; i < journald->matches.count; i++)
        if (!is_match(slice_of(journald->matches.items[i])))
            problem_add(problems, "matches",
                        "\"%s\" is not FIELD=VALUE, such as SYSLOG_IDENTIFIER=slurmd",
                        journald->matches.items[i]);
    record_options_check(&journald->records, problems);
}

static const struct metric_family gaps = {
    .name = "culprit_journald_receiver_gaps_total",
    .help = "Times that the entry to go on behind was not in the journal any more.",
    .type = METRIC_COUNTER};
static const struct metric_family unreadable = {
    .name = "culprit_journald_receiver_unreadable_entries_total",
    .help = "Entries of the journal that could not be read and were passed over.",
    .type = METRIC_COUNTER};

static enum status journald_start(void *instance, const void *config,
                                  const struct component_context *context, struct error *error) {
    struct journald_receiver *receiver = instance;
    assert(receiver->magic == 0);
    receiver->magic = JOURNALD_RECEIVER_MAGIC;
    receiver->config = config;
    receiver->context = context;
    receiver->counters =
        (struct journald_counters){.gaps = METRIC(&gaps, "receiver", context->id),
                                   .unreadable = METRIC(&unreadable, "receiver", context->id)};
    const char *directory = receiver->config->directory, *of = receiver->config->namespace;
    int size = snprintf(receiver->path, sizeof receiver->path, "journald:%s%s",
                        directory == NULL ? "" : directory, of == NULL ? "" : of);
    if (size >= (int)sizeof receiver->path)
        return error_set(error, STATUS_CONFIG, "directory is longer than %d bytes",
                         JOURNALD_PATH_MAX - 16);
    record_host_name(receiver->host);
    enum status status = record_sink_open(&receiver->sink, &receiver->config->records,
                                          receiver->config->max_message_size, context, error);
    return status == STATUS_OK ? journal_library_load(&receiver->library, error) : status;
}

static void journald_stop(void *instance) {
    struct journald_receiver *receiver = instance;
    if (receiver->magic != JOURNALD_RECEIVER_MAGIC)
        return;
    if (receiver->library != NULL)
        journald_close(receiver);
    record_sink_close(&receiver->sink);
    buffer_release(&receiver->line);
    memory_give(receiver->block);
    receiver->block = NULL;
    receiver->magic = 0;
}

static enum status journald_list(void *instance, struct source_list *sources, struct error *error) {
    struct journald_receiver *receiver = instance;
    enum status status = journald_open(receiver, error);
    journald_close(receiver);
    if (status == STATUS_OK)
        source_list_add(sources, slice_of(receiver->path));
    return status;
}

static void journald_guarantee(const void *config, const char *id, bool store, struct buffer *out) {
    const struct journald_config *journald = config;
    if (store)
        buffer_append_format(out,
                             " %s goes on behind the last entry that it read, as long as the "
                             "journal keeps it.",
                             id);
    else if (journald->start_at == JOURNALD_START_NOW)
        buffer_append_format(out,
                             " After a crash or restart %s goes on with new entries (start_at: "
                             "now): what came meanwhile is not read.",
                             id);
    else
        buffer_append_format(out,
                             " After a crash or restart %s reads the journal again (start_at: %s), "
                             "and verdicts may be written again with the same id.",
                             id, start_choices[journald->start_at]);
}

const struct component_type receiver_journald = {
    .name = "journald",
    .summary = "Follows systemd's journal: the kernel's messages, and those of units.",
    .kind = COMPONENT_RECEIVER,
    .stability = STABILITY_BETA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct journald_config),
    .instance_size = sizeof(struct journald_receiver),
    .library = &journal_late_library,
    .validate = journald_validate,
    .start = journald_start,
    .stop = journald_stop,
    .receiver = {.each_pipeline = true,
                 .run = journald_run,
                 .guarantee = journald_guarantee,
                 .list = journald_list,
                 .read = journald_read_once},
};
