// SPDX-License-Identifier: Apache-2.0
// Rows of 64 bytes, a cache line each: the number of the next row and 60 bytes. O(bytes) a call.
#include "base/table/table_text.h"

#include <assert.h>

enum { TEXT_BYTES = 60 };

struct text_row {
    uint32_t next;
    char bytes[TEXT_BYTES];
};

const struct row_type table_text_rows = ROW_TYPE(struct text_row, 512);

static size_t part_of(size_t left) {
    return left < TEXT_BYTES ? left : TEXT_BYTES;
}

uint32_t table_text_add(struct table *table, struct slice text) {
    assert(table->row_size == sizeof(struct text_row));
    struct row_list list = ROW_LIST_EMPTY;
    for (size_t at = 0; at < text.size; at += TEXT_BYTES) {
        table_append(table, offsetof(struct text_row, next), &list, table_add(table));
        struct text_row *row = table_row(table, list.last);
        memcpy(row->bytes, text.data + at, part_of(text.size - at));
    }
    return list.first;
}

void table_text_copy(const struct table *table, uint32_t first, char *to, size_t size) {
    assert((first == TABLE_NO_ROW) == (size == 0));
    for (size_t at = 0; at < size; at += TEXT_BYTES) {
        const struct text_row *row = table_row(table, first);
        memcpy(to + at, row->bytes, part_of(size - at));
        first = row->next;
    }
}

bool table_text_equal(const struct table *table, uint32_t first, struct slice text) {
    for (size_t at = 0; at < text.size; at += TEXT_BYTES) {
        const struct text_row *row = table_row(table, first);
        if (memcmp(row->bytes, text.data + at, part_of(text.size - at)) != 0)
            return false;
        first = row->next;
    }
    return true;
}

void table_text_free(struct table *table, uint32_t first) {
    table_free_list(table, offsetof(struct text_row, next), &first);
}
