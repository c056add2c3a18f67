// SPDX-License-Identifier: Apache-2.0
// The consumer: how it is set up, what it hands over, what goes wrong with it, how it ends.
//
// Nothing here waits for a broker at the start, and no failure of one ends culprit: it is said once
// and librdkafka goes on trying. Only a fatal error (another member took our static membership)
// makes the consumer anew, after a wait that doubles up to 30 s.
#include "base/clock.h"
#include "base/log.h"
#include "receivers/kafka/receiver.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    FETCH_BYTES_MAX = 50 << 20,
    FETCH_BYTES_MIN = 1 << 20,
    QUEUED_MESSAGES = 100000, // so many are fetched ahead, when they are that small
    TAKEN_MAX = 128,          // messages taken from its queue at once
    PROBE_MS = 500,
    PROBE_WAIT_S = 2,
    RENEW_MAX_S = 30
};

static const uint64_t SECOND_NS = 1000000000;

// -- trouble ------------------------------------------------------------------------------------

void kafka_say_trouble(struct kafka_receiver *receiver, enum kafka_trouble trouble,
                       const char *format, ...) {
    char text[256];
    va_list arguments;
    assert(trouble != KAFKA_WELL && receiver->feed != NULL);
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_write(LOG_WARN, kafka_site(receiver, "C7008"), "%s", text);
    receiver->trouble = trouble;
    feed_trouble(receiver->feed, text);
}

void kafka_end_trouble(struct kafka_receiver *receiver, enum kafka_trouble trouble) {
    if (receiver->trouble != trouble || trouble == KAFKA_WELL)
        return;
    receiver->trouble = KAFKA_WELL;
    feed_trouble(receiver->feed, NULL);
}

static void say_no_broker(struct kafka_receiver *receiver, const char *reason) {
    kafka_say_trouble(receiver, KAFKA_NO_BROKER, "the brokers cannot be used: %s", reason);
}

static void note_error(rd_kafka_t *consumer, int code, const char *reason, void *opaque) {
    struct kafka_receiver *receiver = kafka_receiver_of(opaque);
    (void)consumer;
    if (receiver->closing)
        return;
    switch (code) {
    case RD_KAFKA_RESP_ERR__FATAL:
        receiver->fatal = true;
        break;
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
        receiver->probed_ns = clock_monotonic_ns();
        say_no_broker(receiver, reason);
        break;
    default:
        log_write(LOG_INFO, kafka_site(receiver, "C7009"), "%s", reason);
        if (receiver->doubt[0] == '\0')
            receiver->probed_ns = clock_monotonic_ns();
        snprintf(receiver->doubt, sizeof receiver->doubt, "%s", reason);
    }
}

// librdkafka does not say that a broker is back, and not always that all are away: it counts them,
// and its word was missing once when the broker that coordinated the group was shut down in order.
// So after any error it is asked, while nothing comes, whether a broker answers.
static void probe(struct kafka_receiver *receiver) {
    uint64_t now = clock_monotonic_ns();
    bool doubted = receiver->trouble == KAFKA_WELL && receiver->doubt[0] != '\0';
    if ((!doubted && receiver->trouble != KAFKA_NO_BROKER) ||
        now - receiver->probed_ns < PROBE_WAIT_S * SECOND_NS)
        return;
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t failure =
        receiver->library->metadata(receiver->consumer, 0, NULL, &metadata, PROBE_MS);
    receiver->probed_ns = clock_monotonic_ns();
    if (failure == RD_KAFKA_RESP_ERR_NO_ERROR) {
        receiver->library->metadata_destroy(metadata);
        receiver->doubt[0] = '\0';
        kafka_end_trouble(receiver, KAFKA_NO_BROKER);
    } else if (doubted) {
        say_no_broker(receiver, receiver->doubt);
    }
}

// -- messages -----------------------------------------------------------------------------------

