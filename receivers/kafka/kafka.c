// SPDX-License-Identifier: Apache-2.0
// The Kafka receiver as a component: its options, and its life from start to stop.
//
// Start makes the consumer, which finds wrong settings at once, but waits for no broker. Stop comes
// after the last checkpoint: what has become safe with it is committed then, and the group is left.
#include "pipeline/component/component.h"

#include "base/clock.h"
#include "base/kafka/library.h"
#include "base/log.h"
#include "base/memory.h"
#include "config/problem.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/kafka/receiver.h"
#include "receivers/records/options.h"

#include <regex.h>
#include <stdio.h>

static const char *const start_choices[] = {"earliest", "latest", NULL};
const char *const kafka_strategy_choices[] = {"cooperative-sticky", "range", "roundrobin", NULL};
const char *const kafka_isolation_choices[] = {"read_committed", "read_uncommitted", NULL};

static const struct option dead_letter_rows[] = {
    OPTION(struct dead_letter_config, topic, OPTION_TEXT,
           .help =
               "topic that messages with a refused record are put into, whole and with the reason"),
};

static const struct option options[] = {
    KAFKA_CONNECTION_OPTIONS(struct kafka_config, connection),
    OPTION(struct kafka_config, topics, OPTION_TEXT_LIST, .required = true,
           .help = "topics to read; an entry that begins with ^ is a regular expression"),
    OPTION(struct kafka_config, group_id, OPTION_TEXT, .default_value = "culprit",
           .help = "consumer group; its members share the partitions"),
    OPTION(struct kafka_config, group_instance_id, OPTION_TEXT,
           .help =
               "makes the membership static: after a restart within session_timeout this name gets "
               "its partitions back without a rebalance"),
    OPTION(struct kafka_config, initial_offset, OPTION_CHOICE, .default_value = "earliest",
           .choices = start_choices,
           .help = "where to begin in a partition without a committed offset"),
    OPTION(struct kafka_config, session_timeout, OPTION_DURATION, .default_value = "45s",
           .min = 0.1, .max = 3600,
           .help = "how long a member may be silent before its partitions go to others"),
    OPTION(struct kafka_config, heartbeat_interval, OPTION_DURATION, .default_value = "3s",
           .min = 0.01, .max = 3600, .help = "how often a member shows that it lives"),
    OPTION(struct kafka_config, max_poll_interval, OPTION_DURATION, .default_value = "300s",
           .min = 1, .max = 86400,
           .help = "how long handling what was taken may last before its partitions go to others"),
    OPTION(struct kafka_config, group_rebalance_strategy, OPTION_CHOICE,
           .default_value = "cooperative-sticky", .choices = kafka_strategy_choices,
           .help = "how the group shares the partitions"),
    OPTION(struct kafka_config, isolation_level, OPTION_CHOICE, .default_value = "read_committed",
           .choices = kafka_isolation_choices,
           .help = "whether records of transactions that were not committed are read"),
    OPTION(struct kafka_config, min_fetch_size, OPTION_SIZE, .default_value = "1B", .min = 1,
           .max = 100e6,
           .help = "a broker waits for so much, up to max_fetch_wait, before it answers"),
    OPTION(struct kafka_config, max_fetch_wait, OPTION_DURATION, .default_value = "250ms",
           .min = 0.001, .max = 300, .help = "how long a broker waits for min_fetch_size"),
    OPTION(struct kafka_config, max_partition_fetch_size, OPTION_SIZE, .default_value = "1MiB",
           .min = 1024, .max = 100e6,
           .help =
               "how much of one partition is fetched at once; a larger message is fetched alone"),
    OPTION(struct kafka_config, queue_size, OPTION_SIZE, .default_value = "16MiB", .min = 1048576,
           .max = 2147483648.0, .help = "how much is fetched ahead, of all partitions together"),
    OPTION(struct kafka_config, max_record_size, OPTION_SIZE, .default_value = "1MiB", .min = 1024,
           .max = 64.0 * 1024 * 1024, .help = "a longer record is refused"),
    RECORD_OPTIONS(struct kafka_config, records),
    OPTION(
        struct kafka_config, rewind, OPTION_DURATION, .default_value = "10m", .min = 0,
        .max = 30 * 86400.0,
        .help =
            "how far before the committed offset a partition is read that somebody else worked on"),
    OPTION(struct kafka_config, max_senders, OPTION_INT, .default_value = "100000", .min = 1,
           .max = 10000000,
           .help = "how many culprits are known whose records are told from repeats"),
    OPTION(struct kafka_config, dead_letter, OPTION_GROUP, .rows = dead_letter_rows,
           .row_count = OPTION_COUNT(dead_letter_rows),
           .help = "where messages with refused records go"),
};

