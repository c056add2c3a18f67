// SPDX-License-Identifier: Apache-2.0
// Any command line is understood or refused with a sentence.
//
// The input is words with zero bytes or line ends between them. They are looked up as a command and
// its options read by its rows, or by the rows of all commands when it is none; what was understood
// points to what was typed.
#include "cli/command.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>

enum { WORDS_MAX = 64 };

struct words {
    char *items[WORDS_MAX];
    int count;
};

static bool was_typed(const struct words *words, const char *text) {
    for (int i = 0; i < words->count; i++)
        if (text >= words->items[i] && text <= words->items[i] + strlen(words->items[i]))
            return true;
    return false;
}

static void require_typed(const struct words *words, const struct command *command,
                          const char *options) {
    for (size_t i = 0; i < command->row_count; i++) {
        const struct argument *row = &command->rows[i];
        const char *field = options + row->offset;
        if (row->type == ARGUMENT_TEXT) {
            const char *text = *(const char *const *)(const void *)field;
            require(text == NULL || was_typed(words, text));
        } else if (row->type == ARGUMENT_LIST) {
            const struct word_list *list = (const void *)field;
            for (uint32_t j = 0; j < list->count; j++)
                require(was_typed(words, list->items[j]));
        } else if (row->type == ARGUMENT_CHOICE) {
            int choice = *(const int *)(const void *)field, count = 0;
            while (row->choices[count] != NULL)
                count++;
            require(choice >= 0 && choice < count);
        }
    }
}

static void parse(const struct words *words, const struct command *command, int skipped) {
    struct arena arena;
    arena_init(&arena, 4096);
    struct error error = {0};
    struct arguments arguments = {0};
    void *options = memory_zero(1, command->options_size + 1);
    enum status status =
        arguments_parse(&arguments, options, command->rows, command->row_count,
                        words->count - skipped, words->items + skipped, &arena, &error);
    require(status == STATUS_OK || status == STATUS_USAGE);
    if (status == STATUS_OK) {
        require_typed(words, command, options);
        for (uint32_t i = 0; i < arguments.operands.count; i++)
            require(was_typed(words, arguments.operands.items[i]));
    } else {
        require(strlen(error.message) > 10);
    }
    memory_give(options);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct words words = {.count = 0};
    char *typed = memory_copy_text((const char *)data, size);
    for (size_t at = 0; at < size && words.count < WORDS_MAX; at++) {
        if (typed[at] == '\n')
            typed[at] = '\0';
        if (at == 0 || typed[at - 1] == '\0')
            words.items[words.count++] = typed + at;
    }
    int skipped = 1;
    const struct command *command =
        words.count == 0 ? NULL : command_find(words.count, words.items, &skipped);
    if (command != NULL) {
        parse(&words, command, skipped);
    } else if (words.count > 0) {
        (void)command_nearest(words.items[0]);
        (void)command_is_group(words.items[0]);
        // By the rows of every command: nothing else may be known of the words.
        struct command_list list = command_list();
        for (size_t i = 0; i < list.count; i++)
            parse(&words, list.items[i], 0);
    }
    memory_give(typed);
    return 0;
}
