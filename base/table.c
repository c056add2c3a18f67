// SPDX-License-Identifier: Apache-2.0
#include "base/table.h"

#include "base/memory.h"

#include <string.h>

void table_init(struct table *table, const char *name, size_t row_size, uint32_t rows_per_chunk) {
    assert(row_size >= sizeof(uint32_t));
    assert(rows_per_chunk > 0 && rows_per_chunk <= (UINT32_C(1) << 24));
    *table = (struct table){.name = name, .row_size = row_size, .free_head = TABLE_NO_ROW};
    while ((UINT32_C(1) << table->chunk_shift) < rows_per_chunk)
        table->chunk_shift++;
    table->rows_per_chunk = UINT32_C(1) << table->chunk_shift;
}

void table_release(struct table *table) {
    for (uint32_t i = 0; i < table->chunk_count; i++)
        memory_give(table->chunks[i]);
    memory_give(table->chunks);
    table->chunks = NULL;
    table->chunk_count = table->chunk_capacity = table->used = table->free_count = 0;
    table->free_head = TABLE_NO_ROW;
}

static void table_add_chunk(struct table *table) {
    if (table->chunk_count == table->chunk_capacity) {
        table->chunk_capacity = table->chunk_capacity == 0 ? 16 : table->chunk_capacity * 2;
        table->chunks = memory_resize(table->chunks, table->chunk_capacity * sizeof(char *));
    }
    table->chunks[table->chunk_count++] = memory_take(table->row_size * table->rows_per_chunk);
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
    memcpy(table_row(table, row), &table->free_head, sizeof table->free_head);
    table->free_head = row;
    table->free_count++;
}

uint32_t table_live(const struct table *table) {
    return table->used - table->free_count;
}
