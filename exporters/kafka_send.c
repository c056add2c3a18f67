// SPDX-License-Identifier: Apache-2.0
// How do the records of a request get to the brokers, each once and in order?
//
// An idempotent producer that never gives a record up by itself: what is under way when an attempt
// times out stays under way, and the next attempt waits for it. `fates` says of each record of the
// request what has become of it, so that none is handed over twice. When brokers refuse a batch the
// producer ends (gapless), so that no later record overtakes an earlier one; it is made anew and
// goes on with the first record that was not delivered. A record that the brokers will never take
// is looked for one by one, said, counted and left out; the rest goes on.
#include "base/clock.h"
#include "base/memory.h"
#include "exporters/kafka_exporter.h"

#include <inttypes.h>
#include <stdio.h>

enum { WAIT_MS = 20, BUFFERED_KBYTES = 65536 };

static const char *const compressions[] = {"none", "gzip", "snappy", "lz4", "zstd"};

// -- the producer -------------------------------------------------------------------------------

// Which record of which round a message is.
static void *message_mark(const struct kafka_delivery *delivery, uint32_t index) {
    return (void *)(uintptr_t)((uint64_t)delivery->round << 32 | index);
}

static void note_answer(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
    struct kafka_exporter *self = opaque;
    struct kafka_delivery *delivery = &self->delivery;
    uint64_t mark = (uint64_t)(uintptr_t)message->_private;
    uint32_t index = (uint32_t)mark;
    (void)producer;
    if (mark >> 32 != delivery->round || index >= delivery->count)
        return;
    delivery->under_way--;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        delivery->fates[index] = KAFKA_DELIVERED;
        delivery->undelivered--;
        return;
    }
    delivery->fates[index] = KAFKA_WAITING;
    // What follows the first failure is only its consequence.
    if (delivery->failure == RD_KAFKA_RESP_ERR_NO_ERROR)
        delivery->failure = message->err;
}

static void note_error(rd_kafka_t *producer, int code, const char *reason, void *opaque) {
    struct kafka_exporter *self = opaque;
    (void)producer;
    if (code == RD_KAFKA_RESP_ERR__FATAL)
        self->delivery.fatal = true;
    snprintf(self->broker_error, sizeof self->broker_error, "%s", reason);
    log_write(LOG_INFO, (struct log_site){"C7102", self->site}, "%s", reason);
}

static enum status set_up(struct kafka_exporter *self, rd_kafka_conf_t *conf, struct error *error) {
    const struct kafka_library *library = self->library;
    const struct kafka_exporter_config *config = self->config;
    const struct kafka_setting settings[] = {
        {"enable.idempotence", "true"},
        {"enable.gapless.guarantee", "true"},
        {"acks", "all"},
        {"message.timeout.ms", "0"},
        {"partitioner", "murmur2_random"},
        {"compression.codec", compressions[config->compression]},
    };
    library->conf_set_dr_msg_cb(conf, note_answer);
    library->conf_set_error_cb(conf, note_error);
    enum status status =
        kafka_conf_set_all(library, conf, settings, sizeof settings / sizeof settings[0], error);
    if (status == STATUS_OK)
        status = kafka_conf_set_number(library, conf, "message.max.bytes",
                                       config->max_message_size.bytes, error);
    if (status == STATUS_OK)
        status = kafka_conf_set_duration(library, conf, "linger.ms", config->linger, error);
    if (status == STATUS_OK)
        status =
            kafka_conf_set_number(library, conf, "queue.buffering.max.kbytes",
                                  BUFFERED_KBYTES + config->max_message_size.bytes / 1024, error);
    if (status == STATUS_OK)
        status = kafka_conf_finish(library, conf, &config->connection, error);
    return status;
}

enum status kafka_producer_open(struct kafka_exporter *self, struct error *error) {
    rd_kafka_conf_t *conf;
    enum status status = kafka_conf_begin(&self->client, &self->config->connection, &conf, error);
    if (status != STATUS_OK)
        return status;
    status = set_up(self, conf, error);
    if (status != STATUS_OK) {
        self->library->conf_destroy(conf);
        return status;
    }
    self->delivery.fatal = false;
    return kafka_client_new(self->library, RD_KAFKA_PRODUCER, conf, &self->producer, error);
}

