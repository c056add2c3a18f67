// SPDX-License-Identifier: Apache-2.0
// Between the pipelines and one exporter: encodes on the pipeline's thread, keeps what waits, and
// delivers on a thread of its own, with repetition.
//
// What waits stands in blocks, in order, each numbered. Blocks up to queue_size bytes may wait; a
// batch that comes on top is still taken, but then the sender is full, and receivers of the
// pipelines that feed it stop reading until it is not. With a store the blocks are part of the
// checkpoint, with how far delivery had come: after a crash both are there again.
//
// With inputs that end there is no thread: long documents leave piece by piece, so that they never
// stand in memory whole. What an exporter begins with ahead is kept in blocks there, too, up to
// that many bytes.
#pragma once

#include "pipeline/plan/plan.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SENDER_PIECE_BYTES = 256 << 10,
    SENDER_BLOCK_BYTES = 256 << 20,
    SENDER_AHEAD_MAX = 64, // blocks
};

struct sender_block {
    uint64_t sequence; // from 1
    struct buffer bytes;
    uint64_t begun_ns; // monotonic
    uint64_t ticket;   // of the checkpoint that holds it; 0: none yet
    uint64_t records;  // verdicts or events
    bool closed;       // nothing is added any more
};

struct sender {
    const struct plan_component *component;
    void *instance;
    const char *site; // "exporter/json"
    bool once;
    const struct sending_config *config;
    bool with_store;
    bool waits; // nothing leaves before the checkpoint that holds it
    const atomic_bool *stopping;
    void (*wake_checkpoint)(void *context); // a block waits for one
    void *wake_context;

    pthread_mutex_t lock; // guards what follows
    pthread_cond_t wake;
    pthread_t thread;
    bool running;
    pthread_cond_t ended_wake; // the thread has ended
    bool ended;
    bool stuck; // its last delivery did not end in time: it cannot be released
    bool quitting;
    bool finishing;     // nothing more comes: closes what is open and ends when all is delivered
    uint64_t finish_ns; // … or at this moment
    bool last_sent;
    uint32_t begun;              // blocks behind the delivered ones that the exporter was shown
    struct sender_block *blocks; // a ring
    uint32_t block_first, block_count, block_capacity;
    struct buffer spare[4]; // buffers of delivered blocks, to be used again
    uint32_t spare_count;
    uint64_t next_sequence;
    uint64_t delivered_sequence;
    struct buffer gathered;  // blocks that leave together
    struct buffer delivered; // what the exporter said after that delivery
    uint64_t persisted_from; // lowest sequence that the store may hold
    uint64_t durable_ticket; // checkpoints up to this one are durable
    uint64_t retry_at_ns;    // monotonic; 0: at once
    uint64_t
        asked_until_ns; // the sink asked for nothing before this moment (monotonic); 0: it did not
    uint64_t backoff_ns;
    uint64_t failing_since_ns; // 0: it works
    uint64_t random;
    bool dead;                         // failed for good: what comes is dropped and counted
    uint64_t lost_records, lost_bytes; // dropped since it is dead, or at the end
    bool lost_uncounted;               // of some of them the bytes are not known
    enum status failure;               // the last one
    struct error error;

    atomic_bool full;
    atomic_uint_fast64_t queued_bytes;
    atomic_uint_fast64_t in_flight;
    atomic_uint_fast64_t sent_records, failed_records, dropped_records;
};

struct sender_settings {
    const struct plan_component *component;
    const char *site;
    bool once;
    bool with_store;
    const atomic_bool *stopping;
    void (*wake_checkpoint)(void *context);
    void *wake_context;
};

void sender_init(struct sender *sender, const struct sender_settings *settings, void *instance);
// Where the sink stands before the first delivery, unless sender_resume said it: what goes out
// before the next checkpoint and comes again after a crash is told by it. Before any checkpoint.
void sender_note_place(struct sender *sender);
// Starts its thread; nothing with inputs that end, or when there is nothing to deliver.
enum status sender_start(struct sender *sender, struct error *error) MUST_USE;
// Ends its thread after the deliveries under way; what waits stays.
void sender_halt(struct sender *sender);
void sender_release(struct sender *sender);

// Encodes the batch and sees to its delivery. One pipeline at a time, by its own lock.
void sender_consume(struct sender *sender, const struct batch *batch);
// Any thread, no lock.
static inline bool sender_is_full(const struct sender *sender) {
    return atomic_load_explicit(&sender->full, memory_order_relaxed);
}

// Nothing more comes: what waits and the last request leave until `deadline_ns` (monotonic). Called
// for all senders before the first sender_finish, so that none takes the time of the others.
void sender_finish_begin(struct sender *sender, uint64_t deadline_ns);
// Waits for that. Anything that was not delivered is an error that says how much; blocks that wait
// stay, for a store.
enum status sender_finish(struct sender *sender, uint64_t deadline_ns,
                          struct error *error) MUST_USE;

// For checkpoints, under the sender's lock (sender_lock): closes the open block.
void sender_lock(struct sender *sender);
void sender_unlock(struct sender *sender);
void sender_close_block(struct sender *sender);
// The block that stands at `index` among those that wait, in order.
struct sender_block *sender_block_at(const struct sender *sender, uint32_t index);
// Puts back what a checkpoint held, before the thread starts: delivery as far as it had come, then
// each block in order.
enum status sender_resume(struct sender *sender, uint64_t next_sequence,
                          uint64_t delivered_sequence, struct slice delivered,
                          struct error *error) MUST_USE;
void sender_restore_block(struct sender *sender, uint64_t sequence, struct slice bytes,
                          uint64_t records);
// The wall clock's moment before which the sink asked for nothing, for a checkpoint; 0 when it did
// not. Under its lock.
uint64_t sender_asked_until_unix_ns(const struct sender *sender);
// The same after a start: nothing leaves before it, nor longer than max_interval from now.
void sender_hold_until(struct sender *sender, uint64_t unix_ns);
// Checkpoints up to `ticket` are durable. Any thread.
void sender_durable(struct sender *sender, uint64_t ticket);
