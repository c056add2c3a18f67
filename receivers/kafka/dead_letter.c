// SPDX-License-Identifier: Apache-2.0
// Puts a message that holds a refused record into the dead-letter topic: key, value and headers as
// they were, with headers that say where it came from and why, named as Kafka Connect names them.
// One at a time, waited for: only when the brokers have it does culprit go on, so that no crash
// loses it. While that takes long the partitions are paused and the consumer is polled, so that it
// stays in its group.
#include "base/clock.h"
#include "base/log.h"
#include "receivers/kafka/receiver.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { LOOK_MS = 50, RETRY_S = 1, SLOW_S = 5 };

static const uint64_t SECOND_NS = 1000000000;

static void note_answer(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
    struct kafka_client *client = opaque;
    assert(client->magic == KAFKA_CLIENT_MAGIC);
    struct kafka_dead_letter *letter =
        (struct kafka_dead_letter *)(void *)((char *)client -
                                             offsetof(struct kafka_dead_letter, client));
    (void)producer;
    letter->answered = true;
    letter->answer = message->err;
}

static void ignore_error(rd_kafka_t *producer, int code, const char *reason, void *opaque) {
    const struct kafka_client *client = opaque;
    assert(client->magic == KAFKA_CLIENT_MAGIC);
    (void)producer;
    (void)code;
    log_write(LOG_INFO, (struct log_site){"C7012", client->site}, "dead letters: %s", reason);
}

// The settings under `librdkafka` are the consumer's, but for those of connections, which both
// take.
static enum status set_up(struct kafka_client *client, rd_kafka_conf_t *conf, struct error *error) {
    const struct kafka_setting settings[] = {
        {"enable.idempotence", "true"},
        {"acks", "all"},
        {"message.timeout.ms", "0"},
        {"linger.ms", "0"},
        {"compression.codec", "lz4"},
        {"message.max.bytes", "104857600"},
        {"queue.buffering.max.kbytes", "262144"},
    };
    client->library->conf_set_dr_msg_cb(conf, note_answer);
    client->library->conf_set_error_cb(conf, ignore_error);
    return kafka_conf_set_all(client->library, conf, settings, sizeof settings / sizeof settings[0],
                              error);
}

static enum status open_producer(struct kafka_receiver *receiver, struct error *error) {
    struct kafka_dead_letter *letter = &receiver->dead_letter;
    letter->client = receiver->client;
    return kafka_client_open(&letter->client, &receiver->config->connection, RD_KAFKA_PRODUCER,
                             set_up, &letter->producer, error);
}

