// SPDX-License-Identifier: Apache-2.0
// Prints the manual pages culprit(1) and culprit.yaml(5), generated from the rows of the commands
// and of the components' options.
#include "base/text/roff.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands/version.h"
#include "cli/component_list.h"
#include "config/describe.h"
#include "pipeline/component/component.h"
#include "pipeline/plan/rows.h"
#include "pipeline/plan/tests.h"

#include <assert.h>
#include <string.h>

enum { LINE_MAX_BYTES = 512, PLAIN_MAX_BYTES = 4096 };

static void page_begin(struct buffer *out, const char *title, const char *section,
                       const char *summary) {
    buffer_append_format(out,
                         ".\\\" Made by \"culprit manual\".\n.TH %s %s %s \"culprit %s\"\n"
                         ".SH NAME\n",
                         title, section, CULPRIT_DATE, CULPRIT_VERSION);
    roff_text(out, summary);
    buffer_append_char(out, '\n');
}

// Takes the next line of `*text`, without the blanks before it; false at the end.
static bool line_take(const char **text, char line[LINE_MAX_BYTES]) {
    assert(*text != NULL);
    const char *at = *text + strspn(*text, " ");
    size_t length = strcspn(at, "\n");
    size_t kept = length < LINE_MAX_BYTES ? length : LINE_MAX_BYTES - 1;
    memcpy(line, at, kept);
    line[kept] = '\0';
    *text = at + length + (at[length] == '\n');
    return length > 0;
}

// Lines as they stand.
static void code_lines(struct buffer *out, const char *text) {
    char line[LINE_MAX_BYTES];
    buffer_append_text(out, ".PP\n.nf\n.RS\n");
    while (line_take(&text, line)) {
        roff_code(out, line);
        buffer_append_char(out, '\n');
    }
    buffer_append_text(out, ".RE\n.fi\n");
}

// "  64  the command line is wrong" a line.
static void exit_code_lines(struct buffer *out, const char *text) {
    char line[LINE_MAX_BYTES];
    while (line_take(&text, line)) {
        size_t code = strcspn(line, " ");
        const char *meaning = line + code + strspn(line + code, " ");
        line[code] = '\0';
        buffer_append_text(out, ".TP\n\\fB");
        roff_code(out, line);
        buffer_append_text(out, "\\fP\n");
        roff_text(out, meaning);
        buffer_append_char(out, '\n');
    }
}

// -- culprit(1) ---------------------------------------------------------------------------------

// A line of bold text, taken from `plain`.
static void plain_bold(struct buffer *out, struct buffer *plain) {
    buffer_append_char(plain, '\0');
    assert(!plain->failed);
    buffer_append_text(out, "\\fB");
    roff_code(out, plain->data);
    buffer_append_text(out, "\\fP\n");
    buffer_reset(plain);
}

static void command_section(struct buffer *out, const struct command *command) {
    struct buffer plain;
    buffer_init(&plain, PLAIN_MAX_BYTES);
    roff_macro(out, "SS", command->name);
    help_print_usage(&plain, command);
    plain_bold(out, &plain);
    buffer_append_text(out, ".PP\n");
    roff_text(out, command->description);
    buffer_append_char(out, '\n');
    for (size_t i = 0; i < command->row_count; i++) {
        buffer_append_text(out, ".TP\n");
        if (command->rows[i].letter != 0)
            buffer_append_format(&plain, "-%c, ", command->rows[i].letter);
        argument_print(&plain, &command->rows[i]);
        plain_bold(out, &plain);
        roff_text(out, command->rows[i].help);
        buffer_append_text(out, ".\n");
    }
    buffer_append_text(out, ".PP\nExamples:\n");
    code_lines(out, command->examples);
    buffer_release(&plain);
}

static const char culprit_description[] =
    "\\fBculprit\\fP names the rank and the phase, GPU or node that broke a distributed training\n"
    "job. It reads the telemetry that every rank wrote, Flight Recorder dumps, kernel logs, GPU\n"
    "counters and Kubernetes events: once, with \\fBculprit analyze\\fP, or for days beside the\n"
    "job, with \\fBculprit run\\fP and a configuration that \\fBculprit.yaml\\fP(5) describes.\n"
    ".PP\n"
    "Options and operands of a command may stand in any order, \\fB\\-\\-\\fP ends the options,\n"
    "and names of options are not abbreviated. Every command knows \\fB\\-h\\fP and\n"
    "\\fB\\-\\-help\\fP; \\fBculprit \\-\\-version\\fP is \\fBculprit version\\fP.\n";

