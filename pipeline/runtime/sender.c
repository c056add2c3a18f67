// SPDX-License-Identifier: Apache-2.0
// What leaves next, and when?
//
// The thread sleeps until the first block may leave: it is closed, its checkpoint is durable (when
// that is asked for), and the wait after a failure (sender_retry.c) is over. Encoding costs one
// lock; buffers of delivered blocks are used again.
#include "pipeline/sender_parts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

enum { DELIVERED_MAX = 1 << 20 }; // what an exporter says of its deliveries

static const uint64_t SECOND_NS = 1000000000;

void sender_init(struct sender *sender, const struct sender_settings *settings, void *instance) {
    const struct exporter_calls *calls = &settings->component->type->exporter;
    const void *config = settings->component->config;
    *sender = (struct sender){
        .component = settings->component,
        .instance = instance,
        .site = settings->site,
        .once = settings->once,
        .config = calls->sending == NULL ? &sending_defaults : calls->sending(config),
        .with_store = settings->with_store,
        .waits = settings->with_store && !settings->once && calls->waits_for_checkpoint != NULL &&
                 calls->waits_for_checkpoint(config),
        .stopping = settings->stopping,
        .wake_checkpoint = settings->wake_checkpoint,
        .wake_context = settings->wake_context,
        .next_sequence = 1,
        .random = clock_monotonic_ns() | 1,
    };
    pthread_mutex_init(&sender->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sender->wake, &attributes);
    pthread_cond_init(&sender->ended_wake, &attributes);
    pthread_condattr_destroy(&attributes);
    buffer_init(&sender->delivered, DELIVERED_MAX);
    buffer_init(&sender->gathered, SENDER_BLOCK_BYTES);
}

void sender_release(struct sender *sender) {
    assert(!sender->running);
    for (uint32_t i = 0; i < sender->block_count; i++)
        buffer_release(&sender_block_at(sender, i)->bytes);
    for (uint32_t i = 0; i < sender->spare_count; i++)
        buffer_release(&sender->spare[i]);
    memory_give(sender->blocks);
    buffer_release(&sender->delivered);
    buffer_release(&sender->gathered);
    pthread_cond_destroy(&sender->wake);
    pthread_cond_destroy(&sender->ended_wake);
    pthread_mutex_destroy(&sender->lock);
}

void sender_lock(struct sender *sender) {
    pthread_mutex_lock(&sender->lock);
}

void sender_unlock(struct sender *sender) {
    pthread_mutex_unlock(&sender->lock);
}

// -- blocks -------------------------------------------------------------------------------------

struct sender_block *sender_block_at(const struct sender *sender, uint32_t index) {
    return &sender->blocks[(sender->block_first + index) % sender->block_capacity];
}

static void grow_ring(struct sender *sender) {
    uint32_t capacity = sender->block_capacity == 0 ? 8 : sender->block_capacity * 2;
    struct sender_block *blocks = memory_take(capacity * sizeof *blocks);
    for (uint32_t i = 0; i < sender->block_count; i++)
        blocks[i] = *sender_block_at(sender, i);
    memory_give(sender->blocks);
    sender->blocks = blocks;
    sender->block_first = 0;
    sender->block_capacity = capacity;
}

static struct sender_block *add_block(struct sender *sender) {
    if (sender->block_count == sender->block_capacity)
        grow_ring(sender);
    struct sender_block *block = sender_block_at(sender, sender->block_count++);
    *block = (struct sender_block){.sequence = sender->next_sequence++,
                                   .begun_ns = clock_monotonic_ns()};
    if (sender->spare_count > 0) {
        block->bytes = sender->spare[--sender->spare_count];
        buffer_reset(&block->bytes);
    } else {
        buffer_init(&block->bytes, SENDER_BLOCK_BYTES);
    }
    return block;
}

static void recount(struct sender *sender, uint64_t queued) {
    atomic_store_explicit(&sender->queued_bytes, queued, memory_order_relaxed);
    atomic_store_explicit(&sender->full, queued >= sender->config->queue.queue_size.bytes,
                          memory_order_relaxed);
}

