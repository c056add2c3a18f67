// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sender.h"

#include "base/clock.h"
#include "base/log.h"

static const uint64_t FIRST_BACKOFF_NS = 250 * UINT64_C(1000000);
static const uint64_t MAX_BACKOFF_NS = 30 * UINT64_C(1000000000);

void sender_init(struct sender *sender, const struct plan_component *component, void *instance,
                 const char *site, bool once, const atomic_bool *stopping) {
    *sender = (struct sender){.component = component,
                              .instance = instance,
                              .site = site,
                              .once = once,
                              .stopping = stopping};
    pthread_mutex_init(&sender->lock, NULL);
    buffer_init(&sender->queue, SENDER_QUEUE_BYTES);
}

void sender_release(struct sender *sender) {
    buffer_release(&sender->queue);
    pthread_mutex_destroy(&sender->lock);
}

static void give_up(struct sender *sender, enum status status, const struct error *error) {
    sender->dead = true;
    sender->failure = status;
    sender->error = *error;
    sender->dropped_bytes += sender->queue.size;
    buffer_reset(&sender->queue);
    if (status != STATUS_STOPPED)
        log_write(LOG_ERROR, (struct log_site){"C3001", sender->site}, "cannot deliver: %s",
                  error->message);
}

// One attempt. True when the sink took it, or will never take anything again.
static bool attempt(struct sender *sender, const struct request *request) {
    struct error error = {0};
    struct send_outcome outcome = {0};
    const struct exporter_calls *calls = &sender->component->type->exporter;
    enum status status = calls->send(sender->instance, request, &outcome, &error);
    if (status == STATUS_OK) {
        sender->backoff_ns = 0;
        sender->retry_at_ns = 0;
        return true;
    }
    if (outcome.permanent) {
        give_up(sender, status, &error);
        return true;
    }
    sender->error = error;
    sender->failure = status;
    sender->backoff_ns = sender->backoff_ns == 0 ? FIRST_BACKOFF_NS : sender->backoff_ns * 2;
    if (sender->backoff_ns > MAX_BACKOFF_NS)
        sender->backoff_ns = MAX_BACKOFF_NS;
    sender->retry_at_ns = clock_monotonic_ns() + sender->backoff_ns;
    log_write(LOG_WARN, (struct log_site){"C3002", sender->site},
              "cannot deliver now, will try again: %s", error.message);
    return false;
}

static bool deliver_queue(struct sender *sender) {
    if (sender->queue.size == 0)
        return true;
    struct request request = {.bytes = buffer_slice(&sender->queue), .complete = true};
    if (!attempt(sender, &request))
        return false;
    buffer_reset(&sender->queue);
    return true;
}

static void wait_for_retry(const struct sender *sender) {
    uint64_t now = clock_monotonic_ns();
    if (sender->retry_at_ns > now)
        clock_sleep_ns(sender->retry_at_ns - now < FIRST_BACKOFF_NS ? sender->retry_at_ns - now
                                                                    : FIRST_BACKOFF_NS);
}

// A piece of a document on its way out; tried until it is taken or the service stops.
static bool drain_piece(void *context, struct slice bytes) {
    struct sender *sender = context;
    struct request request = {.bytes = bytes};
    while (!sender->dead && !attempt(sender, &request)) {
        if (atomic_load(sender->stopping)) {
            give_up(sender, sender->failure, &sender->error);
            break;
        }
        wait_for_retry(sender);
    }
    return !sender->dead;
}

static void consume_in_pieces(struct sender *sender, const struct batch *batch) {
    struct buffer out;
    buffer_init_drained(&out, SENDER_PIECE_BYTES, drain_piece, sender);
    sender->component->type->exporter.encode(sender->instance, batch, &out);
    if (!buffer_finish(&out) && !sender->dead) {
        struct error error;
        enum status status = error_set(&error, STATUS_BUG, "a piece could not be buffered");
        give_up(sender, status, &error);
    }
    buffer_release(&out);
}

// Appends to the queue; false when it does not fit, the queue is then as before.
static bool encode_into_queue(struct sender *sender, const struct batch *batch) {
    size_t before = sender->queue.size;
    sender->component->type->exporter.encode(sender->instance, batch, &sender->queue);
    if (!sender->queue.failed)
        return true;
    sender->queue.failed = false;
    sender->queue.size = before;
    return false;
}

static void consume_into_queue(struct sender *sender, const struct batch *batch) {
    while (!encode_into_queue(sender, batch)) {
        if (sender->queue.size == 0) {
            struct error error;
            enum status status =
                error_set(&error, STATUS_LIMIT, "one batch encodes to more than the queue's %d MiB",
                          SENDER_QUEUE_BYTES >> 20);
            give_up(sender, status, &error);
            return;
        }
        // Full: the pipeline waits here, which holds up its receivers.
        while (!deliver_queue(sender)) {
            if (atomic_load(sender->stopping))
                return;
            wait_for_retry(sender);
        }
    }
    if (clock_monotonic_ns() >= sender->retry_at_ns)
        (void)deliver_queue(sender);
}

void sender_consume(struct sender *sender, const struct batch *batch) {
    pthread_mutex_lock(&sender->lock);
    if (!sender->dead && sender->once)
        consume_in_pieces(sender, batch);
    else if (!sender->dead)
        consume_into_queue(sender, batch);
    pthread_mutex_unlock(&sender->lock);
}

void sender_tick(struct sender *sender) {
    pthread_mutex_lock(&sender->lock);
    if (!sender->dead && sender->queue.size > 0 && clock_monotonic_ns() >= sender->retry_at_ns)
        (void)deliver_queue(sender);
    pthread_mutex_unlock(&sender->lock);
}

enum status sender_finish(struct sender *sender, uint64_t budget_ns, struct error *error) {
    uint64_t deadline = clock_monotonic_ns() + budget_ns;
    struct request request = {
        .bytes = buffer_slice(&sender->queue), .complete = true, .last = true};
    pthread_mutex_lock(&sender->lock);
    bool done = sender->dead || attempt(sender, &request);
    while (!done && clock_monotonic_ns() < deadline) {
        wait_for_retry(sender);
        done = attempt(sender, &request);
    }
    pthread_mutex_unlock(&sender->lock);
    if (done && !sender->dead)
        return STATUS_OK;
    if (sender->dead && sender->failure == STATUS_STOPPED)
        return STATUS_OK; // the reader went away: nothing is owed to it
    return error_set(error, sender->failure, "%s: %s (%zu bytes were not delivered)", sender->site,
                     sender->error.message, (size_t)sender->dropped_bytes + sender->queue.size);
}