void kafka_dead_letter_close(struct kafka_receiver *receiver) {
    struct kafka_dead_letter *letter = &receiver->dead_letter;
    if (letter->producer == NULL)
        return;
    receiver->library->purge(letter->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    receiver->library->poll(letter->producer, 0);
    receiver->library->destroy_flags(letter->producer, 0);
    letter->producer = NULL;
}

// -- headers ------------------------------------------------------------------------------------

static rd_kafka_headers_t *make_headers(const struct kafka_receiver *receiver,
                                        const rd_kafka_message_t *message,
                                        const struct kafka_partition *partition) {
    const struct kafka_library *library = receiver->library;
    const struct decode_fault *fault = &receiver->sink.fault;
    rd_kafka_headers_t *old;
    rd_kafka_headers_t *headers =
        library->message_headers(message, &old) == RD_KAFKA_RESP_ERR_NO_ERROR
            ? library->headers_copy(old)
            : library->headers_new(8);
    char number[16], offset[32];
    char text[DECODE_FIELD_MAX + DECODE_DETAIL_MAX + 64];
    snprintf(number, sizeof number, "%d", (int)partition->number);
    snprintf(offset, sizeof offset, "%" PRId64, message->offset);
    snprintf(text, sizeof text, "%s%s%s%s%s", decode_category_name(fault->category),
             fault->field[0] == '\0' ? "" : " ", fault->field, fault->detail[0] == '\0' ? "" : ": ",
             fault->detail);
    const struct kafka_setting added[] = {
        {"__connect.errors.topic", partition->topic},
        {"__connect.errors.partition", number},
        {"__connect.errors.offset", offset},
        {"__connect.errors.connector.name", receiver->context->id},
        {"__connect.errors.task.id", "0"},
        {"__connect.errors.stage", "VALUE_CONVERTER"},
        {"__connect.errors.class.name", "culprit"},
        {"__connect.errors.exception.class.name", decode_category_name(fault->category)},
        {"__connect.errors.exception.message", text},
    };
    for (size_t i = 0; i < sizeof added / sizeof added[0]; i++)
        library->header_add(headers, added[i].key, -1, added[i].value,
                            (ssize_t)strlen(added[i].value));
    return headers;
}

// -- sending ------------------------------------------------------------------------------------

// False when the library did not take it; `answer` then says why.
static bool produce(struct kafka_receiver *receiver, const rd_kafka_message_t *message,
                    const struct kafka_partition *partition) {
    const struct kafka_library *library = receiver->library;
    struct kafka_dead_letter *letter = &receiver->dead_letter;
    assert(letter->producer != NULL);
    rd_kafka_headers_t *headers = make_headers(receiver, message, partition);
    letter->answered = false;
    // The message stays where it is until the answer has come.
    rd_kafka_resp_err_t failure = library->producev(
        letter->producer, RD_KAFKA_V_TOPIC(receiver->config->dead_letter.topic),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(message->key, message->key_len),
        RD_KAFKA_V_VALUE(message->payload, message->len), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_END);
    if (failure == RD_KAFKA_RESP_ERR_NO_ERROR)
        return true;
    library->headers_destroy(headers);
    letter->answered = true;
    letter->answer = failure;
    return false;
}

// The consumer must not be found dead while this waits.
static void stay_in_group(struct kafka_receiver *receiver, uint64_t waiting_since_ns) {
    if (clock_monotonic_ns() - waiting_since_ns < 2 * SECOND_NS)
        return;
    kafka_pause(receiver, true);
    (void)kafka_take(receiver, 0);
}

// True when there is nothing more to do about it.
static bool is_settled(struct kafka_receiver *receiver) {
    const struct kafka_dead_letter *letter = &receiver->dead_letter;
    assert(letter->answered);
    if (letter->answer == RD_KAFKA_RESP_ERR_NO_ERROR) {
        metric_add(receiver->counters.dead_letters, 1);
        kafka_end_trouble(receiver, KAFKA_UNDELIVERED);
        return true;
    }
    if (letter->answer != RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE &&
        letter->answer != RD_KAFKA_RESP_ERR_INVALID_MSG &&
        letter->answer != RD_KAFKA_RESP_ERR_INVALID_RECORD)
        return false;
    metric_add(receiver->counters.dead_letters_failed, 1);
    log_write(LOG_ERROR, kafka_site(receiver, "C7013"),
              "a refused message cannot be put into %s and is left out: %s",
              receiver->config->dead_letter.topic, receiver->library->err2str(letter->answer));
    return true;
}

static bool is_abandoned(const struct kafka_receiver *receiver,
                         const struct kafka_partition *partition) {
    return feed_stopping(receiver->feed) || !partition->assigned || receiver->fatal;
}

// Some failures are kept by librdkafka to itself, which tries on.
static void say_slow(struct kafka_receiver *receiver, uint64_t since_ns) {
    if (receiver->trouble != KAFKA_WELL || clock_monotonic_ns() - since_ns < SLOW_S * SECOND_NS)
        return;
    kafka_say_trouble(receiver, KAFKA_UNDELIVERED,
                      "a refused message cannot be put into %s now, will try again: the brokers do "
                      "not acknowledge it",
                      receiver->config->dead_letter.topic);
}

// One attempt: until there is an answer. False: abandoned.
static bool attempt(struct kafka_receiver *receiver, const rd_kafka_message_t *message,
                    const struct kafka_partition *partition, uint64_t since_ns) {
    struct kafka_dead_letter *letter = &receiver->dead_letter;
    struct error error = {0};
    if (letter->producer == NULL && open_producer(receiver, &error) != STATUS_OK) {
        letter->answered = true;
        letter->answer = RD_KAFKA_RESP_ERR__INVALID_ARG;
        log_write(LOG_ERROR, kafka_site(receiver, "C7014"), "%s", error.message);
        return true;
    }
    if (!produce(receiver, message, partition))
        return true;
    while (!letter->answered) {
        receiver->library->poll(letter->producer, LOOK_MS);
        stay_in_group(receiver, since_ns);
        say_slow(receiver, since_ns);
        if (is_abandoned(receiver, partition))
            break;
    }
    return letter->answered;
}

bool kafka_dead_letter_send(struct kafka_receiver *receiver, const rd_kafka_message_t *message,
                            const struct kafka_partition *partition) {
    uint64_t since_ns = clock_monotonic_ns();
    struct kafka_dead_letter *letter = &receiver->dead_letter;
    for (;;) {
        if (!attempt(receiver, message, partition, since_ns)) {
            kafka_dead_letter_close(receiver); // and with it what is under way
            return false;
        }
        if (is_settled(receiver))
            return true;
        kafka_say_trouble(receiver, KAFKA_UNDELIVERED,
                          "a refused message cannot be put into %s now, will try again: %s",
                          receiver->config->dead_letter.topic,
                          receiver->library->err2str(letter->answer));
        kafka_dead_letter_close(receiver);
        uint64_t until = clock_monotonic_ns() + RETRY_S * SECOND_NS;
        while (clock_monotonic_ns() < until) {
            clock_sleep_ns(LOOK_MS * UINT64_C(1000000));
            stay_in_group(receiver, since_ns);
            if (is_abandoned(receiver, partition))
                return false;
        }
    }
}
