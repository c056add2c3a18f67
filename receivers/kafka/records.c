// SPDX-License-Identifier: Apache-2.0
// Handles one message of a topic.
//
// What its headers say is read, repeats and empty ones are dropped, the rest is offered record by
// record. With a dead-letter topic each message is decoded once before anything of it is offered:
// one that holds a refused record is delivered there first, so that nothing of it is done while
// that is not certain. Slices point into the message, which is kept until the feed is flushed.
#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/log.h"
#include "base/text/cut.h"
#include "receivers/decode/formats.h"
#include "receivers/kafka/receiver.h"
#include "receivers/records/body.h"

#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/records/passed_on.h"

#include <assert.h>

struct handling {
    const rd_kafka_message_t *message;
    struct kafka_partition *partition;
    struct kafka_sender *sender;
    struct source *source;
    struct passed_on headers;
    struct slice value;
    bool kept; // in the quarantine
};

// -- headers ------------------------------------------------------------------------------------

static void read_headers(const struct kafka_receiver *receiver, const rd_kafka_message_t *message,
                         struct passed_on *headers) {
    passed_on_begin(headers);
    rd_kafka_headers_t *list;
    if (receiver->library->message_headers(message, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    const char *name;
    const void *value;
    size_t size;
    for (size_t i = 0; receiver->library->header_get_all(list, i, &name, &value, &size) ==
                       RD_KAFKA_RESP_ERR_NO_ERROR;
         i++)
        if (strncmp(name, "culprit-", 8) == 0)
            passed_on_header(headers, slice_of(name),
                             (struct slice){value, value == NULL ? 0 : size});
    if (headers->sequence == 0)
        headers->sender = (struct slice){0};
}

// -- positions ----------------------------------------------------------------------------------

uint64_t kafka_mark_of(const struct kafka_receiver *receiver, const rd_kafka_message_t *message) {
    enum { PART = 64 }; // of each end: the cost of a record is bounded
    rd_kafka_timestamp_type_t type;
    const char *value = message->payload;
    size_t size = value == NULL ? 0 : message->len;
    uint64_t parts[4] = {(uint64_t)receiver->library->message_timestamp(message, &type), size};
    parts[2] = hash_words(value, size < PART ? size : PART);
    if (size > PART)
        parts[3] = hash_words(value + size - PART, PART);
    uint64_t mark = hash_words(parts, sizeof parts);
    return mark == 0 ? 1 : mark;
}

// All of the message that comes now counts as done with what is offered next.
static void reach(struct kafka_receiver *receiver, const struct handling *handling) {
    const rd_kafka_message_t *message = handling->message;
    struct kafka_partition *partition = handling->partition;
    rd_kafka_timestamp_type_t type;
    int64_t time_ms = receiver->library->message_timestamp(message, &type);
    if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || time_ms < 0)
        time_ms = 0;
    if (time_ms > partition->time_ms)
        partition->time_ms = time_ms;
    assert(message->offset >= 0 && message->offset + 1 >= partition->next);
    partition->next = message->offset + 1;
    partition->last = message->offset;
    partition->mark = kafka_mark_of(receiver, message);
    struct source_position position = {
        .number = (uint64_t)message->offset + 1,
        .detail = {[KAFKA_DETAIL_LAST] = (uint64_t)message->offset,
                   [KAFKA_DETAIL_TIME] = (uint64_t)partition->time_ms,
                   [KAFKA_DETAIL_MARK] = partition->mark}};
    feed_source_reached(partition->source, &position);
    if (handling->sender == NULL)
        return;
    struct kafka_sender *sender = handling->sender;
    sender->sequence = handling->headers.sequence;
    if (sender->begin == 0)
        sender->begin = sender->sequence;
    assert(sender->begin <= sender->sequence);
    position.number = sender->sequence;
    position.detail[KAFKA_DETAIL_BEGIN] = sender->begin;
    feed_source_reached(sender->source, &position);
}

// -- records ------------------------------------------------------------------------------------

// The whole message, once.
static void keep(struct kafka_receiver *receiver, struct handling *handling) {
    assert(handling->source != NULL);
    if (!handling->kept)
        record_sink_keep(&receiver->sink, handling->source, handling->value,
                         (uint64_t)handling->message->offset + 1);
    handling->kept = true;
}

void kafka_held_refused(void *context, const struct source *source, struct slice record,
                        uint64_t position, const struct decode_fault *fault) {
    (void)source;
    (void)record;
    (void)position;
    struct kafka_receiver *receiver = context;
    receiver->sink.fault = *fault;
    receiver->held_refused = true;
}

static void offer(struct kafka_receiver *receiver, struct handling *handling,
                  const struct body_record *record) {
    uint64_t position = (uint64_t)handling->message->offset + 1;
    if (record->refusal != DECODE_OK) {
        record_sink_fault(&receiver->sink, record->refusal, "%s", record->why);
        feed_refuse(receiver->feed, handling->source, position, &receiver->sink.fault);
    } else if (feed_offer(receiver->feed, handling->source, record->bytes, position,
                          &receiver->sink.fault) == DECODE_OK) {
        return;
    }
    keep(receiver, handling);
}

static void begin_body(const struct kafka_receiver *receiver, const struct handling *handling,
                       struct body *body) {
    passed_on_body(&handling->headers, handling->value, receiver->sink.record_max,
                   format_chosen(receiver->config->records.format), body);
}

// The value as one record: most are, and need not be searched for several when they show it.
static struct slice as_one(const struct kafka_receiver *receiver, struct slice value) {
    while (value.size > 0 &&
           (value.data[value.size - 1] == '\n' || value.data[value.size - 1] == '\r'))
        value.size--;
    return value.size <= receiver->sink.record_max ? value : (struct slice){NULL, 0};
}

// Whether the trial shows at once that the decoder takes it.
static bool is_plain(struct kafka_receiver *receiver, struct slice value) {
    struct event event;
    struct slice one = as_one(receiver, value);
    if (one.size == 0 || receiver->decoder->decode_plain == NULL)
        return false;
    bool plain =
        receiver->decoder->decode_plain(receiver->trial.state, one, &receiver->trial.arena, &event);
    arena_reset(&receiver->trial.arena);
    return plain;
}

// Whether the trial takes the record and what was held before it; NULL: there are no more.
static bool trial_takes(struct kafka_receiver *receiver, const struct slice *record) {
    const struct decoder_type *decoder = receiver->decoder;
    struct kafka_trial *trial = &receiver->trial;
    struct decode_fault *fault = &receiver->sink.fault;
    struct event event = {.lines = 1};
    enum decode_category category = DECODE_HELD;
    if (record != NULL)
        category = decoder->decode(trial->state, *record, &trial->arena, &event, fault);
    else if (decoder->finish != NULL)
        decoder->finish(trial->state);
    while (decoder->next != NULL && !decode_refused(category) && category != DECODE_END)
        category = decoder->next(trial->state, &trial->arena, &event, fault);
    arena_reset(&trial->arena);
    return !decode_refused(category);
}

static void pass_on_trial(struct kafka_receiver *receiver, const struct forwarded *forwarded) {
    if (receiver->decoder->pass_on != NULL)
        receiver->decoder->pass_on(receiver->trial.state, forwarded);
}

// Whether the decoder takes every record of the value; if not, the fault is set.
static bool is_whole(struct kafka_receiver *receiver, const struct handling *handling) {
    struct body body;
    struct body_record record;
    if (handling->headers.fault != NULL) {
        record_sink_fault(&receiver->sink, DECODE_UNSUPPORTED_VERSION, "%s",
                          handling->headers.fault);
        return false;
    }
    if (is_plain(receiver, handling->value))
        return true;
    const struct forwarded *said = passed_on_said(&handling->headers);
    pass_on_trial(receiver, said);
    begin_body(receiver, handling, &body);
    bool takes = true;
    while (takes && body_next(&body, &record)) {
        takes = record.refusal == DECODE_OK && trial_takes(receiver, &record.bytes);
        if (record.refusal != DECODE_OK)
            record_sink_fault(&receiver->sink, record.refusal, "%s", record.why);
    }
    takes = takes && trial_takes(receiver, NULL);
    decoder_drop_held(receiver->decoder, receiver->trial.state, &receiver->trial.arena);
    arena_reset(&receiver->trial.arena);
    pass_on_trial(receiver, NULL);
    return takes;
}

static void offer_all(struct kafka_receiver *receiver, struct handling *handling) {
    struct body body;
    struct body_record record, next;
    struct slice one = as_one(receiver, handling->value);
    if (one.size > 0 && feed_foresee(receiver->feed, handling->source, one))
        body_begin_one(&body, one, receiver->sink.record_max);
    else
        begin_body(receiver, handling, &body);
    bool more = body_next(&body, &record);
    bool several = more && body.kind != BODY_ONE;
    receiver->held_refused = false;
    feed_source_passed_on(receiver->feed, handling->source, passed_on_said(&handling->headers));
    // What was done before stands by itself, so that a batch which is full in between holds nothing
    // of this message but records, and they are few.
    if (several)
        feed_flush(receiver->feed);
    while (more) {
        more = body_next(&body, &next);
        if (!more)
            reach(receiver, handling);
        offer(receiver, handling, &record);
        record = next;
    }
    if (handling->partition->next <= handling->message->offset)
        reach(receiver, handling); // there was nothing in it
    feed_source_finish(receiver->feed, handling->source);
    feed_source_passed_on(receiver->feed, handling->source, NULL);
    if (receiver->held_refused)
        keep(receiver, handling);
    assert(handling->partition->next > handling->message->offset);
}

static void refuse_all(struct kafka_receiver *receiver, struct handling *handling) {
    record_sink_fault(&receiver->sink, DECODE_UNSUPPORTED_VERSION, "%s", handling->headers.fault);
    reach(receiver, handling);
    feed_refuse(receiver->feed, handling->source, (uint64_t)handling->message->offset + 1,
                &receiver->sink.fault);
    keep(receiver, handling);
}

// -- the message --------------------------------------------------------------------------------

// `handling->sender` goes on with what is dropped, unless it is NULL.
static bool drop(struct kafka_receiver *receiver, const struct handling *handling,
                 struct metric *counter) {
    assert(handling->partition != NULL && handling->partition->assigned);
    reach(receiver, handling);
    if (receiver->first)
        metric_add(counter, 1);
    return true;
}

// Whether the record that was read last is another one now.
static bool was_made_anew(const struct kafka_receiver *receiver, struct kafka_partition *partition,
                          const rd_kafka_message_t *message) {
    if (!partition->proving)
        return partition->made_anew;
    partition->proving = false;
    partition->made_anew =
        message->offset == partition->last && kafka_mark_of(receiver, message) != partition->mark;
    return partition->made_anew;
}

bool kafka_handle(struct kafka_receiver *receiver, const rd_kafka_message_t *message) {
    assert(message->err == RD_KAFKA_RESP_ERR_NO_ERROR);
    struct handling handling = {.message = message, .value = {message->payload, message->len}};
    handling.partition = kafka_partition_find(receiver, receiver->library->topic_name(message->rkt),
                                              message->partition);
    struct kafka_partition *partition = handling.partition;
    // It went to somebody else meanwhile, or was fetched before it came back, or proves something.
    if (partition == NULL || !partition->assigned || was_made_anew(receiver, partition, message) ||
        message->offset < partition->next)
        return true;
    partition->unresolved = false;
    if (message->payload == NULL)
        return drop(receiver, &handling, receiver->counters.empty);
    read_headers(receiver, message, &handling.headers);
    if (handling.headers.sender.data != NULL)
        handling.sender = kafka_sender_of(receiver, partition, handling.headers.sender);
    handling.source = handling.sender == NULL ? partition->source : handling.sender->source;
    if (handling.sender != NULL && handling.headers.sequence <= handling.sender->sequence) {
        handling.sender = NULL;
        return drop(receiver, &handling, receiver->counters.repeated);
    }
    if (handling.sender != NULL &&
        kafka_sender_has_copy(handling.sender, handling.headers.sequence, handling.headers.copies))
        return drop(receiver, &handling, receiver->counters.repeated);
    if (receiver->first && receiver->config->dead_letter.topic != NULL &&
        !is_whole(receiver, &handling) && !kafka_dead_letter_send(receiver, message, partition))
        return false;
    feed_source_figures(handling.source)->bytes += message->len;
    if (handling.headers.fault != NULL)
        refuse_all(receiver, &handling);
    else
        offer_all(receiver, &handling);
    return true;
}