static void see_to_error(struct kafka_receiver *receiver, const rd_kafka_message_t *message) {
    switch (message->err) {
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET: {
        const struct kafka_library *library = receiver->library;
        struct kafka_partition *partition =
            kafka_partition_find(receiver, library->topic_name(message->rkt), message->partition);
        if (partition != NULL)
            partition->out_of_range = true;
        break;
    }
    case RD_KAFKA_RESP_ERR__FATAL:
        receiver->fatal = true;
        break;
    case RD_KAFKA_RESP_ERR__PARTITION_EOF: {
        struct kafka_partition *partition = kafka_partition_find(
            receiver, receiver->library->topic_name(message->rkt), message->partition);
        if (partition == NULL)
            break;
        if (partition->proving && message->offset < partition->next)
            partition->made_anew = true;
        else
            partition->passed = message->offset;
        break;
    }
    case RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED:
        log_write(LOG_WARN, kafka_site(receiver, "C7010"),
                  "its partitions went to others, since handling took longer than "
                  "max_poll_interval; it joins again");
        break;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
        kafka_begin_counting(receiver); // what comes into a topic that is made later is new
        // fall through
    default:
        kafka_say_trouble(receiver, KAFKA_REFUSED, "%s",
                          receiver->library->message_errstr(message));
    }
}

// librdkafka stops fetching while its queue is full, and before 2.2 its threads then sleep up to a
// second, however soon there is room: most of the time, where records are handled as fast as they
// are fetched. They look again when they are woken, which no call is for; new credentials do it, at
// once and without any other effect when they are those that it has.
static void wake_fetching(struct kafka_receiver *receiver, size_t taken) {
    receiver->unwoken += taken;
    receiver->unwoken_count++;
    if (!receiver->stops_for_long || (receiver->unwoken < receiver->config->queue_size.bytes / 4 &&
                                      receiver->unwoken_count < QUEUED_MESSAGES / 4))
        return;
    receiver->unwoken = receiver->unwoken_count = 0;
    const struct kafka_sasl *sasl = &receiver->config->connection.sasl;
    const char *password = secret_reveal(sasl->password);
    rd_kafka_error_t *failure = receiver->library->sasl_set_credentials(
        receiver->consumer, sasl->username == NULL ? "" : sasl->username,
        password == NULL ? "" : password);
    if (failure != NULL)
        receiver->library->error_destroy(failure);
}

static void hold(struct kafka_receiver *receiver, rd_kafka_message_t *message) {
    assert(receiver->held_count < KAFKA_HELD_MAX);
    kafka_end_trouble(receiver,
                      receiver->trouble == KAFKA_UNDELIVERED ? KAFKA_WELL : receiver->trouble);
    receiver->held[receiver->held_count++] = message;
    receiver->held_bytes += message->len;
    receiver->largest = message->len > receiver->largest ? message->len : receiver->largest;
    wake_fetching(receiver, message->len);
}

// How many messages to take at once: a call with a timeout waits until it has all of them, so then
// it is one; and no more than fit into a batch when they are as large as those that came last.
static size_t count_to_take(const struct kafka_receiver *receiver, int timeout_ms) {
    size_t count = KAFKA_HELD_MAX - receiver->held_count;
    size_t left =
        receiver->held_bytes < KAFKA_BATCH_BYTES ? KAFKA_BATCH_BYTES - receiver->held_bytes : 0;
    size_t fit = 1 + left / (receiver->largest + 1);
    count = count < fit ? count : fit;
    count = count < TAKEN_MAX ? count : TAKEN_MAX;
    return count > 0 && timeout_ms > 0 ? 1 : count;
}

