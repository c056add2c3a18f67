// SPDX-License-Identifier: Apache-2.0
// Runs the command that was asked for.
//
// The first word (or two) names a command; its rows parse the rest. Output goes through two buffers
// that drain to the descriptors; a reader that went away is no error.
#include "base/intern.h"
#include "base/log.h"
#include "cli/command.h"
#include "config/option.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUT_BLOCK = 64 * 1024, ERR_BLOCK = 16 * 1024, ARENA_BLOCK = 16 * 1024, ARENAS = 2 };

// -- output -------------------------------------------------------------------------------------

struct sink {
    int descriptor;
    int os_error; // of the write that failed; 0: none
};

static bool sink_write(void *context, struct slice bytes) {
    struct sink *sink = context;
    assert(sink->descriptor >= 0);
    while (bytes.size > 0) {
        ssize_t written = write(sink->descriptor, bytes.data, bytes.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            sink->os_error = errno;
            return false;
        }
        bytes.data += written;
        bytes.size -= (size_t)written;
    }
    return true;
}

// -- dispatch -----------------------------------------------------------------------------------

struct command_line {
    char *const *before; // options that stand before the command
    int before_count;
    char *const *argv; // the command and what stands behind it
    int argc;
};

static int check_operands(struct invocation *invocation) {
    const struct command *command = invocation->command;
    uint32_t count = invocation->operands.count;
    if (command->operands == NULL && count > 0)
        return invocation_misused(invocation, "unexpected argument \"%s\": %s takes options only",
                                  invocation->operands.items[0], command->name);
    if (command->operand_max > 0 && count > command->operand_max)
        return invocation_misused(invocation, "unexpected argument \"%s\": %s takes %s",
                                  invocation->operands.items[command->operand_max], command->name,
                                  command->operands);
    return 0;
}

static int run_command(struct invocation *invocation, int argc, char *const *argv) {
    const struct command *command = invocation->command;
    assert(command->run != NULL && argc >= 0);
    size_t options_size = command->options_size == 0 ? 1 : command->options_size;
    void *options = arena_zero(invocation->arena, 1, options_size);
    struct arguments arguments;
    struct error error = {0};
    if (arguments_parse(&arguments, options, command->rows, command->row_count, argc, argv,
                        invocation->arena, &error) != STATUS_OK)
        return invocation_fail(invocation, &error);
    if (arguments.help_wanted) {
        help_print_command(invocation->out, command);
        return 0;
    }
    invocation->options = options;
    invocation->operands = arguments.operands;
    int code = check_operands(invocation);
    return code != 0 ? code : command->run(invocation);
}

static int unknown_command(struct invocation *invocation, const char *word) {
    const char *nearest = command_nearest(word);
    if (nearest != NULL)
        buffer_append_format(invocation->err,
                             "culprit: unknown command \"%s\"; did you mean \"%s\"?\n", word,
                             nearest);
    else
        buffer_append_format(invocation->err,
                             "culprit: unknown command \"%s\"; culprit help lists them\n", word);
    invocation_say(invocation);
    return 64;
}