void sender_drop_first_block(struct sender *sender) {
    struct sender_block *block = sender_block_at(sender, 0);
    recount(sender, atomic_load(&sender->queued_bytes) - block->bytes.size);
    enum { SPARE_BYTES_MAX = 4 << 20 };
    if (sender->spare_count < sizeof sender->spare / sizeof sender->spare[0] &&
        block->bytes.capacity <= SPARE_BYTES_MAX)
        sender->spare[sender->spare_count++] = block->bytes;
    else
        buffer_release(&block->bytes);
    sender->block_first = (sender->block_first + 1) % sender->block_capacity;
    sender->block_count--;
}

static void drop_last_block(struct sender *sender) {
    buffer_release(&sender_block_at(sender, sender->block_count - 1)->bytes);
    sender->block_count--;
    sender->next_sequence--;
}

void sender_close_block(struct sender *sender) {
    if (sender->block_count > 0)
        sender_block_at(sender, sender->block_count - 1)->closed = true;
}

// -- the thread ---------------------------------------------------------------------------------

// Whether this block may leave, as far as its checkpoint goes.
static bool is_free(const struct sender *sender, const struct sender_block *block) {
    return !sender->waits || sender->finishing ||
           (block->ticket != 0 && block->ticket <= sender->durable_ticket);
}

// When the first block may leave: 0 at once, UINT64_MAX not before something happens.
static uint64_t first_leaves_at(struct sender *sender, uint64_t now) {
    if (sender->block_count == 0)
        return sender->finishing && !sender->last_sent ? sender->retry_at_ns : UINT64_MAX;
    struct sender_block *block = sender_block_at(sender, 0);
    if (!block->closed) {
        uint64_t flush_at =
            block->begun_ns + (uint64_t)sender->config->queue.batch.flush_timeout.ns;
        if (flush_at > now && !sender->finishing)
            return flush_at;
        block->closed = true;
    }
    if (!is_free(sender, block)) {
        if (block->ticket == 0)
            sender->wake_checkpoint(sender->wake_context);
        return UINT64_MAX;
    }
    return sender->retry_at_ns;
}

static uint64_t leaves_at(struct sender *sender, uint64_t now) {
    if (sender->dead)
        return UINT64_MAX;
    const struct exporter_calls *calls = &sender->component->type->exporter;
    uint64_t at = first_leaves_at(sender, now);
    if (calls->pace == NULL || sender->finishing)
        return at;
    struct send_pace pace = calls->pace(sender->instance);
    if (pace.again_ns < at)
        at = pace.again_ns;
    if (at < sender->retry_at_ns)
        at = sender->retry_at_ns;
    return at < pace.not_before_ns ? pace.not_before_ns : at;
}

// How many blocks leave with the first one.
static uint32_t leaving_count(struct sender *sender) {
    bool gathers = sender->component->type->exporter.pace != NULL;
    uint64_t bytes = 0;
    uint32_t count = 0;
    for (; count < sender->block_count; count++) {
        struct sender_block *block = sender_block_at(sender, count);
        bytes += block->bytes.size;
        if (!is_free(sender, block) || (count > 0 && (!gathers || bytes > SENDER_BLOCK_BYTES)))
            break;
        block->closed = true;
    }
    return count;
}

// The bytes of the first blocks, put together when they are several.
static struct slice leaving_bytes(struct sender *sender, uint32_t count) {
    if (count == 0)
        return (struct slice){NULL, 0};
    if (count == 1)
        return buffer_slice(&sender_block_at(sender, 0)->bytes);
    buffer_reset(&sender->gathered);
    for (uint32_t i = 0; i < count; i++)
        buffer_append(&sender->gathered, buffer_slice(&sender_block_at(sender, i)->bytes));
    assert(!sender->gathered.failed);
    return buffer_slice(&sender->gathered);
}

// The blocks behind the first `count` that may leave, too.
static uint32_t list_ahead(const struct sender *sender, uint32_t count,
                           struct slice ahead[SENDER_AHEAD_MAX]) {
    size_t room = sender->component->type->exporter.ahead_bytes;
    uint32_t listed = 0;
    for (; listed < SENDER_AHEAD_MAX && count + listed < sender->block_count; listed++) {
        const struct sender_block *block = sender_block_at(sender, count + listed);
        if (!block->closed || !is_free(sender, block) || block->bytes.size > room)
            break;
        room -= block->bytes.size;
        ahead[listed] = buffer_slice(&block->bytes);
    }
    return listed;
}

