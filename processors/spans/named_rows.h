// SPDX-License-Identifier: Apache-2.0
// Rows that belong to an owner, in whose list they stand, and bear a name that no other row of the
// same kind in that list bears: the actions of a group, the metrics of a span.
//
// An owner mostly has a few. The first of a list are found by walking it, which touches nothing but
// the list; only those behind them stand in an index. Rows are freed by whole lists. Only the table
// is state that lasts. One thread; allocates only when the table or the index grows.
#pragma once

#include "base/table/row_index.h"
#include "base/table/table.h"

// What a row begins with.
struct named_row {
    uint32_t next; // in its list
    uint32_t owner;
    uint32_t name;
    uint8_t kind;
    uint8_t indexed;   // it stands in the index, and was not freed
    uint16_t reserved; // rows have no gaps: checkpoints hold their bytes
};

struct named_rows {
    struct table table;
    struct row_index index;
};

// The number of the row that is `kind`, `owner` and `name` of `key`. The owner's list is `list`,
// to which it is added, zeroed behind those, when it is not there (then `*is_new`). O(1) on
// average.
uint32_t named_rows_get(struct named_rows *rows, struct row_list *list, struct named_row key,
                        bool *is_new);
// Frees all rows of the list, which is empty then.
void named_rows_free(struct named_rows *rows, struct row_list *list);
// After a load.
void named_rows_restored(struct named_rows *rows);
// The table is released by its owner.
void named_rows_release(struct named_rows *rows);
