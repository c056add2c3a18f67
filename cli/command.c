// SPDX-License-Identifier: Apache-2.0
// The table of commands, and the messages that all of them print alike.
#include "cli/command.h"

#include "base/text/display.h"
#include "config/option.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
    &command_analyze,      &command_run,           &command_top,         &command_tap,
    &command_validate,     &command_test,          &command_replay,      &command_components,
    &command_config_print, &command_config_schema, &command_store_check, &command_store_dump,
    &command_forms_test,   &command_forms,         &command_completion,  &command_manual,
    &command_version,      &command_help,
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

struct command_list command_list(void) {
    return (struct command_list){commands, COMMAND_COUNT};
}

static bool name_matches(const char *name, int argc, char *const *argv, int *words) {
    const char *space = strchr(name, ' ');
    if (space == NULL) {
        *words = 1;
        return strcmp(name, argv[0]) == 0;
    }
    *words = 2;
    size_t first = (size_t)(space - name);
    return argc >= 2 && strlen(argv[0]) == first && memcmp(name, argv[0], first) == 0 &&
           strcmp(space + 1, argv[1]) == 0;
}

const struct command *command_find(int argc, char *const *argv, int *words) {
    assert(words != NULL && (argc == 0 || argv != NULL));
    for (size_t i = 0; argc > 0 && i < COMMAND_COUNT; i++)
        if (name_matches(commands[i]->name, argc, argv, words))
            return commands[i];
    return NULL;
}

const char *command_nearest(const char *given) {
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    return option_nearest(given, names, COMMAND_COUNT);
}

void command_words(struct buffer *out) {
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        buffer_append_format(out, "%s\t%s\n", commands[i]->name, commands[i]->summary);
}

bool command_is_group(const char *word) {
    size_t length = strlen(word);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strncmp(commands[i]->name, word, length) == 0 && commands[i]->name[length] == ' ')
            return true;
    return false;
}

void invocation_say(struct invocation *invocation) {
    assert(invocation->err != NULL);
    if (!buffer_finish(invocation->err))
        buffer_reset(invocation->err); // nobody is left to be told
}

int invocation_fail(struct invocation *invocation, const struct error *error) {
    assert(invocation->command != NULL && error->status != STATUS_OK);
    buffer_append_format(invocation->err, "culprit %s: ", invocation->command->name);
    display_append(invocation->err, slice_of(error->message), 0);
    buffer_append_char(invocation->err, '\n');
    if (error->status == STATUS_USAGE)
        buffer_append_format(invocation->err, "see culprit help %s\n", invocation->command->name);
    invocation_say(invocation);
    return status_exit_code(error->status);
}

int invocation_fail_start(struct invocation *invocation, struct error *error) {
    if (error->status == STATUS_NOT_FOUND)
        error->status = STATUS_CANNOT_CREATE;
    return invocation_fail(invocation, error);
}

int invocation_misused(struct invocation *invocation, const char *format, ...) {
    struct error error = {.status = STATUS_USAGE};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    return invocation_fail(invocation, &error);
}
