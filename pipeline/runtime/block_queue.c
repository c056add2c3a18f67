// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/block_queue.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { SPARE_BYTES_MAX = 4 << 20 };

void block_queue_init(struct block_queue *queue, bool lines) {
    *queue = (struct block_queue){.lines = lines, .next_sequence = 1};
    buffer_init(&queue->gathered, BLOCK_BYTES_MAX);
}

void block_queue_release(struct block_queue *queue) {
    for (uint32_t i = 0; i < queue->count; i++)
        buffer_release(&block_queue_at(queue, i)->bytes);
    for (uint32_t i = 0; i < queue->spare_count; i++)
        buffer_release(&queue->spare[i]);
    memory_give(queue->ring);
    buffer_release(&queue->gathered);
}

struct block *block_queue_at(const struct block_queue *queue, uint32_t index) {
    assert(index < queue->count);
    return &queue->ring[(queue->first + index) % queue->capacity];
}

struct block *block_queue_last(const struct block_queue *queue) {
    return queue->count == 0 ? NULL : block_queue_at(queue, queue->count - 1);
}

void block_queue_spare_take(struct block_queue *queue, struct buffer *bytes) {
    assert(queue->spare_count <= BLOCKS_SPARE);
    if (queue->spare_count > 0) {
        *bytes = queue->spare[--queue->spare_count];
        buffer_reset(bytes);
    } else {
        buffer_init(bytes, BLOCK_BYTES_MAX);
    }
}

void block_queue_spare_put(struct block_queue *queue, struct buffer *bytes) {
    assert(queue->spare_count <= BLOCKS_SPARE);
    bool is_kept = bytes->capacity > 0 && bytes->capacity <= SPARE_BYTES_MAX;
    if (is_kept && queue->spare_count < BLOCKS_SPARE)
        queue->spare[queue->spare_count++] = *bytes;
    else
        buffer_release(bytes);
    *bytes = (struct buffer){0};
}

struct block *block_queue_add(struct block_queue *queue) {
    assert(queue->count <= queue->capacity);
    const struct block *before = block_queue_last(queue);
    size_t usual = before == NULL ? 0 : before->bytes.size;
    queue->ring = memory_ring_room(queue->ring, &queue->capacity, queue->first, queue->count,
                                   sizeof *queue->ring);
    queue->count++;
    struct block *block = block_queue_last(queue);
    *block = (struct block){.sequence = queue->next_sequence++, .begun_ns = clock_monotonic_ns()};
    block_queue_spare_take(queue, &block->bytes);
    // A block becomes about as large as the one before it: it need not grow step by step.
    if (block->bytes.capacity < usual && usual <= SPARE_BYTES_MAX)
        buffer_reserve(&block->bytes, usual);
    return block;
}

void block_queue_take_back(struct block_queue *queue) {
    assert(queue->count > 0);
    assert(block_queue_last(queue)->bytes.size == 0);
    block_queue_spare_put(queue, &block_queue_last(queue)->bytes);
    queue->count--;
    queue->next_sequence--;
}

static uint64_t count_lines(const char *at, size_t size) {
    uint64_t count = 0;
    for (const char *end; size > 0 && (end = memchr(at, '\n', size)) != NULL; at = end + 1) {
        size -= (size_t)(end + 1 - at);
        count++;
    }
    return count;
}

void block_queue_appended(struct block_queue *queue, size_t size, uint64_t records) {
    struct block *block = block_queue_last(queue);
    assert(size > 0 && size <= block->bytes.size);
    assert(!queue->lines || block->bytes.data[block->bytes.size - 1] == '\n');
    const char *from = block->bytes.data + block->bytes.size - size;
    block->records += queue->lines ? count_lines(from, size) : records;
    atomic_fetch_add(&queue->bytes, size);
}

// -- leaving ------------------------------------------------------------------------------------

static struct slice first_left(const struct block_queue *queue) {
    assert(queue->count > 0);
    struct slice bytes = buffer_slice(&block_queue_at(queue, 0)->bytes);
    assert(queue->taken_bytes <= bytes.size);
    return (struct slice){bytes.data + queue->taken_bytes, bytes.size - queue->taken_bytes};
}

struct slice block_queue_bytes(struct block_queue *queue, uint32_t count) {
    assert(count <= queue->count);
    if (count == 0)
        return (struct slice){NULL, 0};
    if (count == 1)
        return first_left(queue);
    buffer_reset(&queue->gathered);
    buffer_append(&queue->gathered, first_left(queue));
    for (uint32_t i = 1; i < count; i++)
        buffer_append(&queue->gathered, buffer_slice(&block_queue_at(queue, i)->bytes));
    assert(!queue->gathered.failed);
    return buffer_slice(&queue->gathered);
}

uint64_t block_queue_records(const struct block_queue *queue, uint32_t count) {
    assert(count <= queue->count);
    uint64_t records = 0;
    for (uint32_t i = 0; i < count; i++)
        records += block_queue_at(queue, i)->records;
    return count == 0 ? 0 : records - queue->taken_records;
}

static void drop_first(struct block_queue *queue) {
    assert(queue->count > 0);
    struct block *block = block_queue_at(queue, 0);
    assert(block->sequence > queue->delivered_sequence);
    queue->delivered_sequence = block->sequence;
    queue->taken_bytes = queue->taken_records = 0;
    block_queue_spare_put(queue, &block->bytes);
    queue->first = (queue->first + 1) % queue->capacity;
    queue->count--;
}

uint64_t block_queue_pass(struct block_queue *queue, size_t size) {
    uint64_t records = 0;
    assert(size <= atomic_load(&queue->bytes));
    atomic_fetch_sub(&queue->bytes, size);
    while (size > 0) {
        struct slice left = first_left(queue);
        if (size < left.size) {
            assert(!queue->lines || left.data[size - 1] == '\n');
            uint64_t part = queue->lines ? count_lines(left.data, size) : 0;
            queue->taken_bytes += size;
            queue->taken_records += part;
            return records + part;
        }
        size -= left.size;
        records += block_queue_records(queue, 1);
        drop_first(queue);
    }
    return records;
}

void block_queue_abandon(struct block_queue *queue) {
    for (uint32_t i = 0; i < queue->count; i++)
        buffer_release(&block_queue_at(queue, i)->bytes);
    queue->count = 0;
    atomic_store(&queue->bytes, 0);
}

// -- a start ------------------------------------------------------------------------------------

void block_queue_restore(struct block_queue *queue, uint64_t sequence, struct slice bytes,
                         uint64_t records) {
    assert(sequence > queue->delivered_sequence);
    if (bytes.size == 0)
        return;
    uint64_t next = queue->next_sequence;
    struct block *block = block_queue_add(queue);
    queue->next_sequence = next;
    block->sequence = sequence;
    block->closed = true;
    block->records = records;
    block->ticket = 1; // durable already
    buffer_append(&block->bytes, bytes);
    atomic_fetch_add(&queue->bytes, bytes.size);
}

bool block_queue_restore_taken(struct block_queue *queue, uint64_t bytes, uint64_t records) {
    if (bytes == 0)
        return true;
    if (queue->count == 0)
        return false;
    const struct block *block = block_queue_at(queue, 0);
    if (block->sequence != queue->delivered_sequence + 1 || bytes >= block->bytes.size ||
        records > block->records)
        return false;
    queue->taken_bytes = bytes;
    queue->taken_records = records;
    atomic_fetch_sub(&queue->bytes, bytes);
    return true;
}
