// SPDX-License-Identifier: Apache-2.0
// What a command is: one constant of struct command, in the command's own file, and one line in the
// table of command.c.
#pragma once

#include "cli/arguments.h"

// What a command is given when it runs. Everything lives until the process ends.
struct invocation {
    const struct command *command;
    const void *options; // the struct that the command's rows fill
    struct word_list operands;
    struct arena *arena;
    struct buffer *out; // standard output
    struct buffer *err; // standard error; written at once by invocation_say
};

struct command {
    const char *name;     // "analyze", or two words: "config print"
    const char *summary;  // one line for the list of commands, no full stop
    const char *operands; // "PATH…" in the usage line; NULL: it takes none
    uint32_t operand_max; // 0 with operands: any number
    // What an operand may be, for shells that complete it: appends lines, each of the word or words
    // and, behind a tab, what it means. NULL: operands are files.
    void (*operand_words)(struct buffer *out);
    const char *description;
    const struct argument *rows;
    size_t row_count;
    size_t options_size;
    const char *examples;   // lines, indented by two
    const char *exit_codes; // lines, indented by two
    int (*run)(struct invocation *invocation);
};

#define COMMAND_OPTIONS(rows_, options_type)                                                       \
    .rows = (rows_), .row_count = sizeof(rows_) / sizeof((rows_)[0]),                              \
    .options_size = sizeof(options_type)

struct command_list {
    const struct command *const *items;
    size_t count;
};

// All commands, in the order of `culprit help`.
struct command_list command_list(void);
// Finds `name` (one word or two, by the first two words of argv); *words is how many it took.
const struct command *command_find(int argc, char *const *argv, int *words);
// The nearest name of a command, or NULL.
const char *command_nearest(const char *given);
// A line "NAME\tSUMMARY" for each command.
void command_words(struct buffer *out);
// The first words that begin commands of two ("config").
bool command_is_group(const char *word);

extern const struct command command_analyze;
extern const struct command command_run;
extern const struct command command_validate;
extern const struct command command_test;
extern const struct command command_replay;
extern const struct command command_components;
extern const struct command command_config_print;
extern const struct command command_config_schema;
extern const struct command command_store_check;
extern const struct command command_store_dump;
extern const struct command command_top;
extern const struct command command_tap;
extern const struct command command_forms;
extern const struct command command_forms_test;
extern const struct command command_completion;
extern const struct command command_manual;
extern const struct command command_version;
extern const struct command command_help;

// Writes what stands in `err` to standard error now.
void invocation_say(struct invocation *invocation);
// "culprit analyze: MESSAGE" to standard error, with a hint to --help when it is a usage error.
// Returns the exit code for the error's status.
int invocation_fail(struct invocation *invocation, const struct error *error);
// The same for an error of service_start: what is not there is then the place of an output (73).
int invocation_fail_start(struct invocation *invocation, struct error *error);
// Exit code 64 with `format` as the message.
int invocation_misused(struct invocation *invocation, const char *format, ...) PRINTF_LIKE(2, 3);

// Help pages, as `culprit help` and --help print them.
void help_print_commands(struct buffer *out);
void help_print_group(struct buffer *out, const char *word);
void help_print_command(struct buffer *out, const struct command *command);
// "culprit analyze [OPTION…] PATH…"
void help_print_usage(struct buffer *out, const struct command *command);
// "  CODE  meaning" a line: the exit codes of all commands.
const char *help_exit_codes(void);
