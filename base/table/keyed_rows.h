// SPDX-License-Identifier: Apache-2.0
// Rows that are found by a key: a table (base/table/table.h) and the chains of a hash over it.
//
// A row begins with struct row_head, then its key, flat bytes without gaps, so of nothing wider
// than four bytes (KEYED_ROW_CHECK). Only the table is state that lasts; the chains are made again
// after a load. Adding allocates when the table or the chains grow; finding and removing never
// does.
#pragma once

#include "base/table/table.h"

struct row_head {
    uint32_t next; // of the same chain; in a row that was freed the table's own
    uint32_t hash;
    uint32_t live; // 0: this row was freed
};

#define KEYED_ROW_CHECK(row_type, key_field)                                                       \
    _Static_assert(offsetof(row_type, key_field) == sizeof(struct row_head),                       \
                   "the key stands right behind the head")

// ROW_TYPE with a key, which is the field `key`.
#define KEYED_ROW_TYPE(row, key, chunk, ...)                                                       \
    {                                                                                              \
        .size = sizeof(row), .key_size = sizeof(((row *)NULL)->key), .rows_per_chunk = (chunk),    \
        .strings = {                                                                               \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

struct keyed_rows {
    struct table table;
    size_t key_size;
    uint32_t *chains;
    uint32_t chain_count; // a power of two
};

void keyed_rows_start(struct keyed_rows *rows, const char *name, const struct row_type *type);
void keyed_rows_release(struct keyed_rows *rows);
// The row with this key, or NULL. O(1) on average, like all but the walks.
void *keyed_rows_find(const struct keyed_rows *rows, const void *key);
// Its number, TABLE_NO_ROW when there is none.
uint32_t keyed_rows_find_number(const struct keyed_rows *rows, const void *key);
// One with this key will be looked for or added soon: the memory that takes is asked for.
void keyed_rows_expect(const struct keyed_rows *rows, const void *key);
// A zeroed row with this key, which none has yet.
void *keyed_rows_add(struct keyed_rows *rows, const void *key);
// The row with this key, added (then `*is_new`) when none has it.
void *keyed_rows_get(struct keyed_rows *rows, const void *key, bool *is_new);
// The number of this row of it, by which other rows may name it. O(1).
uint32_t keyed_rows_number(const struct keyed_rows *rows, const void *row);
void keyed_rows_remove(struct keyed_rows *rows, void *row);
// The next live row at or after *at, which moves behind it; NULL at the end. Rows may be removed on
// the way.
void *keyed_rows_next(const struct keyed_rows *rows, uint32_t *at);
// The same backwards: the last live row before *at, which moves there and is UINT32_MAX at first.
void *keyed_rows_previous(const struct keyed_rows *rows, uint32_t *at);
// After a load.
void keyed_rows_restored(struct keyed_rows *rows);

static inline uint32_t keyed_rows_count(const struct keyed_rows *rows) {
    return table_live(&rows->table);
}
