// SPDX-License-Identifier: Apache-2.0
// Delivers the records of a request to the brokers, each once and in order.
//
// An idempotent producer that never gives a record up by itself: what is under way when an attempt
// times out stays under way, and the next attempt waits for it. Requests that will follow are
// handed over as soon as the first one is, and only that one is waited for, so that no answer keeps
// the next from leaving. `records` says of each record of each block what has become of it, so that
// none is handed over twice. When brokers refuse a batch the producer ends (gapless), so that no
// later record overtakes an earlier one; it is made anew and goes on with the first record that was
// not delivered. A record for all partitions is one message in each of them, with one number, and
// delivered once all have it; after a failure all of them come again. A record that the brokers
// will never take is looked for one by one, said, counted and left out; the rest goes on.
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/number.h"
#include "exporters/kafka/exporter.h"
#include "pipeline/component/record_frame.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { WAIT_MS = 20, BUFFERED_KBYTES = 65536, METADATA_MS = 1000 };

static const uint64_t COUNTED_FOR_NS = 60 * UINT64_C(1000000000);

// -- the producer -------------------------------------------------------------------------------

static bool is_the_records_fault(rd_kafka_resp_err_t failure) {
    return failure == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
           failure == RD_KAFKA_RESP_ERR_INVALID_MSG ||
           failure == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE ||
           failure == RD_KAFKA_RESP_ERR_INVALID_RECORD ||
           failure == RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP;
}

// Which record of which block a message is.
static void *message_mark(const struct kafka_block *block, uint32_t index) {
    return (void *)(uintptr_t)((uint64_t)block->number << 32 | index);
}

static struct kafka_block *block_at(struct kafka_delivery *delivery, uint32_t index) {
    assert(index < KAFKA_BLOCKS_MAX);
    return &delivery->blocks[(delivery->first + index) % KAFKA_BLOCKS_MAX];
}

static void note_answer(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque) {
    struct kafka_exporter *self = opaque;
    struct kafka_delivery *delivery = &self->delivery;
    uint64_t mark = (uint64_t)(uintptr_t)message->_private;
    uint32_t index = (uint32_t)mark;
    (void)producer;
    // Of a block that was dropped: not looked at.
    uint32_t place = (uint32_t)(mark >> 32) - block_at(delivery, 0)->number;
    if (place >= delivery->block_count || index >= block_at(delivery, place)->count)
        return;
    struct kafka_block *block = block_at(delivery, place);
    struct kafka_record *record = &block->records[index];
    assert(record->under_way > 0 && block->under_way > 0 && delivery->under_way > 0);
    record->under_way--;
    block->under_way--;
    delivery->under_way--;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (record->fate == KAFKA_UNDER_WAY && record->under_way == 0) {
            record->fate = KAFKA_DELIVERED;
            block->undelivered--;
        }
        return;
    }
    if (record->fate == KAFKA_UNDER_WAY) {
        record->fate = KAFKA_WAITING;
        block->waiting++;
    }
    // What follows the first failure is only its consequence.
    if (delivery->failure != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    delivery->failure = message->err;
    block->alone = block->alone || is_the_records_fault(message->err);
}

static void note_error(rd_kafka_t *producer, int code, const char *reason, void *opaque) {
    struct kafka_exporter *self = opaque;
    (void)producer;
    if (code == RD_KAFKA_RESP_ERR__FATAL)
        self->delivery.fatal = true;
    snprintf(self->broker_error, sizeof self->broker_error, "%s", reason);
    log_write(LOG_INFO, (struct log_site){"C7102", self->site}, "%s", reason);
}