bool kafka_take(struct kafka_receiver *receiver, int timeout_ms) {
    rd_kafka_message_t *taken[TAKEN_MAX];
    size_t wanted = count_to_take(receiver, timeout_ms);
    if (wanted == 0)
        return false;
    ssize_t count =
        receiver->library->consume_batch_queue(receiver->queue, timeout_ms, taken, wanted);
    if (count <= 0) {
        probe(receiver);
        return false;
    }
    bool all = true;
    receiver->largest = 0;
    for (ssize_t i = 0; i < count; i++) {
        if (taken[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            hold(receiver, taken[i]);
            continue;
        }
        see_to_error(receiver, taken[i]);
        receiver->library->message_destroy(taken[i]);
        all = false;
    }
    return all;
}

void kafka_flush(struct kafka_receiver *receiver) {
    assert(receiver->handled <= receiver->held_count && receiver->held_count <= KAFKA_HELD_MAX);
    feed_flush(receiver->feed);
    for (uint32_t i = 0; i < receiver->handled; i++) {
        receiver->held_bytes -= receiver->held[i]->len;
        receiver->library->message_destroy(receiver->held[i]);
    }
    receiver->held_count -= receiver->handled;
    memmove(receiver->held, receiver->held + receiver->handled,
            receiver->held_count * sizeof *receiver->held);
    receiver->handled = 0;
}

void kafka_pause(struct kafka_receiver *receiver, bool paused) {
    if (receiver->paused == paused)
        return;
    receiver->paused = paused;
    const struct kafka_library *library = receiver->library;
    rd_kafka_topic_partition_list_t *assigned = NULL;
    if (library->assignment(receiver->consumer, &assigned) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    if (paused)
        library->pause_partitions(receiver->consumer, assigned);
    else
        library->resume_partitions(receiver->consumer, assigned);
    library->topic_partition_list_destroy(assigned);
}

// -- set up -------------------------------------------------------------------------------------

static enum status set_numbers(struct kafka_receiver *receiver, rd_kafka_conf_t *conf,
                               struct error *error) {
    const struct kafka_config *config = receiver->config;
    uint64_t fetch = config->queue_size.bytes;
    fetch = fetch > FETCH_BYTES_MAX ? FETCH_BYTES_MAX : fetch;
    if (fetch < config->max_partition_fetch_size.bytes)
        fetch = config->max_partition_fetch_size.bytes;
    fetch = fetch < FETCH_BYTES_MIN ? FETCH_BYTES_MIN : fetch;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"fetch.min.bytes", config->min_fetch_size.bytes},
        {"fetch.message.max.bytes", config->max_partition_fetch_size.bytes},
        {"fetch.max.bytes", fetch},
        {"receive.message.max.bytes", fetch * 2 + 1024},
        {"queued.max.messages.kbytes", (config->queue_size.bytes + 1023) / 1024},
        {"queued.min.messages", QUEUED_MESSAGES},
        {"fetch.wait.max.ms", (uint64_t)config->max_fetch_wait.ns / 1000000},
        {"session.timeout.ms", (uint64_t)config->session_timeout.ns / 1000000},
        {"heartbeat.interval.ms", (uint64_t)config->heartbeat_interval.ns / 1000000},
        {"max.poll.interval.ms", (uint64_t)config->max_poll_interval.ns / 1000000},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && status == STATUS_OK; i++)
        status =
            kafka_conf_set_number(receiver->library, conf, numbers[i].key, numbers[i].value, error);
    char unknown[64]; // before 2.2
    receiver->stops_for_long =
        receiver->library->conf_set(conf, "fetch.queue.backoff.ms", "10", unknown,
                                    sizeof unknown) != RD_KAFKA_CONF_OK;
    return status;
}

static enum status set_up(struct kafka_client *client, rd_kafka_conf_t *conf, struct error *error) {
    struct kafka_receiver *receiver = kafka_receiver_of(client);
    const struct kafka_library *library = receiver->library;
    const struct kafka_config *config = receiver->config;
    const struct kafka_setting settings[] = {
        {"group.id", receiver->group},
        {"group.instance.id", config->group_instance_id},
        {"partition.assignment.strategy", kafka_strategy_choices[config->group_rebalance_strategy]},
        {"isolation.level", kafka_isolation_choices[config->isolation_level]},
        {"enable.auto.commit", "false"},
        {"enable.partition.eof", "true"},
        {"enable.auto.offset.store", "false"},
        {"auto.offset.reset", "error"},
        {"allow.auto.create.topics", "false"},
        {"topic.metadata.refresh.interval.ms", "60000"},
    };
    library->conf_set_rebalance_cb(conf, kafka_rebalance);
    library->conf_set_offset_commit_cb(conf, kafka_committed);
    library->conf_set_error_cb(conf, note_error);
    enum status status =
        kafka_conf_set_all(library, conf, settings, sizeof settings / sizeof settings[0], error);
    return status == STATUS_OK ? set_numbers(receiver, conf, error) : status;
}

