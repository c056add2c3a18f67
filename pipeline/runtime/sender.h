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
// stand in memory whole. Lines, and what an exporter begins with ahead, are kept in blocks there,
// too, the latter up to that many bytes.
#pragma once

#include "pipeline/runtime/sender_delivery.h"

enum { SENDER_PIECE_BYTES = 256 << 10 };

// The caller has filled the members that sender_delivery.h calls its own.
void sender_init(struct sender *sender);
// Where the sink stands before the first delivery, unless sender_resume said it: what goes out
// before the next checkpoint and comes again after a crash is told by it. Before any checkpoint.
void sender_note_place(struct sender *sender);
// Starts its thread; nothing with inputs that end, or when there is nothing to deliver.
enum status sender_start(struct sender *sender, struct error *error) MUST_USE;
// Ends its thread after the deliveries under way; what waits stays.
void sender_halt(struct sender *sender);
void sender_release(struct sender *sender);

// Marks the unchanged verdicts that it is still to be told of (sender_route.h). Before the batch is
// given to any sender.
void sender_recall(struct sender *sender, struct batch *batch);
// Encodes the batch and sees to its delivery. One pipeline at a time, by its own lock.
void sender_consume(struct sender *sender, const struct batch *batch);
// Any thread, no lock.
static inline bool sender_is_full(const struct sender *sender) {
    return atomic_load_explicit(&sender->queue.bytes, memory_order_relaxed) >=
           sender->config->queue.queue_size.bytes;
}

// Nothing more comes: what waits and the last request leave until `deadline_ns` (monotonic). Called
// for all senders before the first sender_finish, so that none takes the time of the others.
void sender_finish_begin(struct sender *sender, uint64_t deadline_ns);
// Waits for that. Anything that was not delivered is an error that says how much; blocks that wait
// stay, for a store.
enum status sender_finish(struct sender *sender, uint64_t deadline_ns,
                          struct error *error) MUST_USE;

// -- checkpoints --
// Closes the open block. Under the sender's lock.
void sender_close_block(struct sender *sender);
// Puts back how far delivery had come, before the thread starts; what waited follows in the queue.
enum status sender_resume(struct sender *sender, uint64_t next_sequence,
                          uint64_t delivered_sequence, struct slice delivered,
                          struct error *error) MUST_USE;
// Checkpoints up to `ticket` are durable. Any thread.
void sender_durable(struct sender *sender, uint64_t ticket);
