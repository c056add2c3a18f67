// SPDX-License-Identifier: Apache-2.0
// Prints help, generated from the rows of the commands.
#include "cli/arguments.h"
#include "cli/command.h"

#include <assert.h>
#include <string.h>

enum { USAGE_MAX = 1024, USAGE_INDENT = 15 };

static const char all_exit_codes[] =
    "  0        done; a clean stop\n"
    "  1        replay, test: not as expected; store check, store dump: damaged\n"
    "  2        analyze: a verdict at or above --fail-on\n"
    "  64       the command line is wrong\n"
    "  65       the input is not valid\n"
    "  66       an input, a file, a store or a running culprit is not there\n"
    "  70       a bug of culprit\n"
    "  71       the system refused something (memory, threads, descriptors)\n"
    "  73       an output cannot be created\n"
    "  74       reading or writing failed\n"
    "  75       run: stopped before all was delivered, and the store keeps it for the next start; "
    "tap: four others watch, or the pipeline is busy\n"
    "  77       no permission\n"
    "  78       the configuration is wrong\n"
    "  128+n    ended at once by a second signal n\n";

const char *help_exit_codes(void) {
    return all_exit_codes;
}

// "  64  the command line is wrong" a line; a long meaning goes on below its beginning.
static void print_exit_codes(struct buffer *out, const char *lines) {
    while (*lines != '\0') {
        size_t code = strspn(lines, " ");
        code += strcspn(lines + code, " ");
        code += strspn(lines + code, " ");
        size_t size = strcspn(lines, "\n");
        assert(lines[size] == '\n' && code < size);
        buffer_append(out, (struct slice){lines, code});
        arguments_print_words(out, (struct slice){lines + code, size - code}, code, code);
        lines += size + 1;
    }
}

static void print_command_rows(struct buffer *out, const char *group) {
    struct command_list list = command_list();
    for (size_t i = 0; i < list.count; i++) {
        const struct command *command = list.items[i];
        size_t length = group == NULL ? 0 : strlen(group);
        if (group != NULL &&
            (strncmp(command->name, group, length) != 0 || command->name[length] != ' '))
            continue;
        buffer_append_format(out, "  %-16s%s\n", command->name, command->summary);
    }
}

void help_print_commands(struct buffer *out) {
    buffer_append_text(out,
                       "culprit names the rank, phase, GPU or node that broke a training job.\n\n"
                       "Usage: culprit COMMAND [OPTION…]\n\nCommands:\n");
    print_command_rows(out, NULL);
    buffer_append_text(
        out,
        "\nFor a command: culprit help COMMAND, or culprit COMMAND --help.\n\nExample:\n"
        "  culprit analyze /telemetry\n\nExit codes:\n");
    print_exit_codes(out, all_exit_codes);
}

void help_print_group(struct buffer *out, const char *word) {
    assert(command_is_group(word));
    buffer_append_format(out, "Usage: culprit %s COMMAND [OPTION…]\n\nCommands:\n", word);
    print_command_rows(out, word);
}

void help_print_usage(struct buffer *out, const struct command *command) {
    buffer_append_format(out, "culprit %s [OPTION…]", command->name);
    arguments_print_required(out, command->rows, command->row_count);
    if (command->operands != NULL)
        buffer_append_format(out, " %s", command->operands);
}

void help_print_command(struct buffer *out, const struct command *command) {
    assert(command->description != NULL && command->examples != NULL);
    assert(command->exit_codes != NULL);
    struct buffer usage;
    buffer_init(&usage, USAGE_MAX);
    help_print_usage(&usage, command);
    assert(!usage.failed);
    buffer_append_text(out, "Usage: ");
    arguments_print_words(out, buffer_slice(&usage), sizeof "Usage: " - 1, USAGE_INDENT);
    buffer_release(&usage);
    buffer_append_char(out, '\n');
    arguments_print_words(out, slice_of(command->description), 0, 0);
    buffer_append_text(out, "\nOptions:\n");
    arguments_print(out, command->rows, command->row_count);
    buffer_append_format(out, "\nExamples:\n%s\nExit codes:\n", command->examples);
    print_exit_codes(out, command->exit_codes);
}

static int help_run(struct invocation *invocation) {
    const struct word_list *words = &invocation->operands;
    if (words->count == 0) {
        help_print_commands(invocation->out);
        return 0;
    }
    int used = 0;
    char *const *argv = (char *const *)(uintptr_t)words->items;
    const struct command *command = command_find((int)words->count, argv, &used);
    if (command != NULL && (uint32_t)used == words->count) {
        help_print_command(invocation->out, command);
        return 0;
    }
    if (command == NULL && words->count == 1 && command_is_group(words->items[0])) {
        help_print_group(invocation->out, words->items[0]);
        return 0;
    }
    const char *wrong = words->items[command == NULL ? 0 : (uint32_t)used];
    const char *nearest = command_nearest(wrong);
    if (nearest != NULL)
        return invocation_misused(invocation, "unknown command \"%s\"; did you mean \"%s\"?", wrong,
                                  nearest);
    return invocation_misused(invocation, "unknown command \"%s\"; culprit help lists them", wrong);
}

const struct command command_help = {
    .name = "help",
    .summary = "help on culprit or one of its commands",
    .operands = "[COMMAND]",
    .operand_max = 2,
    .operand_words = command_words,
    .description = "Prints how culprit, or one command of it, is used.",
    .examples = "  culprit help\n  culprit help analyze\n  culprit help config print\n",
    .exit_codes = "  0   printed\n  64  there is no such command\n  74  writing failed\n",
    .run = help_run,
};
