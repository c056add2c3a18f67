// SPDX-License-Identifier: Apache-2.0
// Finds the items of an array by their hash: open addressing, linear probing, at most half full.
//
// The index holds numbers of items, which the owner keeps where it likes and compares itself, so
// one array may have several. 8 bytes a slot. Finding and removing take no memory. Not for keys
// that an attacker chooses in bulk, unless their hash has a seed. Not thread-safe.
#pragma once

#include <stdint.h>

enum { HASH_INDEX_NONE = UINT32_MAX };

// Zeroed: empty.
struct hash_index {
    struct hash_slot *slots;
    uint32_t slot_count; // a power of two, or 0
    uint32_t used;
};

void hash_index_release(struct hash_index *index);
// Empty; the memory stays.
void hash_index_clear(struct hash_index *index);
void hash_index_add(struct hash_index *index, uint64_t hash, uint32_t item);
// The item must be there under this hash.
void hash_index_remove(struct hash_index *index, uint64_t hash, uint32_t item);
// The next item that was added under a hash like this one, HASH_INDEX_NONE when there is none any
// more. `*probe` begins at 0. The index must not change on the way.
uint32_t hash_index_next(const struct hash_index *index, uint64_t hash, uint32_t *probe);
