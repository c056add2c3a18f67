// SPDX-License-Identifier: Apache-2.0
// Runs a service and replaces it on a reload.
//
// The new configuration is read and checked while the old one still works; with a mistake in it,
// nothing else happens. Then receivers stop where they are, all state is kept in memory, and the
// new service starts from it: what has the same options continues. When it cannot start, the old
// one is started again with that state.
#include "cli/commands/run_live.h"

#include "base/http/server.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/supervisor.h"
#include "pipeline/plan/plan.h"
#include "pipeline/runtime/checkpoint.h"
#include "pipeline/runtime/run_report.h"
#include "pipeline/runtime/service.h"
#include "pipeline/runtime/snapshot.h"

#include <assert.h>
#include <stdio.h>

// What this service took is added to what those before it took.
static void count_in(struct live_run *run, struct service *service, uint32_t *sources) {
    struct report report;
    service_report(service, &report);
    run->accepted += report.accepted;
    run->refused += report.refused;
    *sources = report.source_count;
    report_release(&report);
}

static void log_end(struct live_run *run, struct service *service) {
    uint32_t sources = 0;
    count_in(run, service, &sources);
    log_write(LOG_INFO, (struct log_site){.code = "C1004"},
              "stopped; %u source%s, %llu event%s accepted, %llu record%s refused", sources,
              sources == 1 ? "" : "s", (unsigned long long)run->accepted,
              run->accepted == 1 ? "" : "s", (unsigned long long)run->refused,
              run->refused == 1 ? "" : "s");
}

// "c.yaml:3:5: receivers.file: what is wrong"
static void format_problem(const struct problem *problem, char *text, size_t size) {
    snprintf(text, size, "%s:%u:%u: %s: %s", problem->where.file == NULL ? "" : problem->where.file,
             problem->where.line, problem->where.column, problem->key, problem->text);
}

// Said of a configuration that is taken; at the start plan_load says it.
static void report_warnings(const struct problem_list *warnings) {
    for (uint32_t i = 0; i < warnings->count; i++) {
        char text[512];
        format_problem(&warnings->items[i], text, sizeof text);
        log_write(LOG_WARN, (struct log_site){.code = "C1024"}, "%s", text);
    }
}

static void report_refused(const struct problem_list *problems, const struct error *error,
                           struct service *service) {
    assert(problems->count > 0 || error->status != STATUS_OK);
    char first[256] = "";
    for (uint32_t i = 0; i < problems->count; i++) {
        char text[512];
        format_problem(&problems->items[i], text, sizeof text);
        if (i == 0)
            snprintf(first, sizeof first, "%.255s", text);
        log_write(LOG_ERROR, (struct log_site){.code = "C1010"}, "%s", text);
    }
    if (problems->count == 0)
        snprintf(first, sizeof first, "%.250s", error->message);
    log_write(LOG_ERROR, (struct log_site){.code = "C1003"},
              "reload failed, the current configuration stays in use: %s%s",
              problems->count > 1 ? "several problems, the first: " : "", first);
    service_note_reload(service, false, first);
}

// The new plan, or NULL with everything said.
static struct plan *load_again(const struct live_run *run, struct service *service) {
    struct plan *plan = memory_zero(1, sizeof *plan);
    struct findings findings;
    if (plan_load_quietly(plan, run->request, &findings) != STATUS_OK) {
        report_refused(&findings.problems, &findings.error, service);
        memory_give(plan);
        plan = NULL;
    } else {
        report_warnings(&findings.warnings);
    }
    findings_release(&findings);
    return plan;
}

static void plan_give(struct plan *plan) {
    plan_release(plan);
    memory_give(plan);
}

// Exchanges the service and its plan; on failure both are what they were, but started anew.
static enum status take_over(struct live_run *run, struct service **service, struct plan **plan,
                             struct plan *next, struct error *error) {
    assert(*service != NULL && *plan != NULL && next != NULL);
    struct snapshot *snapshot = NULL;
    struct error refused = {0};
    if (service_pause(*service, &snapshot, &refused) != STATUS_OK)
        log_write(LOG_WARN, (struct log_site){.code = "C1011"}, "%s", refused.message);
    uint32_t sources = 0;
    count_in(run, *service, &sources);
    service_free(*service);
    enum status status = service_start(service, next, false, snapshot, &refused);
    if (status == STATUS_OK) {
        plan_give(*plan);
        *plan = next;
        if (!run->level_given)
            log_configure((enum log_level)next->settings.telemetry.logs.level,
                          (enum log_encoding)next->settings.telemetry.logs.encoding);
        log_write(LOG_INFO, (struct log_site){.code = "C1012"},
                  "configuration reloaded: %u pipeline%s", next->pipeline_count,
                  next->pipeline_count == 1 ? "" : "s");
    } else {
        plan_give(next);
        log_write(LOG_ERROR, (struct log_site){.code = "C1013"},
                  "the new configuration failed to start, the previous one continues: %s",
                  refused.message);
        http_server_fall_back();
        status = service_start(service, *plan, false, snapshot, error);
        if (status == STATUS_OK)
            service_note_reload(*service, false, refused.message);
    }
    snapshot_free(snapshot);
    http_server_drop_kept();
    if (status == STATUS_OK)
        stop_signals_watch(run->signals, *service);
    return status;
}

static enum status run_until_stopped(struct live_run *run, struct service **service,
                                     struct plan **plan, struct error *error) {
    for (;;) {
        bool reload = false;
        enum status status = service_run(*service, &reload, error);
        if (!reload)
            return status;
        // A signal from here on is for a configuration that may not have been read: it is kept.
        stop_signals_watch(run->signals, NULL);
        supervisor_reloading();
        struct plan *next = load_again(run, *service);
        if (next == NULL) {
            supervisor_ready();
            stop_signals_watch(run->signals, *service);
            continue;
        }
        status = take_over(run, service, plan, next, error);
        if (status != STATUS_OK)
            return status;
    }
}

enum status live_run(struct live_run *run, struct plan *given, bool *started, struct error *error) {
    assert(given != NULL && started != NULL && run->signals != NULL);
    struct plan *plan = memory_take(sizeof *plan);
    *plan = *given;
    struct service *service = NULL;
    enum status status = service_start(&service, plan, run->once, NULL, error);
    *started = status == STATUS_OK;
    if (*started) {
        stop_signals_watch(run->signals, service);
        status = run->once ? service_run_once(service, error)
                           : run_until_stopped(run, &service, &plan, error);
    }
    if (service != NULL && (status == STATUS_OK || status == STATUS_STOPPED))
        log_end(run, service);
    stop_signals_watch(run->signals, NULL);
    service_free(service);
    plan_give(plan);
    return status;
}
