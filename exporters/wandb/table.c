// SPDX-License-Identifier: Apache-2.0
// Builds the two forms of a W&B table, and the JSON members of rows.
//
// It wants the rows twice: in a run file, and in the file of an artifact with the types of the
// columns, which are known when the last cell is. So the artifact's rows wait in `cells` and its
// head is written at the end. Source: what wandb 0.31.0 uploads (Table's two JSON forms, and with
// allow_mixed_types for columns of several types). Memory: three times the text of the cells,
// bounded.
#include "exporters/wandb/table.h"

#include "base/metrics/exposition.h"
#include "base/text/json_write.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

enum {
    TABLE_BYTES_MAX = 32 << 20, // of each form
    SEEN_BOOLEAN = 1 << 0,
    SEEN_NUMBER = 1 << 1,
    SEEN_STRING = 1 << 2,
};

void wandb_append_number(struct buffer *out, double value) {
    if (isinf(value))
        buffer_append(out, value > 0 ? SLICE("Infinity") : SLICE("-Infinity"));
    else
        exposition_append_number(out, value);
}

// -- cells ----------------------------------------------------------------------------------------

static void ready(struct buffer *buffer) {
    if (buffer->max == 0)
        buffer_init(buffer, TABLE_BYTES_MAX);
    else
        buffer_reset(buffer);
}

static void append_columns(const struct wandb_table *table, struct buffer *out) {
    buffer_append(out, SLICE("\"columns\":["));
    for (uint32_t i = 0; i < table->column_count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_append_string(out, slice_of(table->columns[i]));
    }
    buffer_append_char(out, ']');
}

void wandb_table_begin(struct wandb_table *table, const char *const *columns, uint32_t count) {
    assert(count > 0 && count <= WANDB_COLUMNS_MAX);
    ready(&table->file);
    ready(&table->artifact_file);
    ready(&table->cells);
    table->columns = columns;
    table->column_count = count;
    table->row_count = 0;
    table->column = 0;
    memset(table->types, 0, sizeof table->types);
    buffer_append_char(&table->file, '{');
    append_columns(table, &table->file);
    buffer_append(&table->file, SLICE(",\"data\":["));
}

static void open_cell(const struct wandb_table *table, struct buffer *out) {
    assert(table->column < table->column_count);
    if (table->column > 0)
        buffer_append_char(out, ',');
    else
        buffer_append(out, table->row_count > 0 ? SLICE(",[") : SLICE("["));
}

static void append_value(struct buffer *out, struct wandb_cell cell) {
    switch (cell.type) {
    case CELL_NULL:
        buffer_append(out, SLICE("null"));
        break;
    case CELL_BOOL:
        buffer_append_text(out, cell.integer != 0 ? "true" : "false");
        break;
    case CELL_INT:
        buffer_append_int128(out, cell.integer);
        break;
    case CELL_NUMBER:
        wandb_append_number(out, cell.number);
        break;
    case CELL_TEXT:
        json_append_string(out, cell.text);
        break;
    }
}

// A NaN is a missing number: bare in the run file, null in the artifact, and of no type.
void wandb_table_cell(struct wandb_table *table, struct wandb_cell cell) {
    static const uint32_t seen[] = {[CELL_BOOL] = SEEN_BOOLEAN,
                                    [CELL_INT] = SEEN_NUMBER,
                                    [CELL_NUMBER] = SEEN_NUMBER,
                                    [CELL_TEXT] = SEEN_STRING};
    assert(table->column < table->column_count);
    open_cell(table, &table->file);
    open_cell(table, &table->cells);
    append_value(&table->file, cell);
    if (cell.type == CELL_NUMBER && isnan(cell.number))
        cell = cell_null;
    append_value(&table->cells, cell);
    table->types[table->column] |= seen[cell.type];
    if (++table->column < table->column_count)
        return;
    buffer_append_char(&table->file, ']');
    buffer_append_char(&table->cells, ']');
    table->column = 0;
    table->row_count++;
}

void wandb_table_row(struct wandb_table *table, const struct wandb_cell *cells, uint32_t count) {
    assert(count == table->column_count && table->column == 0);
    for (uint32_t i = 0; i < count; i++)
        wandb_table_cell(table, cells[i]);
}

// -- the whole ------------------------------------------------------------------------------------

// The names stand in their alphabetical order; none is in every union.
static struct slice allowed_types(uint32_t seen) {
    switch (seen) {
    case 0:
        return SLICE("{\"wb_type\":\"none\"},{\"wb_type\":\"unknown\"}");
    case SEEN_BOOLEAN:
        return SLICE("{\"wb_type\":\"boolean\"},{\"wb_type\":\"none\"}");
    case SEEN_NUMBER:
        return SLICE("{\"wb_type\":\"none\"},{\"wb_type\":\"number\"}");
    case SEEN_STRING:
        return SLICE("{\"wb_type\":\"none\"},{\"wb_type\":\"string\"}");
    default:
        return SLICE("{\"wb_type\":\"any\"},{\"wb_type\":\"none\"}");
    }
}

