// SPDX-License-Identifier: Apache-2.0
// Prints help, generated from the rows of the commands.
#include "cli/arguments.h"
#include "cli/command.h"

#include <assert.h>
#include <string.h>

static const char all_exit_codes[] =
    "  0        done; a clean stop\n"
    "  1        replay: the verdicts differ from the expected ones\n"
    "  2        analyze: a verdict at or above --fail-on\n"
    "  64       the command line is wrong\n"
    "  65       the input is not valid\n"
    "  66       no input was found\n"
    "  70       a bug of culprit\n"
    "  71       the system refused something (memory, threads, descriptors)\n"
    "  73       an output cannot be created\n"
    "  74       reading or writing failed\n"
    "  75       stopped before all was delivered; the store keeps it for the next start\n"
    "  77       no permission\n"
    "  78       the configuration is wrong\n"
    "  128+n    ended at once by a second signal n\n";

const char *help_exit_codes(void) {
    return all_exit_codes;
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
                       "culprit names the rank, phase, GPU or node that broke a distributed "
                       "training job.\n\nUsage: culprit COMMAND [OPTION…]\n\nCommands:\n");
    print_command_rows(out, NULL);
    buffer_append_text(
        out,
        "\nFor a command: culprit help COMMAND, or culprit COMMAND --help.\n\nExample:\n"
        "  culprit analyze /telemetry\n\nExit codes:\n");
    buffer_append_text(out, all_exit_codes);
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
    buffer_append_text(out, "Usage: ");
    help_print_usage(out, command);
    buffer_append_format(out, "\n\n%s\n\nOptions:\n", command->description);
    arguments_print(out, command->rows, command->row_count);
    buffer_append_format(out, "\nExamples:\n%s\nExit codes:\n%s", command->examples,
                         command->exit_codes);
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
    .exit_codes = "  0   printed\n  64  there is no such command\n",
    .run = help_run,
};
