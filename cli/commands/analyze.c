// SPDX-License-Identifier: Apache-2.0
// Runs once over files and prints one answer: who broke the job.
//
// The embedded pipeline, or one of the user's with its receivers and exporters replaced, is run
// once. The answer goes to standard output through the exporter only; all else goes to standard
// error.
#include "base/log.h"
#include "base/text/display.h"
#include "cli/arguments.h"
#include "cli/closing_words.h"
#include "cli/command.h"
#include "cli/default_config.h"
#include "cli/page_hint.h"
#include "cli/plan_ends.h"
#include "cli/plan_load.h"
#include "cli/progress.h"
#include "cli/stats.h"
#include "pipeline/component/component.h"
#include "pipeline/model/verdict.h"
#include "pipeline/plan/plan.h"
#include "pipeline/runtime/run_report.h"
#include "pipeline/runtime/service.h"
#include "receivers/decode/formats.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { CONFIG_TEXT_MAX = 64 * 1024 * 1024, EXPLAIN_SHOWN_MAX = 100 };

struct analyze_options {
    int output; // enum analyze_output
    struct word_list configs;
    struct word_list sets;
    struct word_list forms;
    const char *html;    // NULL: no page
    const char *explain; // NULL: all verdicts
    const char *queries; // NULL: none
    const char *stats;   // NULL: none
    int format;          // place in format_choices; 0: auto
    const char *pipeline;
    int fail_on; // 0: never, else enum severity + 1
    bool print_config;
    bool ignore_missing;
    bool verbose;
    bool quiet;
};

static const char *const outputs[] = {"text", "summary", "timeline", "verdicts", "spans", NULL};
static const char *const fail_ons[] = {"never", "info", "warning", "error", "critical", NULL};

static const struct argument rows[] = {
    ARGUMENT(
        "output", struct analyze_options, output, ARGUMENT_CHOICE, .letter = 'o',
        .choices = outputs,
        .help =
            "what to print: text is for people (the default), summary and timeline are JSON "
            "documents, verdicts are JSON Lines with the last state of each verdict, spans is what "
            "each tree of spans answers, a JSON document on a line of its own"),
    ARGUMENT(
        "queries", struct analyze_options, queries, ARGUMENT_TEXT, .value_name = "FILE",
        .help =
            "with --output spans: questions for each tree, a JSON document {\"queries\": [...]}; "
            "the answers stand in what is printed"),
    ARGUMENT("format", struct analyze_options, format, ARGUMENT_CHOICE, .choices = format_choices,
             .help =
                 "what all files are; with auto, the default, each record is told by itself, and a "
                 "file may hold several kinds; the names are those of the receivers' option format "
                 "(culprit components file)"),
    ARGUMENT(
        "stats", struct analyze_options, stats, ARGUMENT_TEXT, .value_name = "FILE",
        .help =
            "write to this file, as a JSON document, how many lines of each input became events, "
            "were refused, or are of no interest; - is standard output"),
    ARGUMENT("explain", struct analyze_options, explain, ARGUMENT_TEXT, .value_name = "ID",
             .help =
                 "print one verdict with each piece of its evidence, and where that stands in the "
                 "input; the beginning of its id is enough"),
    ARGUMENT(
        "html", struct analyze_options, html, ARGUMENT_TEXT, .value_name = "FILE",
        .help =
            "write the report as an HTML page with charts and evidence to this file as well; it "
            "is replaced whole"),
    ARGUMENT(
        "config", struct analyze_options, configs, ARGUMENT_LIST, .value_name = "FILE",
        .help =
            "use the processors of this configuration; its receivers are replaced by PATH and its "
            "exporters by --output and --html, so the variables and secrets of those need not be "
            "there. Given again: joined, the last one wins"),
    ARGUMENT("pipeline", struct analyze_options, pipeline, ARGUMENT_TEXT, .value_name = "NAME",
             .help = "which pipeline of --config (default: the first one)"),
    SET_ARGUMENT(struct analyze_options),
    ARGUMENT("forms", struct analyze_options, forms, ARGUMENT_LIST, .value_name = "FILE",
             .help = "read lines of logs by the rows of this file, too (culprit forms test tries "
                     "them). Given again: those of all files, the first ones first"),
    ARGUMENT("fail-on", struct analyze_options, fail_on, ARGUMENT_CHOICE, .choices = fail_ons,
             .help = "exit with 2 when a verdict is at least this severe (default: never)"),
    ARGUMENT("ignore-missing", struct analyze_options, ignore_missing, ARGUMENT_FLAG,
             .help =
                 "exit with 0 although a PATH is missing or unreadable, when others could be read; "
                 "the answer says what is missing"),
    ARGUMENT("print-config", struct analyze_options, print_config, ARGUMENT_FLAG,
             .help = "print the pipeline as YAML and exit; PATH is put into it"),
    ARGUMENT("verbose", struct analyze_options, verbose, ARGUMENT_FLAG, .letter = 'v',
             .help = "print all details also where nothing was found, and how to add evidence that "
                     "was absent"),
    ARGUMENT("quiet", struct analyze_options, quiet, ARGUMENT_FLAG, .letter = 'q',
             .help = "do not report what was read, refused and left out; errors only"),
};

