// SPDX-License-Identifier: Apache-2.0
#include "fake_store.h"

#include <check.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH_MAX = 64 };

struct fake_batch {
    struct storage_batch base; // first
    struct fake_row puts[BATCH_MAX];
    bool is_delete[BATCH_MAX];
    uint64_t last[BATCH_MAX];
    uint32_t count;
};

struct fake_store *fake_store_of(const struct storage *storage) {
    return (struct fake_store *)(uintptr_t)storage;
}

static void row_free(struct fake_row *row) {
    free(row->name);
    free(row->data);
}

void fake_store_free(struct storage *storage) {
    struct fake_store *store = fake_store_of(storage);
    ck_assert_uint_eq(store->waiting_count, 0);
    for (uint32_t i = 0; i < store->count; i++)
        row_free(&store->rows[i]);
    free(store->rows);
    free(store);
}

static void remove_rows(struct fake_store *store, enum storage_space space, const char *name,
                        uint64_t first, uint64_t last) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < store->count; i++) {
        struct fake_row *row = &store->rows[i];
        if (row->space == space && (name == NULL || strcmp(row->name, name) == 0) &&
            row->number >= first && row->number <= last)
            row_free(row);
        else
            store->rows[left++] = *row;
    }
    store->count = left;
}

static void apply(struct fake_batch *batch) {
    struct fake_store *store = fake_store_of(batch->base.storage);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct fake_row *row = &batch->puts[i];
        remove_rows(store, row->space, row->name, row->number,
                    batch->is_delete[i] ? batch->last[i] : row->number);
        if (batch->is_delete[i]) {
            free(row->name);
            continue;
        }
        store->rows = realloc(store->rows, (store->count + 1) * sizeof *store->rows);
        store->rows[store->count++] = *row;
    }
    free(batch);
}

static void commit(struct fake_store *store) {
    for (uint32_t i = 0; i < store->waiting_count; i++)
        apply(store->waiting[i]);
    store->waiting_count = 0;
    store->durable = store->submitted;
    pthread_cond_broadcast(&store->changed);
}

void fake_store_hold(struct storage *storage, bool held) {
    struct fake_store *store = fake_store_of(storage);
    pthread_mutex_lock(&store->lock);
    store->held = held;
    if (!held)
        commit(store);
    pthread_mutex_unlock(&store->lock);
}

uint32_t fake_store_rows(struct storage *storage, enum storage_space space) {
    struct fake_store *store = fake_store_of(storage);
    uint32_t count = 0;
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->count; i++)
        count += store->rows[i].space == space;
    pthread_mutex_unlock(&store->lock);
    return count;
}

uint64_t fake_store_bytes(struct storage *storage, enum storage_space space) {
    struct fake_store *store = fake_store_of(storage);
    uint64_t bytes = 0;
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->count; i++)
        bytes += store->rows[i].space == space ? store->rows[i].size : 0;
    pthread_mutex_unlock(&store->lock);
    return bytes;
}

void fake_store_damage(struct storage *storage, enum storage_space space, uint64_t number) {
    struct fake_store *store = fake_store_of(storage);
    pthread_mutex_lock(&store->lock);
    remove_rows(store, space, NULL, number, number);
    pthread_mutex_unlock(&store->lock);
}

// -- the calls ------------------------------------------------------------------------------------

static struct storage_batch *batch_new(struct storage *storage) {
    struct fake_batch *batch = calloc(1, sizeof *batch);
    batch->base = (struct storage_batch){STORAGE_MAGIC, storage};
    return &batch->base;
}

static void put(struct storage_batch *base, enum storage_space space, const char *name,
                uint64_t number, struct slice bytes) {
    struct fake_batch *batch = (struct fake_batch *)base;
    ck_assert_uint_lt(batch->count, BATCH_MAX);
    struct fake_row *row = &batch->puts[batch->count++];
    *row = (struct fake_row){space, strdup(name), number, malloc(bytes.size + 1), bytes.size};
    memcpy(row->data, bytes.data, bytes.size);
}

static void delete_range(struct storage_batch *base, enum storage_space space, const char *name,
                         uint64_t first, uint64_t last) {
    struct fake_batch *batch = (struct fake_batch *)base;
    ck_assert_uint_lt(batch->count, BATCH_MAX);
    batch->is_delete[batch->count] = true;
    batch->last[batch->count] = last;
    batch->puts[batch->count++] = (struct fake_row){space, strdup(name), first, NULL, 0};
}

