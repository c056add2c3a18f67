// SPDX-License-Identifier: Apache-2.0
// Remembers which requests were seen before, by their Idempotency-Key.
//
// The newest `max` keys with what their requests came to, found by hash, forgotten in the order in
// which they came. Memory: some 100 bytes a key; it grows as keys come.
#pragma once

#include "base/hash/hash_index.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct repeat_result {
    int status;
    uint64_t accepted;
    uint64_t rejected;
    uint64_t other; // lines of no interest
};

struct repeat {
    char *key;
    uint64_t number;
    uint64_t ticket; // of the store; 0: durable since the start
    struct repeat_result result;
};

struct repeats {
    uint32_t max;
    struct repeat *ring; // [capacity], the oldest at `first`
    uint32_t capacity;
    uint32_t first;
    uint32_t count;
    struct hash_index by_key; // places in the ring
};

void repeats_init(struct repeats *repeats, uint32_t max);
void repeats_release(struct repeats *repeats);
// NULL: not seen, or forgotten. Valid until the next is added.
struct repeat *repeats_find(struct repeats *repeats, const char *key);
// The key must not be there. Returns the number of the one that was forgotten for it, 0: none.
uint64_t repeats_add(struct repeats *repeats, const char *key, uint64_t number, uint64_t ticket,
                     struct repeat_result result);