// The overrides, and --format as one more.
static struct word_list with_format(struct invocation *invocation, struct word_list sets) {
    const struct analyze_options *options = invocation->options;
    if (options->format == 0)
        return sets;
    const char **words = arena_zero(invocation->arena, sets.count + 1, sizeof *words);
    if (sets.count > 0)
        memcpy(words, sets.items, sets.count * sizeof *words);
    words[sets.count] = arena_format(invocation->arena, "receivers.file.format=%s",
                                     format_choices[options->format]);
    return (struct word_list){words, sets.count + 1};
}

// As it takes effect, with the overrides in their places.
static int print_overridden(struct invocation *invocation, struct slice text) {
    const struct analyze_options *options = invocation->options;
    struct plan_request request = {.text = arena_text(invocation->arena, text),
                                   .text_name = "(default)",
                                   .sets = with_format(invocation, options->sets),
                                   .quiet = options->quiet};
    return plan_load_and_print(&request, invocation);
}

static int print_config(struct invocation *invocation) {
    const struct analyze_options *options = invocation->options;
    if (options->configs.count > 0)
        return invocation_misused(invocation,
                                  "--print-config shows the pipeline that is used "
                                  "without --config; culprit config print shows yours");
    struct buffer text;
    buffer_init(&text, CONFIG_TEXT_MAX);
    struct error error = {0};
    int code = 0;
    struct default_config config = {.output = (enum analyze_output)options->output,
                                    .html = options->html,
                                    .queries = options->queries,
                                    .paths = invocation->operands,
                                    .forms = options->forms};
    if (default_config_write(&text, &config, &error) != STATUS_OK)
        code = invocation_fail(invocation, &error);
    else if (options->sets.count > 0 || options->format != 0)
        code = print_overridden(invocation, buffer_slice(&text));
    else
        buffer_append(invocation->out, buffer_slice(&text));
    buffer_release(&text);
    return code;
}

// The reader of our output has enough and is gone (`culprit analyze … | head`).
static bool reader_is_gone(void) {
    struct pollfd pipe = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR) != 0;
}

static uint64_t verdicts_from(const struct report *report, enum severity severity) {
    uint64_t count = 0;
    assert(severity <= SEVERITY_CRITICAL);
    for (int i = (int)severity; i <= (int)SEVERITY_CRITICAL; i++)
        count += report->verdict_count[i];
    return count;
}

static uint32_t titles_like(const struct report *report, const char *id, bool *exact) {
    uint32_t count = 0;
    assert(id != NULL && (report->title_count == 0 || report->verdicts != NULL));
    *exact = false;
    for (uint32_t i = 0; i < report->title_count; i++) {
        count += strncmp(report->verdicts[i].id, id, strlen(id)) == 0;
        *exact = *exact || strcmp(report->verdicts[i].id, id) == 0;
    }
    return count;
}

