// SPDX-License-Identifier: Apache-2.0
// Chunks of rows behind one list of pointers, and a chain of freed rows. O(1) a call but for
// loading.
#include "base/table/table.h"

#include "base/memory.h"
#include "base/memory_pages.h"

#include <assert.h>
#include <string.h>

void table_init(struct table *table, const char *name, size_t row_size, uint32_t rows_per_chunk) {
    assert(row_size >= sizeof(uint32_t));
    assert(rows_per_chunk > 0 && rows_per_chunk <= (UINT32_C(1) << 24));
    *table = (struct table){.name = name, .row_size = row_size, .free_head = TABLE_NO_ROW};
    while ((UINT32_C(1) << table->chunk_shift) < rows_per_chunk)
        table->chunk_shift++;
    table->rows_per_chunk = UINT32_C(1) << table->chunk_shift;
}

void table_start(struct table *table, const char *name, const struct row_type *type) {
    assert(name != NULL && type->size >= type->key_size);
    table_init(table, name, type->size, type->rows_per_chunk);
    table->type = type;
}

// A table begins with chunks that are allocated one by one. Of one that has grown large, as many
// chunks as fit share a huge page; what is left of that is never touched.
enum { LARGE_BYTES = 8 << 20 };

static size_t chunk_bytes(const struct table *table) {
    return table->row_size * table->rows_per_chunk;
}

// How many chunks stand behind one another in the block that chunk `number` belongs to, and its
// place among them.
static uint32_t chunks_together(const struct table *table, uint32_t number, uint32_t *place) {
    size_t bytes = chunk_bytes(table);
    size_t single = (LARGE_BYTES + bytes - 1) / bytes, together = MEMORY_HUGE_PAGE / bytes;
    *place = 0;
    if (number < single || together < 2)
        return 1;
    *place = (uint32_t)((number - single) % together);
    return (uint32_t)together;
}

static char *take_chunk(const struct table *table, uint32_t number) {
    uint32_t place;
    if (chunks_together(table, number, &place) == 1)
        return memory_take(chunk_bytes(table));
    return place == 0 ? memory_take_pages(MEMORY_HUGE_PAGE)
                      : table->chunks[number - 1] + chunk_bytes(table);
}

static void give_chunk(const struct table *table, uint32_t number) {
    uint32_t place;
    if (chunks_together(table, number, &place) == 1)
        memory_give(table->chunks[number]);
    else if (place == 0)
        memory_give_pages(table->chunks[number], MEMORY_HUGE_PAGE);
}

void table_release(struct table *table) {
    for (uint32_t i = 0; i < table->chunk_count; i++)
        give_chunk(table, i);
    memory_give(table->chunks);
    table->chunks = NULL;
    table->chunk_count = table->chunk_capacity = table->used = table->free_count = 0;
    table->free_head = TABLE_NO_ROW;
}

static void table_add_chunk(struct table *table) {
    assert(table->rows_per_chunk > 0 && "table_init comes first");
    if (table->chunk_count == table->chunk_capacity) {
        table->chunk_capacity = table->chunk_capacity == 0 ? 16 : table->chunk_capacity * 2;
        table->chunks = memory_resize(table->chunks, table->chunk_capacity * sizeof(char *));
    }
    table->chunks[table->chunk_count] = take_chunk(table, table->chunk_count);
    table->chunk_count++;
}

uint32_t table_add(struct table *table) {
    uint32_t row = table->free_head;
    if (row != TABLE_NO_ROW) {
        memcpy(&table->free_head, table_row(table, row), sizeof table->free_head);
        table->free_count--;
    } else {
        assert(table->used < TABLE_NO_ROW);
        row = table->used++;
        if (row >> table->chunk_shift == table->chunk_count)
            table_add_chunk(table);
    }
    memset(table_row(table, row), 0, table->row_size);
    return row;
}

void table_free(struct table *table, uint32_t row) {
    assert(table->free_count < table->used && table->free_head != row);
    memcpy(table_row(table, row), &table->free_head, sizeof table->free_head);
    table->free_head = row;
    table->free_count++;
}

static void *field_at(const struct table *table, size_t offset, uint32_t row) {
    assert(offset % sizeof(uint32_t) == 0 && offset + sizeof(uint32_t) <= table->row_size);
    return (char *)table_row(table, row) + offset;
}

