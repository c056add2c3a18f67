// SPDX-License-Identifier: Apache-2.0
// What did the user type?
//
// One walk over the words; each option is looked up in its command's rows. Memory: the lists of
// words, in the caller's arena; cost linear in the words typed times the rows.
#include "cli/arguments.h"

#include "config/option.h"

#include <assert.h>
#include <string.h>

enum { ROWS_MAX = 32, HELP_COLUMN = 28, HELP_WIDTH = 100 };

struct parser {
    const struct argument *rows;
    size_t row_count;
    int argc;
    char *const *argv;
    int at; // the word that is looked at
    struct arena *arena;
    struct arguments *arguments;
    char *options;
    bool given[ROWS_MAX];
    struct error *error;
};

// Room for all words is taken at the first one, so that a list never grows.
static void word_append(struct word_list *list, const struct parser *parser, const char *word) {
    if (list->items == NULL)
        list->items = arena_zero(parser->arena, (size_t)parser->argc, sizeof *list->items);
    assert(list->count < (uint32_t)parser->argc);
    ((const char **)(uintptr_t)list->items)[list->count++] = word;
}

static enum status unknown_option(struct parser *parser, struct slice name) {
    const char *names[ROWS_MAX + 1];
    for (size_t i = 0; i < parser->row_count; i++)
        names[i] = parser->rows[i].name;
    names[parser->row_count] = "help";
    const char *given = arena_text(parser->arena, name);
    const char *nearest = option_nearest(given, names, parser->row_count + 1);
    if (nearest != NULL)
        return error_set(parser->error, STATUS_USAGE, "there is no option --%s; did you mean --%s?",
                         given, nearest);
    return error_set(parser->error, STATUS_USAGE, "there is no option --%s", given);
}