// The first `count` blocks. At a halt nothing new is begun with.
static struct request next_request(struct sender *sender, uint32_t count,
                                   struct slice ahead[SENDER_AHEAD_MAX]) {
    struct request request = {
        .complete = true, .bytes = leaving_bytes(sender, count), .ahead = ahead};
    if (!sender->quitting)
        sender->begun = request.ahead_count = list_ahead(sender, count, ahead);
    else if (sender->begun > 0)
        sender->begun--;
    return request;
}

// One delivery, without the lock; blocks are nobody else's while they are closed.
static void deliver(struct sender *sender) {
    uint32_t count = leaving_count(sender);
    struct slice ahead[SENDER_AHEAD_MAX];
    struct request request = next_request(sender, count, ahead);
    uint64_t records = 0;
    for (uint32_t i = 0; i < count; i++)
        records += sender_block_at(sender, i)->records;
    request.last = sender->finishing && sender->block_count == count;
    const struct exporter_calls *calls = &sender->component->type->exporter;
    struct send_outcome outcome = {0};
    struct error error = {0};
    struct buffer delivered;
    buffer_init(&delivered, DELIVERED_MAX);
    atomic_store_explicit(&sender->in_flight, 1, memory_order_relaxed);
    pthread_mutex_unlock(&sender->lock);
    enum status status = calls->send(sender->instance, &request, &outcome, &error);
    if (status == STATUS_OK && calls->delivered != NULL)
        calls->delivered(sender->instance, &delivered);
    pthread_mutex_lock(&sender->lock);
    atomic_store_explicit(&sender->in_flight, 0, memory_order_relaxed);
    if (status == STATUS_OK) {
        sender_note_success(sender);
        struct buffer old = sender->delivered;
        sender->delivered = delivered;
        delivered = old;
        atomic_fetch_add_explicit(&sender->sent_records, records, memory_order_relaxed);
        sender->last_sent = request.last;
    } else {
        sender->begun = 0;
        atomic_fetch_add_explicit(&sender->failed_records, records, memory_order_relaxed);
        if (sender_note_failure(sender, status, &error, &outcome, records) == DROP_IT) {
            if (sender->finishing) {
                sender->lost_bytes += request.bytes.size;
                sender->lost_records += records;
            }
            atomic_fetch_add_explicit(&sender->dropped_records, records, memory_order_relaxed);
            status = STATUS_OK;
            sender->last_sent = request.last;
        }
    }
    buffer_release(&delivered);
    for (uint32_t i = 0; i < count && status == STATUS_OK && sender->block_count > 0; i++) {
        sender->delivered_sequence = sender_block_at(sender, 0)->sequence;
        sender_drop_first_block(sender);
    }
}

static void wait_until(struct sender *sender, uint64_t until_ns) {
    if (until_ns == UINT64_MAX) {
        pthread_cond_wait(&sender->wake, &sender->lock);
        return;
    }
    struct timespec at = {.tv_sec = (time_t)(until_ns / SECOND_NS),
                          .tv_nsec = (long)(until_ns % SECOND_NS)};
    pthread_cond_timedwait(&sender->wake, &sender->lock, &at);
}

static bool is_done(const struct sender *sender, uint64_t now) {
    if (sender->quitting)
        return sender->begun == 0;
    return sender->finishing && (sender->dead || now >= sender->finish_ns ||
                                 (sender->block_count == 0 && sender->last_sent));
}

static void *sender_thread(void *argument) {
    struct sender *sender = argument;
    thread_name("out", sender->component->id);
    pthread_mutex_lock(&sender->lock);
    for (;;) {
        uint64_t now = clock_monotonic_ns();
        if (is_done(sender, now))
            break;
        uint64_t at = leaves_at(sender, now);
        if (at <= now) {
            deliver(sender);
            continue;
        }
        if (sender->finishing && sender->finish_ns < at)
            at = sender->finish_ns;
        wait_until(sender, at);
    }
    sender->ended = true;
    pthread_cond_signal(&sender->ended_wake);
    pthread_mutex_unlock(&sender->lock);
    return NULL;
}

