// SPDX-License-Identifier: Apache-2.0
// Whatever stands in a message's headers and value, it is handled once, and what was handled is
// never handled again.
//
// The input is messages of one partition with line ends between them: headers as NAME=VALUE with
// zero bytes between, then the value behind a last zero byte. librdkafka is played by this file;
// all messages are delivered twice, as after a rebalance, and offered once; the position only
// rises.
#include "tests/receivers/fake_feed.c"

#include "base/intern.h"
#include "base/metrics/metrics.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/kafka/receiver.h"
#include "tests/fuzz/fuzz.h"

enum { HEADERS_MAX = 16, MESSAGES_MAX = 64 };

struct fuzz_header {
    char *name;
    struct slice value;
};

// What stands behind rd_kafka_message_t._private here.
struct headers_of {
    struct fuzz_header items[HEADERS_MAX];
    uint32_t count;
};

static rd_kafka_resp_err_t message_headers(const rd_kafka_message_t *message,
                                           rd_kafka_headers_t **headers) {
    const struct headers_of *of = message->_private;
    *headers = (rd_kafka_headers_t *)message->_private;
    return of->count == 0 ? RD_KAFKA_RESP_ERR__NOENT : RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t header_get_all(const rd_kafka_headers_t *headers, size_t index,
                                          const char **name, const void **value, size_t *size) {
    const struct headers_of *of = (const struct headers_of *)headers;
    if (index >= of->count)
        return RD_KAFKA_RESP_ERR__NOENT;
    *name = of->items[index].name;
    *value = of->items[index].value.data;
    *size = of->items[index].value.size;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static const char *topic_name(const rd_kafka_topic_t *topic) {
    (void)topic;
    return "t";
}

static int64_t message_timestamp(const rd_kafka_message_t *message,
                                 rd_kafka_timestamp_type_t *type) {
    *type = message->offset % 2 == 0 ? RD_KAFKA_TIMESTAMP_CREATE_TIME
                                     : RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    return message->offset * 1000 - 5000;
}

static const struct kafka_library library = {
    .message_headers = message_headers,
    .header_get_all = header_get_all,
    .topic_name = topic_name,
    .message_timestamp = message_timestamp,
};

static void header_take(struct headers_of *headers, struct slice text) {
    const char *equals = memchr(text.data, '=', text.size);
    if (equals == NULL || headers->count == HEADERS_MAX)
        return;
    size_t name_size = (size_t)(equals - text.data);
    struct slice value = {equals + 1, text.size - name_size - 1};
    headers->items[headers->count++] =
        (struct fuzz_header){memory_copy_text(text.data, name_size), fuzz_block(value)};
}

static void message_fill(rd_kafka_message_t *message, struct headers_of *headers,
                         struct slice line) {
    struct fuzz_input input = {line.data, line.size};
    struct slice part = {"", 0};
    // The last part is the value; a line that ends in a zero byte has none.
    while (fuzz_piece(&input, '\0', &part) && input.left > 0)
        header_take(headers, part);
    bool without = line.size > 0 && line.data[line.size - 1] == '\0';
    if (without)
        header_take(headers, part);
    struct slice value = without ? (struct slice){NULL, 0} : fuzz_block(part);
    message->payload = (void *)(uintptr_t)value.data;
    message->len = value.size;
    message->_private = headers;
}

struct world {
    struct kafka_receiver receiver;
    struct kafka_partition *partition;
    struct headers_of headers[MESSAGES_MAX];
    rd_kafka_message_t messages[MESSAGES_MAX];
    uint32_t count;
};

static void world_open(struct world *world, const struct kafka_config *config,
                       const struct component_context *context) {
    static const struct metric_family family = {
        .name = "fuzz_total", .help = "Messages.", .type = METRIC_COUNTER};
    struct kafka_receiver *receiver = &world->receiver;
    receiver->library = &library;
    receiver->config = config;
    receiver->context = context;
    receiver->feed = fake_feed_create();
    struct error error;
    require(record_sink_open(&receiver->sink, &config->records, config->max_record_size, context,
                             &error) == STATUS_OK);
    record_sink_attach(&receiver->sink, receiver->feed);
    receiver->decoder = &decoder_stormlog;
    receiver->first = true;
    receiver->counters.repeated = METRIC(&family, "kind", "repeated");
    receiver->counters.empty = METRIC(&family, "kind", "empty");
    arena_init(&receiver->trial.arena, 4096);
    world->partition = kafka_partition_of(receiver, "t", 0);
    world->partition->assigned = true;
    world->partition->next = 0;
}

static void world_close(struct world *world) {
    for (uint32_t i = 0; i < world->count; i++) {
        memory_give(world->messages[i].payload);
        for (uint32_t j = 0; j < world->headers[i].count; j++) {
            memory_give(world->headers[i].items[j].name);
            fuzz_block_give(world->headers[i].items[j].value);
        }
    }
    kafka_partitions_release(&world->receiver);
    arena_release(&world->receiver.trial.arena);
    fake_feed_free(world->receiver.feed);
}

static void deliver(struct world *world) {
    for (uint32_t i = 0; i < world->count; i++) {
        int64_t before = world->partition->next;
        require(kafka_handle(&world->receiver, &world->messages[i]));
        require(world->partition->next >= before);
        require(world->partition->next > world->messages[i].offset);
        if (i % 3 == 2)
            feed_flush(world->receiver.feed);
    }
    feed_flush(world->receiver.feed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct kafka_config config = {
        .group_id = "group", .max_record_size = {1024}, .max_senders = 4};
    static const struct component_context context = {.id = "kafka", .site = "receiver/kafka"};
    struct world *world = memory_zero(1, sizeof *world);
    world_open(world, &config, &context);
    struct fuzz_input input = {(const char *)data, size};
    for (struct slice line; world->count < MESSAGES_MAX && fuzz_piece(&input, '\n', &line);) {
        rd_kafka_message_t *message = &world->messages[world->count];
        message->offset = world->count;
        message_fill(message, &world->headers[world->count++], line);
    }
    deliver(world);
    uint32_t offered = world->receiver.feed->count;
    deliver(world);
    require(world->receiver.feed->count == offered);
    world_close(world);
    memory_give(world);
    metrics_release();
    intern_release();
    return 0;
}