static enum status put_choice(struct parser *parser, const struct argument *row,
                              const char *value) {
    struct buffer known;
    buffer_init(&known, 512);
    size_t count = 0;
    for (; row->choices[count] != NULL; count++) {
        if (strcmp(row->choices[count], value) == 0) {
            *(int *)(void *)(parser->options + row->offset) = (int)count;
            buffer_release(&known);
            return STATUS_OK;
        }
        if (count > 0)
            buffer_append_text(&known, row->choices[count + 1] == NULL ? " or " : ", ");
        buffer_append_text(&known, row->choices[count]);
    }
    const char *nearest = option_nearest(value, row->choices, count);
    enum status status =
        error_set(parser->error, STATUS_USAGE, "--%s takes %.*s, not \"%s\"%s%s%s", row->name,
                  (int)known.size, known.data, value, nearest == NULL ? "" : "; did you mean ",
                  nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
    buffer_release(&known);
    return status;
}

static enum status put_value(struct parser *parser, const struct argument *row, const char *value) {
    char *field = parser->options + row->offset;
    switch (row->type) {
    case ARGUMENT_FLAG:
        *(bool *)field = true;
        return STATUS_OK;
    case ARGUMENT_TEXT:
        *(const char **)(void *)field = value;
        return STATUS_OK;
    case ARGUMENT_LIST:
        word_append((struct word_list *)(void *)field, parser, value);
        return STATUS_OK;
    case ARGUMENT_CHOICE:
        return put_choice(parser, row, value);
    }
    return error_set(parser->error, STATUS_BUG, "--%s has a row of unknown type", row->name);
}

// "FILE", or "text|json" for a choice.
static void print_value_name(struct buffer *out, const struct argument *row) {
    if (row->type != ARGUMENT_CHOICE) {
        buffer_append_text(out, row->value_name);
        return;
    }
    for (size_t i = 0; row->choices[i] != NULL; i++) {
        if (i > 0)
            buffer_append_char(out, '|');
        buffer_append_text(out, row->choices[i]);
    }
}

static enum status value_missing(const struct parser *parser, const struct argument *row) {
    struct buffer value;
    buffer_init(&value, 512);
    print_value_name(&value, row);
    bool given = parser->given[row - parser->rows];
    error_set(parser->error, STATUS_USAGE, "--%s %s: write --%s %.*s", row->name,
              given ? "needs a value" : "is missing", row->name, (int)value.size, value.data);
    buffer_release(&value);
    return STATUS_USAGE;
}

// `inline_value` is what stood after "=", or NULL.
static enum status take_option(struct parser *parser, const struct argument *row,
                               const char *inline_value) {
    parser->given[row - parser->rows] = true;
    if (row->type == ARGUMENT_FLAG && inline_value != NULL)
        return error_set(parser->error, STATUS_USAGE, "--%s takes no value, but \"%s\" was given",
                         row->name, inline_value);
    if (row->type == ARGUMENT_FLAG || inline_value != NULL)
        return put_value(parser, row, inline_value);
    if (parser->at + 1 >= parser->argc)
        return value_missing(parser, row);
    parser->at++;
    return put_value(parser, row, parser->argv[parser->at]);
}

static enum status take_long(struct parser *parser, const char *text) {
    const char *equals = strchr(text, '=');
    struct slice name = {text, equals == NULL ? strlen(text) : (size_t)(equals - text)};
    for (size_t i = 0; i < parser->row_count; i++)
        if (slice_equal(slice_of(parser->rows[i].name), name))
            return take_option(parser, &parser->rows[i], equals == NULL ? NULL : equals + 1);
    if (!slice_equal(name, SLICE("help")))
        return unknown_option(parser, name);
    parser->arguments->help_wanted = true;
    return STATUS_OK;
}

// `-q`, `-o value`, `-ovalue`; letters are not bundled.
static enum status take_letter(struct parser *parser, const char *text) {
    for (size_t i = 0; i < parser->row_count; i++) {
        if (parser->rows[i].letter == 0 || parser->rows[i].letter != text[0])
            continue;
        return take_option(parser, &parser->rows[i], text[1] == '\0' ? NULL : text + 1);
    }
    if (strcmp(text, "h") != 0)
        return error_set(parser->error, STATUS_USAGE,
                         "there is no option -%s; long options begin with two dashes", text);
    parser->arguments->help_wanted = true;
    return STATUS_OK;
}

static enum status take_word(struct parser *parser, bool *options_ended) {
    const char *word = parser->argv[parser->at];
    if (*options_ended || word[0] != '-' || word[1] == '\0') {
        word_append(&parser->arguments->operands, parser, word);
        return STATUS_OK;
    }
    if (word[1] != '-')
        return take_letter(parser, word + 1);
    if (word[2] != '\0')
        return take_long(parser, word + 2);
    *options_ended = true;
    return STATUS_OK;
}

static enum status check_required(const struct parser *parser) {
    for (size_t i = 0; i < parser->row_count; i++)
        if (parser->rows[i].required && !parser->given[i])
            return value_missing(parser, &parser->rows[i]);
    return STATUS_OK;
}

enum status arguments_parse(struct arguments *arguments, void *options, const struct argument *rows,
                            size_t row_count, int argc, char *const *argv, struct arena *arena,
                            struct error *error) {
    assert(row_count <= ROWS_MAX);
    *arguments = (struct arguments){0};
    struct parser parser = {.rows = rows,
                            .row_count = row_count,
                            .argc = argc,
                            .argv = argv,
                            .arena = arena,
                            .arguments = arguments,
                            .options = options,
                            .error = error};
    bool options_ended = false;
    for (; parser.at < argc; parser.at++) {
        enum status status = take_word(&parser, &options_ended);
        if (status != STATUS_OK)
            return status;
    }
    return arguments->help_wanted ? STATUS_OK : check_required(&parser);
}

// -- help ---------------------------------------------------------------------------------------

static void pad_to(struct buffer *out, size_t line_start, size_t column) {
    while (out->size - line_start < column)
        buffer_append_char(out, ' ');
}

// Words of `text`, from the current column on, with a hanging indent.
static void print_wrapped(struct buffer *out, size_t line_start, const char *text) {
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (out->size - line_start + length > HELP_WIDTH) {
            out->size -= out->size > 0 && out->data[out->size - 1] == ' ';
            buffer_append_char(out, '\n');
            line_start = out->size;
            pad_to(out, line_start, HELP_COLUMN);
        }
        buffer_append(out, (struct slice){text, length});
        text += length;
        if (*text == ' ') {
            buffer_append_char(out, ' ');
            text++;
        }
    }
    buffer_append_char(out, '\n');
}

static void print_row(struct buffer *out, const struct argument *row) {
    struct buffer line;
    buffer_init(&line, 4096);
    if (row->letter != 0)
        buffer_append_format(&line, "  -%c, --%s", row->letter, row->name);
    else
        buffer_append_format(&line, "      --%s", row->name);
    if (row->type != ARGUMENT_FLAG) {
        buffer_append_char(&line, ' ');
        print_value_name(&line, row);
    }
    size_t line_start = 0;
    if (line.size + 2 > HELP_COLUMN) {
        buffer_append_char(&line, '\n');
        line_start = line.size;
    }
    pad_to(&line, line_start, HELP_COLUMN);
    print_wrapped(&line, line_start, row->help);
    assert(!line.failed);
    buffer_append(out, buffer_slice(&line));
    buffer_release(&line);
}

void arguments_print(struct buffer *out, const struct argument *rows, size_t row_count) {
    for (size_t i = 0; i < row_count; i++)
        print_row(out, &rows[i]);
    print_row(
        out, &(struct argument){.name = "help", .letter = 'h', .help = "print this help and exit"});
}

void arguments_print_required(struct buffer *out, const struct argument *rows, size_t row_count) {
    for (size_t i = 0; i < row_count; i++) {
        if (!rows[i].required)
            continue;
        buffer_append_format(out, " --%s ", rows[i].name);
        print_value_name(out, &rows[i]);
        if (rows[i].type == ARGUMENT_LIST)
            buffer_append_text(out, "…");
    }
}