enum status kafka_consumer_join(struct kafka_receiver *receiver, struct error *error) {
    const struct kafka_library *library = receiver->library;
    const struct text_list *topics = &receiver->config->topics;
    rd_kafka_topic_partition_list_t *list = library->topic_partition_list_new((int)topics->count);
    for (uint32_t i = 0; i < topics->count; i++)
        library->topic_partition_list_add(list, topics->items[i], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t failure = library->subscribe(receiver->consumer, list);
    library->topic_partition_list_destroy(list);
    if (failure == RD_KAFKA_RESP_ERR_NO_ERROR)
        return STATUS_OK;
    return error_set(error, STATUS_CONFIG, "the topics cannot be subscribed to: %s",
                     library->err2str(failure));
}

enum status kafka_consumer_open(struct kafka_receiver *receiver, struct error *error) {
    assert(receiver->consumer == NULL && receiver->held_count == 0);
    receiver->closing = receiver->fatal = false;
    enum status status = kafka_client_open(&receiver->client, &receiver->config->connection,
                                           RD_KAFKA_CONSUMER, set_up, &receiver->consumer, error);
    if (status == STATUS_OK) {
        receiver->library->poll_set_consumer(receiver->consumer);
        receiver->queue = receiver->library->queue_get_consumer(receiver->consumer);
    }
    // Callbacks need the feed: the group is joined by kafka_run.
    return status;
}

// -- the end ------------------------------------------------------------------------------------

static void release_held(struct kafka_receiver *receiver) {
    for (uint32_t i = 0; i < receiver->held_count; i++)
        receiver->library->message_destroy(receiver->held[i]);
    receiver->held_count = receiver->handled = 0;
    receiver->held_bytes = 0;
}

void kafka_consumer_close(struct kafka_receiver *receiver, uint64_t budget_ns) {
    const struct kafka_library *library = receiver->library;
    if (receiver->consumer == NULL)
        return;
    receiver->closing = true;
    release_held(receiver);
    rd_kafka_queue_t *queue = library->queue_new(receiver->consumer);
    rd_kafka_error_t *failure = library->consumer_close_queue(receiver->consumer, queue);
    uint64_t until = clock_monotonic_ns() + budget_ns;
    while (failure == NULL && !library->consumer_closed(receiver->consumer) &&
           clock_monotonic_ns() < until)
        library->queue_poll_callback(queue, 20);
    if (failure != NULL)
        library->error_destroy(failure);
    library->queue_destroy(queue);
    assert(receiver->held_count == 0);
    library->queue_destroy(receiver->queue);
    receiver->queue = NULL;
    library->destroy_flags(receiver->consumer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    receiver->consumer = NULL;
    struct kafka_partition *partition;
    for (uint32_t at = 0; (partition = kafka_partition_next(receiver, &at)) != NULL;)
        partition->assigned = false;
}

// -- a fatal error ------------------------------------------------------------------------------

void kafka_consumer_renew(struct kafka_receiver *receiver) {
    char reason[256] = "";
    struct kafka_partition *partition;
    if (receiver->renew_at_ns == 0) {
        rd_kafka_resp_err_t code =
            receiver->library->fatal_error(receiver->consumer, reason, sizeof reason);
        kafka_say_trouble(receiver, KAFKA_REFUSED, "the consumer has ended (%s): %s",
                          receiver->library->err2name(code), reason);
        kafka_flush(receiver);
        for (uint32_t at = 0; (partition = kafka_partition_next(receiver, &at)) != NULL;) {
            if (!partition->assigned)
                continue;
            kafka_partition_leave(receiver, partition);
            kafka_hide_lag(receiver, partition);
        }
        kafka_consumer_close(receiver, SECOND_NS);
        uint64_t wait_ns = receiver->renew_wait_ns * 2;
        wait_ns = wait_ns < SECOND_NS ? SECOND_NS : wait_ns;
        receiver->renew_wait_ns =
            wait_ns > RENEW_MAX_S * SECOND_NS ? RENEW_MAX_S * SECOND_NS : wait_ns;
        receiver->renew_at_ns = clock_monotonic_ns() + receiver->renew_wait_ns;
    }
    if (clock_monotonic_ns() < receiver->renew_at_ns)
        return;
    struct error error = {0};
    if (kafka_consumer_open(receiver, &error) == STATUS_OK &&
        kafka_consumer_join(receiver, &error) == STATUS_OK) {
        receiver->renew_at_ns = 0;
        receiver->paused = false;
        return;
    }
    log_write(LOG_ERROR, kafka_site(receiver, "C7011"), "%s", error.message);
    receiver->renew_at_ns = clock_monotonic_ns() + RENEW_MAX_S * SECOND_NS;
}
