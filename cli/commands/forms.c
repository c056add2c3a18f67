// SPDX-License-Identifier: Apache-2.0
// `culprit forms` and `culprit forms test`: the rows of what logs say (docs/forms.md).
#include "receivers/decode/forms/forms.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/display.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands/forms_literals.h"
#include "pipeline/model/event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/forms/rows.h"
#include "receivers/decode/log/form_check.h"

#include <errno.h>
#include <stdio.h>

enum { LINES_MAX = 256 << 20, TOLD_MAX = 8192 };

enum { SAMPLE_SHOWN_MAX = 110 }; // bytes, in a table

struct forms_options {
    bool names, markdown;
};

struct forms_test_options {
    bool literals;
};

// -- listing --------------------------------------------------------------------------------------

static void print_slice(struct buffer *out, struct slice text, const char *behind) {
    display_append(out, text, 0);
    buffer_append_text(out, behind);
}

static const char *sort_of(const struct form *form) {
    return form->is_prefix     ? "prefix"
           : form->is_envelope ? "envelope"
           : form->is_meaning  ? "meaning"
                               : observation_name(form->kind);
}

static void print_form(struct buffer *out, const struct form *form) {
    buffer_append_format(out, "  %-26.*s %-20s %-9.*s ", (int)form->name.size, form->name.data,
                         sort_of(form), (int)form->role.size,
                         form->role.data == NULL ? "" : form->role.data);
    print_slice(out,
                form->is_envelope  ? form->samples[0].lines
                : form->is_meaning ? form->words[0].text
                                   : form->texts[0].pattern.source,
                "\n");
}

static void print_names(struct buffer *out) {
    buffer_append_text(out,
                       "Names of parts, and what they take by themselves:\n"
                       "  rank                       int\n"
                       "  host                       name\n"
                       "  exit_code                  int, below zero: a signal\n");
    for (int i = 0; i < FACT_KEY_COUNT; i++) {
        static const char *const types[] = {[FACT_NUMBER] = "int",
                                            [FACT_TEXT] = "word or text",
                                            [FACT_YES_NO] = "yes or no, by `set`",
                                            [FACT_PCI_ADDRESS] = "pci"};
        const char *name = fact_name((enum fact_key)i);
        if (i != FACT_EXIT_CODE)
            buffer_append_format(out, "  %-26s %s\n", name,
                                 i == FACT_SIGNAL ? "signal" : types[fact_type((enum fact_key)i)]);
    }
    buffer_append_text(out,
                       "\nNames of parts of a prefix:\n"
                       "  rank, local_rank, task, pid, host, pod, namespace, container,\n"
                       "  address, program, writer, time\n"
                       "\nFields of an envelope:\n"
                       "  message, time, arrived, zone, host, pod, namespace, container, address,\n"
                       "  program, transport, writer, pid, rank, local_rank, stream, part, path,\n"
                       "  blank, needs, list\n");
    buffer_append_text(out, "\nTypes:\n");
#define PATTERN_TYPE(constant, name, what) buffer_append_format(out, "  %-10s %s\n", name, what);
#include "receivers/decode/forms/pattern_types.h"
    buffer_append_text(out, "\nKinds:\n");
    for (int i = OBSERVATION_NONE + 1; i < OBSERVATION_KIND_COUNT; i++)
        buffer_append_format(out, "  %s\n", observation_name((enum observation_kind)i));
    buffer_append_text(out, "\nRoles:\n");
    for (int i = 0; FORM_ROLES[i] != NULL; i++)
        buffer_append_format(out, "  %s\n", FORM_ROLES[i]);
}

// The first line of a sample as code in a table: bars mean something there, too.
static void print_sample(struct buffer *out, struct slice sample) {
    struct slice line = text_until(sample, '\n');
    bool cut = line.size > SAMPLE_SHOWN_MAX;
    const char *quotes = memchr(line.data, '`', line.size) == NULL ? "`" : "`` ";
    for (size_t size = SAMPLE_SHOWN_MAX; cut && line.size > SAMPLE_SHOWN_MAX; size--)
        if ((line.data[size] & 0xc0) != 0x80) // not within a character
            line.size = size;
    buffer_append_text(out, quotes);
    while (line.size > 0) {
        struct slice before = text_until(line, '|');
        print_slice(out, before, before.size < line.size ? "\\|" : "");
        line = text_from(line, before.size + (before.size < line.size));
    }
    buffer_append_text(out, cut ? "…" : "");
    buffer_append_text(out, quotes[1] == '\0' ? "`" : " ``");
}

