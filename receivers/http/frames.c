// SPDX-License-Identifier: Apache-2.0
// Takes what other culprits pass on (record_frame.h): each frame is one record, decoded as what it
// says, and each number of a sender is taken once.
//
// A sender is a source of its own: its position is the number of its last frame, kept with the
// checkpoint, and the watermark waits for the one that is furthest behind. The journal keeps frames
// whole, so that what is read from it again says whose it is. At most max_senders are known; a
// further one takes the place of the one that sent nothing for longest.
#include "base/hash/hash.h"
#include "base/memory.h"
#include "pipeline/component/record_frame.h"
#include "receivers/decode/formats.h"
#include "receivers/http/receiver.h"
#include "receivers/records/body.h"
#include "receivers/records/passed_on.h"

#include <assert.h>
#include <stdio.h>

enum { PATH_MAX_BYTES = 1024 };

// -- senders --------------------------------------------------------------------------------------

static struct http_sender *find_sender(const struct http_senders *senders, struct slice name) {
    uint32_t probe = 0, at;
    while ((at = hash_index_next(&senders->by_name, hash_slice(name), &probe)) != HASH_INDEX_NONE) {
        struct http_sender *sender = senders->items[at];
        if (slice_equal((struct slice){sender->name, sender->size}, name))
            return sender;
    }
    return NULL;
}

static struct slice name_of(const struct http_sender *sender) {
    return (struct slice){sender->name, sender->size};
}

// The one that sent nothing for longest makes room. Nothing is in the feed's batch.
static void forget_oldest(struct http_receiver *receiver) {
    struct http_senders *senders = &receiver->senders;
    assert(senders->count > 0);
    uint32_t oldest = 0, last = senders->count - 1;
    for (uint32_t i = 1; i < senders->count; i++)
        if (senders->items[i]->used < senders->items[oldest]->used)
            oldest = i;
    struct http_sender *sender = senders->items[oldest];
    feed_source_forget(atomic_load(&receiver->feed), sender->source);
    hash_index_remove(&senders->by_name, hash_slice(name_of(sender)), oldest);
    if (oldest != last) {
        uint64_t hash = hash_slice(name_of(senders->items[last]));
        hash_index_remove(&senders->by_name, hash, last);
        hash_index_add(&senders->by_name, hash, oldest);
        senders->items[oldest] = senders->items[last];
    }
    senders->count--;
    memory_give(sender);
}

static struct http_sender *add_sender(struct http_receiver *receiver, struct slice name) {
    struct http_senders *senders = &receiver->senders;
    assert(name.size > 0 && name.size <= RECORD_SENDER_MAX);
    if (senders->count == (uint64_t)receiver->config->max_senders)
        forget_oldest(receiver);
    char path[PATH_MAX_BYTES];
    int size =
        snprintf(path, sizeof path, "%s/%.*s", receiver->context->id, (int)name.size, name.data);
    if (size < 0 || size >= PATH_MAX_BYTES)
        return NULL;
    struct feed *feed = atomic_load(&receiver->feed);
    struct http_sender *sender = memory_zero(1, sizeof *sender + name.size);
    sender->source = feed_source(feed, (struct slice){path, (size_t)size});
    if (feed_source_decoder(sender->source) == NULL)
        record_options_format(sender->source, receiver->decoder, &receiver->sink.known);
    struct source_position restored = feed_source_restored(sender->source);
    sender->sequence = sender->reached = restored.number;
    sender->used = restored.detail[0];
    sender->size = (uint32_t)name.size;
    memcpy(sender->name, name.data, name.size);
    senders->items =
        memory_room(senders->items, &senders->capacity, senders->count, sizeof *senders->items);
    hash_index_add(&senders->by_name, hash_slice(name), senders->count);
    senders->items[senders->count++] = sender;
    // Several senders are several sources: see feed_steps.
    feed_steps(feed, false);
    return sender;
}

void http_pass_ends(struct http_receiver *receiver) {
    struct feed *feed = atomic_load(&receiver->feed);
    feed_source_caught_up(feed, receiver->source);
    for (uint32_t i = 0; i < receiver->senders.count; i++)
        feed_source_caught_up(feed, receiver->senders.items[i]->source);
}

