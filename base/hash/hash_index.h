// SPDX-License-Identifier: Apache-2.0
// Finds the items of an array by their 64-bit hash: base/table/row_index.h, with the hash folded.
//
// The index holds numbers of items, which the owner keeps where it likes and compares itself, so
// one array may have several. 8 bytes a slot. Finding and removing take no memory. Not for keys
// that an attacker chooses in bulk, unless their hash has a seed. Not thread-safe.
#pragma once

#include "base/hash/hash.h"
#include "base/table/row_index.h"
#include "base/table/table.h"

enum { HASH_INDEX_NONE = TABLE_NO_ROW };

// Zeroed: empty.
struct hash_index {
    struct row_index rows;
};

static inline void hash_index_release(struct hash_index *index) {
    row_index_release(&index->rows);
}

// Empty; the memory stays.
static inline void hash_index_clear(struct hash_index *index) {
    row_index_clear(&index->rows);
}

static inline void hash_index_add(struct hash_index *index, uint64_t hash, uint32_t item) {
    row_index_put(&index->rows, hash_folded(hash), item);
}

// The item must be there under this hash.
static inline void hash_index_remove(struct hash_index *index, uint64_t hash, uint32_t item) {
    row_index_remove(&index->rows, hash_folded(hash), item);
}

// The next item that was added under a hash like this one, HASH_INDEX_NONE when there is none any
// more. `*probe` begins at 0. The index must not change on the way.
static inline uint32_t hash_index_next(const struct hash_index *index, uint64_t hash,
                                       uint32_t *probe) {
    return row_index_next(&index->rows, hash_folded(hash), probe);
}