static uint32_t *next_at(const struct table *table, size_t next_offset, uint32_t row) {
    return field_at(table, next_offset, row);
}

void table_append(struct table *table, size_t next_offset, struct row_list *list, uint32_t row) {
    assert((list->first == TABLE_NO_ROW) == (list->last == TABLE_NO_ROW));
    *next_at(table, next_offset, row) = TABLE_NO_ROW;
    if (list->last == TABLE_NO_ROW)
        list->first = row;
    else
        *next_at(table, next_offset, list->last) = row;
    list->last = row;
}

void table_free_list(struct table *table, size_t next_offset, uint32_t *first) {
    while (*first != TABLE_NO_ROW) {
        uint32_t row = *first;
        *first = *next_at(table, next_offset, row);
        table_free(table, row);
    }
}

static struct row_link *link_at(const struct table *table, size_t link_offset, uint32_t row) {
    return field_at(table, link_offset, row);
}

void table_link(struct table *table, size_t link_offset, struct row_list *list, uint32_t row) {
    link_at(table, link_offset, row)->before = list->last;
    table_append(table, link_offset + offsetof(struct row_link, next), list, row);
}

void table_unlink(struct table *table, size_t link_offset, struct row_list *list, uint32_t row) {
    struct row_link link = *link_at(table, link_offset, row);
    assert((link.before == TABLE_NO_ROW) == (list->first == row));
    assert((link.next == TABLE_NO_ROW) == (list->last == row));
    if (link.before == TABLE_NO_ROW)
        list->first = link.next;
    else
        link_at(table, link_offset, link.before)->next = link.next;
    if (link.next == TABLE_NO_ROW)
        list->last = link.before;
    else
        link_at(table, link_offset, link.next)->before = link.before;
}

uint32_t table_live(const struct table *table) {
    assert(table->free_count <= table->used);
    return table->used - table->free_count;
}

uint32_t table_rows_per_page(const struct table *table) {
    assert(table->row_size > 0);
    uint32_t rows = 1;
    while (rows < table->rows_per_chunk && (size_t)rows * 2 * table->row_size <= TABLE_PAGE_BYTES)
        rows *= 2;
    return rows;
}

uint32_t table_page_count(const struct table *table) {
    uint32_t rows = table_rows_per_page(table);
    return (uint32_t)(((uint64_t)table->used + rows - 1) / rows);
}

void *table_page(const struct table *table, uint32_t page, size_t *bytes) {
    uint32_t rows = table_rows_per_page(table);
    uint32_t first = page * rows;
    assert(first < table->used);
    uint32_t left = table->used - first;
    *bytes = (left < rows ? left : rows) * table->row_size;
    return table_row(table, first);
}

void table_load(struct table *table, uint32_t used, uint32_t free_head, uint32_t free_count) {
    assert(table->row_size > 0 && table->rows_per_chunk > 0);
    table_release(table);
    while ((uint64_t)table->chunk_count << table->chunk_shift < used)
        table_add_chunk(table);
    for (uint32_t i = 0; i < table->chunk_count; i++)
        memset(table->chunks[i], 0, chunk_bytes(table));
    table->used = used;
    table->free_head = free_head;
    table->free_count = free_count;
}

static uint32_t next_free(const struct table *table, uint32_t row) {
    uint32_t next;
    memcpy(&next, table_row(table, row), sizeof next);
    return next;
}

bool table_chain_is_whole(const struct table *table) {
    uint32_t row = table->free_head;
    uint32_t count = 0;
    // A ring is longer than any chain; no chain is longer than the table.
    if (table->free_count > table->used)
        return false;
    for (; row != TABLE_NO_ROW && count < table->free_count; count++) {
        if (row >= table->used)
            return false;
        row = next_free(table, row);
    }
    return row == TABLE_NO_ROW && count == table->free_count;
}

void table_mark_free(const struct table *table, unsigned char *is_free) {
    assert(is_free != NULL || table->used == 0);
    memset(is_free, 0, table->used);
    for (uint32_t row = table->free_head; row != TABLE_NO_ROW; row = next_free(table, row))
        is_free[row] = 1;
}