void sender_note_place(struct sender *sender) {
    const struct exporter_calls *calls = &sender->component->type->exporter;
    if (calls->delivered != NULL && sender->delivered.size == 0)
        calls->delivered(sender->instance, &sender->delivered);
}

enum status sender_start(struct sender *sender, struct error *error) {
    const struct exporter_calls *calls = &sender->component->type->exporter;
    if (sender->once || calls->send == NULL)
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
    if (!sender->running)
        return;
    pthread_mutex_lock(&sender->lock);
    sender->quitting = true;
    pthread_cond_signal(&sender->wake);
    pthread_mutex_unlock(&sender->lock);
    join(sender);
}

void sender_durable(struct sender *sender, uint64_t ticket) {
    pthread_mutex_lock(&sender->lock);
    if (ticket > sender->durable_ticket)
        sender->durable_ticket = ticket;
    if (sender->waits)
        pthread_cond_signal(&sender->wake);
    pthread_mutex_unlock(&sender->lock);
}

// -- encoding -----------------------------------------------------------------------------------

static uint64_t batch_records(const struct sender *sender, const struct batch *batch) {
    const struct exporter_calls *calls = &sender->component->type->exporter;
    if (calls->takes_events == NULL || !calls->takes_events(sender->component->config))
        return batch->verdicts.count;
    uint64_t records = 0;
    for (uint32_t i = 0; i < batch->event_count; i++)
        records += batch_selects(batch, i);
    return records;
}

static void consume_into_queue(struct sender *sender, const struct batch *batch) {
    struct sender_block *block =
        sender->block_count == 0 ? NULL : sender_block_at(sender, sender->block_count - 1);
    bool is_new = block == NULL || block->closed;
    if (is_new)
        block = add_block(sender);
    size_t before = block->bytes.size;
    sender->component->type->exporter.encode(sender->instance, batch, &block->bytes);
    if (block->bytes.failed) {
        block->bytes.failed = false;
        block->bytes.size = before;
        block->closed = before > 0;
        atomic_fetch_add(&sender->dropped_records, batch_records(sender, batch));
        log_write(LOG_ERROR, (struct log_site){"C3005", sender->site},
                  "what one batch holds encodes to more than %d MiB and is dropped",
                  SENDER_BLOCK_BYTES >> 20);
    }
    size_t added = block->bytes.size - before;
    if (added == 0) {
        if (is_new)
            drop_last_block(sender);
        return;
    }
    block->records += batch_records(sender, batch);
    if (batch->evaluate || block->bytes.size >= sender->config->queue.batch.max_size.bytes)
        block->closed = true;
    recount(sender, atomic_load(&sender->queued_bytes) + added);
    if (block->closed || is_new)
        pthread_cond_signal(&sender->wake);
}

// -- inputs that end ----------------------------------------------------------------------------

// Whether it was taken, or never will be: the sender is dead then. What is dropped here is a part
// of a document, and without it the rest is of no use.
static bool attempt(struct sender *sender, const struct request *request, uint64_t records) {
    struct error error = {0};
    struct send_outcome outcome = {0};
    const struct exporter_calls *calls = &sender->component->type->exporter;
    enum status status =
        calls->send == NULL ? STATUS_OK : calls->send(sender->instance, request, &outcome, &error);
    if (status == STATUS_OK) {
        sender_note_success(sender);
        return true;
    }
    enum after_failure then = sender_note_failure(sender, status, &error, &outcome, records);
    if (then == DROP_IT)
        sender_abandon(sender, status, &error);
    return then != TRY_AGAIN;
}

