// SPDX-License-Identifier: Apache-2.0
// A block leaves when it is closed, its checkpoint is durable (when that is asked for), and the
// wait after a failure is over. One rule for all that is delivered, live and over inputs that end:
// what failed is tried again after a wait, dropped, or the sink is dead.
#include "pipeline/runtime/sender_delivery.h"

#include "base/clock.h"
#include "base/log.h"
#include "pipeline/component/component.h"

#include <assert.h>

// -- what may leave -----------------------------------------------------------------------------

// Whether this block may leave, as far as its checkpoint goes.
static bool is_free(const struct sender *sender, const struct block *block) {
    return !sender->waits || sender->finishing ||
           (block->ticket != 0 && block->ticket <= sender->durable_ticket);
}

static uint64_t first_due(struct sender *sender, uint64_t now) {
    if (sender->queue.count == 0)
        return sender->finishing && !sender->last_sent ? sender->retry.at_ns : UINT64_MAX;
    struct block *block = block_queue_at(&sender->queue, 0);
    if (!block->closed) {
        uint64_t flush_ns =
            block->begun_ns + (uint64_t)sender->config->queue.batch.flush_timeout.ns;
        if (flush_ns > now && !sender->finishing)
            return flush_ns;
        block->closed = true;
    }
    if (is_free(sender, block))
        return sender->retry.at_ns;
    if (block->ticket == 0)
        sender->wake_checkpoint(sender->wake_context);
    return UINT64_MAX;
}

uint64_t delivery_due(struct sender *sender, uint64_t now) {
    assert(sender->magic == SENDER_MAGIC);
    assert(lock_is_held(&sender->lock));
    if (sender->dead)
        return UINT64_MAX;
    uint64_t at = first_due(sender, now);
    if (sender->calls->pace == NULL || sender->finishing)
        return at;
    struct send_pace pace = sender->calls->pace(sender->instance);
    if (pace.again_ns < at)
        at = pace.again_ns;
    if (at < sender->retry.at_ns)
        at = sender->retry.at_ns;
    return at < pace.not_before_ns ? pace.not_before_ns : at;
}

// How many blocks leave with the first one.
static uint32_t leaving_count(struct sender *sender) {
    bool gathers = sender->calls->pace != NULL;
    uint64_t bytes = 0;
    uint32_t count = 0;
    for (; count < sender->queue.count; count++) {
        struct block *block = block_queue_at(&sender->queue, count);
        bytes += block->bytes.size;
        if (!is_free(sender, block) || (count > 0 && (!gathers || bytes > BLOCK_BYTES_MAX)))
            break;
        block->closed = true;
    }
    return count;
}

// The blocks behind the first `count` that may leave, too.
static uint32_t list_ahead(const struct sender *sender, uint32_t count,
                           struct slice ahead[SENDER_AHEAD_MAX]) {
    size_t room = sender->calls->ahead_bytes;
    uint32_t listed = 0;
    for (; listed < SENDER_AHEAD_MAX && count + listed < sender->queue.count; listed++) {
        const struct block *block = block_queue_at(&sender->queue, count + listed);
        if (!block->closed || !is_free(sender, block) || block->bytes.size > room)
            break;
        room -= block->bytes.size;
        ahead[listed] = buffer_slice(&block->bytes);
    }
    return listed;
}

// -- failures -----------------------------------------------------------------------------------

void delivery_abandon(struct sender *sender, enum status status, const struct error *error) {
    assert(lock_is_held(&sender->lock));
    assert(status != STATUS_OK);
    uint64_t records = block_queue_records(&sender->queue, sender->queue.count);
    sender->dead = true;
    sender->failure = status;
    sender->error = *error;
    sender->lost_bytes += atomic_load(&sender->queue.bytes);
    sender->lost_records += records;
    atomic_fetch_add(&sender->dropped_records, records);
    block_queue_abandon(&sender->queue);
}

void delivery_give_up(struct sender *sender, enum status status, const struct error *error) {
    delivery_abandon(sender, status, error);
    // Over inputs that end, as with `head`, the reader has enough.
    if (status != STATUS_STOPPED || !sender->once)
        log_write(LOG_ERROR, (struct log_site){"C3001", sender->site}, "cannot deliver: %s",
                  error->message);
}

void delivery_succeeded(struct sender *sender) {
    assert(lock_is_held(&sender->lock));
    if (sender->retry.failing_since_ns != 0)
        log_write(LOG_INFO, (struct log_site){"C3003", sender->site}, "delivers again");
    retry_reset(&sender->retry);
    if (sender->lost_records + sender->lost_bytes > 0)
        return; // why that is lost is told at the end
    sender->error.message[0] = '\0';
    sender->failure = STATUS_OK;
}

