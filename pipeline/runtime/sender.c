// SPDX-License-Identifier: Apache-2.0
// The thread sleeps until the first block may leave (sender_delivery.c). Encoding costs one lock.
#include "pipeline/runtime/sender.h"

#include "base/clock.h"
#include "base/log.h"
#include "pipeline/component/component.h"
#include "pipeline/model/batch.h"

#include <assert.h>
#include <stdio.h>

void sender_init(struct sender *sender) {
    assert(sender->component != NULL && sender->site != NULL && !sender->running);
    const struct exporter_calls *calls = &sender->component->type->exporter;
    const void *config = sender->component->config;
    sender->magic = SENDER_MAGIC;
    sender->calls = calls;
    sender->config = calls->sending == NULL ? &sending_defaults : calls->sending(config);
    sender_route_init(&sender->route, calls->route == NULL ? NULL : calls->route(config),
                      sender->component->id, sender->site);
    // What several pipelines' verdicts hold back of one another depends on who came first.
    bool races = (sender->shared && sender->route.remembers) ||
                 (calls->waits_for_checkpoint != NULL && calls->waits_for_checkpoint(config));
    sender->waits = sender->with_store && !sender->once && races;
    lock_init(&sender->lock);
    cond_init(&sender->wake);
    cond_init(&sender->ended_wake);
    block_queue_init(&sender->queue, calls->lines);
    retry_init(&sender->retry, &sender->config->retry, sender->patience_ns);
    buffer_init(&sender->delivered, SENDER_DELIVERED_MAX);
}

void sender_release(struct sender *sender) {
    assert(sender->magic == SENDER_MAGIC);
    assert(!sender->running);
    sender_route_release(&sender->route);
    block_queue_release(&sender->queue);
    buffer_release(&sender->delivered);
    pthread_cond_destroy(&sender->wake);
    pthread_cond_destroy(&sender->ended_wake);
    lock_destroy(&sender->lock);
}

// -- the thread ---------------------------------------------------------------------------------

static bool is_done(const struct sender *sender, uint64_t now) {
    assert(lock_is_held(&sender->lock));
    if (sender->quitting)
        return sender->begun == 0;
    return sender->finishing && (sender->dead || now >= sender->finish_ns ||
                                 (sender->queue.count == 0 && sender->last_sent));
}

static uint64_t render_due(const struct sender *sender) {
    assert(lock_is_held(&sender->lock));
    const struct render_calls *render = &sender->calls->render;
    return render->due == NULL || sender->dead ? UINT64_MAX : render->due(sender->instance);
}

static void rendered_add(struct sender *sender, struct buffer *bytes) {
    assert(lock_is_held(&sender->lock));
    struct block *block = block_queue_add(&sender->queue);
    struct buffer empty = block->bytes;
    block->bytes = *bytes;
    *bytes = empty;
    block_queue_appended(&sender->queue, block->bytes.size, sender->rendered_records);
    sender->rendered_records = 0;
    block->closed = true;
}

// Makes bytes of what was encoded last. The lock is given up meanwhile.
static void render(struct sender *sender) {
    assert(lock_is_held(&sender->lock));
    const struct render_calls *calls = &sender->calls->render;
    struct buffer bytes;
    block_queue_spare_take(&sender->queue, &bytes);
    calls->begin(sender->instance, sender->quitting);
    sender->rendering = true;
    lock_release(&sender->lock);
    calls->run(sender->instance, &bytes);
    lock_take(&sender->lock);
    sender->rendering = false;
    bool is_wanted = calls->end(sender->instance) && !sender->dead;
    if (bytes.failed && !sender->render_failed)
        log_write(LOG_ERROR, (struct log_site){"C3005", sender->site},
                  "what is to be written is more than %d MiB and is dropped",
                  BLOCK_BYTES_MAX >> 20);
    if (is_wanted && !bytes.failed && bytes.size > 0)
        rendered_add(sender, &bytes);
    sender->render_failed = bytes.failed || (sender->render_failed && bytes.size == 0);
    block_queue_spare_put(&sender->queue, &bytes);
}

