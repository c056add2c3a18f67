// SPDX-License-Identifier: Apache-2.0
// Completes the command line of culprit in bash, zsh and fish.
//
// The script of a shell passes the words typed so far to `culprit completion --words` and offers
// the answers, so that all three complete alike. An answer is one line: a word, a tab and what it
// means; or ":files", when the word is the path of a file.
#include "cli/arguments.h"
#include "cli/command.h"

#include <assert.h>
#include <string.h>

enum { WORDS_MAX = 64 * 1024 };

struct completion_options {
    bool words;
};

static const struct argument rows[] = {
    ARGUMENT("words", struct completion_options, words, ARGUMENT_FLAG,
             .help = "print what the last of the words behind -- may be; for the scripts"),
};

// -- the answers --------------------------------------------------------------------------------

// What is typed: words that are complete, and the one that is not.
struct typed {
    const char *const *words;
    uint32_t count;
    const char *begun;
};

static bool takes_file(const struct argument *row) {
    static const char *const names[] = {"FILE", "DIRECTORY", "PATH", "VERDICTS", NULL};
    for (size_t i = 0; names[i] != NULL && row->value_name != NULL; i++)
        if (strcmp(names[i], row->value_name) == 0)
            return true;
    return false;
}

// Offers `head` and `word` as one when that is how the word that was begun goes on.
static void offer(struct buffer *out, const struct typed *typed, struct slice head,
                  struct slice word, struct slice meaning) {
    size_t mark = out->size;
    buffer_append(out, head);
    buffer_append(out, word);
    size_t begun = strlen(typed->begun), size = out->size - mark;
    if (out->failed || size < begun || memcmp(out->data + mark, typed->begun, begun) != 0) {
        out->size = mark;
        return;
    }
    buffer_append_char(out, '\t');
    buffer_append(out, meaning);
    buffer_append_char(out, '\n');
}

static void offer_option(struct buffer *out, const struct typed *typed, const char *name,
                         const char *meaning) {
    offer(out, typed, SLICE("--"), slice_of(name), slice_of(meaning));
}

// Offers the next word of each line of "WORD…\tMEANING" that begins with the words typed.
static void offer_lines(struct buffer *out, const struct typed *typed, struct slice lines) {
    assert(lines.size == 0 || lines.data[lines.size - 1] == '\n');
    struct slice before = {0};
    const char *end = lines.data + lines.size;
    for (const char *line = lines.data, *next; line < end; line = next) {
        next = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1;
        uint32_t matched = 0;
        for (; matched < typed->count; matched++) {
            size_t length = strlen(typed->words[matched]);
            if (strncmp(line, typed->words[matched], length) != 0 || line[length] != ' ')
                break;
            line += length + 1;
        }
        struct slice word = {line, strcspn(line, " \t\n")};
        if (matched < typed->count || slice_equal(word, before))
            continue;
        before = word;
        const char *meaning = line + word.size + (line[word.size] == '\t');
        bool whole = line[word.size] == '\t';
        offer(out, typed, (struct slice){0}, word,
              (struct slice){meaning, whole ? (size_t)(next - 1 - meaning) : 0});
    }
}

// The option whose value is begun, or NULL; *head is what stands before the value in that word.
static const struct argument *option_begun(const struct command *command, const struct typed *typed,
                                           struct slice *head) {
    assert(typed->count > 0);
    const char *equals = strchr(typed->begun, '=');
    bool together = strncmp(typed->begun, "--", 2) == 0 && equals != NULL;
    const char *word = together ? typed->begun : typed->words[typed->count - 1];
    size_t size = together ? (size_t)(equals - word) : strlen(word);
    *head = (struct slice){word, together ? size + 1 : 0};
    for (size_t i = 0; i < command->row_count; i++) {
        const struct argument *row = &command->rows[i];
        bool named = size > 2 && strncmp(word, "--", 2) == 0 &&
                     slice_equal(slice_of(row->name), (struct slice){word + 2, size - 2});
        bool lettered = size == 2 && word[0] == '-' && row->letter != 0 && word[1] == row->letter;
        if ((named || lettered) && row->type != ARGUMENT_FLAG)
            return row;
    }
    return NULL;
}

static void offer_operands(struct buffer *out, const struct typed *typed,
                           void (*words)(struct buffer *)) {
    struct buffer lines;
    buffer_init(&lines, WORDS_MAX);
    words(&lines);
    buffer_append_char(&lines, '\0');
    assert(!lines.failed);
    offer_lines(out, typed, (struct slice){lines.data, lines.size - 1});
    buffer_release(&lines);
}

static void offer_for(struct buffer *out, const struct typed *typed, const struct command *command,
                      uint32_t used) {
    struct slice head;
    const struct argument *row = option_begun(command, typed, &head);
    const struct typed operands = {typed->words + used, typed->count - used, typed->begun};
    if (row != NULL && row->type == ARGUMENT_CHOICE) {
        for (size_t i = 0; row->choices[i] != NULL; i++)
            offer(out, typed, head, slice_of(row->choices[i]), (struct slice){0});
    } else if (row != NULL) {
        buffer_append_text(out, takes_file(row) ? ":files\n" : "");
    } else if (typed->begun[0] == '-') {
        for (size_t i = 0; i < command->row_count; i++)
            offer_option(out, typed, command->rows[i].name, command->rows[i].help);
        offer_option(out, typed, "help", "print this help and exit");
    } else if (command->operand_words != NULL) {
        offer_operands(out, &operands, command->operand_words);
    } else if (command->operands != NULL) {
        buffer_append_text(out, ":files\n");
    }
}