// 0, or the exit code when --explain names no verdict, or several; which there are is said.
static int check_explained(struct invocation *invocation, const struct report *report) {
    const struct analyze_options *options = invocation->options;
    bool exact = false;
    if (options->explain == NULL)
        return 0;
    uint32_t count = titles_like(report, options->explain, &exact);
    if (exact || count == 1)
        return 0;
    struct buffer *err = invocation->err;
    buffer_append_format(err, "culprit analyze: --explain: ");
    buffer_append_text(err,
                       count == 0 ? "no verdict begins with " : "several verdicts begin with ");
    display_append(err, slice_of(options->explain), EXPLAIN_SHOWN_MAX);
    buffer_append_text(err, report->title_count == 0 ? "; nothing was found\n"
                                                     : "; these were found:\n");
    for (uint32_t i = 0; i < report->title_count; i++) {
        buffer_append_format(err, "  %s  ", report->verdicts[i].id);
        display_append(err, slice_of(report->verdicts[i].headline), 0);
        buffer_append_char(err, '\n');
    }
    return status_exit_code(STATUS_USAGE);
}

// What is said at the end, and the exit code that follows from what was read and found.
static int close_run(struct invocation *invocation, struct service *service,
                     struct stats_file *stats) {
    const struct analyze_options *options = invocation->options;
    struct report report;
    service_report(service, &report);
    int code = closing_exit_code(&report, options->ignore_missing);
    if (!options->quiet || code != 0)
        closing_words_append(invocation->err, &report);
    if (report.accepted > 0 || code == 0) {
        int unexplained = check_explained(invocation, &report);
        code = code != 0 ? code : unexplained;
    }
    if (code == 0 && options->fail_on > 0 &&
        verdicts_from(&report, (enum severity)(options->fail_on - 1)) > 0)
        code = 2;
    if (!options->quiet && (code == 0 || code == 2))
        page_hint_append(invocation->err, options->html);
    invocation_say(invocation);
    struct error error = {0};
    if (stats->path != NULL && stats_write(stats, &report, &error) != STATUS_OK)
        code = invocation_fail(invocation, &error);
    report_release(&report);
    return code;
}

static int run_service(struct invocation *invocation, const struct plan *plan,
                       struct stats_file *stats) {
    const struct analyze_options *options = invocation->options;
    assert(plan->pipeline_count == 1); // the answer is of one
    struct service *service = NULL;
    struct error error = {0};
    // What a component would log is said at the end, once and in order.
    log_configure(LOG_ERROR, LOG_CONSOLE);
    if (service_start(&service, plan, true, NULL, &error) != STATUS_OK)
        return invocation_fail_start(invocation, &error);
    struct progress progress;
    progress_start(&progress, service, !options->quiet);
    enum status status = service_run_once(service, &error);
    progress_stop(&progress);
    int code = 0;
    if (status == STATUS_OK)
        code = close_run(invocation, service, stats);
    else if (!reader_is_gone())
        code = invocation_fail(invocation, &error);
    service_free(service);
    return code;
}

static int run_plan(struct invocation *invocation, const struct plan *plan) {
    const struct analyze_options *options = invocation->options;
    struct stats_file stats = {0};
    struct error error = {0};
    if (options->stats != NULL && stats_open(&stats, options->stats, &error) != STATUS_OK)
        return invocation_fail(invocation, &error);
    int code = run_service(invocation, plan, &stats);
    stats_close(&stats);
    return code;
}

static int check_readable(struct invocation *invocation, const char *option, const char *path) {
    struct error error = {0};
    if (access(path, R_OK) == 0)
        return 0;
    error_set_os(&error, STATUS_IO, errno, "%s: %s cannot be read", option, path);
    return invocation_fail(invocation, &error);
}

// 0, or the exit code with what is wrong said.
static int check_options(struct invocation *invocation) {
    const struct analyze_options *options = invocation->options;
    if (options->html != NULL && (options->html[0] == '\0' || strcmp(options->html, "-") == 0))
        return invocation_misused(
            invocation, "--html needs the path of a file; standard output is for --output");
    if (options->explain != NULL && (options->output != ANALYZE_TEXT || options->print_config))
        return invocation_misused(invocation, "--explain prints text: leave out %s",
                                  options->print_config ? "--print-config" : "--output");
    if (options->verbose && (options->output != ANALYZE_TEXT || options->print_config))
        return invocation_misused(invocation, "--verbose is for --output text");
    if (options->queries != NULL && options->output != ANALYZE_SPANS)
        return invocation_misused(invocation, "--queries needs --output spans");
    if (options->queries != NULL && options->queries[0] == '\0')
        return invocation_misused(invocation, "--queries needs the path of a file");
    int unread = options->queries == NULL || options->print_config
                     ? 0
                     : check_readable(invocation, "--queries", options->queries);
    for (uint32_t i = 0; unread == 0 && i < options->forms.count && !options->print_config; i++)
        unread = check_readable(invocation, "--forms", options->forms.items[i]);
    if (unread != 0)
        return unread;
    if (!options->print_config && invocation->operands.count == 0)
        return invocation_misused(
            invocation,
            "no PATH given; name the files or directories of all ranks, or - for "
            "standard input");
    if (options->pipeline != NULL && options->configs.count == 0)
        return invocation_misused(invocation, "--pipeline needs --config");
    return 0;
}

