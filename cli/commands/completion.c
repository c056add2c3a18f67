// SPDX-License-Identifier: Apache-2.0
// Scripts by which shells complete the command line of culprit, made from the rows of the commands.
//
// Each script is data and little code: which words may follow a command, and which may follow an
// option. A value or an operand without words of its own is a file, unless its name says otherwise.
#include "cli/command.h"

#include <string.h>

enum { WORDS_MAX = 64 * 1024 };

static bool takes_file(const struct argument *row) {
    static const char *const names[] = {"FILE", "DIRECTORY", "PATH", "VERDICTS", NULL};
    for (size_t i = 0; names[i] != NULL && row->value_name != NULL; i++)
        if (strcmp(names[i], row->value_name) == 0)
            return true;
    return false;
}

// The first word of a command of two ("config"), or an empty slice.
static struct slice group_of(const struct command *command) {
    const char *space = strchr(command->name, ' ');
    return (struct slice){command->name, space == NULL ? 0 : (size_t)(space - command->name)};
}

// Whether a command before this one has the same first word.
static bool group_seen(struct command_list list, size_t index) {
    struct slice group = group_of(list.items[index]);
    for (size_t i = 0; i < index; i++)
        if (slice_equal(group_of(list.items[i]), group))
            return true;
    return false;
}

static const char *last_word(const struct command *command) {
    const char *space = strchr(command->name, ' ');
    return space == NULL ? command->name : space + 1;
}

static void choices_append(struct buffer *out, const struct argument *row) {
    for (size_t i = 0; row->choices[i] != NULL; i++)
        buffer_append_format(out, "%s%s", i == 0 ? "" : " ", row->choices[i]);
}

// The words of a command's operands, with blanks between them.
static void operands_append(struct buffer *out, const struct command *command) {
    struct buffer words;
    buffer_init(&words, WORDS_MAX);
    command->operand_words(&words);
    for (size_t i = 0; i + 1 < words.size; i++)
        buffer_append_char(out, words.data[i] == '\n' ? ' ' : words.data[i]);
    buffer_release(&words);
}

// The first words of all commands.
static void first_words(struct buffer *out) {
    struct command_list list = command_list();
    for (size_t i = 0; i < list.count; i++) {
        struct slice group = group_of(list.items[i]);
        if (group.size == 0)
            buffer_append_format(out, "%s ", list.items[i]->name);
        else if (!group_seen(list, i))
            buffer_append_format(out, "%.*s ", (int)group.size, group.data);
    }
}

// -- bash ---------------------------------------------------------------------------------------

static void bash_groups(struct buffer *out) {
    struct command_list list = command_list();
    for (size_t i = 0; i < list.count; i++) {
        struct slice group = group_of(list.items[i]);
        if (group.size == 0 || group_seen(list, i))
            continue;
        buffer_append_format(out, "    %.*s)\n        if ((at == 2)); then words=\"",
                             (int)group.size, group.data);
        for (size_t j = i; j < list.count; j++)
            if (slice_equal(group_of(list.items[j]), group))
                buffer_append_format(out, "%s ", last_word(list.items[j]));
        buffer_append_text(out,
                           "--help\"; fi\n        command+=\" ${COMP_WORDS[2]}\"\n"
                           "        ;;\n");
    }
}

static void bash_value(struct buffer *out, const struct command *command,
                       const struct argument *row) {
    buffer_append_format(out, "    \"%s --%s\"", command->name, row->name);
    if (row->letter != 0)
        buffer_append_format(out, " | \"%s -%c\"", command->name, row->letter);
    buffer_append_text(out, ") ");
    if (row->type == ARGUMENT_CHOICE) {
        buffer_append_text(out, "words=\"");
        choices_append(out, row);
        buffer_append_text(out, "\" ;;\n");
    } else {
        buffer_append_text(out, takes_file(row) ? "files=1 ;;\n" : "return ;;\n");
    }
}