static void answer(struct buffer *out, struct word_list words) {
    assert(words.count > 0);
    struct typed typed = {words.items, words.count - 1, words.items[words.count - 1]};
    int used = 0;
    for (; typed.count > 0 && typed.words[0][0] == '-'; typed.count--)
        typed.words++; // options of the command that is to come
    const struct command *command =
        command_find((int)typed.count, (char *const *)(uintptr_t)typed.words, &used);
    if (command != NULL) {
        offer_for(out, &typed, command, (uint32_t)used);
        return;
    }
    offer_operands(out, &typed, command_words);
    if (typed.count == 0)
        offer_option(out, &typed, "version", "the version of culprit");
    if (typed.count == 0 || (typed.count == 1 && command_is_group(typed.words[0])))
        offer_option(out, &typed, "help", "how culprit is used");
}

// -- the scripts --------------------------------------------------------------------------------

// bash takes "--name=value" for three words.
static const char bash_script[] =
    "# Completes the command line of culprit in bash; made by `culprit completion bash`.\n"
    "_culprit() {\n"
    "    local each word=${COMP_WORDS[COMP_CWORD]}\n"
    "    local -a words=()\n"
    "    for each in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
    "        [[ $each == \"=\" ]] || words+=(\"$each\")\n"
    "    done\n"
    "    [[ $word != \"=\" ]] || word=\n"
    "    mapfile -t COMPREPLY < <(\n"
    "        \"${COMP_WORDS[0]}\" completion --words -- \"${words[@]}\" \"$word\" 2>/dev/null)\n"
    "    if [[ ${COMPREPLY[*]} == :files ]]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
    "    else\n"
    "        COMPREPLY=(\"${COMPREPLY[@]%%$'\\t'*}\")\n"
    "    fi\n"
    "}\n"
    "complete -F _culprit culprit\n";

static const char zsh_script[] =
    "#compdef culprit\n"
    "# Completes the command line of culprit in zsh; made by `culprit completion zsh`.\n"
    "_culprit() {\n"
    "    local line\n"
    "    local -a lines answers\n"
    "    lines=(\"${(@f)$($words[1] completion --words -- \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)}\")\n"
    "    if [[ $lines[1] == :files ]]; then\n"
    "        compset -P '--*='\n"
    "        _files\n"
    "        return\n"
    "    fi\n"
    "    for line in $lines; do\n"
    "        answers+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "    done\n"
    "    _describe word answers\n"
    "}\n"
    "if [[ $funcstack[1] == _culprit ]]; then _culprit \"$@\"; else compdef _culprit culprit; fi\n";

static const char fish_script[] =
    "# Completes the command line of culprit in fish; made by `culprit completion fish`.\n"
    "function __culprit_words\n"
    "    set -l words (commandline -opc)\n"
    "    set -l begun \"\"(commandline -ct)\n"
    "    set -l lines ($words[1] completion --words -- $words[2..-1] $begun 2>/dev/null)\n"
    "    if test \"$lines\" != :files\n"
    "        printf '%s\\n' $lines\n"
    "        return\n"
    "    end\n"
    "    set -l head (string match -r -- '^--[^=]*=' $begun)\n"
    "    for path in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $begun))\n"
    "        echo \"$head$path\"\n"
    "    end\n"
    "end\n"
    "complete -c culprit -f -a '(__culprit_words)'\n";

// -- the command --------------------------------------------------------------------------------

static const struct {
    const char *name, *script;
} shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
enum { SHELL_COUNT = sizeof(shells) / sizeof(shells[0]) };

static void shell_words(struct buffer *out) {
    for (size_t i = 0; i < SHELL_COUNT; i++)
        buffer_append_format(out, "%s\n", shells[i].name);
}

static int completion_run(struct invocation *invocation) {
    const struct completion_options *options = invocation->options;
    const struct word_list *words = &invocation->operands;
    if (words->count == 0)
        return invocation_misused(invocation, "no shell given: bash, zsh or fish");
    if (options->words) {
        answer(invocation->out, *words);
        return 0;
    }
    for (size_t i = 0; words->count == 1 && i < SHELL_COUNT; i++) {
        if (strcmp(words->items[0], shells[i].name) == 0) {
            buffer_append_text(invocation->out, shells[i].script);
            return 0;
        }
    }
    return invocation_misused(invocation, "\"%s\" is not supported: bash, zsh and fish are",
                              words->items[words->count - 1]);
}

const struct command command_completion = {
    .name = "completion",
    .summary = "a script that completes commands in bash, zsh or fish",
    .operands = "SHELL",
    .operand_words = shell_words,
    .description =
        "Prints a script for the shell: commands, options and their values, names of components.",
    COMMAND_OPTIONS(rows, struct completion_options),
    .examples =
        "  source <(culprit completion bash)\n"
        "  culprit completion fish > ~/.config/fish/completions/culprit.fish\n",
    .exit_codes =
        "  0   printed\n  64  there is no script for such a shell\n  74  writing failed\n",
    .run = completion_run,
};