// What waits for the sink goes first, so that what is rendered is the newest.
static uint64_t next_render(const struct sender *sender) {
    return sender->queue.count > 0 || sender->finishing ? UINT64_MAX : render_due(sender);
}

static void *sender_thread(void *argument) {
    assert(((const struct sender *)argument)->magic == SENDER_MAGIC);
    struct sender *sender = argument;
    thread_name("out", sender->component->id);
    lock_take(&sender->lock);
    for (uint64_t now; !is_done(sender, now = clock_monotonic_ns());) {
        uint64_t at = delivery_due(sender, now);
        if (at <= now) {
            delivery_do(sender);
            continue;
        }
        uint64_t render_at = next_render(sender);
        if (render_at <= now) {
            render(sender);
            continue;
        }
        at = render_at < at ? render_at : at;
        bool ends_before = sender->finishing && sender->finish_ns < at;
        (void)cond_wait_until(&sender->wake, &sender->lock, ends_before ? sender->finish_ns : at);
    }
    // Who goes on from here finds it among what waits.
    if (sender->quitting && !sender->finishing && render_due(sender) != UINT64_MAX)
        render(sender);
    sender->ended = true;
    pthread_cond_signal(&sender->ended_wake);
    lock_release(&sender->lock);
    return NULL;
}

void sender_note_place(struct sender *sender) {
    assert(sender->magic == SENDER_MAGIC);
    if (sender->calls->delivered != NULL && sender->delivered.size == 0)
        sender->calls->delivered(sender->instance, &sender->delivered);
}

enum status sender_start(struct sender *sender, struct error *error) {
    assert(sender->magic == SENDER_MAGIC);
    assert(!sender->running);
    if (sender->once || sender->calls->send == NULL)
        return STATUS_OK;
    int failure = pthread_create(&sender->thread, NULL, sender_thread, sender);
    if (failure != 0)
        return error_set_os(error, STATUS_OS, failure, "%s: cannot start a thread", sender->site);
    sender->running = true;
    return STATUS_OK;
}

static void join(struct sender *sender) {
    pthread_join(sender->thread, NULL);
    sender->running = false;
}

void sender_halt(struct sender *sender) {
    assert(sender->magic == SENDER_MAGIC);
    if (!sender->running)
        return;
    lock_take(&sender->lock);
    sender->quitting = true;
    pthread_cond_signal(&sender->wake);
    lock_release(&sender->lock);
    join(sender);
}

// -- encoding -----------------------------------------------------------------------------------

static uint64_t batch_records(const struct sender *sender, const struct batch *batch) {
    if (sender->calls->takes_events == NULL ||
        !sender->calls->takes_events(sender->component->config))
        return batch->verdicts.count;
    uint64_t records = 0;
    for (uint32_t i = 0; i < batch->event_count; i++)
        records += batch_selects(batch, i);
    return records;
}

// A batch that encodes to too much: what it began with is taken back.
static void drop_encoded(struct sender *sender, struct block *block, size_t before,
                         uint64_t records) {
    block->bytes.failed = false;
    block->bytes.size = before;
    block->closed = before > 0;
    atomic_fetch_add(&sender->dropped_records, records);
    log_write(LOG_ERROR, (struct log_site){"C3005", sender->site},
              "what one batch holds encodes to more than %d MiB and is dropped",
              BLOCK_BYTES_MAX >> 20);
}

