// SPDX-License-Identifier: Apache-2.0
// Walks short lists; finds what stands far behind in a long one by its hash.
#include "processors/spans/named_rows.h"

#include "base/table/table.h"

#include <assert.h>

enum { WALKED = 8 };

static struct named_row *row_at(const struct named_rows *rows, uint32_t row) {
    return table_row(&rows->table, row);
}

static bool is_same(const struct named_row *row, const struct named_row *key) {
    return row->name == key->name && row->kind == key->kind && row->owner == key->owner;
}

static uint32_t hash_of(const struct named_row *key) {
    return row_hash((uint64_t)key->owner << 8 | key->kind, key->name);
}

static uint32_t find_indexed(const struct named_rows *rows, const struct named_row *key) {
    uint32_t at = 0, hash = hash_of(key), row;
    while ((row = row_index_next(&rows->index, hash, &at)) != TABLE_NO_ROW &&
           !is_same(row_at(rows, row), key))
        ;
    return row;
}

uint32_t named_rows_get(struct named_rows *rows, struct row_list *list, struct named_row key,
                        bool *is_new) {
    uint32_t at = list->first;
    *is_new = false;
    key.indexed = 1;
    for (int i = 0; i < WALKED; i++) {
        if (at == TABLE_NO_ROW) {
            key.indexed = 0;
            break;
        }
        const struct named_row *row = row_at(rows, at);
        assert(row->owner == key.owner && row->indexed == 0);
        if (is_same(row, &key))
            return at;
        at = row->next;
    }
    if (key.indexed && (at = find_indexed(rows, &key)) != TABLE_NO_ROW)
        return at;
    *is_new = true;
    at = table_add(&rows->table);
    *row_at(rows, at) = key;
    if (key.indexed)
        row_index_put(&rows->index, hash_of(&key), at);
    table_append(&rows->table, offsetof(struct named_row, next), list, at);
    return at;
}

void named_rows_free(struct named_rows *rows, struct row_list *list) {
    for (uint32_t at = list->first; at != TABLE_NO_ROW;) {
        struct named_row *row = row_at(rows, at);
        uint32_t next = row->next;
        if (row->indexed)
            row_index_remove(&rows->index, hash_of(row), at);
        row->indexed = 0;
        table_free(&rows->table, at);
        at = next;
    }
    *list = ROW_LIST_EMPTY;
}

void named_rows_restored(struct named_rows *rows) {
    row_index_clear(&rows->index);
    for (uint32_t i = 0; i < rows->table.used; i++) {
        const struct named_row *row = row_at(rows, i);
        if (row->indexed)
            row_index_put(&rows->index, hash_of(row), i);
    }
}

void named_rows_release(struct named_rows *rows) {
    row_index_release(&rows->index);
}
