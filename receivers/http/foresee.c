// SPDX-License-Identifier: Apache-2.0
// Decodes a request's telemetry on the thread that read it, before its turn comes.
//
// Requests go through the pipelines one after the other, under the intake lock; what can be done
// before is done side by side. A record with a name that is not known yet, and one that is not
// telemetry beyond doubt, is left to the feed, so that names get their numbers in the order in
// which requests are taken. Memory: events of at most FORESEEN_MAX records a request.
#include "base/intern.h"
#include "base/memory.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/http/receiver.h"

#include <assert.h>

enum { FORESEEN_MAX = 1024 };

// Whether the records of this path may be told by decoder_stormlog alone.
static bool takes_telemetry(const struct decoder_type *decoder) {
    return decoder == &decoder_stormlog || decoder->plain == &decoder_stormlog;
}

void http_foresee(const struct http_receiver *receiver, struct http_work *work) {
    assert(!work->frames && work->foreseen_count == 0);
    if (!takes_telemetry(receiver->decoder))
        return;
    if (work->decoding == NULL)
        work->decoding = memory_zero(1, decoder_stormlog.state_size);
    intern_known_only(true);
    for (uint32_t i = 0; i < work->count && work->foreseen_count < FORESEEN_MAX; i++) {
        const struct http_item *item = &work->items[i];
        struct slice record = {item->data, item->size};
        if (item->refusal != DECODE_OK)
            continue;
        work->foreseen = memory_room(work->foreseen, &work->foreseen_capacity, work->foreseen_count,
                                     sizeof *work->foreseen);
        struct event *event = &work->foreseen[work->foreseen_count];
        event->timeless = false;
        if (!decoder_stormlog.decode_plain(work->decoding, record, &work->arena, event))
            continue;
        event->raw = record;
        event->position = i;
        work->foreseen_count++;
    }
    intern_known_only(false);
}

uint32_t http_foreseen_offer(struct http_receiver *receiver, struct http_work *work, uint32_t first,
                             uint32_t end) {
    assert(lock_is_held(&receiver->lock) && first < end && end <= work->count);
    const struct event *events = work->foreseen + work->foreseen_next;
    uint32_t left = work->foreseen_count - work->foreseen_next;
    uint32_t count = 0;
    assert(left == 0 || events[0].position >= first);
    while (count < left && first + count < end && events[count].position == first + count)
        count++;
    if (count == 0)
        return 0;
    if (!feed_offer_foreseen(atomic_load(&receiver->feed), receiver->source, events, count,
                             receiver->records + 1)) {
        work->foreseen_next = work->foreseen_count;
        return 0;
    }
    work->foreseen_next += count;
    receiver->records += count;
    work->result.accepted += count;
    return count;
}

void http_foreseen_drop(struct http_work *work) {
    assert(work->foreseen_next <= work->foreseen_count);
    memory_give(work->foreseen);
    memory_give(work->decoding);
    work->foreseen = NULL;
    work->decoding = NULL;
    work->foreseen_count = work->foreseen_capacity = work->foreseen_next = 0;
}
