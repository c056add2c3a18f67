// SPDX-License-Identifier: Apache-2.0
// Texts of any length in a table: each is a chain of rows that hold 60 bytes, so that it can be
// kept across a restart. Who has the text keeps its size and the number of its first row.
#pragma once

#include "base/slice.h"
#include "base/table/table.h"

extern const struct row_type table_text_rows;

// The first row; TABLE_NO_ROW for an empty text.
uint32_t table_text_add(struct table *table, struct slice text);
// `to` has room for `size` bytes, those of the text.
void table_text_copy(const struct table *table, uint32_t first, char *to, size_t size);
// `text` is as long as the one that begins at `first`.
bool table_text_equal(const struct table *table, uint32_t first, struct slice text);
void table_text_free(struct table *table, uint32_t first);
