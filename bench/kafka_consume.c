// SPDX-License-Identifier: Apache-2.0
// What librdkafka alone consumes: reads a topic as a member of a consumer group, and does nothing
// with it.
//
//     kafka_consume BROKERS TOPIC MESSAGES [KEY=VALUE...]
//
// Ends when it has as many messages, or when nothing came for ten seconds (status 1). KEY=VALUE are
// settings of librdkafka. Messages are taken in the way that costs least: what is there, in
// batches, and each is only counted. "assigned at SECONDS" (Unix) on standard error is when it was
// told its partitions.
#include <librdkafka/rdkafka.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 1024, PATIENCE = 100, WAIT_MS = 100 };

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, key, value, why, sizeof why) != RD_KAFKA_CONF_OK) {
        fprintf(stderr, "kafka_consume: %s\n", why);
        exit(2);
    }
}

static void rebalance(rd_kafka_t *consumer, rd_kafka_resp_err_t event,
                      rd_kafka_topic_partition_list_t *partitions, void *opaque) {
    struct timespec now;
    (void)opaque;
    bool assigns = event == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    clock_gettime(CLOCK_REALTIME, &now);
    if (assigns)
        fprintf(stderr, "assigned at %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    if (strcmp(rd_kafka_rebalance_protocol(consumer), "COOPERATIVE") != 0)
        rd_kafka_assign(consumer, assigns ? partitions : NULL);
    else if (assigns)
        rd_kafka_error_destroy(rd_kafka_incremental_assign(consumer, partitions));
    else
        rd_kafka_error_destroy(rd_kafka_incremental_unassign(consumer, partitions));
}

static rd_kafka_t *join(const char *brokers, const char *topic, int count, char **settings) {
    char group[64], why[256];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); // each run is a group of its own
    snprintf(group, sizeof group, "kafka_consume-%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", brokers);
    set(conf, "group.id", group);
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.auto.commit", "false");
    rd_kafka_conf_set_rebalance_cb(conf, rebalance);
    for (int i = 0; i < count; i++) {
        char *value = strchr(settings[i], '=');
        if (value == NULL) {
            fprintf(stderr, "kafka_consume: %s is not KEY=VALUE\n", settings[i]);
            exit(2);
        }
        *value = '\0';
        set(conf, settings[i], value + 1);
    }
    rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (consumer == NULL) {
        fprintf(stderr, "kafka_consume: %s\n", why);
        exit(2);
    }
    rd_kafka_poll_set_consumer(consumer);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, RD_KAFKA_PARTITION_UA);
    if (rd_kafka_subscribe(consumer, list) != RD_KAFKA_RESP_ERR_NO_ERROR)
        exit(2);
    rd_kafka_topic_partition_list_destroy(list);
    return consumer;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: kafka_consume BROKERS TOPIC MESSAGES [KEY=VALUE...]\n");
        return 2;
    }
    uint64_t wanted = strtoull(argv[3], NULL, 10), count = 0, bytes = 0;
    rd_kafka_t *consumer = join(argv[1], argv[2], argc - 4, argv + 4);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer);
    for (int idle = 0; count < wanted && idle < PATIENCE; idle++) {
        rd_kafka_message_t *messages[BATCH];
        ssize_t got = rd_kafka_consume_batch_queue(queue, WAIT_MS, messages, 1);
        if (got == 1) // a full batch is not waited for
            got += rd_kafka_consume_batch_queue(queue, 0, messages + 1, BATCH - 1);
        for (ssize_t i = 0; i < got; i++) {
            if (messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                count++;
                bytes += messages[i]->len;
                idle = 0;
            }
            rd_kafka_message_destroy(messages[i]);
        }
    }
    printf("%" PRIu64 " messages, %" PRIu64 " bytes\n", count, bytes);
    fflush(stdout);
    if (count < wanted)
        fprintf(stderr, "kafka_consume: %" PRIu64 " of %" PRIu64 " messages came\n", count, wanted);
    _Exit(count < wanted); // leaving the group is not measured
}