static bool is_word(const char *word, const char *name, const char *letter) {
    return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

// How many words before the command are options of it (`culprit --quiet analyze PATH`): flags,
// since a value of its own would be the command.
static int count_before(int argc, char *const *argv) {
    int count = 0;
    while (count < argc && argv[count][0] == '-' && !is_word(argv[count], "--help", "-h") &&
           !is_word(argv[count], "--version", "-V"))
        count++;
    return count;
}

static int only_options(struct invocation *invocation, const char *word) {
    static const char *const OWN[] = {"--help", "--version"};
    const char *nearest = option_nearest(word, OWN, sizeof OWN / sizeof OWN[0]);
    if (nearest != NULL)
        buffer_append_format(invocation->err,
                             "culprit: unknown option \"%s\"; did you mean \"%s\"?\n", word,
                             nearest);
    else
        buffer_append_format(invocation->err,
                             "culprit: no command is given, only the option \"%s\"; write "
                             "culprit COMMAND %s; culprit help lists the commands\n",
                             word, word);
    invocation_say(invocation);
    return 64;
}

// The command's words without its name: the options before it come first.
static int run_named(struct invocation *invocation, const struct command_line *line, int words) {
    assert(words <= line->argc);
    int argc = line->before_count + line->argc - words;
    char **argv = arena_zero(invocation->arena, (size_t)argc + 1, sizeof *argv);
    for (int i = 0; i < line->before_count; i++)
        argv[i] = line->before[i];
    for (int i = words; i < line->argc; i++)
        argv[line->before_count + i - words] = line->argv[i];
    return run_command(invocation, argc, argv);
}

static int dispatch(struct invocation *invocation, int argc, char *const *argv) {
    if (argc < 1) {
        help_print_commands(invocation->err);
        invocation_say(invocation);
        return 64;
    }
    int before = count_before(argc, argv);
    if (before == argc)
        return only_options(invocation, argv[0]);
    struct command_line line = {argv, before, argv + before, argc - before};
    argv += before;
    argc -= before;
    if (is_word(argv[0], "--help", "-h")) {
        help_print_commands(invocation->out);
        return 0;
    }
    int words = 1;
    if (is_word(argv[0], "--version", "-V"))
        invocation->command = &command_version;
    else
        invocation->command = command_find(argc, argv, &words);
    if (invocation->command != NULL)
        return run_named(invocation, &line, words);
    if (!command_is_group(argv[0]))
        return unknown_command(invocation, argv[0]);
    bool help = argc > 1 && is_word(argv[1], "--help", "-h");
    if (argc > 1 && !help)
        return unknown_command(invocation,
                               arena_format(invocation->arena, "%s %s", argv[0], argv[1]));
    help_print_group(help ? invocation->out : invocation->err, argv[0]);
    invocation_say(invocation);
    return help ? 0 : 64;
}

// Exit code once everything is written. A reader that has read enough is no failure.
static int finish_output(struct invocation *invocation, const struct sink *out, int code) {
    assert(code >= 0 && code < 256);
    if (buffer_finish(invocation->out) || out->os_error == EPIPE)
        return code;
    buffer_append_format(invocation->err, "culprit: cannot write standard output: %s\n",
                         strerror(out->os_error));
    invocation_say(invocation);
    return code == 0 ? status_exit_code(STATUS_IO) : code;
}

// glibc gives threads up to eight arenas a core, and what one thread freed is of no use to another.
// Receivers that come and go at reloads then spread what is held over all of them, and resident
// memory grows to a multiple of it (docs/performance.md). Two are as fast, since nothing is
// allocated for an event.
static void share_arenas(void) {
    if (getenv("MALLOC_ARENA_MAX") == NULL)
        mallopt(M_ARENA_MAX, ARENAS);
}

int main(int argc, char **argv) {
    share_arenas();
    // A closed pipe is then an error that the writer sees, not the end of the process.
    signal(SIGPIPE, SIG_IGN);
    struct sink out_sink = {.descriptor = STDOUT_FILENO};
    struct sink err_sink = {.descriptor = STDERR_FILENO};
    struct buffer out, err;
    buffer_init_drained(&out, OUT_BLOCK, sink_write, &out_sink);
    buffer_init_drained(&err, ERR_BLOCK, sink_write, &err_sink);
    struct arena arena;
    arena_init(&arena, ARENA_BLOCK);
    struct invocation invocation = {.arena = &arena, .out = &out, .err = &err};
    int code = dispatch(&invocation, argc - 1, argv + 1);
    code = finish_output(&invocation, &out_sink, code);
    log_flush();
    arena_release(&arena);
    buffer_release(&out);
    buffer_release(&err);
    intern_release();
    return code;
}