// -- rules between options ----------------------------------------------------------------------

static void check_topics(const struct kafka_config *config, struct problem_list *problems) {
    if (config->topics.count == 0)
        problem_add(problems, "topics", "the list is empty; name at least one topic");
    for (uint32_t i = 0; i < config->topics.count; i++) {
        const char *topic = config->topics.items[i];
        regex_t pattern;
        if (topic[0] != '^') {
            if (!kafka_topic_is_valid(topic))
                problem_add(
                    problems, "topics",
                    "\"%s\" is not a valid topic: 1 to 249 letters, digits, dots, dashes and "
                    "underscores; a regular expression begins with ^",
                    topic);
        } else if (regcomp(&pattern, topic, REG_EXTENDED | REG_NOSUB) != 0) {
            problem_add(problems, "topics", "\"%s\" is not a valid regular expression", topic);
        } else {
            regfree(&pattern);
        }
    }
}

static void check_text(const char *text, const char *key, struct problem_list *problems) {
    if (text != NULL && text[0] == '\0')
        problem_add(problems, key, "the text is empty; leave the key out or give it a value");
}

static void kafka_validate(const void *given, struct problem_list *problems) {
    const struct kafka_config *config = given;
    kafka_connection_check(&config->connection, problems);
    check_topics(config, problems);
    check_text(config->group_id, "group_id", problems);
    check_text(config->group_instance_id, "group_instance_id", problems);
    record_options_check(&config->records, problems);
    if (config->heartbeat_interval.ns * 2 > config->session_timeout.ns)
        problem_add(problems, "heartbeat_interval",
                    "it is more than half of session_timeout; a third of it is usual");
    if (config->max_poll_interval.ns < config->session_timeout.ns)
        problem_add(problems, "max_poll_interval", "it is shorter than session_timeout");
    const char *dead_letter = config->dead_letter.topic;
    if (dead_letter != NULL && !kafka_topic_is_valid(dead_letter))
        problem_add(problems, "dead_letter.topic", "\"%s\" is not a valid topic", dead_letter);
    for (uint32_t i = 0; dead_letter != NULL && i < config->topics.count; i++)
        if (strcmp(config->topics.items[i], dead_letter) == 0)
            problem_add(problems, "dead_letter.topic",
                        "%s is also read: what is put there would be read and refused for ever",
                        dead_letter);
}

// -- start and stop -----------------------------------------------------------------------------

static const struct metric_family repeated = {
    .name = "culprit_kafka_receiver_repeated_messages_total",
    .help = "Messages that came before, also by another partition, which were dropped.",
    .type = METRIC_COUNTER};
static const struct metric_family empty = {.name = "culprit_kafka_receiver_empty_messages_total",
                                           .help = "Messages without a value, which were skipped.",
                                           .type = METRIC_COUNTER};
static const struct metric_family dead_letters = {
    .name = "culprit_kafka_receiver_dead_letters_total",
    .help = "Messages that were put into the dead-letter topic.",
    .type = METRIC_COUNTER};
static const struct metric_family dead_letters_failed = {
    .name = "culprit_kafka_receiver_dead_letters_failed_total",
    .help = "Messages that the dead-letter topic does not take.",
    .type = METRIC_COUNTER};