static int analyze_run(struct invocation *invocation) {
    const struct analyze_options *options = invocation->options;
    int misuse = check_options(invocation);
    if (misuse != 0)
        return misuse;
    if (options->print_config)
        return print_config(invocation);
    bool own = options->configs.count > 0;
    struct plan ends, user;
    struct plan_request given = {.sets = with_format(invocation, options->sets),
                                 .forms = options->forms};
    if (own)
        given = (struct plan_request){.sets = with_format(invocation, (struct word_list){0})};
    int code = plan_load_default(&ends, (enum analyze_output)options->output, options->html,
                                 own ? NULL : options->queries, &given, invocation);
    if (code != 0)
        return code;
    plan_set(&ends, COMPONENT_RECEIVER, NULL, "include", invocation->operands);
    if (options->explain != NULL)
        plan_set_text(&ends, COMPONENT_EXPORTER, "text", "verdict", options->explain);
    if (options->verbose)
        plan_set(&ends, COMPONENT_EXPORTER, "text", "verbose", (struct word_list){0});
    struct plan_request request = {.files = options->configs,
                                   .sets = options->sets,
                                   .forms = options->forms,
                                   .quiet = options->quiet};
    if (own)
        code = plan_load_between(&user, &ends, &request, options->pipeline, invocation);
    if (code == 0 && own && options->queries != NULL)
        plan_set_text(&user, COMPONENT_PROCESSOR, "spans", "queries", options->queries);
    if (code == 0) {
        code = run_plan(invocation, own ? &user : &ends);
        if (own)
            plan_release(&user);
    }
    plan_release(&ends);
    return code;
}

const struct command command_analyze = {
    .name = "analyze",
    .summary = "who broke the job: reads files, prints one answer",
    .operands = "PATH…",
    .description =
        "Reads what the ranks of a job, its nodes and its cluster wrote (telemetry, dumps, logs, "
        "counters) and says which rank, GPU or node started it, when, and how sure that is. PATH "
        "is a file, a directory (what is input in it is known by its name), or - for standard "
        "input. Files may be compressed by gzip; each record is recognised by its content. "
        "What was read, refused and left out is reported on standard error. A PATH that is "
        "missing "
        "is named in the answer, too, in verdicts as the attribute culprit.missing_inputs.",
    COMMAND_OPTIONS(rows, struct analyze_options),
    .examples =
        "  culprit analyze /telemetry\n"
        "  culprit analyze --output summary rank0.jsonl rank1.jsonl\n"
        "  culprit analyze --html report.html /telemetry\n"
        "  culprit analyze --explain nccl_hang:0f3a /telemetry\n"
        "  culprit analyze --output verdicts --fail-on error /telemetry\n"
        "  culprit analyze --output spans --queries queries.json tasks.jsonl\n"
        "  zcat ranks.jsonl.gz | culprit analyze -\n"
        "  culprit analyze --stats tally.json /telemetry kern.log slurm-123.out\n"
        "  culprit analyze --forms site.forms launch.log\n"
        "  culprit analyze --print-config /telemetry > culprit.yaml\n",
    .exit_codes =
        "  0   the input was read, whether something was found or not; or it is empty\n"
        "  2   a verdict at or above --fail-on\n"
        "  64  the command line is wrong, or --explain names no verdict that was found\n"
        "  65  no file could be understood, or every record was refused; or the file of --queries "
        "is wrong\n"
        "  66  a PATH or a file of --queries or --forms is missing; see --ignore-missing\n"
        "  73  the file of --html or --stats cannot be created\n"
        "  74  reading or writing failed\n"
        "  77  no permission to read or write a file\n"
        "  78  the configuration or a file of rows is wrong\n",
    .run = analyze_run,
};