static void consume_into_queue(struct sender *sender, const struct batch *batch) {
    assert(lock_is_held(&sender->lock));
    struct block *block = block_queue_last(&sender->queue);
    bool is_new = block == NULL || block->closed;
    if (is_new)
        block = block_queue_add(&sender->queue);
    size_t before = block->bytes.size;
    sender->calls->encode(sender->instance, batch, &block->bytes);
    if (block->bytes.failed)
        drop_encoded(sender, block, before, batch_records(sender, batch));
    assert(block->bytes.size >= before);
    if (block->bytes.size == before) {
        if (is_new)
            block_queue_take_back(&sender->queue);
        if (sender->calls->render.due == NULL)
            return;
        sender->rendered_records += batch_records(sender, batch);
        if (render_due(sender) != UINT64_MAX)
            pthread_cond_signal(&sender->wake);
        return;
    }
    block_queue_appended(&sender->queue, block->bytes.size - before,
                         sender->rendered_records + batch_records(sender, batch));
    sender->rendered_records = 0;
    if (batch->evaluate || block->bytes.size >= sender->config->queue.batch.max_size.bytes)
        block->closed = true;
    if (block->closed || is_new)
        pthread_cond_signal(&sender->wake);
}

// -- inputs that end ----------------------------------------------------------------------------

// False when somebody asks to stop meanwhile or, with a deadline, when that is sooner.
static bool wait_for_retry(const struct sender *sender, uint64_t deadline_ns) {
    enum { LOOK_NS = 100 * 1000 * 1000 };
    uint64_t until_ns = sender->retry.at_ns;
    for (uint64_t now; (now = clock_monotonic_ns()) < until_ns;) {
        uint64_t left = until_ns - now;
        if (deadline_ns != 0 ? until_ns >= deadline_ns : atomic_load(sender->stopping))
            return false;
        clock_sleep_ns(left < LOOK_NS ? left : LOOK_NS);
    }
    return until_ns == 0 || deadline_ns != 0 || !atomic_load(sender->stopping);
}

struct piece {
    struct sender *sender;
    uint64_t records; // of the batch it is a part of
};

// Whether all of it was taken, or never will be: the sender is dead then. What is dropped here is a
// part of a document, and without it the rest is of no use.
static bool attempt(struct sender *sender, struct request *request, uint64_t records) {
    assert(records == 0 || request->bytes.data != NULL);
    struct error error = {0};
    struct send_outcome outcome = {0};
    enum status status = sender->calls->send == NULL
                             ? STATUS_OK
                             : sender->calls->send(sender->instance, request, &outcome, &error);
    if (status == STATUS_OK) {
        delivery_succeeded(sender);
        return true;
    }
    assert(outcome.taken <= request->bytes.size);
    request->bytes.data += outcome.taken;
    request->bytes.size -= outcome.taken;
    enum after_failure then = delivery_failed(sender, status, &outcome, &error, records);
    if (then == DROP_IT || then == GO_ON)
        delivery_abandon(sender, status, &error);
    return then != TRY_AGAIN;
}

// A piece of a document on its way out: tried until it is taken, is over, or the service stops.
// Behind one that was not taken the others are only counted.
static bool drain_piece(void *context, struct slice bytes) {
    const struct piece *piece = context;
    struct sender *sender = piece->sender;
    struct request request = {.bytes = bytes};
    while (!sender->dead && !attempt(sender, &request, piece->records))
        if (!wait_for_retry(sender, 0))
            delivery_give_up(sender, sender->failure, &sender->error);
    if (sender->dead)
        sender->lost_bytes += request.bytes.size;
    return !sender->dead || sender->failure != STATUS_STOPPED;
}

static void consume_in_pieces(struct sender *sender, const struct batch *batch) {
    assert(lock_is_held(&sender->lock));
    struct buffer out;
    struct piece piece = {sender, batch_records(sender, batch)};
    buffer_init_drained(&out, SENDER_PIECE_BYTES, drain_piece, &piece);
    sender->calls->encode(sender->instance, batch, &out);
    if (!buffer_finish(&out) && !sender->dead) {
        struct error error;
        enum status status = error_set(&error, STATUS_BUG, "a piece could not be buffered");
        delivery_give_up(sender, status, &error);
    }
    if (sender->dead) {
        sender->lost_records += piece.records;
        atomic_fetch_add(&sender->dropped_records, piece.records);
    }
    buffer_release(&out);
}

