// SPDX-License-Identifier: Apache-2.0
// Finds rows by a hash of what they are known by: open addressing, at most half full. Made anew
// from the rows after a load. Adding allocates when it grows; finding and removing never does. One
// thread.
#pragma once

#include "base/table/table.h"

struct row_slot {
    uint32_t hash;
    uint32_t row; // TABLE_NO_ROW: free
};

struct row_index { // all zero: empty
    struct row_slot *slots;
    uint32_t size; // a power of two, or 0
    uint32_t count;
};

void row_index_release(struct row_index *index); // and empty
void row_index_clear(struct row_index *index);   // keeps its memory
void row_index_put(struct row_index *index, uint32_t hash, uint32_t row);
// `row` was put with this hash.
void row_index_remove(struct row_index *index, uint32_t hash, uint32_t row);

// Where rows with this hash begin, if there are any: to be fetched ahead. NULL in an empty index.
static inline const struct row_slot *row_index_slot(const struct row_index *index, uint32_t hash) {
    return index->size == 0 ? NULL : &index->slots[hash & (index->size - 1)];
}

// The next row with this hash, TABLE_NO_ROW at the end; `*at` is 0 at first. Rows that differ in
// what they are known by may share a hash.
static inline uint32_t row_index_next(const struct row_index *index, uint32_t hash, uint32_t *at) {
    for (; index->size > 0;) {
        const struct row_slot *slot = &index->slots[(hash + (*at)++) & (index->size - 1)];
        if (slot->row == TABLE_NO_ROW || slot->hash == hash)
            return slot->row;
    }
    return TABLE_NO_ROW;
}

// A well-mixed hash of two numbers; chained for more.
static inline uint32_t row_hash(uint64_t a, uint64_t b) {
    uint64_t mixed = (a * UINT64_C(0x9e3779b97f4a7c15) ^ b) * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(mixed >> 32);
}