// False when somebody asks to stop meanwhile or, with a deadline, when that is sooner.
static bool wait_for_retry(const struct sender *sender, uint64_t deadline_ns) {
    enum { LOOK_NS = 100 * 1000 * 1000 };
    for (uint64_t now; (now = clock_monotonic_ns()) < sender->retry_at_ns;) {
        uint64_t left = sender->retry_at_ns - now;
        if (deadline_ns != 0 ? sender->retry_at_ns >= deadline_ns : atomic_load(sender->stopping))
            return false;
        clock_sleep_ns(left < LOOK_NS ? left : LOOK_NS);
    }
    return deadline_ns != 0 || !atomic_load(sender->stopping);
}

struct piece {
    struct sender *sender;
    uint64_t records; // of the batch it is a part of
};

// Tried until it is taken, is over, or the service stops.
static bool drain(struct sender *sender, const struct request *request, uint64_t records) {
    while (!sender->dead && !attempt(sender, request, records))
        if (!wait_for_retry(sender, 0))
            sender_give_up(sender, sender->failure, &sender->error);
    return !sender->dead;
}

// A piece of a document on its way out. Behind one that was not taken the others are only counted.
static bool drain_piece(void *context, struct slice bytes) {
    const struct piece *piece = context;
    struct sender *sender = piece->sender;
    if (!drain(sender, &(struct request){.bytes = bytes}, piece->records))
        sender->lost_bytes += bytes.size;
    return !sender->dead || sender->failure != STATUS_STOPPED;
}

// Delivers the first blocks until no more than `left` bytes wait, which the exporter has begun
// with.
static void drain_blocks(struct sender *sender, uint64_t left) {
    while (!sender->dead && sender->block_count > 0 && atomic_load(&sender->queued_bytes) > left) {
        struct slice ahead[SENDER_AHEAD_MAX];
        uint32_t count = leaving_count(sender);
        struct request request = next_request(sender, count, ahead);
        if (drain(sender, &request, sender_block_at(sender, 0)->records))
            sender_drop_first_block(sender);
    }
}

static void consume_in_pieces(struct sender *sender, const struct batch *batch) {
    struct buffer out;
    struct piece piece = {sender, batch_records(sender, batch)};
    buffer_init_drained(&out, SENDER_PIECE_BYTES, drain_piece, &piece);
    sender->component->type->exporter.encode(sender->instance, batch, &out);
    if (!buffer_finish(&out) && !sender->dead) {
        struct error error;
        enum status status = error_set(&error, STATUS_BUG, "a piece could not be buffered");
        sender_give_up(sender, status, &error);
    }
    if (sender->dead) {
        sender->lost_records += piece.records;
        atomic_fetch_add(&sender->dropped_records, piece.records);
    }
    buffer_release(&out);
}

// For a sink that is dead: how many bytes it would be nobody knows.
static void consume_for_nothing(struct sender *sender, uint64_t records) {
    sender->lost_records += records;
    sender->lost_uncounted |= records > 0;
    atomic_fetch_add(&sender->dropped_records, records);
}

void sender_consume(struct sender *sender, const struct batch *batch) {
    pthread_mutex_lock(&sender->lock);
    const struct exporter_calls *calls = &sender->component->type->exporter;
    if (sender->dead) {
        consume_for_nothing(sender, batch_records(sender, batch));
    } else if (sender->once && calls->pace == NULL && calls->ahead_bytes == 0) {
        consume_in_pieces(sender, batch);
    } else {
        consume_into_queue(sender, batch);
        if (sender->once && calls->pace == NULL)
            drain_blocks(sender, calls->ahead_bytes);
    }
    pthread_mutex_unlock(&sender->lock);
}

// -- the end ------------------------------------------------------------------------------------

// What was kept for one request is tried until somebody asks to stop; a mere end has a deadline.
static enum status finish_once(struct sender *sender, uint64_t deadline_ns) {
    sender->finishing = true;
    if (sender->component->type->exporter.ahead_bytes > 0)
        drain_blocks(sender, 0);
    uint32_t count = leaving_count(sender);
    struct request request = {
        .complete = true, .last = true, .bytes = leaving_bytes(sender, count)};
    uint64_t records = 0;
    for (uint32_t i = 0; i < count; i++)
        records += sender_block_at(sender, i)->records;
    if (request.bytes.size > 0)
        deadline_ns = 0;
    bool done = sender->dead || attempt(sender, &request, records);
    while (!done && wait_for_retry(sender, deadline_ns))
        done = attempt(sender, &request, records);
    if (!done || sender->dead)
        return sender->failure;
    while (sender->block_count > 0)
        sender_drop_first_block(sender);
    return STATUS_OK;
}