static void find_counters(struct kafka_receiver *receiver) {
    const char *id = receiver->context->id;
    receiver->counters = (struct kafka_counters){
        .repeated = METRIC(&repeated, "receiver", id),
        .empty = METRIC(&empty, "receiver", id),
        .dead_letters = METRIC(&dead_letters, "receiver", id),
        .dead_letters_failed = METRIC(&dead_letters_failed, "receiver", id)};
}

// A further pipeline reads on its own, so it is a group of its own.
static char *group_name(const struct kafka_config *config, uint32_t copy) {
    assert(config->group_id != NULL);
    size_t size = strlen(config->group_id) + 16;
    char *name = memory_take(size);
    if (copy == 0)
        snprintf(name, size, "%s", config->group_id);
    else
        snprintf(name, size, "%s.%u", config->group_id, copy);
    return name;
}

static enum status kafka_start(void *instance, const void *config,
                               const struct component_context *context, struct error *error) {
    struct kafka_receiver *receiver = instance;
    assert(!receiver->started && receiver->consumer == NULL);
    receiver->config = config;
    receiver->context = context;
    receiver->first = context->copy == 0;
    receiver->started = true;
    arena_init(&receiver->trial.arena, 4096);
    receiver->decoder = record_options_decoder(&receiver->config->records);
    receiver->trial.state = memory_zero(1, receiver->decoder->state_size);
    receiver->group = group_name(receiver->config, context->copy);
    receiver->client.site = context->site;
    find_counters(receiver);
    enum status status = record_sink_open(&receiver->sink, &receiver->config->records,
                                          receiver->config->max_record_size, context, error);
    struct decoder_input input = receiver->sink.known;
    input.observed_ns = clock_unix_ns();
    if (receiver->decoder->begin != NULL)
        receiver->decoder->begin(receiver->trial.state, &input);
    if (status == STATUS_OK)
        status = kafka_library_load(&receiver->library, error);
    if (status != STATUS_OK)
        return status;
    receiver->client.library = receiver->library;
    return kafka_consumer_open(receiver, error);
}

static void kafka_stop(void *instance) {
    enum { LEAVE_NS = 2000 * 1000 * 1000 };
    struct kafka_receiver *receiver = instance;
    if (!receiver->started)
        return;
    receiver->started = false;
    if (receiver->consumer != NULL && receiver->feed != NULL && !receiver->fatal)
        kafka_commit(receiver);
    if (receiver->library != NULL) {
        kafka_consumer_close(receiver, LEAVE_NS);
        kafka_dead_letter_close(receiver);
    }
    struct kafka_partition *partition;
    for (uint32_t at = 0; (partition = kafka_partition_next(receiver, &at)) != NULL;)
        kafka_hide_lag(receiver, partition);
    kafka_partitions_release(receiver);
    arena_release(&receiver->trial.arena);
    if (receiver->trial.state != NULL && receiver->decoder->release != NULL)
        receiver->decoder->release(receiver->trial.state);
    memory_give(receiver->trial.state);
    record_sink_close(&receiver->sink);
    memory_give(receiver->group);
}

static void kafka_guarantee(const void *config, const char *id, bool store, struct buffer *out) {
    (void)config;
    buffer_append_format(out,
                         store ? " %s commits an offset only when the records before it are in "
                                 "the store, and takes up where the store is."
                               : " %s commits an offset when the records before it have gone "
                                 "through the pipeline; after a restart it reads the time of its "
                                 "rewind option again, and verdicts may come again with the same "
                                 "id.",
                         id);
}

const struct component_type receiver_kafka = {
    .name = "kafka",
    .summary = "Reads events from Kafka topics, as a member of a consumer group.",
    .kind = COMPONENT_RECEIVER,
    .stability = STABILITY_BETA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct kafka_config),
    .instance_size = sizeof(struct kafka_receiver),
    .library = &kafka_late_library,
    .validate = kafka_validate,
    .start = kafka_start,
    .stop = kafka_stop,
    .receiver = {.each_pipeline = true, .run = kafka_run, .guarantee = kafka_guarantee},
};
