// SPDX-License-Identifier: Apache-2.0
// Command-line options: one row names an option, its type, its value and its help, once. The rows
// feed both the parser and `--help`.
//
// GNU style: `--name value` and `--name=value`, letters of flags in one word (`-qv`), options and
// operands in any order, `--` ends the options, `-` is an operand. Names are not abbreviated, so
// that a script keeps its meaning when an option is added.
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct word_list {
    const char *const *items;
    uint32_t count;
};

enum argument_type {
    ARGUMENT_FLAG,   // bool
    ARGUMENT_TEXT,   // const char *; the last one wins
    ARGUMENT_LIST,   // struct word_list; each time one more
    ARGUMENT_CHOICE, // int: index into `choices`; the first one is the default
};

struct argument {
    const char *name; // "output", for --output
    char letter;      // 'q' for -q; 0: none
    enum argument_type type;
    size_t offset;              // of the field in the command's options
    const char *value_name;     // "FILE"; NULL for flags
    const char *const *choices; // CHOICE: NULL-terminated
    bool required;
    bool assignment;  // LIST: each is KEY=VALUE
    const char *help; // a clause, no trailing full stop
};

// A row: ARGUMENT("fail-on", struct x_options, fail_on, ARGUMENT_CHOICE, .choices = …, .help = …).
#define ARGUMENT(option_name, owner, field, kind, ...)                                             \
    { .name = (option_name), .type = (kind), .offset = offsetof(owner, field), __VA_ARGS__ }

// What was typed after the command's name.
struct arguments {
    struct word_list operands; // as typed, in order
    bool help_wanted;          // --help or -h; then nothing was checked for being there
};

// Fills `options` (zeroed by the caller) by the rows. Texts point into `argv`, lists lie in
// `arena`. STATUS_USAGE with a sentence that names the nearest option or choice.
enum status arguments_parse(struct arguments *arguments, void *options, const struct argument *rows,
                            size_t row_count, int argc, char *const *argv, struct arena *arena,
                            struct error *error) MUST_USE;
// The words of both, in order.
struct word_list word_list_join(struct arena *arena, const struct word_list *a,
                                const struct word_list *b);
// The table of options for help: two columns, the right one wrapped at 80 columns.
void arguments_print(struct buffer *out, const struct argument *rows, size_t row_count);
// The words of `text`, in lines of 80 columns, of which `used` are taken in the first, and which
// begin with `indent` blanks from the second on; ends the line.
void arguments_print_words(struct buffer *out, struct slice text, size_t used, size_t indent);
// " --config FILE…": what must be given, for the usage line.
void arguments_print_required(struct buffer *out, const struct argument *rows, size_t row_count);
// "--output text|summary": an option as it is written, without its letter.
void argument_print(struct buffer *out, const struct argument *row);