void sender_finish_begin(struct sender *sender, uint64_t deadline_ns) {
    if (!sender->running)
        return;
    pthread_mutex_lock(&sender->lock);
    sender->finishing = true;
    sender->finish_ns = deadline_ns;
    sender_close_block(sender);
    pthread_cond_signal(&sender->wake);
    pthread_mutex_unlock(&sender->lock);
}

// A delivery that does not end cannot be taken away from its thread; it is not waited for.
static enum status finish_thread(struct sender *sender, uint64_t deadline_ns) {
    sender_finish_begin(sender, deadline_ns);
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / SECOND_NS),
                             .tv_nsec = (long)(deadline_ns % SECOND_NS)};
    int failure = 0;
    pthread_mutex_lock(&sender->lock);
    while (!sender->ended && failure == 0)
        failure = pthread_cond_timedwait(&sender->ended_wake, &sender->lock, &until);
    while (!sender->ended && atomic_load(&sender->in_flight) == 0)
        pthread_cond_wait(&sender->ended_wake, &sender->lock); // it is on its way
    sender->stuck = !sender->ended;
    bool all = sender->block_count == 0 && sender->last_sent && !sender->dead &&
               sender->lost_records == 0 && sender->lost_bytes == 0;
    enum status status = all                            ? STATUS_OK
                         : sender->failure != STATUS_OK ? sender->failure
                                                        : STATUS_IO;
    pthread_mutex_unlock(&sender->lock);
    if (!sender->stuck)
        join(sender);
    return status;
}

// "exporter/json: no space left; 4 records (812 bytes) were not delivered"
static enum status error_set_left(const struct sender *sender, enum status status,
                                  struct error *error) {
    uint64_t bytes = atomic_load(&sender->queued_bytes) + sender->lost_bytes;
    uint64_t records = sender->lost_records;
    char text[96];
    for (uint32_t i = 0; i < sender->block_count; i++)
        records += sender_block_at(sender, i)->records;
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
    if (!sender->once && !sender->running)
        return STATUS_OK;
    enum status status =
        sender->once ? finish_once(sender, deadline_ns) : finish_thread(sender, deadline_ns);
    if (status == STATUS_OK)
        return STATUS_OK;
    if (sender->dead && sender->failure == STATUS_STOPPED)
        return STATUS_OK; // the reader went away: nothing is owed to it
    pthread_mutex_lock(&sender->lock);
    status = error_set_left(sender, status, error);
    pthread_mutex_unlock(&sender->lock);
    return status;
}

// -- going on -----------------------------------------------------------------------------------

enum status sender_resume(struct sender *sender, uint64_t next_sequence,
                          uint64_t delivered_sequence, struct slice delivered,
                          struct error *error) {
    const struct exporter_calls *calls = &sender->component->type->exporter;
    sender->next_sequence = next_sequence;
    sender->delivered_sequence = delivered_sequence;
    sender->persisted_from = delivered_sequence + 1;
    buffer_append(&sender->delivered, delivered);
    struct error inner = {0};
    enum status status = STATUS_OK;
    if (calls->resume != NULL && delivered.size > 0)
        status = calls->resume(sender->instance, delivered, &inner);
    if (status != STATUS_OK)
        return error_set(error, status, "%s: %s", sender->site, inner.message);
    return STATUS_OK;
}

void sender_restore_block(struct sender *sender, uint64_t sequence, struct slice bytes,
                          uint64_t records) {
    uint64_t next = sender->next_sequence;
    struct sender_block *block = add_block(sender);
    sender->next_sequence = next;
    block->sequence = sequence;
    block->closed = true;
    block->records = records;
    block->ticket = 1; // durable already
    sender->durable_ticket = sender->durable_ticket < 1 ? 1 : sender->durable_ticket;
    buffer_append(&block->bytes, bytes);
    recount(sender, atomic_load(&sender->queued_bytes) + bytes.size);
}