static void bash_command(struct buffer *out, const struct command *command) {
    for (size_t i = 0; i < command->row_count; i++)
        if (command->rows[i].type != ARGUMENT_FLAG)
            bash_value(out, command, &command->rows[i]);
    buffer_append_format(out, "    \"%s \"*)\n        options=\"", command->name);
    for (size_t i = 0; i < command->row_count; i++)
        buffer_append_format(out, "--%s ", command->rows[i].name);
    buffer_append_text(out, "--help\"\n");
    if (command->operands != NULL && command->operand_words != NULL) {
        buffer_append_text(out, "        words=\"");
        operands_append(out, command);
        buffer_append_text(out, "\"\n");
    } else if (command->operands != NULL) {
        buffer_append_text(out, "        files=1\n");
    }
    buffer_append_text(out, "        ;;\n");
}

static void bash_script(struct buffer *out) {
    struct command_list list = command_list();
    buffer_append_text(
        out,
        "# Completes the command line of culprit in bash; made by `culprit completion bash`.\n"
        "_culprit() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "    local at=$COMP_CWORD command=${COMP_WORDS[1]} words= options= files=\n"
        "    COMPREPLY=()\n"
        "    # --name=value comes as three words.\n"
        "    if [[ $word == \"=\" ]]; then\n"
        "        word=\n"
        "    elif [[ $before == \"=\" ]]; then\n"
        "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "    fi\n"
        "    if ((at == 1)); then words=\"");
    first_words(out);
    buffer_append_text(out, "--help --version\"; fi\n    case $command in\n");
    bash_groups(out);
    buffer_append_text(out, "    esac\n    [[ -n $words ]] || case \"$command $before\" in\n");
    for (size_t i = 0; i < list.count; i++)
        bash_command(out, list.items[i]);
    buffer_append_text(out,
                       "    esac\n"
                       "    [[ $word == -* ]] && words=${options:-$words} files=\n"
                       "    if [[ -n $files ]]; then\n"
                       "        compopt -o filenames 2>/dev/null\n"
                       "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                       "    else\n"
                       "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
                       "    fi\n"
                       "}\n"
                       "complete -F _culprit culprit\n");
}

// -- zsh ----------------------------------------------------------------------------------------

// Help within single quotes and brackets.
static void zsh_text(struct buffer *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            buffer_append_text(out, "'\\'");
        else if (strchr("[]:\\", *text) != NULL)
            buffer_append_char(out, '\\');
        buffer_append_char(out, *text);
    }
}

static void zsh_value(struct buffer *out, const struct argument *row) {
    if (row->type == ARGUMENT_FLAG)
        return;
    buffer_append_text(out, ":value:");
    if (row->type == ARGUMENT_CHOICE) {
        buffer_append_char(out, '(');
        choices_append(out, row);
        buffer_append_char(out, ')');
    } else {
        buffer_append_text(out, takes_file(row) ? "_files" : " ");
    }
}

static void zsh_option(struct buffer *out, const struct argument *row) {
    const char *equals = row->type == ARGUMENT_FLAG ? "" : "=";
    buffer_append_text(out, " \\\n            ");
    if (row->letter != 0)
        buffer_append_format(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", row->letter, row->name,
                             row->letter, row->type == ARGUMENT_FLAG ? "" : "+", row->name, equals);
    else
        buffer_append_format(out, "'%s--%s%s[", row->type == ARGUMENT_LIST ? "*" : "", row->name,
                             equals);
    zsh_text(out, row->help);
    buffer_append_char(out, ']');
    zsh_value(out, row);
    buffer_append_char(out, '\'');
}

static void zsh_command(struct buffer *out, const struct command *command) {
    static const struct argument help = {
        .name = "help", .letter = 'h', .help = "print this help and exit"};
    buffer_append_format(out, "    (\"%s\")\n        _arguments -s -S", command->name);
    for (size_t i = 0; i < command->row_count; i++)
        zsh_option(out, &command->rows[i]);
    zsh_option(out, &help);
    if (command->operands != NULL && command->operand_words != NULL) {
        buffer_append_text(out, " \\\n            '*:operand:(");
        operands_append(out, command);
        buffer_append_text(out, ")'");
    } else if (command->operands != NULL) {
        buffer_append_text(out, " \\\n            '*:file:_files'");
    }
    buffer_append_text(out, "\n        ;;\n");
}

