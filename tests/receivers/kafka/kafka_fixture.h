// SPDX-License-Identifier: Apache-2.0
// What the tests of the Kafka receiver share: records, and receivers that run on fake feeds
// and read from the mock cluster. Included once by each test program.
#pragma once

#include "cli/component_list.h"
#include "tests/receivers/fake_feed.c"

#include "base/clock.h"
#include "base/memory.h"
#include "receivers/kafka/receiver.h"
#include "tests/support/kafka_mock.h"

static inline char *record_text(int number) {
    static char text[128];
    snprintf(text, sizeof text, "{\"timestamp\":%d.5,\"memory_allocated\":%d}", number, number);
    return text;
}

static inline void produce_many(int32_t partition, int from, int to) {
    for (int i = from; i < to; i++)
        produce("t", partition, record_text(i), NULL);
}

// -- receivers ----------------------------------------------------------------------------------

struct running {
    struct kafka_config config;
    struct component_context context;
    struct kafka_receiver *receiver;
    struct feed *feed;
    pthread_t thread;
    bool runs;
    enum status status;
};

static const char *const topics[] = {"t"};

static inline void running_init(struct running *running) {
    memset(running, 0, sizeof *running);
    running->config = (struct kafka_config){
        .connection = {.brokers = {brokers, 1}, .client_id = "test"},
        .topics = {topics, 1},
        .group_id = "group",
        .session_timeout = {4000 * INT64_C(1000000)},
        .heartbeat_interval = {200 * INT64_C(1000000)},
        .max_poll_interval = {60000 * INT64_C(1000000)},
        .min_fetch_size = {1},
        .max_fetch_wait = {20 * INT64_C(1000000)},
        .max_partition_fetch_size = {1 << 20},
        .queue_size = {1 << 20},
        .max_record_size = {1024},
        .max_senders = 100,
        .records.quarantine_max_size = {1 << 20},
    };
    running->context = (struct component_context){.id = "kafka", .site = "receiver/kafka"};
    running->feed = fake_feed_create();
    running->receiver = memory_zero(1, sizeof *running->receiver);
}

static inline void *running_thread(void *argument) {
    struct running *running = argument;
    struct error error = {0};
    running->status = kafka_run(running->receiver, running->feed, &error);
    return NULL;
}

static inline void running_start(struct running *running) {
    struct error error = {0};
    enum status status = component_start(&receiver_kafka, running->receiver, &running->config,
                                         &running->context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
    ck_assert_int_eq(pthread_create(&running->thread, NULL, running_thread, running), 0);
    running->runs = true;
}

static inline void running_stop(struct running *running) {
    fake_feed_stop(running->feed);
    pthread_join(running->thread, NULL);
    ck_assert_int_eq(running->status, STATUS_OK);
    running->runs = false;
    component_stop(&receiver_kafka, running->receiver);
    memory_give(running->receiver);
    fake_feed_free(running->feed);
}

static inline uint32_t accepted(struct running *running) {
    return fake_feed_accepted(running->feed, NULL);
}

// As of its last flush.
static inline struct source_position flushed_of(struct running *running, const char *path) {
    const struct source *source = fake_feed_find(running->feed, path);
    pthread_mutex_lock(&running->feed->lock);
    struct source_position position = source->flushed;
    pthread_mutex_unlock(&running->feed->lock);
    return position;
}

static inline bool trouble_says(struct running *running, const char *text) {
    pthread_mutex_lock(&running->feed->lock);
    bool found = text == NULL ? running->feed->trouble[0] == '\0'
                              : strstr(running->feed->trouble, text) != NULL;
    pthread_mutex_unlock(&running->feed->lock);
    return found;
}

// What the group has committed for a partition of "t"; below 0: nothing.
static inline int64_t committed(int32_t partition) {
    rd_kafka_t *client = make_client(
        RD_KAFKA_CONSUMER, (const char *const[]){"bootstrap.servers", brokers[0], "group.id",
                                                 "group", "log_level", "0", NULL});
    rd_kafka_topic_partition_list_t *list = kafka->topic_partition_list_new(1);
    kafka->topic_partition_list_add(list, "t", partition);
    ck_assert_int_eq(kafka->committed(client, list, PATIENCE_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
    int64_t offset = list->elems[0].offset;
    kafka->topic_partition_list_destroy(list);
    kafka->destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return offset;
}
