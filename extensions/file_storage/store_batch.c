// SPDX-License-Identifier: Apache-2.0
// Batches: what is put into the store and taken out of it in one piece.
//
// Operations lie one after the other in one growing buffer. A batch that was written is used again
// with its buffer, unless that is large; so after a while nothing is allocated.
#include "extensions/file_storage/store_parts.h"

#include "base/clock.h"
#include "base/hash/crc32c.h"
#include "base/memory.h"

#include <assert.h>
#include <malloc.h>

enum { BATCH_START = 1024, BATCH_KEPT = 64 << 10, BATCH_LARGE = 1 << 20, ALIGNMENT = 8 };

uint32_t store_crc(enum storage_space space, struct slice name, uint64_t number,
                   struct slice bytes) {
    unsigned char head[9];
    for (unsigned i = 0; i < 8; i++)
        head[i] = (unsigned char)(number >> 8 * i);
    head[8] = (unsigned char)space;
    uint32_t crc = crc32c(0, (struct slice){(const char *)head, sizeof head});
    return crc32c(crc32c(crc, name), bytes);
}

struct storage_batch *store_batch_new(struct storage *storage) {
    struct store *store = store_of(storage);
    lock_take(&store->lock);
    struct store_batch *batch = store->idle;
    if (batch != NULL) {
        store->idle = batch->next;
        store->idle_count--;
    }
    lock_release(&store->lock);
    if (batch == NULL)
        batch = memory_zero(1, sizeof *batch);
    batch->base = (struct storage_batch){STORAGE_MAGIC, storage};
    batch->next = NULL;
    batch->size = 0;
    batch->is_checkpoint = false;
    return &batch->base;
}

void batch_free(struct store_batch *batch) {
    memory_give(batch->data);
    memory_give(batch);
}

void store_batch_drop(struct store *store, struct store_batch *batch) {
    assert(batch->base.magic == 0);
    if (batch->capacity > BATCH_KEPT) {
        memory_give(batch->data);
        if (batch->capacity >= BATCH_LARGE)
            malloc_trim(0); // seldom and large: the system gets it back, so that a sidecar is small
        batch->data = NULL;
        batch->capacity = 0;
    }
    lock_take(&store->lock);
    bool keep = store->idle_count < IDLE_BATCHES;
    if (keep) {
        batch->next = store->idle;
        store->idle = batch;
        store->idle_count++;
    }
    lock_release(&store->lock);
    if (!keep)
        batch_free(batch);
}

static char *batch_reserve(struct store_batch *batch, size_t size) {
    size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (batch->capacity - batch->size < size) {
        size_t capacity = batch->capacity == 0 ? BATCH_START : batch->capacity * 2;
        while (capacity - batch->size < size)
            capacity *= 2;
        batch->data = memory_resize(batch->data, capacity);
        batch->capacity = capacity;
    }
    char *place = batch->data + batch->size;
    batch->size += size;
    return place;
}

static void batch_append(struct storage_batch *base, struct operation operation, struct slice name,
                         struct slice bytes) {
    assert(base->magic == STORAGE_MAGIC);
    assert(name.size <= STORAGE_NAME_MAX);
    struct store_batch *batch = (struct store_batch *)base;
    operation.name_size = (uint32_t)name.size;
    operation.byte_count = bytes.size;
    char *place = batch_reserve(batch, sizeof operation + name.size + 1 + bytes.size);
    memcpy(place, &operation, sizeof operation);
    place += sizeof operation;
    memcpy(place, name.data, name.size + 1);
    if (bytes.size > 0)
        memcpy(place + name.size + 1, bytes.data, bytes.size);
}

void store_put(struct storage_batch *batch, enum storage_space space, const char *name,
               uint64_t number, struct slice bytes) {
    struct slice text = slice_of(name);
    batch_append(batch,
                 (struct operation){.kind = OPERATION_PUT,
                                    .space = space,
                                    .first = number,
                                    .crc = store_crc(space, text, number, bytes)},
                 text, bytes);
}

void store_delete(struct storage_batch *batch, enum storage_space space, const char *name,
                  uint64_t first, uint64_t last) {
    batch_append(
        batch,
        (struct operation){.kind = OPERATION_DELETE, .space = space, .first = first, .last = last},
        slice_of(name), (struct slice){0});
}

void store_delete_names(struct storage_batch *batch, enum storage_space space, const char *prefix) {
    batch_append(batch, (struct operation){.kind = OPERATION_DELETE_NAMES, .space = space},
                 slice_of(prefix), (struct slice){0});
}

const struct operation *batch_next(const struct store_batch *batch, size_t *at, const char **name,
                                   struct slice *bytes) {
    if (*at >= batch->size)
        return NULL;
    const struct operation *operation = (const struct operation *)(const void *)(batch->data + *at);
    *name = batch->data + *at + sizeof *operation;
    *bytes = (struct slice){*name + operation->name_size + 1, (size_t)operation->byte_count};
    size_t size = sizeof *operation + operation->name_size + 1 + (size_t)operation->byte_count;
    *at += (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    return operation;
}

uint64_t store_submit(struct storage_batch *base, bool is_checkpoint) {
    assert(base->magic == STORAGE_MAGIC);
    struct store *store = store_of(base->storage);
    struct store_batch *batch = (struct store_batch *)base;
    base->magic = 0;
    batch->is_checkpoint = is_checkpoint;
    lock_take(&store->lock);
    assert(!store->stopping);
    uint64_t ticket = ++store->submitted;
    batch->ticket = ticket;
    batch->submitted_ns = store->last_submit_ns = clock_monotonic_ns();
    if (store->last == NULL)
        store->first = batch;
    else
        store->last->next = batch;
    store->last = batch;
    store->queued_count++;
    atomic_fetch_add(&store->pending_bytes, batch->size);
    if (!batch->is_checkpoint)
        atomic_fetch_add(&store->input_bytes, batch->size);
    pthread_cond_signal(&store->work);
    lock_release(&store->lock);
    return ticket;
}
