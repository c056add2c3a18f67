// SPDX-License-Identifier: Apache-2.0
// Runs a configuration over recorded input and compares the verdicts byte for byte with those that
// are expected.
#include "base/log.h"
#include "base/memory.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands/verdict_diff.h"
#include "cli/default_config.h"
#include "cli/figures.h"
#include "cli/plan_ends.h"
#include "cli/plan_load.h"
#include "pipeline/component/component.h"
#include "pipeline/plan/plan.h"
#include "pipeline/runtime/run_report.h"
#include "pipeline/runtime/service.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct replay_options {
    struct word_list configs;
    struct word_list sets;
    struct word_list inputs;
    const char *pipeline;
    const char *expect;
};

static const struct argument rows[] = {
    ARGUMENT(
        "config", struct replay_options, configs, ARGUMENT_LIST, .value_name = "FILE",
        .required = true,
        .help =
            "the configuration; its receivers are replaced by --input and its exporters are left "
            "out. Given again: joined, the last one wins"),
    ARGUMENT("input", struct replay_options, inputs, ARGUMENT_LIST, .value_name = "FILE",
             .required = true,
             .help = "what is read: a file or a directory; more of them may follow it"),
    ARGUMENT("expect", struct replay_options, expect, ARGUMENT_TEXT, .value_name = "VERDICTS",
             .required = true,
             .help = "the verdicts that must come out, as analyze --output verdicts prints them"),
    ARGUMENT("pipeline", struct replay_options, pipeline, ARGUMENT_TEXT, .value_name = "NAME",
             .help = "which pipeline of --config (default: the first one)"),
    SET_ARGUMENT(struct replay_options),
};

enum { DIFF_BLOCK = 64 * 1024, PATH_SIZE = 4096 };
static const size_t verdict_bytes_max = (size_t)1 << 30;

