// SPDX-License-Identifier: Apache-2.0
// The Kafka exporter as a component: its options and its life. Start waits for no broker.
#include "pipeline/component/component.h"

#include "base/kafka/library.h"
#include "base/memory.h"
#include "config/problem.h"
#include "exporters/forward/ranks.h"
#include "exporters/kafka/exporter.h"
#include "pipeline/component/record_frame.h"

static const char *const payloads[] = {"verdicts", "events", NULL};
static const char *const keys[] = {"job_id", "none", NULL};
const char *const kafka_compressions[] = {"none", "gzip", "snappy", "lz4", "zstd", NULL};

static const struct option options[] = {
    KAFKA_CONNECTION_OPTIONS(struct kafka_exporter_config, connection),
    OPTION(struct kafka_exporter_config, topic, OPTION_TEXT, .required = true,
           .help = "topic to write to"),
    OPTION(struct kafka_exporter_config, payload, OPTION_CHOICE, .default_value = "verdicts",
           .choices = payloads,
           .help =
               "verdicts: each finding and each change of one; events: every event as it came, for "
               "another culprit"),
    OPTION(struct kafka_exporter_config, key, OPTION_CHOICE, .default_value = "job_id",
           .choices = keys,
           .help = "job_id: all events of a job are in one partition, events of a node without a "
                   "job in all of them; verdicts have JOB/ID"),
    OPTION(struct kafka_exporter_config, compression, OPTION_CHOICE, .default_value = "lz4",
           .choices = kafka_compressions, .help = "how records are compressed"),
    OPTION(struct kafka_exporter_config, linger, OPTION_DURATION, .default_value = "10ms", .min = 0,
           .max = 900, .help = "how long a record waits for others to go with it"),
    OPTION(struct kafka_exporter_config, max_message_size, OPTION_SIZE, .default_value = "1000000B",
           .min = 1024, .max = 100e6,
           .help = "a larger record is left out; not more than the topic's max.message.bytes"),
    OPTION(struct kafka_exporter_config, sender, OPTION_TEXT,
           .help = "name under which records are numbered, so that receivers drop repeats; default "
                   "HOST/EXPORTER"),
    ROUTE_OPTIONS(struct kafka_exporter_config, route),
    SENDING_OPTIONS(struct kafka_exporter_config, sending, "5s"),
};

static void kafka_validate(const void *given, struct problem_list *problems) {
    const struct kafka_exporter_config *config = given;
    kafka_connection_check(&config->connection, problems);
    if (config->topic != NULL && !kafka_topic_is_valid(config->topic))
        problem_add(problems, "topic",
                    "\"%s\" is not a valid topic name: 1 to 249 letters, digits, dots, dashes and "
                    "underscores",
                    config->topic);
    forward_sender_check(config->sender, problems);
    if (config->payload == KAFKA_EVENTS && !route_is_default(&config->route))
        problem_add(problems, "payload",
                    "events are not chosen by match, update_interval and max_per_minute: these are "
                    "for payload: verdicts");
}

static const struct metric_family undeliverable = {
    .name = "culprit_kafka_exporter_undeliverable_records_total",
    .help = "Records that the brokers will never take, which were left out.",
    .type = METRIC_COUNTER};

static enum status kafka_start(void *instance, const void *config,
                               const struct component_context *context, struct error *error) {
    struct kafka_exporter *self = instance;
    self->config = config;
    self->site = self->client.site = context->site;
    forward_sender_init(&self->sender, self->config->sender, context->id);
    buffer_init(&self->value, RECORD_FRAME_MAX);
    self->undeliverable = METRIC(&undeliverable, "exporter", context->id);
    enum status status = kafka_library_load(&self->library, error);
    self->client.library = self->library;
    return status != STATUS_OK ? status : kafka_producer_open(self, error);
}

static void kafka_stop(void *instance) {
    struct kafka_exporter *self = instance;
    kafka_producer_close(self);
    forward_ranks_release(&self->ranks);
    kafka_nodes_release(&self->nodes);
    buffer_release(&self->value);
    for (uint32_t i = 0; i < KAFKA_BLOCKS_MAX; i++)
        memory_give(self->delivery.blocks[i].records);
    forward_sender_release(&self->sender);
}

static const struct state_row STATE[] = {
    STATE_STRUCT(struct kafka_exporter, sender.counter, "kafka.counter"),
    STATE_ROWS(struct kafka_exporter, ranks.ranks, "kafka.ranks", forward_rank_rows),
    STATE_ROWS(struct kafka_exporter, ranks.sessions, "kafka.sessions", forward_session_rows),
    STATE_ROWS(struct kafka_exporter, nodes.pairs, "kafka.nodes", kafka_pair_rows),
};

static void kafka_restored(void *instance) {
    struct kafka_exporter *self = instance;
    forward_sender_restored(&self->sender);
    forward_ranks_restored(&self->ranks);
    kafka_nodes_restored(&self->nodes);
}

static const struct sending_config *kafka_sending(const void *config) {
    return &((const struct kafka_exporter_config *)config)->sending;
}

static const struct route_config *kafka_route(const void *config) {
    return &((const struct kafka_exporter_config *)config)->route;
}

// Events, not verdicts: their numbers depend on the order in which receivers raced.
static bool kafka_takes_events(const void *config) {
    return ((const struct kafka_exporter_config *)config)->payload == KAFKA_EVENTS;
}

const struct component_type exporter_kafka = {
    .name = "kafka",
    .summary = "Writes verdicts, or events for another culprit, to a Kafka topic.",
    .kind = COMPONENT_EXPORTER,
    .stability = STABILITY_BETA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct kafka_exporter_config),
    .instance_size = sizeof(struct kafka_exporter),
    .library = &kafka_late_library,
    .needs = FACT_VERDICTS,
    .validate = kafka_validate,
    .start = kafka_start,
    .stop = kafka_stop,
    .state_rows = STATE,
    .state_row_count = OPTION_COUNT(STATE),
    .restored = kafka_restored,
    .exporter = {.takes_events = kafka_takes_events,
                 .encode = kafka_encode,
                 .send = kafka_send,
                 .ahead_bytes = KAFKA_AHEAD_BYTES,
                 .sending = kafka_sending,
                 .route = kafka_route,
                 .waits_for_checkpoint = kafka_takes_events},
};