static enum status set_up(struct kafka_client *client, rd_kafka_conf_t *conf, struct error *error) {
    const struct kafka_exporter *self = (const struct kafka_exporter *)(void *)client;
    const struct kafka_library *library = self->library;
    const struct kafka_exporter_config *config = self->config;
    const struct kafka_setting settings[] = {
        {"enable.idempotence", "true"},
        {"enable.gapless.guarantee", "true"},
        {"acks", "all"},
        {"message.timeout.ms", "0"},
        {"partitioner", "murmur2_random"},
        {"compression.codec", kafka_compressions[config->compression]},
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
    return status;
}

enum status kafka_producer_open(struct kafka_exporter *self, struct error *error) {
    self->delivery.fatal = false;
    enum status status = kafka_client_open(&self->client, &self->config->connection,
                                           RD_KAFKA_PRODUCER, set_up, &self->producer, error);
    if (status != STATUS_OK)
        return status;
    // Asks for its leaders at once; with its first record that would be done up to a second later.
    self->topic = self->library->topic_new(self->producer, self->config->topic, NULL);
    if (self->topic != NULL)
        return STATUS_OK;
    kafka_producer_close(self);
    return error_set(error, STATUS_CONFIG, "librdkafka rejected the topic %s", self->config->topic);
}

void kafka_producer_close(struct kafka_exporter *self) {
    if (self->producer == NULL)
        return;
    self->library->purge(self->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    self->library->poll(self->producer, 0);
    if (self->topic != NULL)
        self->library->topic_destroy(self->topic);
    self->library->destroy_flags(self->producer, 0);
    self->topic = NULL;
    self->producer = NULL;
}

// -- the blocks ---------------------------------------------------------------------------------

static uint64_t first_sequence(struct slice bytes) {
    struct record_frame frame;
    return record_frame_read(&bytes, &frame) ? frame.sequence : 0;
}

static void drop_first(struct kafka_delivery *delivery) {
    assert(delivery->block_count > 0);
    delivery->under_way -= block_at(delivery, 0)->under_way;
    delivery->first = (delivery->first + 1) % KAFKA_BLOCKS_MAX;
    delivery->block_count--;
}

static void add_block(struct kafka_delivery *delivery, uint64_t sequence) {
    assert(delivery->block_count < KAFKA_BLOCKS_MAX);
    struct kafka_block *block = block_at(delivery, delivery->block_count++);
    *block = (struct kafka_block){.number = delivery->next_number++,
                                  .first_sequence = sequence,
                                  .records = block->records,
                                  .capacity = block->capacity};
}

// Counts its records, further ones when it has grown; false when it is damaged.
static bool count_records(struct kafka_block *block, struct slice bytes) {
    uint32_t count = 0;
    if (block->size == bytes.size)
        return true;
    for (struct slice rest = bytes; rest.size > 0; count++) {
        if (!record_frame_skip(&rest))
            return false;
        if (count < block->count)
            continue;
        block->records =
            memory_room(block->records, &block->capacity, block->count, sizeof *block->records);
        block->records[block->count++] = (struct kafka_record){KAFKA_WAITING, 0, 0};
        block->waiting++;
        block->undelivered++;
    }
    block->size = bytes.size;
    return true;
}

// The bytes of the block at `index`.
static struct slice bytes_of(const struct request *request, uint32_t index) {
    assert(index <= request->ahead_count);
    return index == 0 ? request->bytes : request->ahead[index - 1];
}

// Whether what is known are the first blocks of this request, in this order.
static bool continues(struct kafka_delivery *delivery, const struct request *request) {
    for (uint32_t i = 0; i < delivery->block_count && i <= request->ahead_count; i++)
        if (block_at(delivery, i)->first_sequence != first_sequence(bytes_of(request, i)))
            return false;
    return true;
}

// Goes on with those that were under way before, and takes up those behind them; false when one is
// damaged.
static bool take_up(struct kafka_delivery *delivery, const struct request *request) {
    while (!continues(delivery, request))
        drop_first(delivery); // delivered, or given up
    for (uint32_t i = 0; i <= request->ahead_count && i < KAFKA_BLOCKS_MAX; i++) {
        if (i == delivery->block_count)
            add_block(delivery, first_sequence(bytes_of(request, i)));
        if (!count_records(block_at(delivery, i), bytes_of(request, i)))
            return false;
    }
    return true;
}

// -- partitions -----------------------------------------------------------------------------------

static bool is_denied(rd_kafka_resp_err_t failure) {
    return failure == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
           failure == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
}

static void take_count(struct kafka_exporter *self, const rd_kafka_metadata_topic_t *topic) {
    if (topic->err == RD_KAFKA_RESP_ERR_NO_ERROR && topic->partition_cnt > 0) {
        self->partition_count = (uint32_t)topic->partition_cnt;
        self->counted_ns = clock_monotonic_ns();
    } else if (is_denied(topic->err)) {
        self->delivery.failure = topic->err;
    } else {
        snprintf(self->broker_error, sizeof self->broker_error, "%s",
                 self->library->err2str(topic->err));
    }
}

// How many partitions the topic has; asked for when that was long ago, since some may have been
// added. False: not known, and the attempt is over.
static bool count_partitions(struct kafka_exporter *self, uint64_t until_ns) {
    const struct rd_kafka_metadata *metadata;
    uint64_t now_ns = clock_monotonic_ns();
    if (self->partition_count > 0 && now_ns < self->counted_ns + COUNTED_FOR_NS)
        return true;
    uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns) / 1000000 : 0;
    int timeout_ms = left_ms < METADATA_MS ? (int)left_ms + 1 : METADATA_MS;
    rd_kafka_resp_err_t failure =
        self->library->metadata(self->producer, 0, self->topic, &metadata, timeout_ms);
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR) {
        snprintf(self->broker_error, sizeof self->broker_error, "%s",
                 self->library->err2str(failure));
        return self->partition_count > 0;
    }
    if (metadata->topic_cnt > 0)
        take_count(self, &metadata->topics[0]);
    self->library->metadata_destroy(metadata);
    return self->partition_count > 0 && self->delivery.failure == RD_KAFKA_RESP_ERR_NO_ERROR;
}

