// SPDX-License-Identifier: Apache-2.0
// What waits for a sink: encoded bytes in numbered blocks, in order. Buffers of blocks that left
// are used again. Not thread-safe but for `bytes`.
#pragma once

#include "base/buffer.h"

#include <stdatomic.h>

enum { BLOCK_BYTES_MAX = 256 << 20, BLOCKS_SPARE = 4 };

struct block {
    uint64_t sequence; // from 1
    struct buffer bytes;
    uint64_t begun_ns; // monotonic
    uint64_t ticket;   // of the checkpoint that holds it; 0: none yet
    uint64_t records;  // verdicts, events or lines
    bool closed;       // nothing is added any more
};

struct block_queue {
    bool lines;         // every record is a line
    struct block *ring; // block_queue_at
    uint32_t first, count, capacity;
    uint64_t next_sequence;      // of the next block
    uint64_t delivered_sequence; // of the last one that left; those that wait follow it
    // Of the first block: what was delivered of it already, or never will be.
    uint64_t taken_bytes, taken_records;
    atomic_uint_fast64_t bytes; // that wait, of all blocks
    struct buffer spare[BLOCKS_SPARE];
    uint32_t spare_count;
    struct buffer gathered; // the bytes of several blocks
};

void block_queue_init(struct block_queue *queue, bool lines);
void block_queue_release(struct block_queue *queue);

// An empty buffer of at most BLOCK_BYTES_MAX, the caller's, with the memory of one that was used
// before if there is one; and back. To free a large one can take longer than an evaluation, so
// there are BLOCKS_SPARE that keep up to 4 MiB each.
void block_queue_spare_take(struct block_queue *queue, struct buffer *bytes);
void block_queue_spare_put(struct block_queue *queue, struct buffer *bytes);

// The block at `index` < count among those that wait, in order.
struct block *block_queue_at(const struct block_queue *queue, uint32_t index);
// NULL: none waits.
struct block *block_queue_last(const struct block_queue *queue);
// A new, empty one behind the others. Taken back while nothing is in it.
struct block *block_queue_add(struct block_queue *queue);
void block_queue_take_back(struct block_queue *queue);
// These bytes were appended to the last block: they are so many records, unless each is a line.
void block_queue_appended(struct block_queue *queue, size_t size, uint64_t records);

// What the first `count` blocks still hold. The bytes stand until the queue is changed or asked
// again.
struct slice block_queue_bytes(struct block_queue *queue, uint32_t count);
uint64_t block_queue_records(const struct block_queue *queue, uint32_t count);

// Passes over the first `size` bytes of what waits: they were delivered, or never will be. Returns
// how many records they were. A part of a block that is not made of lines has no number of its own:
// its records are counted with the rest of the block.
uint64_t block_queue_pass(struct block_queue *queue, size_t size);

// Drops everything; a checkpoint still has it as not delivered.
void block_queue_abandon(struct block_queue *queue);

// Puts back what a checkpoint held, block by block in order; then how much of the first of them was
// taken: false when it does not hold so much.
void block_queue_restore(struct block_queue *queue, uint64_t sequence, struct slice bytes,
                         uint64_t records);
bool block_queue_restore_taken(struct block_queue *queue, uint64_t bytes,
                               uint64_t records) MUST_USE;