static const char culprit_end[] =
    ".SH SIGNALS\n"
    ".TP\n.BR SIGTERM \", \" SIGINT\n"
    "What has been read is evaluated and delivered, within \\fBservice.shutdown_timeout\\fP; a "
    "second\n"
    "one ends culprit at once.\n"
    ".TP\n.B SIGHUP\n"
    "The configuration is read again; with a mistake in it nothing changes.\n"
    ".TP\n.B SIGUSR2\n"
    "The state of each component is written to the log.\n"
    ".SH ENVIRONMENT\n"
    "A configuration may refer to any variable, as \\fB${env:NAME}\\fP; culprit itself asks for\n"
    "these.\n"
    ".TP\n.B NO_COLOR\n"
    "Reports on a terminal have no colours.\n"
    ".TP\n.B NOTIFY_SOCKET\n"
    "The socket by which \\fBsystemd\\fP(1) learns that culprit is ready, reloads, stops and is\n"
    "alive.\n"
    ".SH FILES\n"
    ".TP\n.I /etc/culprit/culprit.yaml\n"
    "The configuration of the service.\n"
    ".TP\n.I /etc/default/culprit\n"
    "Environment variables of the service.\n"
    ".TP\n.I /var/lib/culprit\n"
    "What the service keeps: its store, and the verdicts.\n"
    ".SH SEE ALSO\n"
    ".BR culprit.yaml (5),\n.BR systemd.unit (5)\n"
    ".PP\n"
    "Pages about each component and about delivery, metrics and log codes:\n"
    ".I /usr/share/doc/culprit\n";

static void manual_culprit(struct buffer *out) {
    struct command_list list = command_list();
    page_begin(out, "CULPRIT", "1",
               "culprit - name the rank, phase, GPU or node that broke a training job");
    buffer_append_text(out,
                       ".SH SYNOPSIS\n.B culprit\n.I command\n[\\fIoption\\fP\\[u2026]]\n"
                       "[\\fIoperand\\fP\\[u2026]]\n.SH DESCRIPTION\n");
    buffer_append_text(out, culprit_description);
    roff_macro(out, "SH", "COMMANDS");
    for (size_t i = 0; i < list.count; i++)
        command_section(out, list.items[i]);
    roff_macro(out, "SH", "EXIT STATUS");
    exit_code_lines(out, help_exit_codes());
    buffer_append_text(out, culprit_end);
}

// -- culprit.yaml(5) ----------------------------------------------------------------------------

static const char yaml_description[] =
    "A configuration is a YAML file. It lists receivers, processors, exporters and extensions by\n"
    "id, which is the name of a component or that name, a slash and a name of one's own\n"
    "(\\fIfile/node7\\fP), and wires them under \\fBservice\\fP. What is listed and not used is "
    "not\n"
    "started. \\fBculprit validate\\fP reports every mistake with its position and says what the\n"
    "configuration guarantees; \\fBculprit config print\\fP shows it as it takes effect.\n"
    ".PP\n.nf\n.RS\n"
    "receivers:\n"
    "  file:\n"
    "    include: [\\(dq/telemetry/**\\(dq]\n"
    "exporters:\n"
    "  json:\n"
    "    path: /var/lib/culprit/verdicts.jsonl\n"
    "service:\n"
    "  pipelines:\n"
    "    verdicts:\n"
    "      receivers: [file]\n"
    "      preset: all\n"
    "      exporters: [json]\n"
    ".RE\n.fi\n"
    ".PP\n"
    "Given several times, \\fB\\-\\-config\\fP joins files: maps are joined, anything else is\n"
    "replaced, the last one wins. \\fB\\-\\-set\\fP \\fIa.b.c=value\\fP overrides one key.\n"
    ".SH VALUES\n"
    ".TP\n.B duration\n"
    "Numbers with units: 300ms, 5s, 1h30m. Units are ns, us, ms, s, m and h. A number without one\n"
    "is an error.\n"
    ".TP\n.B size\n"
    "A number with a unit: 512B, 64KiB, 20MiB. Units are B, KiB, MiB, GiB and TiB.\n"
    ".TP\n.B list of texts\n"
    "A YAML list; a single text is a list of one.\n"
    ".TP\n.B secret\n"
    "A text that is never printed. It is best taken from the environment or from a file.\n"
    ".TP\n\\fB${env:\\fP\\fINAME\\fP\\fB}\\fP, "
    "\\fB${env:\\fP\\fINAME\\fP\\fB:\\-\\fP\\fIdefault\\fP\\fB}\\fP, "
    "\\fB${file:\\fP\\fI/path\\fP\\fB}\\fP\n"
    "Within any value: what the variable or the file holds. A variable that is not set and has no\n"
    "default is an error. \\fB$$\\fP is a dollar sign.\n"
    ".PP\n"
    "Keys of nested maps are written with dots below: \\fBtls.cert_file\\fP is the key\n"
    "\\fBcert_file\\fP in the map \\fBtls\\fP.\n";

