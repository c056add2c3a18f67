// SPDX-License-Identifier: Apache-2.0
// What is to be put into the store and taken out of it, in one piece?
//
// Operations lie one after the other in one growing buffer. A batch that was written is used again
// with its buffer, unless that is large; so after a while nothing is allocated.
#include "extensions/file_storage/store_parts.h"

#include "base/clock.h"
#include "base/hash/crc32c.h"
#include "base/memory.h"

#include <malloc.h>

enum { BATCH_START = 1024, BATCH_KEPT = 64 << 10, BATCH_LARGE = 1 << 20, ALIGNMENT = 8 };

uint32_t store_crc(enum store_space space, struct slice name, uint64_t number, struct slice bytes) {
    unsigned char head[9];
    for (unsigned i = 0; i < 8; i++)
        head[i] = (unsigned char)(number >> 8 * i);
    head[8] = (unsigned char)space;
    uint32_t crc = crc32c(0, (struct slice){(const char *)head, sizeof head});
    return crc32c(crc32c(crc, name), bytes);
}

struct store_batch *store_batch_new(struct store *store) {
    pthread_mutex_lock(&store->lock);
    struct store_batch *batch = store->idle;
    if (batch != NULL) {
        store->idle = batch->next;
        store->idle_count--;
    }
    pthread_mutex_unlock(&store->lock);
    if (batch == NULL)
        batch = memory_zero(1, sizeof *batch);
    batch->store = store;
    batch->next = NULL;
    batch->size = 0;
    batch->is_checkpoint = false;
    return batch;
}

void batch_free(struct store_batch *batch) {
    memory_give(batch->data);
    memory_give(batch);
}

void store_batch_drop(struct store_batch *batch) {
    struct store *store = batch->store;
    if (batch->capacity > BATCH_KEPT) {
        memory_give(batch->data);
        if (batch->capacity >= BATCH_LARGE)
            malloc_trim(0); // seldom and large: the system gets it back, so that a sidecar is small
        batch->data = NULL;
        batch->capacity = 0;
    }
    pthread_mutex_lock(&store->lock);
    bool keep = store->idle_count < IDLE_BATCHES;
    if (keep) {
        batch->next = store->idle;
        store->idle = batch;
        store->idle_count++;
    }
    pthread_mutex_unlock(&store->lock);
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

static void batch_append(struct store_batch *batch, struct operation operation, struct slice name,
                         struct slice bytes) {
    assert(operation.space < STORE_SPACE_COUNT);
    assert(name.size <= STORE_NAME_MAX);
    operation.name_size = (uint32_t)name.size;
    operation.byte_count = bytes.size;
    char *place = batch_reserve(batch, sizeof operation + name.size + 1 + bytes.size);
    memcpy(place, &operation, sizeof operation);
    place += sizeof operation;
    memcpy(place, name.data, name.size + 1);
    if (bytes.size > 0)
        memcpy(place + name.size + 1, bytes.data, bytes.size);
}

void store_put(struct store_batch *batch, enum store_space space, const char *name, uint64_t number,
               struct slice bytes) {
    assert(number <= STORE_NUMBER_MAX);
    assert(bytes.size <= STORE_BLOB_MAX);
    struct slice text = slice_of(name);
    batch_append(batch,
                 (struct operation){.kind = OPERATION_PUT,
                                    .space = space,
                                    .first = number,
                                    .crc = store_crc(space, text, number, bytes)},
                 text, bytes);
}

void store_delete(struct store_batch *batch, enum store_space space, const char *name,
                  uint64_t first, uint64_t last) {
    if (first > last || first > STORE_NUMBER_MAX)
        return;
    batch_append(batch,
                 (struct operation){.kind = OPERATION_DELETE,
                                    .space = space,
                                    .first = first,
                                    .last = last < STORE_NUMBER_MAX ? last : STORE_NUMBER_MAX},
                 slice_of(name), (struct slice){0});
}

void store_delete_names(struct store_batch *batch, enum store_space space, const char *prefix) {
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

uint64_t store_submit(struct store_batch *batch) {
    struct store *store = batch->store;
    pthread_mutex_lock(&store->lock);
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
    atomic_fetch_add_explicit(&store->pending_bytes, batch->size, memory_order_relaxed);
    if (!batch->is_checkpoint)
        atomic_fetch_add_explicit(&store->input_bytes, batch->size, memory_order_relaxed);
    pthread_cond_signal(&store->work);
    pthread_mutex_unlock(&store->lock);
    return ticket;
}

uint64_t store_submit_checkpoint(struct store_batch *batch) {
    batch->is_checkpoint = true;
    return store_submit(batch);
}
