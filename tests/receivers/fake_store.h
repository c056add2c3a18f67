// SPDX-License-Identifier: Apache-2.0
// A store for tests of receivers, in memory: what is submitted becomes durable at once, or when the
// test lets it.
#pragma once

#include "pipeline/store.h"

#include <pthread.h>

struct fake_row {
    enum store_space space;
    char *name;
    uint64_t number;
    char *data;
    size_t size;
};

struct store {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fake_row *rows; // by number within a name
    uint32_t count;
    struct store_batch *waiting[256];
    uint32_t waiting_count;
    uint64_t submitted;
    uint64_t durable;
    bool held; // nothing becomes durable
    bool full;
    uint64_t room; // that store_room tells, less what waits
};

struct store *fake_store_create(void);
void fake_store_free(struct store *store);
void fake_store_hold(struct store *store, bool held);
uint32_t fake_store_rows(struct store *store, enum store_space space);
// Forgets one row, as a damaged one is.
void fake_store_damage(struct store *store, enum store_space space, uint64_t number);