// The words that may stand first (`group` empty) or behind the first word of a group, described.
static void zsh_words(struct buffer *out, struct slice group) {
    struct command_list list = command_list();
    for (size_t i = 0; i < list.count; i++) {
        const struct command *command = list.items[i];
        struct slice own = group_of(command);
        if (own.size > 0 && group.size == 0) {
            if (!group_seen(list, i))
                buffer_append_format(out, " %.*s", (int)own.size, own.data);
            continue;
        }
        if (!slice_equal(own, group))
            continue;
        buffer_append_format(out, " '%s:", last_word(command));
        zsh_text(out, command->summary);
        buffer_append_char(out, '\'');
    }
}

static void zsh_groups(struct buffer *out) {
    struct command_list list = command_list();
    for (size_t i = 0; i < list.count; i++) {
        struct slice group = group_of(list.items[i]);
        if (group.size == 0 || group_seen(list, i))
            continue;
        buffer_append_format(out,
                             "    (%.*s)\n        if ((CURRENT == 3)); then\n"
                             "            commands=(",
                             (int)group.size, group.data);
        zsh_words(out, group);
        buffer_append_text(out,
                           ")\n            _describe command commands\n            return\n"
                           "        fi\n        name+=\" $words[3]\"\n        shift words\n"
                           "        ((CURRENT--))\n        ;;\n");
    }
}

static void zsh_script(struct buffer *out) {
    struct command_list list = command_list();
    buffer_append_text(
        out,
        "#compdef culprit\n"
        "# Completes the command line of culprit in zsh; made by `culprit completion zsh`.\n"
        "_culprit() {\n"
        "    local name=$words[2]\n"
        "    local -a commands\n"
        "    if ((CURRENT == 2)); then\n"
        "        commands=(");
    zsh_words(out, (struct slice){0});
    buffer_append_text(out,
                       " --help --version)\n        _describe command commands\n"
                       "        return\n    fi\n    case $name in\n");
    zsh_groups(out);
    buffer_append_text(out, "    esac\n    shift words\n    ((CURRENT--))\n    case $name in\n");
    for (size_t i = 0; i < list.count; i++)
        zsh_command(out, list.items[i]);
    buffer_append_text(out,
                       "    esac\n}\n"
                       "if [ \"$funcstack[1]\" = \"_culprit\" ]; then\n"
                       "    _culprit \"$@\"\n"
                       "else\n"
                       "    compdef _culprit culprit\n"
                       "fi\n");
}

// -- fish ---------------------------------------------------------------------------------------

static void fish_text(struct buffer *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            buffer_append_char(out, '\\');
        buffer_append_char(out, *text);
    }
}

// The condition under which a line holds: the command stands where a command does.
static void fish_line(struct buffer *out, const char *name, const char *rest) {
    buffer_append_format(out, "complete -c culprit -n '__culprit_is \"%s\"'%s", name, rest);
}

static void fish_option(struct buffer *out, const struct command *command,
                        const struct argument *row) {
    fish_line(out, command->name, " -l ");
    buffer_append_text(out, row->name);
    if (row->letter != 0)
        buffer_append_format(out, " -s %c", row->letter);
    if (row->type == ARGUMENT_CHOICE) {
        buffer_append_text(out, " -x -a '");
        choices_append(out, row);
        buffer_append_char(out, '\'');
    } else if (row->type != ARGUMENT_FLAG) {
        buffer_append_text(out, takes_file(row) ? " -r -F" : " -x");
    }
    buffer_append_text(out, " -d '");
    fish_text(out, row->help);
    buffer_append_text(out, "'\n");
}

