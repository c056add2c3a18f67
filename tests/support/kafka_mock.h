// SPDX-License-Identifier: Apache-2.0
// librdkafka's mock cluster for tests in C: one broker, the topics "t" (two partitions) and "dead"
// (one), and clients of the test's own. Included once by each test program.
#pragma once

#include "base/intern.h"
#include "base/kafka/library.h"
#include "base/late_library.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "tests/support/eventually.h"

#include <check.h>
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

enum { PATIENCE_MS = EVENTUALLY_S * 1000 };

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
    struct late_library late = {"librdkafka.so.1", "librdkafka1", "tests", symbols,
                                .symbol_count = sizeof symbols / sizeof symbols[0]};
    ck_assert_int_eq(late_library_load(&late, &error), STATUS_OK);
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

// -- reading ------------------------------------------------------------------------------------

// A consumer of one partition, from its beginning, in no group; for kafka->consumer_poll.
static inline rd_kafka_t *make_reader(const char *topic, int32_t partition) {
    rd_kafka_t *client =
        make_client(RD_KAFKA_CONSUMER,
                    (const char *const[]){"bootstrap.servers", brokers[0], "group.id", "reader",
                                          "enable.auto.commit", "false", "log_level", "0", NULL});
    kafka->poll_set_consumer(client);
    rd_kafka_topic_partition_list_t *list = kafka->topic_partition_list_new(1);
    kafka->topic_partition_list_add(list, topic, partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
    ck_assert_int_eq((int)kafka->assign(client, list), (int)RD_KAFKA_RESP_ERR_NO_ERROR);
    kafka->topic_partition_list_destroy(list);
    return client;
}

// The value of a header, as a text that stays until the next call but seven; "" when it is not
// there.
static inline const char *header_of(const rd_kafka_message_t *message, const char *wanted) {
    static char texts[8][1024];
    static unsigned turn;
    char *text = texts[turn++ % 8];
    text[0] = '\0';
    rd_kafka_headers_t *list;
    const char *name;
    const void *value;
    size_t size;
    if (kafka->message_headers(message, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return text;
    for (size_t i = 0;
         kafka->header_get_all(list, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
        if (strcmp(name, wanted) == 0)
            snprintf(text, sizeof texts[0], "%.*s", (int)size, (const char *)value);
    return text;
}