// Delivers the first blocks until no more than `left` bytes wait, which the exporter has begun
// with.
static void drain_blocks(struct sender *sender, uint64_t left) {
    assert(lock_is_held(&sender->lock));
    while (!sender->dead && atomic_load(&sender->queue.bytes) > left) {
        delivery_do(sender);
        if (!sender->dead && !wait_for_retry(sender, 0))
            delivery_give_up(sender, sender->failure, &sender->error);
    }
}

// For a sink that is dead: how many bytes it would be nobody knows.
static void consume_for_nothing(struct sender *sender, uint64_t records) {
    assert(lock_is_held(&sender->lock));
    sender->lost_records += records;
    sender->lost_uncounted |= records > 0;
    atomic_fetch_add(&sender->dropped_records, records);
}

void sender_recall(struct sender *sender, struct batch *batch) {
    assert(sender->magic == SENDER_MAGIC);
    if (!batch->evaluate || !sender->route.remembers) // fixed since the start
        return;
    lock_take(&sender->lock);
    sender_route_recall(&sender->route, batch);
    lock_release(&sender->lock);
}

void sender_consume(struct sender *sender, const struct batch *whole) {
    assert(sender->magic == SENDER_MAGIC);
    const struct exporter_calls *calls = sender->calls;
    lock_take(&sender->lock);
    struct batch routed = sender_route_batch(&sender->route, whole);
    const struct batch *batch = &routed;
    if (sender->dead) {
        consume_for_nothing(sender, batch_records(sender, batch));
    } else if (sender->once && calls->pace == NULL && calls->ahead_bytes == 0 && !calls->lines) {
        consume_in_pieces(sender, batch);
    } else {
        consume_into_queue(sender, batch);
        if (sender->once && calls->pace == NULL)
            drain_blocks(sender, calls->ahead_bytes);
    }
    lock_release(&sender->lock);
}

// -- the end ------------------------------------------------------------------------------------

// What was kept for the end is tried until somebody asks to stop; a mere end has a deadline.
static enum status finish_once(struct sender *sender, uint64_t deadline_ns) {
    lock_take(&sender->lock);
    sender->finishing = true;
    while (!sender->dead && !sender->last_sent) {
        bool empty = sender->queue.count == 0;
        delivery_do(sender);
        if (!sender->last_sent && !wait_for_retry(sender, empty ? deadline_ns : 0))
            break;
    }
    enum status status = sender->failure;
    if (status == STATUS_OK && sender->lost_records + sender->lost_bytes > 0)
        status = STATUS_IO;
    lock_release(&sender->lock);
    return status;
}

void sender_finish_begin(struct sender *sender, uint64_t deadline_ns) {
    assert(sender->magic == SENDER_MAGIC);
    if (!sender->running)
        return;
    lock_take(&sender->lock);
    sender->finishing = true;
    sender->finish_ns = deadline_ns;
    sender_close_block(sender);
    pthread_cond_signal(&sender->wake);
    lock_release(&sender->lock);
}

// A delivery that does not end cannot be taken away from its thread; it is not waited for.
static enum status finish_thread(struct sender *sender, uint64_t deadline_ns) {
    sender_finish_begin(sender, deadline_ns);
    lock_take(&sender->lock);
    while (!sender->ended && cond_wait_until(&sender->ended_wake, &sender->lock, deadline_ns))
        continue;
    while (!sender->ended && atomic_load(&sender->in_flight) == 0)
        cond_wait(&sender->ended_wake, &sender->lock); // it is on its way
    sender->stuck = !sender->ended;
    bool all = sender->queue.count == 0 && sender->last_sent && !sender->dead &&
               sender->lost_records == 0 && sender->lost_bytes == 0;
    enum status status = all                            ? STATUS_OK
                         : sender->failure != STATUS_OK ? sender->failure
                                                        : STATUS_IO;
    lock_release(&sender->lock);
    if (!sender->stuck)
        join(sender);
    return status;
}

