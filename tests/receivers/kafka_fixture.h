// SPDX-License-Identifier: Apache-2.0
// What the tests of the Kafka receiver share: librdkafka's mock cluster, a producer, and receivers
// that run on fake feeds. Included once by each test program.
#pragma once

#include "fake_feed.c"

#include "base/clock.h"
#include "base/late_library.h"
#include "base/memory.h"
#include "receivers/kafka/kafka.h"
#include "receivers/kafka/kafka_receiver.h"

#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOCK_FUNCTIONS(X)                                                                          \
    X(mock_cluster_new)                                                                            \
    X(mock_cluster_destroy)                                                                        \
    X(mock_cluster_bootstraps)                                                                     \
    X(mock_push_request_errors_array)                                                              \
    X(mock_topic_create)                                                                           \
    X(mock_topic_set_error)                                                                        \
    X(mock_broker_set_down)                                                                        \
    X(mock_broker_set_up)                                                                          \
    X(test_fatal_error)

static struct {
#define MOCK_MEMBER(name) __typeof__(&rd_kafka_##name) name;
    MOCK_FUNCTIONS(MOCK_MEMBER)
    __typeof__(&rd_kafka_flush) flush;
} mock;

static const struct kafka_library *kafka;
static rd_kafka_t *host;     // owns the cluster
static rd_kafka_t *producer; // of the tests
static rd_kafka_mock_cluster_t *cluster;
static const char *brokers[1];

enum { PATIENCE_MS = 30000 };

#define EVENTUALLY(condition)                                                                      \
    do {                                                                                           \
        int waited_ms = 0;                                                                         \
        while (!(condition) && waited_ms < PATIENCE_MS) {                                          \
            usleep(5000);                                                                          \
            waited_ms += 5;                                                                        \
        }                                                                                          \
        ck_assert_msg((condition), "%s", #condition);                                              \
    } while (0)

static inline rd_kafka_t *make_client(rd_kafka_type_t type, const char *const *settings) {
    rd_kafka_conf_t *conf = kafka->conf_new();
    char reason[256];
    for (; *settings != NULL; settings += 2)
        ck_assert_msg(kafka->conf_set(conf, settings[0], settings[1], reason, sizeof reason) ==
                          RD_KAFKA_CONF_OK,
                      "%s", reason);
    rd_kafka_t *client = kafka->new (type, conf, reason, sizeof reason);
    ck_assert_msg(client != NULL, "%s", reason);
    return client;
}

static inline void fixture_setup(void) {
    struct error error = {0};
    static const struct late_symbol symbols[] = {
#define MOCK_PLACE(name) {"rd_kafka_" #name, (void **)(void *)&mock.name},
        MOCK_FUNCTIONS(MOCK_PLACE){"rd_kafka_flush", (void **)(void *)&mock.flush},
    };
    ck_assert_int_eq(kafka_library_load(&kafka, &error), STATUS_OK);
    ck_assert_int_eq(late_library_load("librdkafka.so.1", "librdkafka1", "tests", symbols,
                                       sizeof symbols / sizeof symbols[0], &error),
                     STATUS_OK);
    host = make_client(RD_KAFKA_PRODUCER, (const char *const[]){"log_level", "0", NULL});
    cluster = mock.mock_cluster_new(host, 1);
    ck_assert_ptr_nonnull(cluster);
    brokers[0] = mock.mock_cluster_bootstraps(cluster);
    producer = make_client(RD_KAFKA_PRODUCER,
                           (const char *const[]){"bootstrap.servers", brokers[0], "linger.ms", "0",
                                                 "log_level", "0", NULL});
    ck_assert_int_eq((int)mock.mock_topic_create(cluster, "t", 2, 1), 0);
    ck_assert_int_eq((int)mock.mock_topic_create(cluster, "dead", 1, 1), 0);
}

static inline void fixture_teardown(void) {
    kafka->destroy_flags(producer, 0);
    mock.mock_cluster_destroy(cluster);
    kafka->destroy_flags(host, 0);
    metrics_release();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// -- producing ----------------------------------------------------------------------------------

// `headers` are pairs of name and value, ended by NULL; NULL: none. `value` NULL: a tombstone.
static inline void produce(const char *topic, int32_t partition, const char *value,
                           const char *const *headers) {
    rd_kafka_headers_t *list = kafka->headers_new(4);
    for (; headers != NULL && *headers != NULL; headers += 2)
        kafka->header_add(list, headers[0], -1, headers[1], -1);
    size_t size = value == NULL ? 0 : strlen(value);
    rd_kafka_resp_err_t failure = kafka->producev(
        producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY("key", 3),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)value, size), RD_KAFKA_V_HEADERS(list), RD_KAFKA_V_END);
    ck_assert_int_eq((int)failure, (int)RD_KAFKA_RESP_ERR_NO_ERROR);
    ck_assert_int_eq(mock.flush(producer, PATIENCE_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
}

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
        .quarantine_max_size = {1 << 20},
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
    enum status status =
        receiver_kafka.start(running->receiver, &running->config, &running->context, &error);
    ck_assert_msg(status == STATUS_OK, "%s", error.message);
    ck_assert_int_eq(pthread_create(&running->thread, NULL, running_thread, running), 0);
    running->runs = true;
}

static inline void running_stop(struct running *running) {
    fake_feed_stop(running->feed);
    pthread_join(running->thread, NULL);
    ck_assert_int_eq(running->status, STATUS_OK);
    running->runs = false;
    receiver_kafka.stop(running->receiver);
    memory_give(running->receiver);
    fake_feed_free(running->feed);
}

static inline uint32_t accepted(struct running *running) {
    return fake_feed_accepted(running->feed, NULL);
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