// -- handing over ---------------------------------------------------------------------------------

static bool is_for_all(const struct record_frame *frame) {
    return frame->key.data == NULL && frame->header_count > 0 &&
           slice_equal(frame->headers[frame->header_count - 1].name, SLICE(RECORD_COPIES));
}

// `copies` 0: it goes to one partition.
static rd_kafka_headers_t *make_headers(const struct kafka_exporter *self,
                                        const struct record_frame *frame, uint32_t copies) {
    rd_kafka_headers_t *headers = self->library->headers_new(frame->header_count);
    char text[NUMBER_TEXT_MAX];
    for (uint32_t i = 0; i < frame->header_count; i++) {
        struct record_header header = frame->headers[i];
        if (copies > 0 && i + 1 == frame->header_count)
            header.value = number_text(copies, text);
        self->library->header_add(headers, header.name.data, (ssize_t)header.name.size,
                                  header.value.data, (ssize_t)header.value.size);
    }
    return headers;
}

// One message, to the next partition of those that it is for, or to that of its key.
static rd_kafka_resp_err_t produce_one(struct kafka_exporter *self,
                                       const struct record_frame *frame, struct kafka_block *block,
                                       uint32_t index, uint32_t copies) {
    struct kafka_record *record = &block->records[index];
    int32_t partition = copies == 0 ? RD_KAFKA_PARTITION_UA : (int32_t)record->handed_over;
    rd_kafka_headers_t *headers = make_headers(self, frame, copies);
    // The bytes are the sender's; a record may be under way longer than this attempt.
    rd_kafka_resp_err_t failure = self->library->producev(
        self->producer, RD_KAFKA_V_RKT(self->topic), RD_KAFKA_V_PARTITION(partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(frame->key.data, frame->key.size),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)frame->value.data, frame->value.size),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(message_mark(block, index)), RD_KAFKA_V_END);
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR) {
        self->library->headers_destroy(headers);
        return failure;
    }
    record->handed_over++;
    record->under_way++;
    block->under_way++;
    self->delivery.under_way++;
    return failure;
}