// A table for each family.
static void print_markdown(struct buffer *out, const struct forms *forms) {
    struct slice family = {NULL, 0};
    for (uint32_t i = 0; i < forms_count(forms); i++) {
        const struct form *form = forms_at(forms, i);
        if (!slice_equal(form->family, family)) {
            struct slice name = text_until(form->family, ' ');
            family = form->family;
            buffer_append_format(out, "%s**%.*s**: ", i == 0 ? "" : "\n", (int)name.size,
                                 name.data);
            print_slice(out, text_trim(text_from(family, name.size)), "\n\n");
            buffer_append_text(out, "| row | kind | a line |\n|---|---|---|\n");
        }
        buffer_append_format(out, "| `%.*s` | %s | ", (int)form->name.size, form->name.data,
                             form->is_meaning || form->is_prefix ? sort_of(form)
                                                                 : observation_name(form->kind));
        print_sample(out, form->samples[0].lines);
        buffer_append_text(out, " |\n");
    }
}

static int forms_run(struct invocation *invocation) {
    const struct forms_options *options = invocation->options;
    const struct forms *forms = forms_builtin();
    struct slice family = {NULL, 0};
    if (options->names && options->markdown)
        return invocation_misused(invocation, "--names and --markdown exclude each other");
    if (options->names || options->markdown) {
        if (options->names)
            print_names(invocation->out);
        else
            print_markdown(invocation->out, forms);
        return 0;
    }
    for (uint32_t i = 0; i < forms_count(forms); i++) {
        const struct form *form = forms_at(forms, i);
        if (!slice_equal(form->family, family)) {
            family = form->family;
            print_slice(invocation->out, family, "\n");
        }
        print_form(invocation->out, form);
    }
    return 0;
}

static const struct argument forms_rows[] = {
    ARGUMENT("names", struct forms_options, names, ARGUMENT_FLAG,
             .help = "the names, types, kinds and roles that a row may use instead"),
    ARGUMENT("markdown", struct forms_options, markdown, ARGUMENT_FLAG,
             .help =
                 "a table of each family, with the kind of event and a line that the row reads"),
};

const struct command command_forms = {
    .name = "forms",
    .summary = "what lines of logs are known, and what is read of them",
    .description =
        "Lists the rows by which lines of logs are read: name, kind of event, role, and "
        "the text that a line has. Rows of your own are tried by culprit forms test.",
    COMMAND_OPTIONS(forms_rows, struct forms_options),
    .examples = "  culprit forms\n  culprit forms --names\n",
    .exit_codes = "  0   printed\n  64  the command line is wrong\n  74  writing failed\n",
    .run = forms_run,
};

// -- trying ---------------------------------------------------------------------------------------

struct trying {
    struct invocation *invocation;
    const struct forms *forms;
    uint64_t events;
};

static bool read_all(FILE *file, struct buffer *into) {
    char block[65536];
    size_t size;
    while ((size = fread(block, 1, sizeof block, file)) > 0)
        buffer_append(into, (struct slice){block, size});
    return !ferror(file) && !into->failed;
}

static void print_event(void *context, const struct event *event) {
    struct trying *trying = context;
    struct buffer told, *out = trying->invocation->out;
    struct form_match match;
    if (event->kind != EVENT_OBSERVATION)
        return;
    const struct observation *seen = event->observation;
    bool known = forms_find(trying->forms, text_until(seen->text, '\n'), &match) && !match.is_cut &&
                 match.form->kind == seen->kind;
    trying->events++;
    buffer_append_format(out, "%llu\t", (unsigned long long)event->position);
    print_slice(out, known ? match.form->name : SLICE("-"), "\t");
    buffer_append_format(out, "%s\t", observation_name(seen->kind));
    buffer_init(&told, TOLD_MAX);
    form_tell(event, NULL, &told);
    print_slice(out, buffer_slice(&told), "\n");
    buffer_release(&told);
}

