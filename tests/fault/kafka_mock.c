// SPDX-License-Identifier: Apache-2.0
// A Kafka broker that does as it is told: librdkafka's mock cluster behind standard input.
//
//     kafka_mock TOPIC
//
// Prints the address of its one broker; the topic has one partition. Each line of standard input is
// a command and is answered with a line:
//     produce N        N lines follow, each a message; an empty one a tombstone   ok
//     headers BYTES    messages from here on carry a header of so many bytes      ok
//     down, up         the broker goes and comes                                  ok
//     fail API N       N requests of a kind (by its number in Kafka's protocol) are answered with
//                      errors that may pass                                       ok
//     committed GROUP  the offset that this group has committed                   NUMBER
// It ends when its input does.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 30000, LINE_MAX_BYTES = 1 << 20, FAILURES_MAX = 16, NAME_MAX_BYTES = 128 };

static rd_kafka_mock_cluster_t *cluster;
static const char *address, *topic;
static char *header; // NULL: none
static size_t header_size;

_Noreturn static void failed(const char *what, const char *why) {
    fprintf(stderr, "kafka_mock: %s: %s\n", what, why);
    exit(70);
}

static rd_kafka_t *make_client(rd_kafka_type_t type, const char *group) {
    char reason[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const char *const settings[][2] = {{"log_level", "0"},
                                       {"linger.ms", "0"},
                                       {"bootstrap.servers", address},
                                       {"group.id", group}};
    for (size_t i = 0; i < 4; i++)
        if (settings[i][1] != NULL && (i != 1 || type == RD_KAFKA_PRODUCER) &&
            rd_kafka_conf_set(conf, settings[i][0], settings[i][1], reason, sizeof reason) !=
                RD_KAFKA_CONF_OK)
            failed(settings[i][0], reason);
    rd_kafka_t *client = rd_kafka_new(type, conf, reason, sizeof reason);
    if (client == NULL)
        failed("a client", reason);
    return client;
}

static void produce(rd_kafka_t *producer, char *line, unsigned long count) {
    for (; count > 0 && fgets(line, LINE_MAX_BYTES, stdin) != NULL; count--) {
        size_t size = strcspn(line, "\n");
        rd_kafka_headers_t *headers = rd_kafka_headers_new(1);
        if (header != NULL)
            rd_kafka_header_add(headers, "large", -1, header, (ssize_t)header_size);
        rd_kafka_resp_err_t failure =
            rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                              RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADERS(headers),
                              RD_KAFKA_V_VALUE(size == 0 ? NULL : line, size), RD_KAFKA_V_END);
        if (failure != RD_KAFKA_RESP_ERR_NO_ERROR)
            failed("produce", rd_kafka_err2str(failure));
    }
    rd_kafka_resp_err_t failure = rd_kafka_flush(producer, PATIENCE_MS);
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR)
        failed("produce", rd_kafka_err2str(failure));
    puts("ok");
}

static void say_committed(const char *group) {
    rd_kafka_t *client = make_client(RD_KAFKA_CONSUMER, group);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, 0);
    rd_kafka_resp_err_t failure = rd_kafka_committed(client, list, PATIENCE_MS);
    long long offset =
        failure == RD_KAFKA_RESP_ERR_NO_ERROR ? (long long)list->elems[0].offset : -1;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy_flags(client, 0);
    printf("%lld\n", offset < 0 ? 0 : offset);
}

static void fail(long api, unsigned long count) {
    static const rd_kafka_resp_err_t errors[] = {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                                                 RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
                                                 RD_KAFKA_RESP_ERR__TRANSPORT};
    // Group requests know errors of their own.
    static const rd_kafka_resp_err_t of_groups[] = {RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
                                                    RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE,
                                                    RD_KAFKA_RESP_ERR_NOT_COORDINATOR};
    rd_kafka_resp_err_t chosen[FAILURES_MAX];
    size_t number = count < FAILURES_MAX ? count : FAILURES_MAX;
    for (size_t i = 0; i < number; i++)
        chosen[i] = api >= 8 ? of_groups[i % 3] : errors[i % 3];
    rd_kafka_mock_push_request_errors_array(cluster, (int16_t)api, number, chosen);
    puts("ok");
}

static void carry(unsigned long size) {
    free(header);
    header = size == 0 ? NULL : malloc(size);
    header_size = size;
    if (header != NULL)
        memset(header, 'h', size);
    puts("ok");
}

static void obey(rd_kafka_t *producer, char *line) {
    unsigned long count = 0;
    long api = 0;
    char group[NAME_MAX_BYTES];
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "produce %lu", &count) == 1) {
        produce(producer, line, count);
    } else if (sscanf(line, "fail %ld %lu", &api, &count) == 2) {
        fail(api, count);
    } else if (sscanf(line, "headers %lu", &count) == 1) {
        carry(count);
    } else if (sscanf(line, "committed %127s", group) == 1) {
        say_committed(group);
    } else if (strcmp(line, "down") == 0) {
        rd_kafka_mock_broker_set_down(cluster, 1);
        puts("ok");
    } else if (strcmp(line, "up") == 0) {
        rd_kafka_mock_broker_set_up(cluster, 1);
        puts("ok");
    } else {
        failed("not a command", line);
    }
    fflush(stdout);
}

int main(int count, char **arguments) {
    if (count != 2)
        failed("usage", "kafka_mock TOPIC");
    topic = arguments[1];
    rd_kafka_t *host = make_client(RD_KAFKA_PRODUCER, NULL);
    cluster = rd_kafka_mock_cluster_new(host, 1);
    if (cluster == NULL || rd_kafka_mock_topic_create(cluster, topic, 1, 1) != 0)
        failed("the mock cluster", "it cannot be made");
    address = rd_kafka_mock_cluster_bootstraps(cluster);
    rd_kafka_t *producer = make_client(RD_KAFKA_PRODUCER, NULL);
    puts(address);
    fflush(stdout);
    char *line = malloc(LINE_MAX_BYTES);
    while (line != NULL && fgets(line, LINE_MAX_BYTES, stdin) != NULL)
        obey(producer, line);
    free(line);
    free(header);
    rd_kafka_destroy_flags(producer, 0);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy_flags(host, 0);
    return 0;
}