static void component_section(struct buffer *out, const struct component_type *type) {
    roff_macro(out, "SS", type->name);
    roff_text(out, type->summary);
    buffer_append_char(out, '\n');
    if (type->option_count == 0)
        buffer_append_text(out, "It has no options.\n");
    describe_options_roff(type->options, type->option_count, out);
}

static void kind_section(struct buffer *out, enum component_kind kind) {
    static const char *const titles[] = {"RECEIVERS", "PROCESSORS", "EXPORTERS", "EXTENSIONS"};
    struct component_set set = component_list();
    roff_macro(out, "SH", titles[kind]);
    buffer_append_text(out, "These stand under the key \\fB");
    roff_code(out, plan_section(kind));
    buffer_append_text(out, "\\fP.\n");
    for (size_t i = 0; i < set.count; i++)
        if (set.types[i]->kind == kind)
            component_section(out, set.types[i]);
}

static void tests_section(struct buffer *out) {
    struct option rows[PLAN_TEST_INPUT_ROWS_MAX];
    const struct option_rows test = PLAN_TEST_ROWS, expected = PLAN_EXPECT_ROWS;
    size_t count = plan_test_input_rows(component_list(), rows);
    roff_macro(out, "SH", "TESTS");
    buffer_append_text(out,
                       "Each test, in the list under \\fBtests\\fP; \\fBculprit test\\fP runs "
                       "them. Nothing in them is\nexpanded.\n");
    describe_options_roff(test.rows, test.count, out);
    buffer_append_text(out, ".PP\nEach of its \\fBinputs\\fP:\n");
    describe_options_roff(rows, count, out);
    buffer_append_text(out,
                       ".PP\nEach verdict that it must \\fBexpect\\fP; an empty list: none.\n");
    describe_options_roff(expected.rows, expected.count, out);
}

static void manual_yaml(struct buffer *out) {
    page_begin(out, "CULPRIT.YAML", "5", "culprit.yaml - configuration of culprit");
    roff_macro(out, "SH", "DESCRIPTION");
    buffer_append_text(out, yaml_description);
    const struct option_rows service = PLAN_SERVICE_ROWS, pipeline = PLAN_PIPELINE_ROWS;
    roff_macro(out, "SH", "SERVICE");
    buffer_append_text(out, "What runs, under the key \\fBservice\\fP.\n");
    describe_options_roff(service.rows, service.count, out);
    roff_macro(out, "SH", "PIPELINES");
    buffer_append_text(out, "Each pipeline, under \\fBservice.pipelines\\fP and a name.\n");
    describe_options_roff(pipeline.rows, pipeline.count, out);
    for (int kind = 0; kind < PLAN_SECTION_COUNT; kind++)
        kind_section(out, (enum component_kind)kind);
    tests_section(out);
    buffer_append_text(out,
                       ".SH SEE ALSO\n.BR culprit (1)\n.PP\n"
                       "Pages about each component, with examples:\n"
                       ".I /usr/share/doc/culprit\n");
}

// -- the command --------------------------------------------------------------------------------

static const struct page {
    const char *name;
    void (*write)(struct buffer *out);
} pages[] = {{"culprit", manual_culprit}, {"culprit.yaml", manual_yaml}};
enum { PAGE_COUNT = sizeof(pages) / sizeof(pages[0]) };

static void page_words(struct buffer *out) {
    for (size_t i = 0; i < PAGE_COUNT; i++)
        buffer_append_format(out, "%s\n", pages[i].name);
}

static int manual_run(struct invocation *invocation) {
    const struct word_list *words = &invocation->operands;
    const char *wanted = words->count == 0 ? pages[0].name : words->items[0];
    for (size_t i = 0; i < PAGE_COUNT; i++) {
        if (strcmp(wanted, pages[i].name) == 0) {
            pages[i].write(invocation->out);
            return 0;
        }
    }
    return invocation_misused(
        invocation, "unknown manual page \"%s\"; the pages are culprit and culprit.yaml", wanted);
}

const struct command command_manual = {
    .name = "manual",
    .summary = "the manual pages, for man",
    .operands = "[PAGE]",
    .operand_max = 1,
    .operand_words = page_words,
    .description =
        "Prints a manual page in the language of man: culprit, about the commands, or "
        "culprit.yaml, about the configuration with every option of every component.",
    .examples = "  culprit manual | man -l -\n  culprit manual culprit.yaml | man -l -\n",
    .exit_codes = "  0   printed\n  64  there is no such page\n  74  writing failed\n",
    .run = manual_run,
};