void kafka_producer_close(struct kafka_exporter *self) {
    if (self->producer == NULL)
        return;
    self->library->purge(self->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    self->library->poll(self->producer, 0);
    self->library->destroy_flags(self->producer, 0);
    self->producer = NULL;
}

// -- the request --------------------------------------------------------------------------------

static bool belongs(const struct slice *bytes, const struct kafka_delivery *delivery) {
    struct slice rest = *bytes;
    struct kafka_frame frame;
    return kafka_frame_read(&rest, &frame) && frame.sequence == delivery->first_sequence;
}

// Counts its records; false when it is damaged. One that was under way before is gone on with, also
// when it has grown.
static bool take_up(struct kafka_delivery *delivery, struct slice bytes) {
    struct kafka_frame frame;
    if (!belongs(&bytes, delivery)) {
        delivery->round++;
        delivery->count = delivery->under_way = delivery->undelivered = 0;
        delivery->alone = false;
    }
    uint32_t count = 0;
    for (struct slice rest = bytes; rest.size > 0; count++) {
        if (!kafka_frame_read(&rest, &frame))
            return false;
        if (count == 0)
            delivery->first_sequence = frame.sequence;
        if (count < delivery->count)
            continue;
        if (delivery->count == delivery->capacity) {
            delivery->capacity = delivery->capacity == 0 ? 256 : delivery->capacity * 2;
            delivery->fates = memory_resize(delivery->fates, delivery->capacity);
        }
        delivery->fates[delivery->count++] = KAFKA_WAITING;
        delivery->undelivered++;
    }
    return true;
}

static rd_kafka_headers_t *make_headers(const struct kafka_exporter *self,
                                        const struct kafka_frame *frame) {
    rd_kafka_headers_t *headers = self->library->headers_new(frame->header_count);
    for (uint32_t i = 0; i < frame->header_count; i++) {
        const struct kafka_header *header = &frame->headers[i];
        self->library->header_add(headers, header->name.data, (ssize_t)header->name.size,
                                  header->value.data, (ssize_t)header->value.size);
    }
    return headers;
}

static rd_kafka_resp_err_t produce(struct kafka_exporter *self, const struct kafka_frame *frame,
                                   uint32_t index) {
    rd_kafka_headers_t *headers = make_headers(self, frame);
    // The bytes are the sender's; a record may be under way longer than this attempt.
    rd_kafka_resp_err_t failure = self->library->producev(
        self->producer, RD_KAFKA_V_TOPIC(self->config->topic),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(frame->key.data, frame->key.size),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)frame->value.data, frame->value.size),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(message_mark(&self->delivery, index)),
        RD_KAFKA_V_END);
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR) {
        self->library->headers_destroy(headers);
        return failure;
    }
    self->delivery.fates[index] = KAFKA_UNDER_WAY;
    self->delivery.under_way++;
    return failure;
}

static bool is_the_records_fault(rd_kafka_resp_err_t failure) {
    return failure == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
           failure == RD_KAFKA_RESP_ERR_INVALID_MSG ||
           failure == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE ||
           failure == RD_KAFKA_RESP_ERR_INVALID_RECORD ||
           failure == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP;
}

static void leave_out(struct kafka_exporter *self, const struct kafka_frame *frame, uint32_t index,
                      rd_kafka_resp_err_t failure) {
    log_write(LOG_ERROR, (struct log_site){"C7103", self->site},
              "record %" PRIu64 " (%zu bytes) can never be delivered and is left out: %s",
              frame->sequence, frame->value.size, self->library->err2str(failure));
    metric_add(self->undeliverable, 1);
    self->delivery.fates[index] = KAFKA_DELIVERED;
    self->delivery.undelivered--;
}

// -- an attempt ---------------------------------------------------------------------------------

// False: there is no use in waiting on. After a fatal error answers for all that is under way come
// still.
static bool wait_a_moment(struct kafka_exporter *self, uint64_t until_ns) {
    const struct kafka_delivery *delivery = &self->delivery;
    self->library->poll(self->producer, WAIT_MS);
    return clock_monotonic_ns() < until_ns && delivery->failure == RD_KAFKA_RESP_ERR_NO_ERROR &&
           !(delivery->fatal && delivery->under_way == 0);
}