void http_senders_restore(struct http_receiver *receiver) {
    struct feed *feed = atomic_load(&receiver->feed);
    const char *id = receiver->context->id;
    size_t head = strlen(id) + 1;
    struct source *source;
    for (uint32_t i = 0; (source = feed_restored_source(feed, i)) != NULL; i++) {
        struct slice path = feed_source_path(source);
        if (path.size <= head || path.size - head > RECORD_SENDER_MAX ||
            memcmp(path.data, id, head - 1) != 0 || path.data[head - 1] != '/')
            continue;
        struct slice name = {path.data + head, path.size - head};
        if (find_sender(&receiver->senders, name) == NULL &&
            receiver->senders.count < (uint64_t)receiver->config->max_senders)
            (void)add_sender(receiver, name);
    }
}

void http_senders_release(struct http_senders *senders) {
    for (uint32_t i = 0; i < senders->count; i++)
        memory_give(senders->items[i]);
    memory_give(senders->items);
    hash_index_release(&senders->by_name);
    *senders = (struct http_senders){.count = 0};
}

// -- frames ---------------------------------------------------------------------------------------

static bool read_frame(struct slice bytes, struct record_frame *frame,
                       struct passed_on *passed_on) {
    passed_on_begin(passed_on);
    if (!record_frame_read(&bytes, frame) || bytes.size != 0)
        return false;
    for (uint32_t i = 0; i < frame->header_count; i++)
        passed_on_header(passed_on, frame->headers[i].name, frame->headers[i].value);
    passed_on->sequence = frame->sequence;
    return true;
}

void http_cut_frames(struct slice body, struct http_work *work, struct http_fault *fault) {
    assert(work->count == 0 && fault->status == 0);
    work->frames = true;
    if (body.size == 0)
        http_fault_set(fault, 400, "empty", "The body is empty: send at least one frame.");
    while (body.size > 0 && fault->status == 0) {
        struct slice rest = body;
        struct record_frame frame;
        if (!record_frame_read(&rest, &frame)) {
            http_fault_set(fault, 400, "bad_frame", "Frame %u of the body is not whole.",
                           work->count);
            return;
        }
        struct http_item item = {.data = body.data, .size = (uint32_t)(body.size - rest.size)};
        if (!http_item_add(work, item))
            http_fault_set(fault, 413, "too_many_records",
                           "The body has more than %d records: send less in one request.",
                           HTTP_ITEMS_MAX);
        body = rest;
    }
}

// Whether the number is new; then it is noted.
static bool take_number(struct http_receiver *receiver, const struct passed_on *passed_on) {
    if (passed_on->sender.size == 0)
        return true;
    struct http_sender *sender = find_sender(&receiver->senders, passed_on->sender);
    if (sender == NULL)
        sender = add_sender(receiver, passed_on->sender);
    if (sender == NULL)
        return true;
    sender->used = receiver->sequence + 1;
    if (passed_on->sequence <= sender->sequence)
        return false;
    sender->sequence = passed_on->sequence;
    return true;
}

void http_mark_repeats(struct http_receiver *receiver, struct http_work *work) {
    assert(work->frames && lock_is_held(&receiver->lock));
    struct record_frame frame;
    struct passed_on passed_on;
    for (uint32_t i = 0; i < work->count; i++) {
        struct http_item *item = &work->items[i];
        bool whole = read_frame((struct slice){item->data, item->size}, &frame, &passed_on);
        assert(whole); // http_cut_frames read it
        (void)whole;
        item->repeated = !take_number(receiver, &passed_on);
        if (item->repeated)
            metric_add(receiver->repeated, 1);
    }
}

static struct http_sender *sender_of(const struct http_receiver *receiver,
                                     const struct passed_on *passed_on) {
    return passed_on->sender.size == 0 ? NULL : find_sender(&receiver->senders, passed_on->sender);
}

// The frame counts as done with what is offered next. From the journal older ones come again, for a
// pipeline that was passed over: what it lacks is in the journal, whatever its senders' numbers.
static void reach(const struct passed_on *passed_on, struct http_sender *sender) {
    if (sender == NULL)
        return;
    if (passed_on->sequence > sender->reached)
        sender->reached = passed_on->sequence;
    struct source_position position = {.number = sender->reached, .detail = {sender->used}};
    feed_source_reached(sender->source, &position);
}