static int complain(struct invocation *invocation, const struct form_fault *fault) {
    buffer_append_format(invocation->err, "%s:%u:%u: ", fault->file, fault->line, fault->column);
    display_append(invocation->err, slice_of(fault->words), 0);
    buffer_append_char(invocation->err, '\n');
    invocation_say(invocation);
    return 65;
}

static int check_rows(struct invocation *invocation, const struct forms *forms, const char *file) {
    int code = 0;
    for (uint32_t i = 0; i < forms_count(forms); i++) {
        const struct form *form = forms_at(forms, i);
        struct form_fault fault;
        if (strcmp(form->file, file) == 0 && !form_check(forms, form, &fault))
            code = complain(invocation, &fault);
    }
    return code;
}

static void print_events(struct invocation *invocation, const struct forms *forms,
                         struct slice lines) {
    struct trying trying = {.invocation = invocation, .forms = forms};
    form_read_lines(forms, lines, print_event, &trying);
    buffer_append_format(invocation->err, "%llu %s\n", (unsigned long long)trying.events,
                         trying.events == 1 ? "event" : "events");
    invocation_say(invocation);
}

static int try_lines(struct invocation *invocation, const struct forms *forms) {
    const struct forms_test_options *options = invocation->options;
    struct error error = {0};
    struct buffer lines;
    buffer_init(&lines, LINES_MAX);
    if (read_all(stdin, &lines)) {
        if (options->literals)
            forms_print_literals(forms, buffer_slice(&lines), invocation->out);
        else
            print_events(invocation, forms, buffer_slice(&lines));
    } else if (lines.failed) {
        error_set(&error, STATUS_BAD_DATA, "standard input has more than %d MiB", LINES_MAX >> 20);
    } else {
        error_set_os(&error, STATUS_IO, errno, "standard input");
    }
    buffer_release(&lines);
    return error.status == STATUS_OK ? 0 : invocation_fail(invocation, &error);
}

static int forms_test_run(struct invocation *invocation) {
    const char *file = invocation->operands.count == 0 ? NULL : invocation->operands.items[0];
    struct error error = {0};
    struct form_fault fault;
    struct buffer rows;
    if (file == NULL)
        return invocation_misused(invocation, "name the FILE of rows");
    FILE *stream = fopen(file, "re");
    if (stream == NULL) {
        error_set_os(&error, STATUS_IO, errno, "%s", file);
        return invocation_fail(invocation, &error);
    }
    buffer_init(&rows, FORMS_SIZE_MAX + 1);
    bool whole = read_all(stream, &rows);
    if (!whole)
        error_set_os(&error, STATUS_IO, rows.failed ? EFBIG : errno, "%s", file);
    fclose(stream);
    struct slice text = buffer_slice(&rows);
    struct forms *forms = whole ? forms_make(&file, &text, 1, &fault) : NULL;
    int code = !whole          ? invocation_fail(invocation, &error)
               : forms == NULL ? complain(invocation, &fault)
                               : check_rows(invocation, forms, file);
    if (code == 0)
        code = try_lines(invocation, forms);
    forms_free(forms);
    buffer_release(&rows);
    return code;
}

static const struct argument forms_test_rows[] = {
    ARGUMENT("literals", struct forms_test_options, literals, ARGUMENT_FLAG,
             .help = "print by which six characters lines are found, and how many lines hold them; "
                     "if many lines of an ordinary log do, reading it is slow"),
};

const struct command command_forms_test = {
    .name = "forms test",
    .summary = "what rows of your own make of a log",
    .operands = "FILE",
    .operand_max = 1,
    .description =
        "Reads the rows of FILE, checks each against its own samples, and then reads a log from "
        "standard input as culprit would with these rows. Prints each event: the line at which it "
        "begins, the row (-: none, but a reader of another kind), the kind, and what was read.",
    COMMAND_OPTIONS(forms_test_rows, struct forms_test_options),
    .examples =
        "  culprit forms test my.forms < train.log\n"
        "  culprit forms test --literals my.forms < train.log\n"
        "  culprit forms test my.forms < /dev/null\n",
    .exit_codes =
        "  0   the rows are right\n  64  the command line is wrong\n"
        "  65  a row is wrong, or does not read its own sample; where, is on standard "
        "error\n"
        "  66  there is no such file\n  74  reading or writing failed\n"
        "  77  no permission to read it\n",
    .run = forms_test_run,
};
