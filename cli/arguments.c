// SPDX-License-Identifier: Apache-2.0
// Parses the command line.
//
// One walk over the words; each option is looked up in its command's rows. Memory: the lists of
// words, in the caller's arena; cost linear in the words typed times the rows.
#include "cli/arguments.h"

#include "base/text/cut.h"
#include "base/text/display.h"
#include "config/option.h"

#include <assert.h>
#include <string.h>

enum { ROWS_MAX = 32, HELP_COLUMN = 28, HELP_WIDTH = 80, CHOICES_WIDTH_MAX = 60 };

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
    assert(list != NULL && word != NULL);
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
        return error_set(parser->error, STATUS_USAGE, "unknown option --%s; did you mean --%s?",
                         given, nearest);
    return error_set(parser->error, STATUS_USAGE, "unknown option --%s", given);
}

static enum status put_choice(struct parser *parser, const struct argument *row,
                              const char *value) {
    assert(row->type == ARGUMENT_CHOICE && value != NULL);
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

// "a.b=value": no part of the key is empty; "\." is a dot within one.
static bool is_assignment(const char *value) {
    size_t part = 0;
    for (const char *at = value; *at != '='; at++) {
        if (*at == '\0' || (*at == '.' && part == 0))
            return false;
        at += at[0] == '\\' && at[1] == '.';
        part = *at == '.' && at[-1] != '\\' ? 0 : part + 1;
    }
    return part > 0;
}

// What was written is not shown: where the '=' is missing, all of it may be a secret.
static enum status not_assigned(struct parser *parser, const struct argument *row,
                                const char *value) {
    const struct word_list *before =
        (const struct word_list *)(const void *)(parser->options + row->offset);
    assert(row->type == ARGUMENT_LIST && row->assignment);
    return error_set(parser->error, STATUS_USAGE, "--%s number %u has no %s; write --%s %s",
                     row->name, before->count + 1, strchr(value, '=') != NULL ? "whole key" : "'='",
                     row->name, row->value_name);
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
        if (row->assignment && !is_assignment(value))
            return not_assigned(parser, row, value);
        word_append((struct word_list *)(void *)field, parser, value);
        return STATUS_OK;
    case ARGUMENT_CHOICE:
        return put_choice(parser, row, value);
    }
    return error_set(parser->error, STATUS_BUG, "--%s has a row of unknown type", row->name);
}

void argument_print(struct buffer *out, const struct argument *row) {
    assert(row->name != NULL);
    buffer_append_format(out, "--%s", row->name);
    size_t choices = 0, width = 0;
    for (; row->type == ARGUMENT_CHOICE && row->choices[choices] != NULL; choices++)
        width += strlen(row->choices[choices]) + 1;
    if (width > CHOICES_WIDTH_MAX) // the help names them
        buffer_append_format(out, " %s", row->value_name == NULL ? "NAME" : row->value_name);
    else if (row->type == ARGUMENT_CHOICE)
        for (size_t i = 0; row->choices[i] != NULL; i++)
            buffer_append_format(out, "%c%s", i == 0 ? ' ' : '|', row->choices[i]);
    else if (row->type != ARGUMENT_FLAG)
        buffer_append_format(out, " %s", row->value_name);
}

static enum status value_missing(const struct parser *parser, const struct argument *row) {
    struct buffer written;
    buffer_init(&written, 512);
    argument_print(&written, row);
    bool given = parser->given[row - parser->rows];
    error_set(parser->error, STATUS_USAGE, "--%s %s: write %.*s", row->name,
              given ? "needs a value" : "is missing", (int)written.size, written.data);
    buffer_release(&written);
    return STATUS_USAGE;
}

