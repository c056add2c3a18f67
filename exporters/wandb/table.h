// SPDX-License-Identifier: Apache-2.0
// A wandb.Table in its two forms, filled cell by cell: the run file, and the file of its artifact
// with the types of its columns.
//
// Source of both forms: what wandb 0.31.0 uploads. A missing value (NaN) is a bare NaN in the first
// and null in the second. A column whose cells have types that do not go together is typed `any`.
#pragma once

#include "exporters/wandb/record.h"

enum { WANDB_COLUMNS_MAX = 32, WANDB_TABLE_ROWS_MAX = 10000 };

// One value: of a cell, or of a member of a row.
struct wandb_cell {
    enum { CELL_NULL, CELL_BOOL, CELL_INT, CELL_NUMBER, CELL_TEXT } type;
    union {
        __int128 integer;  // and bool
        double number;     // NaN: missing
        struct slice text; // UTF-8 (generalised)
    };
};
static const struct wandb_cell cell_null = {.type = CELL_NULL};
static inline struct wandb_cell cell_bool(bool value) {
    return (struct wandb_cell){.type = CELL_BOOL, .integer = value};
}
static inline struct wandb_cell cell_int(__int128 value) {
    return (struct wandb_cell){.type = CELL_INT, .integer = value};
}
static inline struct wandb_cell cell_number(double value) {
    return (struct wandb_cell){.type = CELL_NUMBER, .number = value};
}
static inline struct wandb_cell cell_slice(struct slice text) {
    return (struct wandb_cell){.type = CELL_TEXT, .text = text};
}
static inline struct wandb_cell cell_text(const char *text) {
    return cell_slice(slice_of(text));
}

struct wandb_table {
    const char *const *columns; // [column_count], static
    uint32_t column_count;
    struct buffer file; // complete after wandb_table_end
    struct buffer artifact_file;
    struct buffer cells; // of the artifact's file, until the types are known
    uint64_t row_count;
    uint32_t column;                   // of the next cell
    uint32_t types[WANDB_COLUMNS_MAX]; // which types were seen
};

// `table` is all zero, or was used before: its memory is used again.
void wandb_table_begin(struct wandb_table *table, const char *const *columns, uint32_t count);
// Cells come row by row, left to right; the row ends with its last cell.
void wandb_table_cell(struct wandb_table *table, struct wandb_cell cell);
// A whole row: as many cells as there are columns.
void wandb_table_row(struct wandb_table *table, const struct wandb_cell *cells, uint32_t count);
#define WANDB_TABLE_ROW(table, ...)                                                                \
    wandb_table_row((table), (const struct wandb_cell[]){__VA_ARGS__},                             \
                    sizeof((const struct wandb_cell[]){__VA_ARGS__}) / sizeof(struct wandb_cell))
void wandb_table_end(struct wandb_table *table);
// Says it as a row of its own under `key`; false when it was too large (32 MiB, or more than
// WANDB_TABLE_ROWS_MAX rows) and nothing was said.
bool wandb_table_say(struct wandb_table *table, const char *key, struct wandb_writer *writer);
void wandb_table_release(struct wandb_table *table);

// `,"key":` (without the comma at the start of an empty buffer); the value is the caller's.
void wandb_member_key(struct buffer *members, const char *key);
// A member of a row or a summary; cell_null leaves it out.
void wandb_member(struct buffer *members, const char *key, struct wandb_cell value);
// Shortest text that reads back as the same double; NaN, Infinity, -Infinity stand bare.
void wandb_append_number(struct buffer *out, double value);

// wandb.plot.line_series: the member of visualize under `key`, whose table is `key`_table.
void wandb_chart_member(struct buffer *visualize, const char *key, const char *title,
                        const char *x_name);