// What was not handed over of the record yet.
static rd_kafka_resp_err_t produce(struct kafka_exporter *self, const struct record_frame *frame,
                                   struct kafka_block *block, uint32_t index, uint32_t copies) {
    struct kafka_record *record = &block->records[index];
    assert(record->fate == KAFKA_WAITING && block->waiting > 0);
    uint32_t wanted = copies == 0 ? 1 : copies;
    while (record->handed_over < wanted) {
        rd_kafka_resp_err_t failure = produce_one(self, frame, block, index, copies);
        if (failure != RD_KAFKA_RESP_ERR_NO_ERROR)
            return failure;
    }
    block->waiting--;
    record->fate = KAFKA_UNDER_WAY;
    // Those that were handed over before there was room for all may have been answered.
    if (record->under_way == 0) {
        record->fate = KAFKA_DELIVERED;
        block->undelivered--;
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void leave_out(struct kafka_exporter *self, const struct record_frame *frame,
                      struct kafka_block *block, uint32_t index, rd_kafka_resp_err_t failure) {
    assert(block->records[index].fate == KAFKA_WAITING && block->undelivered > 0);
    log_write(LOG_ERROR, (struct log_site){"C7103", self->site},
              "record %" PRIu64 " (%zu bytes) can never be delivered and is dropped: %s",
              frame->sequence, frame->value.size, self->library->err2str(failure));
    metric_add(self->undeliverable, 1);
    block->records[index].fate = KAFKA_DELIVERED;
    block->waiting--;
    block->undelivered--;
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

// Waits until a record that was handed over alone is answered for; false: the attempt is over.
static bool wait_for_one(struct kafka_exporter *self, const struct record_frame *frame,
                         struct kafka_block *block, uint32_t index, uint64_t until_ns) {
    const struct kafka_delivery *delivery = &self->delivery;
    const struct kafka_record *record = &block->records[index];
    while (record->fate == KAFKA_UNDER_WAY)
        if (!wait_a_moment(self, until_ns))
            break;
    if (record->fate == KAFKA_WAITING && is_the_records_fault(delivery->failure))
        leave_out(self, frame, block, index, delivery->failure);
    return record->fate == KAFKA_DELIVERED && delivery->failure == RD_KAFKA_RESP_ERR_NO_ERROR;
}

// Hands one record over. False: the attempt is over, or there is no room now for what is ahead.
static bool hand_over(struct kafka_exporter *self, const struct record_frame *frame,
                      struct kafka_block *block, uint32_t index, uint64_t until_ns) {
    struct kafka_delivery *delivery = &self->delivery;
    rd_kafka_resp_err_t failure;
    bool is_begun = block->records[index].handed_over > 0;
    if (is_for_all(frame) && !is_begun && !count_partitions(self, until_ns))
        return false;
    uint32_t copies = is_for_all(frame) ? self->partition_count : 0;
    while ((failure = produce(self, frame, block, index, copies)) == RD_KAFKA_RESP_ERR__QUEUE_FULL)
        if (block != block_at(delivery, 0) || !wait_a_moment(self, until_ns))
            return false;
    if (is_the_records_fault(failure)) {
        leave_out(self, frame, block, index, failure);
        return true;
    }
    if (failure != RD_KAFKA_RESP_ERR_NO_ERROR) {
        delivery->failure = failure;
        return false;
    }
    return !block->alone || wait_for_one(self, frame, block, index, until_ns);
}

// Hands over what waits of one block; false: no more may follow it now.
static bool hand_over_block(struct kafka_exporter *self, struct kafka_block *block,
                            struct slice bytes, uint64_t until_ns) {
    struct record_frame frame;
    for (uint32_t index = 0; block->waiting > 0; index++) {
        if (!record_frame_read(&bytes, &frame)) {
            self->delivery.damaged = true;
            return false;
        }
        if (block->records[index].fate == KAFKA_WAITING &&
            !hand_over(self, &frame, block, index, until_ns))
            return false;
        // Answers are taken in as they come; a failure ends the attempt.
        if (index % 64 == 0) {
            self->library->poll(self->producer, 0);
            if (self->delivery.failure != RD_KAFKA_RESP_ERR_NO_ERROR)
                return false;
        }
    }
    return true;
}

static void attempt(struct kafka_exporter *self, const struct request *request, uint64_t until_ns) {
    struct kafka_delivery *delivery = &self->delivery;
    struct kafka_block *first = block_at(delivery, 0);
    delivery->failure = RD_KAFKA_RESP_ERR_NO_ERROR;
    // With one at a time, first what is under way, and nothing behind it.
    while (first->alone && delivery->under_way > 0 && wait_a_moment(self, until_ns))
        continue;
    bool goes_on = hand_over_block(self, first, request->bytes, until_ns);
    for (uint32_t i = 1; goes_on && i < delivery->block_count && i <= request->ahead_count; i++)
        goes_on = !first->alone && !block_at(delivery, i)->alone &&
                  hand_over_block(self, block_at(delivery, i), bytes_of(request, i), until_ns);
    while (first->under_way > 0 && wait_a_moment(self, until_ns))
        continue;
}

// After a failure nothing that was handed over may still arrive, behind or before what comes again.
static void start_over(struct kafka_exporter *self) {
    assert(self->delivery.block_count <= KAFKA_BLOCKS_MAX);
    struct kafka_delivery *delivery = &self->delivery;
    kafka_producer_close(self);
    for (uint32_t i = 0; i < delivery->block_count; i++) {
        struct kafka_block *block = block_at(delivery, i);
        for (uint32_t j = 0; j < block->count; j++) {
            struct kafka_record *record = &block->records[j];
            if (record->fate == KAFKA_DELIVERED)
                continue;
            block->waiting += record->fate == KAFKA_UNDER_WAY;
            *record = (struct kafka_record){KAFKA_WAITING, 0, 0};
        }
        block->under_way = 0;
    }
    delivery->under_way = 0;
}

static enum status say_failed(const struct kafka_exporter *self, struct error *error) {
    const struct kafka_delivery *delivery = &self->delivery;
    const struct kafka_block *block = &delivery->blocks[delivery->first];
    const char *topic = self->config->topic;
    if (delivery->failure == RD_KAFKA_RESP_ERR_NO_ERROR)
        return error_set(error, STATUS_IO,
                         "the brokers did not acknowledge %u of %u records for %s in time%s%s",
                         block->undelivered, block->count, topic,
                         self->broker_error[0] == '\0' ? "" : "; last error: ", self->broker_error);
    return error_set(error, is_denied(delivery->failure) ? STATUS_DENIED : STATUS_IO,
                     "%u of %u records for %s were not delivered: %s", block->undelivered,
                     block->count, topic, self->library->err2str(delivery->failure));
}

enum status kafka_send(void *instance, const struct request *request, struct send_outcome *outcome,
                       struct error *error) {
    struct kafka_exporter *self = instance;
    struct kafka_delivery *delivery = &self->delivery;
    (void)outcome; // nothing is permanent here: rights and topics are put right while it waits
    if (request->bytes.size == 0)
        return STATUS_OK;
    delivery->damaged = !take_up(delivery, request);
    uint64_t until_ns = clock_monotonic_ns() + (uint64_t)self->config->sending.timeout.ns;
    while (!delivery->damaged) {
        if (self->producer == NULL) {
            enum status status = kafka_producer_open(self, error);
            if (status != STATUS_OK)
                return status;
        }
        attempt(self, request, until_ns);
        bool failed = delivery->failure != RD_KAFKA_RESP_ERR_NO_ERROR || delivery->fatal;
        if (failed)
            start_over(self);
        // One that is not taken is looked for at once.
        if (!failed || !is_the_records_fault(delivery->failure) ||
            block_at(delivery, 0)->undelivered == 0 || clock_monotonic_ns() >= until_ns)
            break;
    }
    if (delivery->damaged)
        return error_set(error, STATUS_BUG, "the queued records are damaged");
    if (block_at(delivery, 0)->undelivered > 0)
        return say_failed(self, error);
    self->broker_error[0] = '\0';
    return STATUS_OK;
}