static uint64_t submit(struct storage_batch *base, bool is_checkpoint) {
    struct fake_batch *batch = (struct fake_batch *)base;
    struct fake_store *store = fake_store_of(base->storage);
    (void)is_checkpoint;
    pthread_mutex_lock(&store->lock);
    uint64_t ticket = ++store->submitted;
    ck_assert_uint_lt(store->waiting_count, 256);
    store->waiting[store->waiting_count++] = batch;
    if (!store->held)
        commit(store);
    pthread_mutex_unlock(&store->lock);
    return ticket;
}

static uint64_t durable(const struct storage *storage) {
    struct fake_store *store = fake_store_of(storage);
    pthread_mutex_lock(&store->lock);
    uint64_t ticket = store->durable;
    pthread_mutex_unlock(&store->lock);
    return ticket;
}

static enum status wait_durable(struct storage *storage, uint64_t ticket, uint64_t timeout_ns,
                                struct error *error) {
    struct fake_store *store = fake_store_of(storage);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(timeout_ns % 1000000000);
    until.tv_sec += (time_t)(timeout_ns / 1000000000) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&store->lock);
    int late = 0;
    while (store->durable < ticket && late == 0)
        late = pthread_cond_timedwait(&store->changed, &store->lock, &until);
    bool is_durable = store->durable >= ticket;
    pthread_mutex_unlock(&store->lock);
    return is_durable ? STATUS_OK : error_set(error, STATUS_IO, "it takes too long");
}

static int by_number(const void *a, const void *b) {
    uint64_t left = ((const struct fake_row *)a)->number,
             right = ((const struct fake_row *)b)->number;
    return (left > right) - (left < right);
}

static enum status scan(struct storage *storage, enum storage_space space, const char *name,
                        uint64_t first, uint64_t last, storage_visit *visit, void *context,
                        struct error *error) {
    struct fake_store *store = fake_store_of(storage);
    (void)error;
    pthread_mutex_lock(&store->lock);
    if (store->count > 0)
        qsort(store->rows, store->count, sizeof *store->rows, by_number);
    uint32_t count = 0;
    struct fake_row *rows = calloc(store->count + 1, sizeof *rows);
    for (uint32_t i = 0; i < store->count; i++) {
        const struct fake_row *row = &store->rows[i];
        if (row->space != space || strcmp(row->name, name) != 0 || row->number < first ||
            row->number > last)
            continue;
        rows[count] = *row;
        rows[count].name = strdup(row->name);
        rows[count].data = malloc(row->size + 1);
        memcpy(rows[count++].data, row->data, row->size);
    }
    pthread_mutex_unlock(&store->lock);
    bool more = true;
    for (uint32_t i = 0; i < count; i++) {
        more = more && visit(context, rows[i].name, rows[i].number,
                             (struct slice){rows[i].data, rows[i].size});
        row_free(&rows[i]);
    }
    free(rows);
    return STATUS_OK;
}

static uint64_t last_number(struct storage *storage, enum storage_space space, const char *name) {
    struct fake_store *store = fake_store_of(storage);
    uint64_t last = 0;
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->count; i++)
        if (store->rows[i].space == space && strcmp(store->rows[i].name, name) == 0 &&
            store->rows[i].number > last)
            last = store->rows[i].number;
    pthread_mutex_unlock(&store->lock);
    return last;
}

static bool is_full(const struct storage *storage) {
    return fake_store_of(storage)->full;
}

static uint64_t room(const struct storage *storage) {
    struct fake_store *store = fake_store_of(storage);
    uint64_t waiting = 0;
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->waiting_count; i++)
        for (uint32_t j = 0; j < store->waiting[i]->count; j++)
            waiting += store->waiting[i]->puts[j].size;
    pthread_mutex_unlock(&store->lock);
    return waiting < store->room ? store->room - waiting : 0;
}

static const struct storage_calls CALLS = {.batch_new = batch_new,
                                           .put = put,
                                           .delete = delete_range,
                                           .submit = submit,
                                           .durable = durable,
                                           .wait = wait_durable,
                                           .scan = scan,
                                           .last_number = last_number,
                                           .full = is_full,
                                           .room = room};

struct storage *fake_store_create(void) {
    struct fake_store *store = calloc(1, sizeof *store);
    store->base = (struct storage){STORAGE_MAGIC, &CALLS};
    store->room = 64 << 20;
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->changed, NULL);
    return &store->base;
}