static void fish_command(struct buffer *out, const struct command *command) {
    for (size_t i = 0; i < command->row_count; i++)
        fish_option(out, command, &command->rows[i]);
    fish_line(out, command->name, " -l help -s h -d 'print this help and exit'\n");
    if (command->operands == NULL)
        return;
    fish_line(out, command->name, command->operand_words == NULL ? " -F\n" : " -f -a '");
    if (command->operand_words != NULL) {
        operands_append(out, command);
        buffer_append_text(out, "'\n");
    }
}

// Each name of a command is offered while what stands before is all that it lacks.
static void fish_names(struct buffer *out) {
    struct command_list list = command_list();
    for (size_t i = 0; i < list.count; i++) {
        struct slice group = group_of(list.items[i]);
        if (group.size > 0 && !group_seen(list, i))
            buffer_append_format(out, "complete -c culprit -n '__culprit_is \"\"' -a %.*s\n",
                                 (int)group.size, group.data);
        buffer_append_format(out, "complete -c culprit -n '__culprit_is \"%.*s\"' -a %s -d '",
                             (int)group.size, group.size == 0 ? "" : group.data,
                             last_word(list.items[i]));
        fish_text(out, list.items[i]->summary);
        buffer_append_text(out, "'\n");
    }
}

static void fish_script(struct buffer *out) {
    struct command_list list = command_list();
    buffer_append_text(
        out,
        "# Completes the command line of culprit in fish; made by `culprit completion fish`.\n"
        "# Whether the words so far name this command: one word, or two when the first begins\n"
        "# commands of two.\n"
        "function __culprit_is\n"
        "    set -l words (commandline -opc)\n"
        "    set -l name $words[2]\n"
        "    if contains -- \"$name\" ");
    for (size_t i = 0; i < list.count; i++)
        if (group_of(list.items[i]).size > 0 && !group_seen(list, i))
            buffer_append_format(out, "%.*s ", (int)group_of(list.items[i]).size,
                                 list.items[i]->name);
    buffer_append_text(out,
                       "\n        and set -q words[3]\n"
                       "        set name \"$name $words[3]\"\n"
                       "    end\n"
                       "    test \"$name\" = \"$argv[1]\"\n"
                       "end\n"
                       "complete -c culprit -f\n"
                       "complete -c culprit -n '__culprit_is \"\"' -l help -s h\n"
                       "complete -c culprit -n '__culprit_is \"\"' -l version -s V\n");
    fish_names(out);
    for (size_t i = 0; i < list.count; i++)
        fish_command(out, list.items[i]);
}

// -- the command --------------------------------------------------------------------------------

static const struct shell {
    const char *name;
    void (*write)(struct buffer *out);
} shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
enum { SHELL_COUNT = sizeof(shells) / sizeof(shells[0]) };

static void shell_words(struct buffer *out) {
    for (size_t i = 0; i < SHELL_COUNT; i++)
        buffer_append_format(out, "%s\n", shells[i].name);
}

static int completion_run(struct invocation *invocation) {
    const struct word_list *words = &invocation->operands;
    if (words->count == 0)
        return invocation_misused(invocation, "no shell was named: bash, zsh or fish");
    for (size_t i = 0; i < SHELL_COUNT; i++) {
        if (strcmp(words->items[0], shells[i].name) == 0) {
            shells[i].write(invocation->out);
            return 0;
        }
    }
    return invocation_misused(invocation, "\"%s\" cannot be served: bash, zsh or fish can",
                              words->items[0]);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "a script by which bash, zsh or fish completes culprit's command line",
    .operands = "SHELL",
    .operand_max = 1,
    .operand_words = shell_words,
    .description =
        "Prints a script for the shell: commands, options and their values, names of components.",
    .examples =
        "  source <(culprit completion bash)\n"
        "  culprit completion fish > ~/.config/fish/completions/culprit.fish\n",
    .exit_codes = "  0   printed\n  64  there is no script for such a shell\n",
    .run = completion_run,
};
