// SPDX-License-Identifier: Apache-2.0
// One request after the other: into the journal, into the feed, into the answer.
//
// Under one lock, so that the numbers of the journal, the order of the events and the positions of
// the checkpoint are one order. The journal's rows are submitted before anything is offered: what a
// checkpoint can hold is in the journal before it. Waiting for the disk happens after the lock is
// given back, so that many requests share one commit.
#include "base/clock.h"
#include "base/memory.h"
#include "receivers/http/receiver.h"

#include <assert.h>
#include <stdio.h>

enum { ENTRY_RECORDS_MAX = 4096, ENTRY_BYTES_MAX = 4 << 20, RETRY_MAX_S = 10 };

bool http_is_blocked(struct http_receiver *receiver, uint32_t *retry_after_s) {
    struct feed *feed = atomic_load(&receiver->feed);
    *retry_after_s = 1;
    if (feed == NULL || feed_stopping(feed) || atomic_load(&receiver->restoring))
        return true;
    if (!feed_blocked(feed) && (receiver->store == NULL || !storage_full(receiver->store))) {
        if (atomic_load_explicit(&receiver->blocked_since_ns, memory_order_relaxed) != 0)
            atomic_store_explicit(&receiver->blocked_since_ns, 0, memory_order_relaxed);
        return false;
    }
    uint64_t now = clock_monotonic_ns();
    uint64_t since = 0;
    if (atomic_compare_exchange_strong(&receiver->blocked_since_ns, &since, now))
        since = now;
    // The longer it has lasted, the longer it may last.
    uint64_t wait_s = now < since ? 1 : 1 + (now - since) / 2000000000;
    *retry_after_s = wait_s > RETRY_MAX_S ? RETRY_MAX_S : (uint32_t)wait_s;
    return true;
}

uint32_t http_entry_end(const struct http_work *work, uint32_t first) {
    assert(first <= work->count);
    uint64_t bytes = 0;
    uint32_t end = first;
    while (end < work->count && end - first < ENTRY_RECORDS_MAX &&
           (end == first || bytes + work->items[end].size <= ENTRY_BYTES_MAX))
        bytes += work->items[end++].size;
    return end;
}

// -- one item -----------------------------------------------------------------------------------

static void list_rejection(struct http_receiver *receiver, struct http_work *work, uint32_t index) {
    work->result.rejected++;
    if (work->listed == HTTP_LISTED_MAX)
        return;
    assert(index < work->count);
    struct http_rejection *rejection = &work->rejections[work->listed++];
    rejection->index = index;
    rejection->category = receiver->sink.fault.category;
    snprintf(rejection->field, sizeof rejection->field, "%.*s", HTTP_FIELD_MAX - 1,
             receiver->sink.fault.field);
    snprintf(rejection->detail, sizeof rejection->detail, "%s", receiver->sink.fault.detail);
}

static void offer(struct http_receiver *receiver, struct http_work *work, uint32_t index) {
    const struct http_item *item = &work->items[index];
    assert(index < work->count && lock_is_held(&receiver->lock));
    struct slice record = {item->data, item->size};
    uint64_t position = ++receiver->records;
    if (item->repeated)
        return;
    if (work->frames) {
        if (http_offer_frame(receiver, record, position))
            work->result.accepted++;
        else
            list_rejection(receiver, work, index);
        return;
    }
    if (item->refusal == DECODE_OK &&
        record_sink_offer(&receiver->sink, receiver->source, record, position)) {
        work->result.accepted++;
        return;
    }
    if (item->refusal != DECODE_OK) {
        record_sink_fault(&receiver->sink, item->refusal, "%s", item->why);
        record_sink_refuse(&receiver->sink, receiver->source, record, position);
    }
    list_rejection(receiver, work, index);
}

// Those from `first` up to `end`.
static void offer_items(struct http_receiver *receiver, struct http_work *work, uint32_t first,
                        uint32_t end) {
    assert(first <= end && end <= work->count);
    while (first < end) {
        uint32_t taken = http_foreseen_offer(receiver, work, first, end);
        if (taken == 0)
            offer(receiver, work, first);
        first += taken == 0 ? 1 : taken;
    }
}

// -- one request --------------------------------------------------------------------------------

static void offer_entries(struct http_receiver *receiver, struct http_work *work) {
    struct feed *feed = atomic_load(&receiver->feed);
    uint32_t first = 0;
    do {
        uint32_t end = http_entry_end(work, first);
        struct source_position position = {.number = ++receiver->sequence,
                                           .detail = {receiver->records + (end - first)}};
        // Without a journal a batch may leave before its entry is whole: it is reached with the
        // last record only.
        uint32_t last = end == first ? end : end - 1;
        offer_items(receiver, work, first, last);
        feed_source_reached(receiver->source, &position);
        offer_items(receiver, work, last, end);
        first = end;
        // An entry stands by itself: it is taken, and read again, as a whole.
        feed_source_finish(feed, receiver->source);
        // Nothing of a sender is known to be on its way; what comes late is for allowed_lateness.
        if (first == work->count)
            http_pass_ends(receiver);
        feed_flush(feed);
    } while (first < work->count);
}