// Hands one record over, and with `alone` waits for its answer. False: the attempt is over.
static bool hand_over(struct kafka_exporter *self, const struct kafka_frame *frame, uint32_t index,
                      uint64_t until_ns) {
    struct kafka_delivery *delivery = &self->delivery;
    rd_kafka_resp_err_t failure;
    while ((failure = produce(self, frame, index)) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
        if (!wait_a_moment(self, until_ns))
            return false;
    if (is_the_records_fault(failure)) {
        leave_out(self, frame, index, failure);
        return true;
    }
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR) {
        delivery->failure = failure;
        return false;
    }
    while (delivery->alone && delivery->fates[index] == KAFKA_UNDER_WAY)
        if (!wait_a_moment(self, until_ns))
            break;
    if (!delivery->alone || delivery->fates[index] == KAFKA_DELIVERED)
        return true;
    if (delivery->fates[index] == KAFKA_WAITING && is_the_records_fault(delivery->failure))
        leave_out(self, frame, index, delivery->failure);
    return false;
}

static void attempt(struct kafka_exporter *self, struct slice bytes, uint64_t until_ns) {
    struct kafka_delivery *delivery = &self->delivery;
    struct kafka_frame frame;
    uint32_t index = 0;
    delivery->failure = RD_KAFKA_RESP_ERR_NO_ERROR;
    // With one at a time, first what is under way.
    while (delivery->alone && delivery->under_way > 0 && wait_a_moment(self, until_ns))
        continue;
    for (struct slice rest = bytes; rest.size > 0; index++) {
        if (!kafka_frame_read(&rest, &frame))
            return; // was counted before
        if (delivery->fates[index] == KAFKA_WAITING && !hand_over(self, &frame, index, until_ns))
            break;
        // Answers are taken in as they come; a failure ends the attempt.
        if (index % 64 == 0) {
            self->library->poll(self->producer, 0);
            if (delivery->failure != RD_KAFKA_RESP_ERR_NO_ERROR)
                break;
        }
    }
    while (delivery->under_way > 0 && wait_a_moment(self, until_ns))
        continue;
}

// After a failure nothing that was handed over may still arrive, behind or before what comes again.
static void start_over(struct kafka_exporter *self) {
    struct kafka_delivery *delivery = &self->delivery;
    kafka_producer_close(self);
    for (uint32_t i = 0; i < delivery->count; i++)
        if (delivery->fates[i] == KAFKA_UNDER_WAY)
            delivery->fates[i] = KAFKA_WAITING;
    delivery->under_way = 0;
    if (is_the_records_fault(delivery->failure))
        delivery->alone = true;
}

static enum status say_failed(const struct kafka_exporter *self, struct error *error) {
    const struct kafka_delivery *delivery = &self->delivery;
    const char *topic = self->config->topic;
    if (delivery->failure == RD_KAFKA_RESP_ERR_NO_ERROR)
        return error_set(error, STATUS_IO,
                         "the brokers did not acknowledge %u of %u records for %s in time%s%s",
                         delivery->undelivered, delivery->count, topic,
                         self->broker_error[0] == '\0' ? "" : "; the last thing that went wrong: ",
                         self->broker_error);
    bool denied = delivery->failure == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
                  delivery->failure == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
    return error_set(error, denied ? STATUS_DENIED : STATUS_IO,
                     "%u of %u records for %s were not delivered: %s", delivery->undelivered,
                     delivery->count, topic, self->library->err2str(delivery->failure));
}

enum status kafka_send(void *instance, const struct request *request, struct send_outcome *outcome,
                       struct error *error) {
    struct kafka_exporter *self = instance;
    struct kafka_delivery *delivery = &self->delivery;
    (void)outcome; // nothing is permanent here: rights and topics are put right while it waits
    if (request->bytes.size == 0)
        return STATUS_OK;
    if (!take_up(delivery, request->bytes))
        return error_set(error, STATUS_BUG, "the records that wait are damaged");
    uint64_t until_ns = clock_monotonic_ns() + (uint64_t)self->config->sending.timeout.ns;
    do {
        if (self->producer == NULL) {
            enum status status = kafka_producer_open(self, error);
            if (status != STATUS_OK)
                return status;
        }
        attempt(self, request->bytes, until_ns);
        bool failed = delivery->failure != RD_KAFKA_RESP_ERR_NO_ERROR || delivery->fatal;
        if (failed)
            start_over(self);
        // One that is not taken is looked for at once.
        if (!failed || !is_the_records_fault(delivery->failure))
            break;
    } while (delivery->undelivered > 0 && clock_monotonic_ns() < until_ns);
    if (delivery->undelivered > 0)
        return say_failed(self, error);
    self->broker_error[0] = '\0';
    return STATUS_OK;
}