// `inline_value` is what stood after "=", or NULL.
static enum status take_option(struct parser *parser, const struct argument *row,
                               const char *inline_value) {
    assert(row >= parser->rows && row < parser->rows + parser->row_count);
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

static const struct argument *find_letter(const struct parser *parser, char letter) {
    for (size_t i = 0; i < parser->row_count; i++)
        if (parser->rows[i].letter != 0 && parser->rows[i].letter == letter)
            return &parser->rows[i];
    return NULL;
}

static enum status unknown_letter(struct parser *parser, const char *word, char letter) {
    assert(word[0] == '-');
    if (word[2] == '\0')
        return error_set(parser->error, STATUS_USAGE,
                         "unknown option %s; long options begin with two dashes", word);
    return error_set(parser->error, STATUS_USAGE,
                     "unknown option -%c in %s; long options begin with two dashes", letter, word);
}

// `-q`, `-qv`, `-o value`, `-ovalue`, `-qo value`: what takes a value is the last of its word.
static enum status take_letters(struct parser *parser, const char *word) {
    for (const char *at = word + 1; *at != '\0'; at++) {
        const struct argument *row = find_letter(parser, *at);
        if (row == NULL && *at != 'h')
            return unknown_letter(parser, word, *at);
        if (row == NULL) {
            parser->arguments->help_wanted = true;
            continue;
        }
        if (row->type != ARGUMENT_FLAG)
            return take_option(parser, row, at[1] == '\0' ? NULL : at + 1);
        enum status status = take_option(parser, row, at[1] == '=' ? at + 2 : NULL);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status take_word(struct parser *parser, bool *options_ended) {
    const char *word = parser->argv[parser->at];
    if (*options_ended || word[0] != '-' || word[1] == '\0') {
        word_append(&parser->arguments->operands, parser, word);
        return STATUS_OK;
    }
    if (word[1] != '-')
        return take_letters(parser, word);
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

// The rows are constants of ours.
static void rows_check(const struct argument *rows, size_t row_count) {
    assert(row_count <= ROWS_MAX && (rows != NULL || row_count == 0));
    for (size_t i = 0; i < row_count; i++) {
        bool choice = rows[i].type == ARGUMENT_CHOICE, flag = rows[i].type == ARGUMENT_FLAG;
        assert(rows[i].name != NULL && rows[i].help != NULL);
        assert(choice == (rows[i].choices != NULL));
        assert((choice || flag) == (rows[i].value_name == NULL));
    }
}

enum status arguments_parse(struct arguments *arguments, void *options, const struct argument *rows,
                            size_t row_count, int argc, char *const *argv, struct arena *arena,
                            struct error *error) {
    assert(arguments != NULL && arena != NULL && argc >= 0);
    rows_check(rows, row_count);
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

struct word_list word_list_join(struct arena *arena, const struct word_list *a,
                                const struct word_list *b) {
    const char **items = arena_zero(arena, a->count + b->count + 1, sizeof *items);
    for (uint32_t i = 0; i < a->count; i++)
        items[i] = a->items[i];
    for (uint32_t i = 0; i < b->count; i++)
        items[a->count + i] = b->items[i];
    return (struct word_list){items, a->count + b->count};
}

// -- help ---------------------------------------------------------------------------------------

static void pad(struct buffer *out, size_t from, size_t column) {
    for (; from < column; from++)
        buffer_append_char(out, ' ');
}

void arguments_print_words(struct buffer *out, struct slice text, size_t used, size_t indent) {
    size_t column = used;
    bool begun = false; // the line has a word
    assert(out != NULL && used < HELP_WIDTH && indent < HELP_WIDTH);
    while (text.size > 0) {
        struct slice word = text_until(text, ' ');
        size_t width = display_columns(word);
        if (begun && column + 1 + width > HELP_WIDTH) {
            buffer_append_char(out, '\n');
            pad(out, 0, indent);
            column = indent;
        } else if (begun) {
            buffer_append_char(out, ' ');
            column++;
        }
        buffer_append(out, word);
        column += width;
        begun = true;
        text = text_from(text, word.size + (word.size < text.size));
    }
    buffer_append_char(out, '\n');
}

static void print_row(struct buffer *out, const struct argument *row) {
    struct buffer name;
    buffer_init(&name, 4096);
    if (row->letter != 0)
        buffer_append_format(&name, "  -%c, ", row->letter);
    else
        buffer_append_text(&name, "      ");
    argument_print(&name, row);
    assert(!name.failed);
    buffer_append(out, buffer_slice(&name));
    size_t used = display_columns(buffer_slice(&name));
    buffer_release(&name);
    if (used + 2 > HELP_COLUMN) {
        buffer_append_char(out, '\n');
        used = 0;
    }
    pad(out, used, HELP_COLUMN);
    arguments_print_words(out, slice_of(row->help), HELP_COLUMN, HELP_COLUMN);
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
        buffer_append_char(out, ' ');
        argument_print(out, &rows[i]);
        if (rows[i].type == ARGUMENT_LIST)
            buffer_append_text(out, "…");
    }
}