// The key with what the request came to. Its row is there since before the request was offered; now
// it says the result, too.
static void keep_key(struct http_receiver *receiver, struct http_work *work, uint64_t number,
                     bool stored) {
    assert(lock_is_held(&receiver->lock) && work->key != NULL);
    struct storage_batch *batch = stored ? storage_batch_new(receiver->store) : NULL;
    if (batch != NULL)
        http_repeat_put(receiver, work, batch, number);
    uint64_t forgotten = repeats_add(&receiver->repeats, work->key, number, 0, work->result);
    if (batch != NULL) {
        if (forgotten != 0)
            storage_delete(batch, STORAGE_REPEATS, receiver->context->id, forgotten, forgotten);
        work->ticket = storage_submit(batch);
    }
    repeats_find(&receiver->repeats, work->key)->ticket = work->ticket;
}

static void take(struct http_receiver *receiver, struct http_work *work) {
    assert(lock_is_held(&receiver->lock));
    bool stored = receiver->journaling;
    if (work->frames)
        http_mark_repeats(receiver, work);
    uint64_t number = receiver->sequence + 1;
    if (stored) {
        if (!work->packed)
            http_journal_pack(work);
        struct storage_batch *batch = storage_batch_new(receiver->store);
        http_journal_put(receiver, work, batch);
        if (work->key != NULL) {
            // Should it end here, this is what a repeat is told: everything is in the journal.
            work->result.accepted = work->count;
            http_repeat_put(receiver, work, batch, number);
            work->result.accepted = 0;
        }
        work->ticket = storage_submit(batch);
    }
    const struct source_figures *figures = feed_source_figures(receiver->source);
    uint64_t other = figures->other;
    offer_entries(receiver, work);
    other = figures->other - other;
    work->result.other = other < work->result.accepted ? other : work->result.accepted;
    work->result.accepted -= work->result.other;
    // What another culprit passed on was right there: it is not to send it again.
    if (!work->frames && work->result.accepted == 0 && work->result.other == 0 &&
        work->result.rejected > 0)
        work->result.status = 400;
    if (work->key != NULL)
        keep_key(receiver, work, number, stored);
}

static struct slice first_record(const struct http_work *work) {
    return work->count == 0 ? SLICE("") : (struct slice){work->items[0].data, work->items[0].size};
}

// Only what waits for the disk is bounded by job: without a journal a request is gone when it is
// answered.
static bool may_take(struct http_receiver *receiver, uint32_t share) {
    if (!receiver->journaling)
        return true;
    http_shares_settle(&receiver->shares, storage_durable(receiver->store));
    return http_share_is_open(&receiver->shares, share, storage_room(receiver->store));
}

static void count_share(struct http_receiver *receiver, const struct http_work *work,
                        uint32_t share) {
    if (receiver->journaling)
        http_share_add(&receiver->shares, share, work->rows_size, work->ticket);
}

void http_intake(struct http_receiver *receiver, struct http_work *work, struct http_fault *fault) {
    uint32_t retry_after_s = 1;
    uint32_t share = http_share_of(&receiver->shares, first_record(work));
    // What needs no turn. Of frames those that were taken before are known only under the lock.
    // Whether there is a journal is known once the restart is over.
    if (atomic_load(&receiver->feed) != NULL && !atomic_load(&receiver->restoring) &&
        !work->frames) {
        http_foresee(receiver, work);
        if (receiver->journaling)
            http_journal_pack(work);
    }
    lock_take(&receiver->lock);
    const struct repeat *repeat =
        work->key == NULL ? NULL : repeats_find(&receiver->repeats, work->key);
    if (repeat != NULL) {
        work->repeated = true;
        work->result = repeat->result;
        work->ticket = repeat->ticket;
    } else if (http_is_blocked(receiver, &retry_after_s)) {
        fault->retry_after_s = retry_after_s;
        http_fault_set(fault, 503, "busy", "Nothing can be taken right now: try again later.");
    } else if (!may_take(receiver, share)) {
        fault->retry_after_s = 1;
        http_fault_set(fault, 429, "too_many_requests",
                       "More of this job waits for the disk than there is room left for other "
                       "jobs: try again later.");
    } else {
        take(receiver, work);
        count_share(receiver, work, share);
    }
    lock_release(&receiver->lock);
}
