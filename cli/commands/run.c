// SPDX-License-Identifier: Apache-2.0
// Runs a configuration beside the job until it is stopped, or once over what is there.
#include "base/log.h"
#include "base/metrics/metrics.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/commands/plan_once.h"
#include "cli/commands/run_live.h"
#include "cli/commands/validate.h"
#include "cli/commands/version.h"
#include "cli/start_delay.h"
#include "cli/stop_signals.h"
#include "pipeline/plan/plan.h"

#include <assert.h>

struct run_options {
    struct word_list configs;
    struct word_list sets;
    bool once;
    bool dry_run;
    const char *start_delay; // a duration; NULL: none
    int log_level;           // 0: as configured, else enum log_level + 1
};

static const char *const log_levels[] = {"configured", "debug", "info", "warn", "error", NULL};

static const struct argument rows[] = {
    ARGUMENT("config", struct run_options, configs, ARGUMENT_LIST, .value_name = "FILE",
             .help = "the configuration. Given again: joined, the last one wins"),
    SET_ARGUMENT(struct run_options),
    ARGUMENT(
        "once", struct run_options, once, ARGUMENT_FLAG,
        .help =
            "read the files to their end, evaluate once, write, and exit; receivers whose input "
            "has no end, exporters that only answer requests, and extensions are left out"),
    ARGUMENT("dry-run", struct run_options, dry_run, ARGUMENT_FLAG,
             .help = "check the configuration and exit, as culprit validate does"),
    ARGUMENT("start-delay", struct run_options, start_delay, ARGUMENT_TEXT, .value_name = "TIME",
             .help =
                 "wait before anything is read, at most 15m. A sidecar of Kubernetes is then seen "
                 "running, and the pod's other containers start, even when culprit cannot"),
    ARGUMENT("log-level", struct run_options, log_level, ARGUMENT_CHOICE, .choices = log_levels,
             .help = "what is logged at least (default: what service.telemetry.logs.level says)"),
};

enum { NAMES_MAX = 512 };

static void log_start(const struct plan *plan, bool once) {
    struct buffer names;
    buffer_init(&names, NAMES_MAX);
    for (uint32_t i = 0; i < plan->pipeline_count && !names.failed; i++)
        buffer_append_format(&names, "%s%s", i == 0 ? "" : ", ", plan->pipelines[i].name);
    log_write(LOG_INFO, (struct log_site){.code = "C1001"},
              "culprit %s (%s) %s: %u pipeline%s (%.*s%s)", CULPRIT_VERSION, CULPRIT_REVISION,
              once ? "runs once" : "runs", plan->pipeline_count,
              plan->pipeline_count == 1 ? "" : "s", (int)names.size, names.data,
              names.failed ? ", …" : "");
    buffer_release(&names);
}

static int run_plan(struct invocation *invocation, struct plan *plan,
                    const struct plan_request *request) {
    const struct run_options *options = invocation->options;
    assert(options->log_level >= 0 && options->log_level <= LOG_ERROR + 1);
    enum log_level level = options->log_level == 0
                               ? (enum log_level)plan->settings.telemetry.logs.level
                               : (enum log_level)(options->log_level - 1);
    log_configure(level, (enum log_encoding)plan->settings.telemetry.logs.encoding);
    struct stop_signals signals;
    struct error error = {0};
    enum status status = stop_signals_start(&signals, &error);
    bool watched = status == STATUS_OK;
    if (watched && options->once)
        status = plan_keep_finite(plan, &error);
    if (status != STATUS_OK) {
        if (watched)
            stop_signals_end(&signals);
        plan_release(plan);
        return invocation_fail(invocation, &error);
    }
    log_start(plan, options->once);
    metrics_set_build(CULPRIT_VERSION, CULPRIT_REVISION);
    bool started = false;
    struct live_run run = {.request = request,
                           .signals = &signals,
                           .once = options->once,
                           .level_given = options->log_level != 0};
    status = live_run(&run, plan, &started, &error);
    stop_signals_end(&signals);
    log_flush();
    if (status == STATUS_OK || status == STATUS_STOPPED)
        return 0;
    return started ? invocation_fail(invocation, &error)
                   : invocation_fail_start(invocation, &error);
}

// The answer, when there is one before the start.
static enum status delay_start(const struct run_options *options, struct error *error) {
    uint64_t delay_ns = 0;
    if (options->start_delay == NULL)
        return STATUS_OK;
    enum status status = start_delay_parse(options->start_delay, &delay_ns, error);
    return status == STATUS_OK && !options->dry_run ? start_delay_wait(delay_ns) : status;
}

static int run_run(struct invocation *invocation) {
    const struct run_options *options = invocation->options;
    if (options->configs.count == 0)
        return invocation_misused(
            invocation,
            "no --config FILE given; culprit analyze --print-config prints one to "
            "start from");
    struct error error = {0};
    enum status status = delay_start(options, &error);
    if (status != STATUS_OK)
        return status == STATUS_STOPPED ? 0 : invocation_misused(invocation, "%s", error.message);
    struct plan_request request = {
        .files = options->configs, .sets = options->sets, .check_places = options->dry_run};
    if (options->dry_run)
        return validate_config(invocation, &request, VALIDATE_TEXT);
    struct plan plan;
    int code = plan_load(&plan, &request, invocation);
    if (code != 0)
        return code;
    return run_plan(invocation, &plan, &request);
}

const struct command command_run = {
    .name = "run",
    .summary = "runs the pipelines of a configuration until stopped",
    .description =
        "Runs the pipelines of a configuration beside the job. SIGTERM and SIGINT stop it: what "
        "has been read is evaluated and written first. A second signal ends it at once. SIGHUP "
        "reloads the configuration; one with mistakes changes nothing, and the log says why. "
        "SIGUSR2 "
        "writes the state of every component to the log.",
    COMMAND_OPTIONS(rows, struct run_options),
    .examples =
        "  culprit run --config /etc/culprit/culprit.yaml\n"
        "  culprit run --config culprit.yaml --once\n"
        "  culprit run --start-delay 5s --config sidecar.yaml\n"
        "  culprit run --config base.yaml --config node7.yaml --set service.threads=2\n",
    .exit_codes =
        "  0      a clean stop\n"
        "  64     the command line is wrong, or there is no --config\n"
        "  66     a configuration file is missing\n"
        "  71     the system refused something\n"
        "  73     an output cannot be created\n"
        "  74     reading or writing failed; at a stop: output was neither delivered nor stored\n"
        "  75     stopped before all was delivered; the store keeps it for the next start\n"
        "  77     no permission\n"
        "  78     the configuration is wrong\n"
        "  128+n  ended at once by a second signal n\n",
    .run = run_run,
};