static void append_types(const struct wandb_table *table, struct buffer *out) {
    buffer_append(out, SLICE("\"column_types\":{\"wb_type\":\"typedDict\",\"params\":"
                             "{\"type_map\":{"));
    for (uint32_t i = 0; i < table->column_count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        json_append_string(out, slice_of(table->columns[i]));
        buffer_append(out, SLICE(":{\"wb_type\":\"union\",\"params\":{\"allowed_types\":["));
        buffer_append(out, allowed_types(table->types[i]));
        buffer_append(out, SLICE("]}}"));
    }
    buffer_append(out, SLICE("}}}"));
}

void wandb_table_end(struct wandb_table *table) {
    assert(table->column == 0);
    struct buffer *out = &table->artifact_file;
    buffer_append(&table->file, SLICE("]}"));
    buffer_append(out, SLICE("{\"_type\":\"table\","));
    append_types(table, out);
    buffer_append_char(out, ',');
    append_columns(table, out);
    buffer_append(out, SLICE(",\"data\":["));
    buffer_append(out, buffer_slice(&table->cells));
    buffer_append(out, SLICE("],\"log_mode\":\"IMMUTABLE\",\"ncols\":"));
    buffer_append_uint(out, table->column_count);
    buffer_append(out, SLICE(",\"nrows\":"));
    buffer_append_uint(out, table->row_count);
    buffer_append_char(out, '}');
}

bool wandb_table_say(struct wandb_table *table, const char *key, struct wandb_writer *writer) {
    assert(table->column == 0 && key[0] != '\0');
    if (table->file.failed || table->cells.failed || table->artifact_file.failed ||
        table->row_count > WANDB_TABLE_ROWS_MAX)
        return false;
    struct wandb_record record = {
        .kind = WANDB_TABLE,
        .key = slice_of(key),
        .file = buffer_slice(&table->file),
        .artifact_file = buffer_slice(&table->artifact_file),
        .columns = table->column_count,
        .rows = table->row_count,
    };
    wandb_say(writer, &record);
    return true;
}

void wandb_table_release(struct wandb_table *table) {
    buffer_release(&table->file);
    buffer_release(&table->artifact_file);
    buffer_release(&table->cells);
}

// -- members --------------------------------------------------------------------------------------

void wandb_member_key(struct buffer *members, const char *key) {
    assert(key[0] != '\0');
    if (members->size > 0)
        buffer_append_char(members, ',');
    json_append_string(members, slice_of(key));
    buffer_append_char(members, ':');
}

void wandb_member(struct buffer *members, const char *key, struct wandb_cell value) {
    if (value.type == CELL_NULL)
        return;
    wandb_member_key(members, key);
    append_value(members, value);
}

// The panel W&B's own line_series makes: it draws lines over `step`, one for each `lineKey`, from
// the table that the summary holds under `key`_table.
void wandb_chart_member(struct buffer *visualize, const char *key, const char *title,
                        const char *x_name) {
    struct json_writer json;
    wandb_member_key(visualize, key);
    buffer_append(visualize,
                  SLICE("{\"panel_type\":\"Vega2\",\"panel_config\":{"
                        "\"panelDefId\":\"wandb/lineseries/v0\",\"fieldSettings\":{"
                        "\"step\":\"step\",\"lineKey\":\"lineKey\",\"lineVal\":\"lineVal\"},"
                        "\"stringSettings\":"));
    json_begin(&json, visualize, 0);
    json_object_open(&json);
    json_field_text(&json, "title", title);
    json_field_text(&json, "xname", x_name);
    json_object_close(&json);
    buffer_append(visualize,
                  SLICE(",\"transform\":{\"name\":\"tableWithLeafColNames\"},\"userQuery\":{"
                        "\"queryFields\":[{\"name\":\"runSets\",\"args\":[{\"name\":\"runSets\","
                        "\"value\":\"${runSets}\"}],\"fields\":["
                        "{\"name\":\"id\",\"fields\":[]},{\"name\":\"name\",\"fields\":[]},"
                        "{\"name\":\"_defaultColorIndex\",\"fields\":[]},"
                        "{\"name\":\"summaryTable\",\"args\":[{\"name\":\"tableKey\",\"value\":"));
    char table_key[256];
    int length = snprintf(table_key, sizeof table_key, "%s_table", key);
    assert(length > 0 && (size_t)length < sizeof table_key);
    json_append_string(visualize, slice_of(table_key));
    buffer_append(visualize, SLICE("}],\"fields\":[]}]}]}}}"));
}
