// SPDX-License-Identifier: Apache-2.0
#include "fake_store.h"

#include <check.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH_MAX = 64 };

struct store_batch {
    struct store *store;
    struct fake_row puts[BATCH_MAX];
    bool is_delete[BATCH_MAX];
    uint64_t last[BATCH_MAX];
    uint32_t count;
};

struct store *fake_store_create(void) {
    struct store *store = calloc(1, sizeof *store);
    store->room = 64 << 20;
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->changed, NULL);
    return store;
}

static void row_free(struct fake_row *row) {
    free(row->name);
    free(row->data);
}

void fake_store_free(struct store *store) {
    ck_assert_uint_eq(store->waiting_count, 0);
    for (uint32_t i = 0; i < store->count; i++)
        row_free(&store->rows[i]);
    free(store->rows);
    free(store);
}

static void remove_rows(struct store *store, enum store_space space, const char *name,
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

static void apply(struct store_batch *batch) {
    struct store *store = batch->store;
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

static void commit(struct store *store) {
    for (uint32_t i = 0; i < store->waiting_count; i++)
        apply(store->waiting[i]);
    store->waiting_count = 0;
    store->durable = store->submitted;
    pthread_cond_broadcast(&store->changed);
}

void fake_store_hold(struct store *store, bool held) {
    pthread_mutex_lock(&store->lock);
    store->held = held;
    if (!held)
        commit(store);
    pthread_mutex_unlock(&store->lock);
}

uint32_t fake_store_rows(struct store *store, enum store_space space) {
    uint32_t count = 0;
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->count; i++)
        count += store->rows[i].space == space;
    pthread_mutex_unlock(&store->lock);
    return count;
}

void fake_store_damage(struct store *store, enum store_space space, uint64_t number) {
    pthread_mutex_lock(&store->lock);
    remove_rows(store, space, NULL, number, number);
    pthread_mutex_unlock(&store->lock);
}

struct store_batch *store_batch_new(struct store *store) {
    struct store_batch *batch = calloc(1, sizeof *batch);
    batch->store = store;
    return batch;
}

void store_put(struct store_batch *batch, enum store_space space, const char *name, uint64_t number,
               struct slice bytes) {
    ck_assert_uint_lt(batch->count, BATCH_MAX);
    struct fake_row *row = &batch->puts[batch->count++];
    *row = (struct fake_row){space, strdup(name), number, malloc(bytes.size + 1), bytes.size};
    memcpy(row->data, bytes.data, bytes.size);
}

void store_delete(struct store_batch *batch, enum store_space space, const char *name,
                  uint64_t first, uint64_t last) {
    ck_assert_uint_lt(batch->count, BATCH_MAX);
    batch->is_delete[batch->count] = true;
    batch->last[batch->count] = last;
    batch->puts[batch->count++] = (struct fake_row){space, strdup(name), first, NULL, 0};
}

uint64_t store_submit(struct store_batch *batch) {
    struct store *store = batch->store;
    pthread_mutex_lock(&store->lock);
    uint64_t ticket = ++store->submitted;
    ck_assert_uint_lt(store->waiting_count, 256);
    store->waiting[store->waiting_count++] = batch;
    if (!store->held)
        commit(store);
    pthread_mutex_unlock(&store->lock);
    return ticket;
}

uint64_t store_durable(const struct store *store) {
    struct store *open = (struct store *)store;
    pthread_mutex_lock(&open->lock);
    uint64_t durable = store->durable;
    pthread_mutex_unlock(&open->lock);
    return durable;
}

enum status store_wait(struct store *store, uint64_t ticket, uint64_t timeout_ns,
                       struct error *error) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(timeout_ns % 1000000000);
    until.tv_sec += (time_t)(timeout_ns / 1000000000) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&store->lock);
    int late = 0;
    while (store->durable < ticket && late == 0)
        late = pthread_cond_timedwait(&store->changed, &store->lock, &until);
    bool durable = store->durable >= ticket;
    pthread_mutex_unlock(&store->lock);
    return durable ? STATUS_OK : error_set(error, STATUS_IO, "it takes too long");
}

static int by_number(const void *a, const void *b) {
    uint64_t left = ((const struct fake_row *)a)->number,
             right = ((const struct fake_row *)b)->number;
    return (left > right) - (left < right);
}

enum status store_scan(struct store *store, enum store_space space, const char *name,
                       uint64_t first, uint64_t last, store_visit *visit, void *context,
                       struct error *error) {
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

uint64_t store_last_number(struct store *store, enum store_space space, const char *name) {
    uint64_t last = 0;
    pthread_mutex_lock(&store->lock);
    for (uint32_t i = 0; i < store->count; i++)
        if (store->rows[i].space == space && strcmp(store->rows[i].name, name) == 0 &&
            store->rows[i].number > last)
            last = store->rows[i].number;
    pthread_mutex_unlock(&store->lock);
    return last;
}

bool store_full(const struct store *store) {
    return store->full;
}

uint64_t store_room(const struct store *store) {
    struct store *open = (struct store *)store;
    uint64_t waiting = 0;
    pthread_mutex_lock(&open->lock);
    for (uint32_t i = 0; i < store->waiting_count; i++)
        for (uint32_t j = 0; j < store->waiting[i]->count; j++)
            waiting += store->waiting[i]->puts[j].size;
    pthread_mutex_unlock(&open->lock);
    return waiting < store->room ? store->room - waiting : 0;
}