enum after_failure delivery_failed(struct sender *sender, enum status status,
                                   const struct send_outcome *outcome, const struct error *error,
                                   uint64_t records) {
    assert(lock_is_held(&sender->lock));
    assert(status != STATUS_OK);
    if (outcome->sink_dead) {
        delivery_give_up(sender, status, error);
        return SINK_IS_DEAD;
    }
    if (outcome->taken > 0 || outcome->refused > 0)
        delivery_succeeded(sender); // the sink answers
    sender->error = *error;
    sender->failure = status;
    if (outcome->refused > 0) {
        log_write(LOG_ERROR, (struct log_site){"C3006", sender->site},
                  "the sink refused a record, which is dropped: %s", error->message);
        return GO_ON;
    }
    uint64_t asked_until_ns = sender->retry.asked_until_ns;
    if (!retry_failed(&sender->retry, outcome->retry_after_ns)) {
        log_write(LOG_ERROR, (struct log_site){"C3004", sender->site},
                  "what could not be delivered is dropped (%llu records): %s",
                  (unsigned long long)records, error->message);
        return DROP_IT;
    }
    // What a sink asked for must be known after a crash, so it is written down at once.
    if (sender->with_store && sender->retry.asked_until_ns != asked_until_ns)
        sender->wake_checkpoint(sender->wake_context);
    log_write(LOG_WARN, (struct log_site){"C3002", sender->site},
              "cannot deliver now, will try again: %s", error->message);
    return TRY_AGAIN;
}

// -- one delivery -------------------------------------------------------------------------------

struct delivery {
    struct request request;
    uint64_t records; // of it
    enum status status;
    struct send_outcome outcome;
    struct error error;
};

// Drops a part, which at the end was owed to somebody.
static void drop_part(struct sender *sender, size_t size, atomic_uint_fast64_t *counter) {
    assert(lock_is_held(&sender->lock));
    uint64_t records = block_queue_pass(&sender->queue, size);
    atomic_fetch_add(counter, records);
    if (!sender->finishing && !sender->once)
        return;
    sender->lost_bytes += size;
    sender->lost_records += records;
}

// What becomes of the parts of a request that was not delivered whole.
static void settle_failure(struct sender *sender, const struct delivery *delivery) {
    assert(lock_is_held(&sender->lock));
    const struct send_outcome *outcome = &delivery->outcome;
    uint64_t taken = block_queue_pass(&sender->queue, outcome->taken);
    uint64_t records = delivery->records - taken;
    sender->begun = 0;
    atomic_fetch_add(&sender->sent_records, taken);
    atomic_fetch_add(&sender->failed_records, records);
    enum after_failure then =
        delivery_failed(sender, delivery->status, outcome, &delivery->error, records);
    if (then == GO_ON) {
        drop_part(sender, outcome->refused, &sender->refused_records);
    } else if (then == DROP_IT && sender->once) {
        delivery_abandon(sender, delivery->status, &delivery->error);
    } else if (then == DROP_IT) {
        drop_part(sender, delivery->request.bytes.size - outcome->taken, &sender->dropped_records);
        sender->last_sent = delivery->request.last;
    }
}

// Calls `send`, without the lock; blocks are nobody else's while they are closed. How far the sink
// says that delivery has come is known with the answer.
static void call_send(struct sender *sender, struct delivery *delivery) {
    assert(lock_is_held(&sender->lock));
    const struct exporter_calls *calls = sender->calls;
    const struct request *request = &delivery->request;
    struct send_outcome *outcome = &delivery->outcome;
    struct buffer delivered;
    buffer_init(&delivered, SENDER_DELIVERED_MAX);
    atomic_store(&sender->in_flight, 1);
    lock_release(&sender->lock);
    if (calls->send != NULL)
        delivery->status = calls->send(sender->instance, request, outcome, &delivery->error);
    assert(outcome->taken <= request->bytes.size);
    assert(outcome->refused <= request->bytes.size - outcome->taken);
    bool came_on =
        calls->delivered != NULL && (delivery->status == STATUS_OK || outcome->taken > 0);
    if (came_on)
        calls->delivered(sender->instance, &delivered);
    lock_take(&sender->lock);
    atomic_store(&sender->in_flight, 0);
    if (came_on) {
        struct buffer old = sender->delivered;
        sender->delivered = delivered;
        delivered = old;
    }
    buffer_release(&delivered);
}

void delivery_do(struct sender *sender) {
    assert(sender->magic == SENDER_MAGIC);
    assert(lock_is_held(&sender->lock));
    assert(!sender->dead);
    uint32_t count = leaving_count(sender);
    struct slice ahead[SENDER_AHEAD_MAX];
    struct delivery delivery = {
        .request = {.bytes = block_queue_bytes(&sender->queue, count),
                    .complete = true,
                    .last = sender->finishing && sender->queue.count == count,
                    .ahead = ahead},
        .records = block_queue_records(&sender->queue, count)};
    // At a halt nothing new is begun with.
    if (!sender->quitting)
        sender->begun = delivery.request.ahead_count = list_ahead(sender, count, ahead);
    else if (sender->begun > 0)
        sender->begun--;
    call_send(sender, &delivery);
    if (delivery.status != STATUS_OK) {
        settle_failure(sender, &delivery);
        return;
    }
    delivery_succeeded(sender);
    block_queue_pass(&sender->queue, delivery.request.bytes.size);
    atomic_fetch_add(&sender->sent_records, delivery.records);
    sender->last_sent = delivery.request.last;
}