static bool offer_part(struct http_receiver *receiver, struct source *source,
                       const struct body_record *record, uint64_t position) {
    struct record_sink *sink = &receiver->sink;
    if (record->refusal == DECODE_OK)
        return record_sink_offer(sink, source, record->bytes, position);
    record_sink_fault(sink, record->refusal, "%s", record->why);
    record_sink_refuse(sink, source, record->bytes, position);
    return false;
}

static void begin_body(const struct http_receiver *receiver, const struct passed_on *passed_on,
                       struct slice value, struct body *body) {
    passed_on_body(passed_on, value, (size_t)receiver->config->max_request_size.bytes,
                   format_chosen(receiver->config->records.format), body);
}

static bool offer_parts(struct http_receiver *receiver, const struct passed_on *passed_on,
                        struct slice value, struct http_sender *sender, uint64_t position) {
    struct source *source = sender == NULL ? receiver->source : sender->source;
    struct feed *feed = atomic_load(&receiver->feed);
    struct body body;
    struct body_record record, next;
    bool taken = true;
    begin_body(receiver, passed_on, value, &body);
    feed_source_passed_on(feed, source, passed_on_said(passed_on));
    for (bool more = body_next(&body, &record); more; record = next) {
        more = body_next(&body, &next);
        if (!more)
            reach(passed_on, sender);
        taken = offer_part(receiver, source, &record, position) && taken;
    }
    feed_source_finish(feed, source);
    feed_source_passed_on(feed, source, NULL);
    return taken;
}

bool http_offer_frame(struct http_receiver *receiver, struct slice bytes, uint64_t position) {
    struct record_frame frame;
    struct passed_on passed_on;
    bool whole = read_frame(bytes, &frame, &passed_on);
    assert(whole && lock_is_held(&receiver->lock)); // http_cut_frames read it
    (void)whole;
    struct http_sender *sender = sender_of(receiver, &passed_on);
    if (passed_on.fault == NULL)
        return offer_parts(receiver, &passed_on, frame.value, sender, position);
    reach(&passed_on, sender);
    record_sink_fault(&receiver->sink, DECODE_UNSUPPORTED_VERSION, "%s", passed_on.fault);
    record_sink_refuse(&receiver->sink, sender == NULL ? receiver->source : sender->source,
                       frame.value, position);
    return false;
}

// -- from the journal -----------------------------------------------------------------------------

// Whether the decoder apart takes all of it: what it refuses was told of when it came.
static bool is_taken(const struct http_receiver *receiver, const struct passed_on *passed_on,
                     struct slice value, void *state, struct arena *arena) {
    const struct decoder_type *decoder = receiver->decoder;
    struct body body;
    struct body_record record;
    struct decode_fault fault;
    bool taken = passed_on->fault == NULL;
    if (decoder->pass_on != NULL)
        decoder->pass_on(state, passed_on_said(passed_on));
    begin_body(receiver, passed_on, value, &body);
    while (taken && body_next(&body, &record)) {
        struct event event = {.position = 1};
        taken = record.refusal == DECODE_OK &&
                !decode_refused(decoder->decode(state, record.bytes, arena, &event, &fault));
    }
    decoder_drop_held(decoder, state, arena);
    if (decoder->pass_on != NULL)
        decoder->pass_on(state, NULL);
    arena_reset(arena);
    return taken;
}

void http_offer_frame_again(struct http_receiver *receiver, struct slice bytes, uint64_t position,
                            void *state, struct arena *arena) {
    struct record_frame frame;
    struct passed_on passed_on;
    if (!read_frame(bytes, &frame, &passed_on))
        return;
    if (is_taken(receiver, &passed_on, frame.value, state, arena))
        (void)offer_parts(receiver, &passed_on, frame.value, sender_of(receiver, &passed_on),
                          position);
    else
        reach(&passed_on, sender_of(receiver, &passed_on));
}

void http_note_sender(struct http_receiver *receiver, struct slice bytes) {
    struct record_frame frame;
    struct passed_on passed_on;
    if (read_frame(bytes, &frame, &passed_on))
        (void)take_number(receiver, &passed_on);
}
