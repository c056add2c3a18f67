// SPDX-License-Identifier: Apache-2.0
// A store for tests of receivers, in memory: what is submitted becomes durable at once, or when the
// test lets it.
#pragma once

#include "pipeline/component/storage.h"

#include <pthread.h>

struct fake_row {
    enum storage_space space;
    char *name;
    uint64_t number;
    char *data;
    size_t size;
};

struct fake_store {
    struct storage base; // first
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fake_row *rows; // by number within a name
    uint32_t count;
    struct fake_batch *waiting[256];
    uint32_t waiting_count;
    uint64_t submitted;
    uint64_t durable;
    bool held; // nothing becomes durable
    bool full;
    uint64_t room; // that storage_room tells, less what waits
};

struct storage *fake_store_create(void);
struct fake_store *fake_store_of(const struct storage *storage);
void fake_store_free(struct storage *storage);
void fake_store_hold(struct storage *storage, bool held);
uint32_t fake_store_rows(struct storage *storage, enum storage_space space);
uint64_t fake_store_bytes(struct storage *storage, enum storage_space space);
// Forgets one row, as a damaged one is.
void fake_store_damage(struct storage *storage, enum storage_space space, uint64_t number);
