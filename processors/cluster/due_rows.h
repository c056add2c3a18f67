// SPDX-License-Identifier: Apache-2.0
// Rows that wait in a table until an evaluation reaches their time, taken in order.
//
// What a counter did, or what came of a report, shows only in order of time, and events come in any
// order. So a detector keeps what they say as rows and takes those that are due, sorted, at an
// evaluation: neither the order of lines nor the size of batches makes a difference.
#pragma once

#include "base/arena.h"
#include "base/table/table.h"

struct due_row {
    void *row;
    uint32_t number;
};

struct due_rows {
    struct due_row *items;
    uint32_t count;
};

// The rows of which `is_due` holds, by `compare` (which is given struct due_row); in the arena.
// O(rows of the table + n log n).
struct due_rows due_rows_sorted(const struct table *table,
                                bool (*is_due)(const void *row, uint64_t until_ns),
                                uint64_t until_ns, struct arena *arena,
                                int (*compare)(const void *, const void *));