// "exporter/json: no space left; 4 records (812 bytes) were not delivered"
static enum status error_set_left(const struct sender *sender, enum status status,
                                  struct error *error) {
    assert(lock_is_held(&sender->lock));
    uint64_t bytes = atomic_load(&sender->queue.bytes) + sender->lost_bytes;
    uint64_t records =
        sender->lost_records + block_queue_records(&sender->queue, sender->queue.count);
    char text[96];
    const char *plural = records == 1 ? "" : "s";
    if (records > 0 && bytes > 0 && !sender->lost_uncounted)
        snprintf(text, sizeof text, "%llu record%s (%llu byte%s)", (unsigned long long)records,
                 plural, (unsigned long long)bytes, bytes == 1 ? "" : "s");
    else if (records > 0)
        snprintf(text, sizeof text, "%llu record%s", (unsigned long long)records, plural);
    else if (bytes > 0)
        snprintf(text, sizeof text, "%llu byte%s", (unsigned long long)bytes,
                 bytes == 1 ? "" : "s");
    else
        snprintf(text, sizeof text, "only the closing request");
    const char *why = sender->stuck                      ? "a delivery did not end in time"
                      : sender->error.message[0] == '\0' ? "there was no time for more"
                                                         : sender->error.message;
    bool were = records > 1 || (records == 0 && bytes > 1);
    return error_set(error, status, "%s: %s; %s %s not delivered", sender->site, why, text,
                     were ? "were" : "was");
}

enum status sender_finish(struct sender *sender, uint64_t deadline_ns, struct error *error) {
    assert(sender->magic == SENDER_MAGIC);
    if (!sender->once && !sender->running)
        return STATUS_OK;
    enum status status =
        sender->once ? finish_once(sender, deadline_ns) : finish_thread(sender, deadline_ns);
    if (status == STATUS_OK)
        return STATUS_OK;
    if (sender->once && sender->dead && sender->failure == STATUS_STOPPED)
        return STATUS_OK;         // the reader went away: nothing is owed to it
    if (status == STATUS_STOPPED) // of the sink, not of the service
        status = STATUS_IO;
    lock_take(&sender->lock);
    status = error_set_left(sender, status, error);
    lock_release(&sender->lock);
    return status;
}

// -- checkpoints --------------------------------------------------------------------------------

void sender_close_block(struct sender *sender) {
    assert(sender->magic == SENDER_MAGIC);
    assert(lock_is_held(&sender->lock));
    if (sender->queue.count > 0)
        block_queue_last(&sender->queue)->closed = true;
}

enum status sender_resume(struct sender *sender, uint64_t next_sequence,
                          uint64_t delivered_sequence, struct slice delivered,
                          struct error *error) {
    assert(sender->magic == SENDER_MAGIC);
    assert(!sender->running);
    sender->queue.next_sequence = next_sequence;
    sender->queue.delivered_sequence = delivered_sequence;
    sender->persisted_from = delivered_sequence + 1;
    sender->durable_ticket = 1; // that of restored blocks
    buffer_append(&sender->delivered, delivered);
    struct error inner = {0};
    enum status status = STATUS_OK;
    if (sender->calls->resume != NULL && delivered.size > 0)
        status = sender->calls->resume(sender->instance, delivered, &inner);
    if (status != STATUS_OK)
        return error_set(error, status, "%s: %s", sender->site, inner.message);
    return STATUS_OK;
}

void sender_durable(struct sender *sender, uint64_t ticket) {
    assert(sender->magic == SENDER_MAGIC);
    lock_take(&sender->lock);
    if (ticket > sender->durable_ticket)
        sender->durable_ticket = ticket;
    if (sender->waits)
        pthread_cond_signal(&sender->wake);
    lock_release(&sender->lock);
}
