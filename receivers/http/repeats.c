// SPDX-License-Identifier: Apache-2.0
#include "receivers/http/repeats.h"

#include "base/hash/hash.h"
#include "base/memory.h"

enum { FIRST_CAPACITY = 64 };

static uint32_t hash_of(const char *key) {
    return hash_folded(hash_slice(slice_of(key)));
}

void repeats_init(struct repeats *repeats, uint32_t max) {
    *repeats = (struct repeats){.max = max};
}

void repeats_release(struct repeats *repeats) {
    for (uint32_t i = 0; i < repeats->count; i++)
        memory_give(repeats->ring[(repeats->first + i) % repeats->capacity].key);
    memory_give(repeats->ring);
    memory_give(repeats->buckets);
    *repeats = (struct repeats){.max = repeats->max};
}

struct repeat *repeats_find(struct repeats *repeats, const char *key) {
    if (repeats->count == 0)
        return NULL;
    uint32_t hash = hash_of(key);
    uint32_t at = repeats->buckets[hash & (repeats->bucket_count - 1)];
    for (; at != 0; at = repeats->ring[at - 1].next) {
        struct repeat *repeat = &repeats->ring[at - 1];
        if (repeat->hash == hash && strcmp(repeat->key, key) == 0)
            return repeat;
    }
    return NULL;
}

static void link_in(struct repeats *repeats, uint32_t place) {
    struct repeat *repeat = &repeats->ring[place];
    uint32_t *bucket = &repeats->buckets[repeat->hash & (repeats->bucket_count - 1)];
    repeat->next = *bucket;
    *bucket = place + 1;
}

static void grow(struct repeats *repeats) {
    uint32_t capacity = repeats->capacity == 0 ? FIRST_CAPACITY : repeats->capacity * 2;
    if (capacity > repeats->max)
        capacity = repeats->max;
    struct repeat *ring = memory_zero(capacity, sizeof *ring);
    for (uint32_t i = 0; i < repeats->count; i++)
        ring[i] = repeats->ring[(repeats->first + i) % repeats->capacity];
    memory_give(repeats->ring);
    memory_give(repeats->buckets);
    repeats->ring = ring;
    repeats->capacity = capacity;
    repeats->first = 0;
    repeats->bucket_count = FIRST_CAPACITY;
    while (repeats->bucket_count < capacity)
        repeats->bucket_count *= 2;
    repeats->buckets = memory_zero(repeats->bucket_count, sizeof *repeats->buckets);
    for (uint32_t i = 0; i < repeats->count; i++)
        link_in(repeats, i);
}

static uint64_t forget_oldest(struct repeats *repeats) {
    struct repeat *oldest = &repeats->ring[repeats->first];
    uint32_t *at = &repeats->buckets[oldest->hash & (repeats->bucket_count - 1)];
    while (*at != repeats->first + 1)
        at = &repeats->ring[*at - 1].next;
    *at = oldest->next;
    uint64_t number = oldest->number;
    memory_give(oldest->key);
    repeats->first = (repeats->first + 1) % repeats->capacity;
    repeats->count--;
    return number;
}

uint64_t repeats_add(struct repeats *repeats, const char *key, uint64_t number, uint64_t ticket,
                     struct repeat_result result) {
    uint64_t forgotten = 0;
    if (repeats->count == repeats->max)
        forgotten = forget_oldest(repeats);
    else if (repeats->count == repeats->capacity)
        grow(repeats);
    uint32_t place = (repeats->first + repeats->count++) % repeats->capacity;
    repeats->ring[place] = (struct repeat){.key = memory_copy_text(key, strlen(key)),
                                           .hash = hash_of(key),
                                           .number = number,
                                           .ticket = ticket,
                                           .result = result};
    link_in(repeats, place);
    return forgotten;
}
