// SPDX-License-Identifier: Apache-2.0
// Runs the tests of a configuration and prints what differs.
#include "base/log.h"
#include "base/text/display.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands/test_report.h"
#include "cli/plan_load.h"
#include "config/option.h"
#include "config/problem.h"
#include "pipeline/plan/plan.h"

#include <assert.h>
#include <string.h>

struct test_options {
    struct word_list configs;
    struct word_list sets;
    struct word_list names;
    int format; // enum test_format
};

static const char *const formats[] = {"text", "json", "junit", NULL};

static const struct argument rows[] = {
    ARGUMENT("config", struct test_options, configs, ARGUMENT_LIST, .value_name = "FILE",
             .help = "the same as FILE. Given again: joined, the last one wins"),
    SET_ARGUMENT(struct test_options),
    ARGUMENT("test", struct test_options, names, ARGUMENT_LIST, .value_name = "NAME",
             .help = "run this test only. Given again: these tests"),
    ARGUMENT("format", struct test_options, format, ARGUMENT_CHOICE, .choices = formats,
             .help = "text is for people (the default), json is one document, junit is XML for "
                     "what shows results of tests; all on standard output"),
};

static bool is_named(const struct word_list *names, const char *name) {
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return names->count == 0;
}

// 0, or the exit code when --test names none.
static int check_names(struct invocation *invocation, const struct plan *plan) {
    const struct test_options *options = invocation->options;
    const char **names = arena_zero(invocation->arena, plan->test_count, sizeof *names);
    struct word_list known = {names, plan->test_count};
    for (uint32_t i = 0; i < plan->test_count; i++)
        names[i] = plan->tests[i].name;
    for (uint32_t i = 0; i < options->names.count; i++) {
        const char *given = options->names.items[i];
        if (known.count > 0 && is_named(&known, given))
            continue;
        const char *near = option_nearest(given, names, known.count);
        return near != NULL
                   ? invocation_misused(invocation, "there is no test \"%s\"; did you mean \"%s\"?",
                                        given, near)
                   : invocation_misused(invocation, "there is no test \"%s\"", given);
    }
    return 0;
}

static void run_one(const struct plan *plan, const struct plan_test *test, struct arena *arena,
                    struct test_result *result) {
    assert(test->pipeline < plan->pipeline_count);
    struct test_run run = {.arena = arena};
    struct error error = {0};
    *result = (struct test_result){.test = test,
                                   .pipeline = plan->pipelines[test->pipeline].name,
                                   .differences = {.arena = arena}};
    if (test_run(&run, plan, test, &error) == STATUS_OK)
        test_compare(&result->differences, test, &run);
    else
        test_differs(&result->differences, DIFFERENCE_INPUT, (struct location){0}, NULL,
                     arena_text(arena, slice_of(error.message)));
    result->event_count = run.accepted;
    result->verdict_count = run.verdict_count;
}

static int run_tests(struct invocation *invocation, const struct plan *plan) {
    const struct test_options *options = invocation->options;
    assert(plan->test_count > 0);
    struct test_result *results = arena_zero(invocation->arena, plan->test_count, sizeof *results);
    uint32_t count = 0, failed = 0;
    for (uint32_t i = 0; i < plan->test_count; i++) {
        const struct plan_test *test = &plan->tests[i];
        if (!is_named(&options->names, test->name))
            continue;
        run_one(plan, test, invocation->arena, &results[count]);
        if (options->format == TEST_TEXT)
            test_result_print(&results[count], invocation->out);
        failed += !test_passed(&results[count++]);
    }
    assert(count > 0);
    test_results_print(results, count, (enum test_format)options->format, invocation->out);
    return failed == 0 ? 0 : status_exit_code(STATUS_DIFFERS);
}

static int test_config(struct invocation *invocation, const struct plan *plan) {
    if (plan->test_count == 0) {
        struct error error = {0};
        error_set(&error, STATUS_CONFIG,
                  "the configuration has no tests; write some under the key tests");
        return invocation_fail(invocation, &error);
    }
    int code = check_names(invocation, plan);
    if (code != 0)
        return code;
    // What a component would log is in what differs.
    log_configure(LOG_ERROR, LOG_CONSOLE);
    return run_tests(invocation, plan);
}

static int test_command_run(struct invocation *invocation) {
    const struct test_options *options = invocation->options;
    struct word_list files =
        word_list_join(invocation->arena, &options->configs, &invocation->operands);
    if (files.count == 0)
        return invocation_misused(
            invocation, "no FILE given; name the configuration, with or without --config");
    struct plan_request request = {
        .files = files, .sets = options->sets, .ends_unused = true, .quiet = true};
    struct plan plan;
    int code = plan_load(&plan, &request, invocation);
    if (code != 0)
        return code;
    code = test_config(invocation, &plan);
    plan_release(&plan);
    return code;
}

const struct command command_test = {
    .name = "test",
    .summary = "runs the tests of a configuration",
    .operands = "[FILE…]",
    .description =
        "Runs the tests that stand under the key tests of a configuration. Each feeds its inputs, "
        "in place of the pipeline's receivers, to the processors of the pipeline, once, at the "
        "times that the events say, and compares the verdicts with those that it expects. "
        "Exporters "
        "and extensions are left out, so that nothing is sent, stored or listened on, and "
        "variables "
        "and secrets of receivers, exporters and extensions need not be there. Several FILEs are "
        "joined, behind those of --config; the last one wins, so tests may have a file of their "
        "own.",
    COMMAND_OPTIONS(rows, struct test_options),
    .examples =
        "  culprit test culprit.yaml\n"
        "  culprit test culprit.yaml tests.yaml --format junit > results.xml\n"
        "  culprit test --config culprit.yaml --test \"a healthy job\"\n",
    .exit_codes =
        "  0   all tests passed\n"
        "  1   a test failed; what differs is printed\n"
        "  64  the command line is wrong, or there is no such test\n"
        "  66  a configuration file is missing\n"
        "  73  a directory for the run cannot be created\n"
        "  74  reading or writing failed\n"
        "  77  no permission to read it\n"
        "  78  the configuration is wrong, or has no tests\n",
    .run = test_command_run,
};
