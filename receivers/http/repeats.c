// SPDX-License-Identifier: Apache-2.0
#include "receivers/http/repeats.h"

#include "base/hash/hash.h"
#include "base/memory.h"

#include <assert.h>

static uint64_t hash_of(const char *key) {
    return hash_slice(slice_of(key));
}

static uint32_t place_of(const struct repeats *repeats, uint32_t index) {
    return (repeats->first + index) % repeats->capacity;
}

void repeats_init(struct repeats *repeats, uint32_t max) {
    assert(max > 0);
    *repeats = (struct repeats){.max = max};
}

void repeats_release(struct repeats *repeats) {
    for (uint32_t i = 0; i < repeats->count; i++)
        memory_give(repeats->ring[place_of(repeats, i)].key);
    memory_give(repeats->ring);
    hash_index_release(&repeats->by_key);
    *repeats = (struct repeats){.max = repeats->max};
}

struct repeat *repeats_find(struct repeats *repeats, const char *key) {
    uint32_t probe = 0, at;
    while ((at = hash_index_next(&repeats->by_key, hash_of(key), &probe)) != HASH_INDEX_NONE)
        if (strcmp(repeats->ring[at].key, key) == 0)
            return &repeats->ring[at];
    return NULL;
}

static void grow(struct repeats *repeats) {
    repeats->ring = memory_ring_room(repeats->ring, &repeats->capacity, repeats->first,
                                     repeats->count, sizeof *repeats->ring);
    hash_index_clear(&repeats->by_key);
    for (uint32_t i = 0; i < repeats->count; i++)
        hash_index_add(&repeats->by_key, hash_of(repeats->ring[place_of(repeats, i)].key),
                       place_of(repeats, i));
}

static uint64_t forget_oldest(struct repeats *repeats) {
    assert(repeats->count > 0);
    struct repeat *oldest = &repeats->ring[repeats->first];
    uint64_t number = oldest->number;
    hash_index_remove(&repeats->by_key, hash_of(oldest->key), repeats->first);
    memory_give(oldest->key);
    repeats->first = place_of(repeats, 1);
    repeats->count--;
    return number;
}

uint64_t repeats_add(struct repeats *repeats, const char *key, uint64_t number, uint64_t ticket,
                     struct repeat_result result) {
    assert(repeats_find(repeats, key) == NULL);
    uint64_t forgotten = 0;
    if (repeats->count == repeats->max)
        forgotten = forget_oldest(repeats);
    else if (repeats->count == repeats->capacity)
        grow(repeats);
    uint32_t place = place_of(repeats, repeats->count++);
    repeats->ring[place] =
        (struct repeat){memory_copy_text(key, strlen(key)), number, ticket, result};
    hash_index_add(&repeats->by_key, hash_of(key), place);
    return forgotten;
}