// The whole of a file, freed by the caller with memory_give.
static enum status file_read(const char *path, struct slice *text, struct error *error) {
    *text = (struct slice){0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return error_set_os(error, STATUS_IO, errno, "%s cannot be read", path);
    struct buffer bytes;
    buffer_init(&bytes, verdict_bytes_max);
    char block[16 * 1024];
    ssize_t got;
    while ((got = read(descriptor, block, sizeof block)) > 0 && !bytes.failed)
        buffer_append(&bytes, (struct slice){block, (size_t)got});
    int os_error = errno;
    close(descriptor);
    if (got == 0 && !bytes.failed) {
        *text = buffer_slice(&bytes);
        return STATUS_OK;
    }
    buffer_release(&bytes);
    if (got < 0)
        return error_set_os(error, STATUS_IO, os_error, "%s cannot be read", path);
    return error_set(error, STATUS_LIMIT, "%s is larger than %zu bytes", path, verdict_bytes_max);
}

static bool anything_read(const struct report *report) {
    for (uint32_t i = 0; i < report->source_count; i++)
        if (!report->sources[i].figures.unread)
            return true;
    return false;
}

static enum status run_once(const struct plan *plan, struct error *error) {
    struct service *service = NULL;
    enum status status = service_start(&service, plan, true, NULL, error);
    if (status == STATUS_OK)
        status = service_run_once(service, error);
    if (status == STATUS_OK) {
        struct report report;
        service_report(service, &report);
        if (!anything_read(&report))
            status = error_set(error, STATUS_NOT_FOUND,
                               "no file of --input could be read; culprit analyze says why");
        report_release(&report);
    }
    service_free(service);
    return status;
}

static int compare(struct invocation *invocation, struct slice expected, struct slice got) {
    const struct replay_options *options = invocation->options;
    assert(options->expect != NULL);
    struct error error = {0};
    struct verdict_diff diff;
    enum status status =
        verdict_diff_compare(&diff, invocation->out, expected, options->expect, got, &error);
    if (status != STATUS_OK)
        return invocation_fail(invocation, &error);
    if (diff.equal) {
        figures_append_count(invocation->out, diff.got_count, "verdict");
        buffer_append_text(invocation->out, " as expected\n");
        return 0;
    }
    buffer_append_format(
        invocation->out, "%u expected, %u found: %u differ, %u missing, %u unexpected\n",
        diff.expected_count, diff.got_count, diff.differing, diff.missing, diff.unexpected);
    return status_exit_code(STATUS_DIFFERS);
}

// `path` is where the verdicts go; the file may come to be or not.
static int replay_into(struct invocation *invocation, struct plan *plan, struct slice expected,
                       const char *path) {
    struct error error = {0};
    plan_set_text(plan, COMPONENT_EXPORTER, NULL, "path", path);
    log_configure(LOG_ERROR, LOG_CONSOLE);
    if (run_once(plan, &error) != STATUS_OK)
        return invocation_fail(invocation, &error);
    struct slice got = {0};
    enum status status = file_read(path, &got, &error);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        return invocation_fail(invocation, &error);
    int code = compare(invocation, expected, got);
    memory_give((char *)(uintptr_t)got.data);
    return code;
}

static int replay_beside(struct invocation *invocation, struct plan *plan, struct slice expected) {
    assert(plan->pipeline_count == 1 && plan->pipelines[0].exporter_count == 1);
    const char *parent = getenv("TMPDIR");
    char *folder = arena_format(invocation->arena, "%s/culprit-replay-XXXXXX",
                                parent == NULL || parent[0] == '\0' ? "/tmp" : parent);
    if (mkdtemp(folder) == NULL) {
        struct error error = {0};
        error_set_os(&error, STATUS_CANNOT_CREATE, errno, "cannot create the directory %s", folder);
        return invocation_fail(invocation, &error);
    }
    const char *path = arena_format(invocation->arena, "%s/verdicts.jsonl", folder);
    int code = replay_into(invocation, plan, expected, path);
    unlink(path);
    rmdir(folder);
    return code;
}

// What is expected is read before the work, so that a file that is missing is told at once.
static int replay_plan(struct invocation *invocation, struct plan *plan) {
    const struct replay_options *options = invocation->options;
    struct slice expected;
    struct error error = {0};
    if (file_read(options->expect, &expected, &error) != STATUS_OK)
        return invocation_fail(invocation, &error);
    int code = replay_beside(invocation, plan, expected);
    memory_give((char *)(uintptr_t)expected.data);
    return code;
}

static int replay_run(struct invocation *invocation) {
    const struct replay_options *options = invocation->options;
    struct plan ends, plan;
    int code = plan_load_default(&ends, ANALYZE_VERDICTS, NULL, NULL, &(struct plan_request){0},
                                 invocation);
    if (code != 0)
        return code;
    // A shell writes several files for a pattern: those behind the first are operands.
    plan_set(&ends, COMPONENT_RECEIVER, NULL, "include",
             word_list_join(invocation->arena, &options->inputs, &invocation->operands));
    struct plan_request request = {.files = options->configs, .sets = options->sets};
    code = plan_load_between(&plan, &ends, &request, options->pipeline, invocation);
    if (code == 0) {
        code = replay_plan(invocation, &plan);
        plan_release(&plan);
    }
    plan_release(&ends);
    return code;
}

const struct command command_replay = {
    .name = "replay",
    .summary = "checks that recorded input still gives the expected verdicts",
    .operands = "[FILE…]",
    .description =
        "Runs one pipeline of a configuration once over recorded input and compares the verdicts, "
        "byte for byte and in order, with those that are expected. What differs is printed, field "
        "by field: - is what was expected, + is what came out.",
    COMMAND_OPTIONS(rows, struct replay_options),
    .examples =
        "  culprit analyze --config c.yaml --output verdicts run7/ > run7.verdicts.jsonl\n"
        "  culprit replay --config c.yaml --input run7/ --expect run7.verdicts.jsonl\n",
    .exit_codes =
        "  0   the verdicts are as expected\n"
        "  1   they differ\n"
        "  64  the command line is wrong\n"
        "  65  the expected verdicts are not JSON Lines\n"
        "  66  a file is missing\n"
        "  73  a directory for the run cannot be created\n"
        "  74  reading or writing failed\n"
        "  77  no permission to read a file\n"
        "  78  the configuration is wrong\n",
    .run = replay_run,
};
