// SPDX-License-Identifier: Apache-2.0
// Removing shifts later slots back, so that there are no marks of what was there.
#include "base/hash/hash_index.h"

#include "base/hash/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { SLOTS_FIRST = 64 };

struct hash_slot {
    uint32_t hash;
    uint32_t follower; // of the item's number: 0 is an empty slot
};

void hash_index_release(struct hash_index *index) {
    memory_give(index->slots);
    *index = (struct hash_index){0};
}

void hash_index_clear(struct hash_index *index) {
    if (index->used > 0)
        memset(index->slots, 0, index->slot_count * sizeof *index->slots);
    index->used = 0;
}

static void put(struct hash_index *index, struct hash_slot slot) {
    uint32_t mask = index->slot_count - 1, at = slot.hash & mask;
    while (index->slots[at].follower != 0)
        at = (at + 1) & mask;
    index->slots[at] = slot;
}

static void grow(struct hash_index *index) {
    struct hash_slot *old = index->slots;
    uint32_t old_count = index->slot_count;
    assert(old_count <= UINT32_MAX / 2);
    index->slot_count = old_count == 0 ? SLOTS_FIRST : old_count * 2;
    index->slots = memory_zero(index->slot_count, sizeof *index->slots);
    for (uint32_t i = 0; i < old_count; i++)
        if (old[i].follower != 0)
            put(index, old[i]);
    memory_give(old);
}

void hash_index_add(struct hash_index *index, uint64_t hash, uint32_t item) {
    assert(item < HASH_INDEX_NONE);
    if (index->used >= index->slot_count / 2)
        grow(index);
    put(index, (struct hash_slot){hash_folded(hash), item + 1});
    index->used++;
}

void hash_index_remove(struct hash_index *index, uint64_t hash, uint32_t item) {
    assert(index->used > 0);
    struct hash_slot *slots = index->slots;
    uint32_t mask = index->slot_count - 1, hole = hash_folded(hash) & mask;
    while (slots[hole].follower != item + 1) {
        assert(slots[hole].follower != 0);
        hole = (hole + 1) & mask;
    }
    for (uint32_t at = (hole + 1) & mask; slots[at].follower != 0; at = (at + 1) & mask) {
        uint32_t home = slots[at].hash & mask;
        // It may move to the hole unless its home lies behind it.
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole] = (struct hash_slot){0, 0};
    index->used--;
}

uint32_t hash_index_next(const struct hash_index *index, uint64_t hash, uint32_t *probe) {
    uint32_t wanted = hash_folded(hash), mask = index->slot_count - 1;
    while (index->slot_count > 0) {
        const struct hash_slot *slot = &index->slots[(wanted + *probe) & mask];
        if (slot->follower == 0)
            break;
        ++*probe;
        if (slot->hash == wanted)
            return slot->follower - 1;
    }
    return HASH_INDEX_NONE;
}
