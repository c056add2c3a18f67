// SPDX-License-Identifier: Apache-2.0
// Rows of one fixed size in chunks: they never move, are named by an index, and are flat bytes.
//
// All state that a component keeps between batches lives in tables that hold no pointers into one
// another (indices instead), so that a checkpoint can write the chunks and load them again.
// Freed rows are reused, last freed first. Not thread-safe.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TABLE_NO_ROW = UINT32_MAX };

enum { ROW_STRINGS_MAX = 12 };

// What a kind of row is; one constant beside the struct of the row.
struct row_type {
    size_t size;             // of the row
    size_t key_size;         // of the key behind its row_head (keyed_rows.h); 0: it has none
    uint32_t rows_per_chunk; // rounded up to a power of two
    // Offsets of its fields of type string_id, ended by a 0 unless there are as many as fit. Never
    // 0 itself: the chain of freed rows stands there.
    uint16_t strings[ROW_STRINGS_MAX];
    bool (*has_strings)(const void *row); // whether those fields are string ids in this row;
                                          // NULL: in all rows
};

// struct row_type of rows of the type `row`; behind it the offsets of its strings.
#define ROW_TYPE(row, chunk, ...)                                                                  \
    {                                                                                              \
        .size = sizeof(row), .rows_per_chunk = (chunk), .strings = { __VA_ARGS__ }                 \
    }

struct table {
    const char *name;            // "rank_group.samples"; static text
    const struct row_type *type; // NULL: its state is declared field by field
    size_t row_size;
    uint32_t rows_per_chunk; // a power of two
    uint32_t chunk_shift;
    char **chunks;
    uint32_t chunk_count;
    uint32_t chunk_capacity;
    uint32_t used;      // rows ever handed out
    uint32_t free_head; // chain of freed rows, through their first four bytes
    uint32_t free_count;
};

// `rows_per_chunk` is rounded up to a power of two; `row_size` is at least 4.
void table_init(struct table *table, const char *name, size_t row_size, uint32_t rows_per_chunk);
// The same from a type.
void table_start(struct table *table, const char *name, const struct row_type *type);
// Gives all memory back; the table is then as empty as one just made.
void table_release(struct table *table);
// A zeroed row; at most one allocation a chunk. Never fails short of UINT32_MAX rows.
uint32_t table_add(struct table *table);
void table_free(struct table *table, uint32_t row);
uint32_t table_live(const struct table *table);

// Rows may form lists by a field with the number of the next row, TABLE_NO_ROW in the last one,
// which stands at `next_offset` in all of them.
struct row_list {
    uint32_t first, last; // TABLE_NO_ROW: there are none
};
#define ROW_LIST_EMPTY ((struct row_list){TABLE_NO_ROW, TABLE_NO_ROW})

void table_append(struct table *table, size_t next_offset, struct row_list *list, uint32_t row);
// Frees all rows of a list that begins with `*first`, which is TABLE_NO_ROW then.
void table_free_list(struct table *table, size_t next_offset, uint32_t *first);

// Lists that rows leave anywhere have one of these in each row, at `link_offset`.
struct row_link {
    uint32_t before, next;
};
void table_link(struct table *table, size_t link_offset, struct row_list *list, uint32_t row);
void table_unlink(struct table *table, size_t link_offset, struct row_list *list, uint32_t row);

// A table is kept and loaded by pages: whole rows, at most 4 KiB unless one row is larger, never
// across a chunk. Rows that were freed are part of it: the chain of free rows goes through them.
enum { TABLE_PAGE_BYTES = 4096 };

uint32_t table_rows_per_page(const struct table *table); // a power of two
uint32_t table_page_count(const struct table *table);    // pages that hold a row in use or freed
// Bytes of page `page` < table_page_count, those of the rows up to `used`: the last page may be
// shorter than the others.
void *table_page(const struct table *table, uint32_t page, size_t *bytes);
// Makes the table one of `used` rows, all zero, whatever it held; the caller then fills its pages.
// The free chain must be what table_add and table_free left in the saved rows: see
// table_chain_is_whole, to be asked when all pages are filled.
void table_load(struct table *table, uint32_t used, uint32_t free_head, uint32_t free_count);
// Whether the free rows form one chain of `free_count` rows within `used`. Damaged state fails
// here instead of sending table_add astray.
bool table_chain_is_whole(const struct table *table);
// Sets `is_free[row]` (one byte a row, `used` of them) for rows that were freed.
void table_mark_free(const struct table *table, unsigned char *is_free);

static inline void *table_row(const struct table *table, uint32_t row) {
    assert(row < table->used);
    return table->chunks[row >> table->chunk_shift] +
           (size_t)(row & (table->rows_per_chunk - 1)) * table->row_size;
}

// Defines `row *function(const owner *, uint32_t)`: the row of that number in the owner's table.
#define TABLE_ACCESS(function, owner, table, row)                                                  \
    static inline row *function(const owner *of, uint32_t number) {                                \
        return table_row(&of->table, number);                                                      \
    }
