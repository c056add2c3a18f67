// SPDX-License-Identifier: Apache-2.0
// Writes option rows as columns, Markdown tables and entries of a manual page.
//
// Groups are flattened into dotted names, in the order of the rows; nothing is kept between calls.
// The column widths need one walk over the rows before the one that writes.
#include "config/describe.h"

#include "base/text/roff.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 128, COLUMN_COUNT = 4, GROUP_DEPTH_MAX = 8 };

struct line {
    const char *columns[COLUMN_COUNT]; // name, type, default, range
    const char *help;
};

typedef void line_write(void *context, const struct line *line);

static const char *default_shown(const struct option *row) {
    if (row->required)
        return "required";
    return row->default_value == NULL ? "" : row->default_value;
}

static void line_make(const struct option *row, const char *name, void *context,
                      line_write *write) {
    assert(row->type != OPTION_GROUP);
    char range[OPTION_RANGE_MAX];
    option_range(row, range);
    const struct line line = {
        .columns = {name, option_type_name(row->type), default_shown(row), range},
        .help = row->help == NULL ? "" : row->help};
    write(context, &line);
}

// Rows of one level that are still to be written.
struct level {
    const struct option *rows;
    size_t count;
    size_t name_length; // of the groups' names before
};

static void lines_write(const struct option *rows, size_t count, void *context, line_write *write) {
    assert(rows != NULL || count == 0);
    struct level levels[GROUP_DEPTH_MAX] = {{rows, count, 0}};
    size_t depth = 1;
    char name[NAME_MAX_BYTES];
    while (depth > 0) {
        struct level *level = &levels[depth - 1];
        if (level->count == 0) {
            depth--;
            continue;
        }
        const struct option *row = level->rows++;
        level->count--;
        size_t at = level->name_length;
        snprintf(name + at, sizeof name - at, "%s", row->name);
        if (row->type != OPTION_GROUP) {
            line_make(row, name, context, write);
            continue;
        }
        assert(depth < GROUP_DEPTH_MAX && strlen(name) + 2 < sizeof name);
        strcat(name, ".");
        levels[depth++] = (struct level){row->rows, row->row_count, strlen(name)};
    }
}

struct columns {
    struct buffer *out;
    size_t width[COLUMN_COUNT];
};

static void column_measure(void *context, const struct line *line) {
    struct columns *columns = context;
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        size_t length = strlen(line->columns[i]);
        columns->width[i] = length > columns->width[i] ? length : columns->width[i];
    }
}

static void column_write(void *context, const struct line *line) {
    const struct columns *columns = context;
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        buffer_append_format(columns->out, "%-*s  ", (int)columns->width[i], line->columns[i]);
    buffer_append_format(columns->out, "%s\n", line->help);
}

void describe_options_text(const struct option *rows, size_t count, struct buffer *out) {
    assert(out != NULL);
    static const struct line HEAD = {.columns = {"name", "type", "default", "range"},
                                     .help = "what it does"};
    struct columns columns = {.out = out};
    column_measure(&columns, &HEAD);
    lines_write(rows, count, &columns, column_measure);
    if (count > 0)
        column_write(&columns, &HEAD);
    lines_write(rows, count, &columns, column_write);
}

// In a table a bar would end the cell.
static void cell_append(struct buffer *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '|')
            buffer_append_char(out, '\\');
        buffer_append_char(out, *text);
    }
}

static void code_append(struct buffer *out, const char *text) {
    bool code = *text != '\0' && strcmp(text, "required") != 0;
    buffer_append_text(out, code ? "`" : "");
    cell_append(out, text);
    buffer_append_text(out, code ? "`" : "");
}

static void markdown_write(void *context, const struct line *line) {
    struct buffer *out = context;
    buffer_append_text(out, "| ");
    code_append(out, line->columns[0]);
    buffer_append_text(out, " | ");
    cell_append(out, line->columns[1]);
    buffer_append_text(out, " | ");
    code_append(out, line->columns[2]);
    buffer_append_text(out, " | ");
    cell_append(out, line->columns[3]);
    buffer_append_text(out, " | ");
    cell_append(out, line->help);
    buffer_append_text(out, " |\n");
}

void describe_options_markdown(const struct option *rows, size_t count, struct buffer *out) {
    if (count == 0)
        return;
    buffer_append_text(out,
                       "| Option | Type | Default | Range | What it does |\n"
                       "|---|---|---|---|---|\n");
    lines_write(rows, count, out, markdown_write);
}

// The type tells the unit: durations and sizes are written with theirs.
static void roff_write(void *context, const struct line *line) {
    struct buffer *out = context;
    const char *shown = line->columns[2], *range = line->columns[3];
    buffer_append_text(out, ".TP\n\\fB");
    roff_code(out, line->columns[0]);
    buffer_append_text(out, "\\fP (");
    roff_text(out, line->columns[1]);
    if (strcmp(shown, "required") == 0)
        buffer_append_text(out, ", required");
    else if (*shown != '\0') {
        buffer_append_text(out, ", default \\fB");
        roff_code(out, shown);
        buffer_append_text(out, "\\fP");
    }
    buffer_append_text(out, ")\n");
    roff_text(out, line->help);
    buffer_append_text(out, ".\n");
    if (*range != '\0') {
        buffer_append_text(out, "Takes ");
        roff_text(out, range);
        buffer_append_text(out, ".\n");
    }
}

void describe_options_roff(const struct option *rows, size_t count, struct buffer *out) {
    lines_write(rows, count, out, roff_write);
}
