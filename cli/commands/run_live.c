// SPDX-License-Identifier: Apache-2.0
// How does a new configuration take over from the one that runs?
//
// It is read and checked while the old one still works; with a mistake in it, nothing else happens.
// Then receivers stop where they are, all state goes over in memory, and the new service takes it
// up: what has the same options goes on. When it cannot start, the old one is started again with
// that state.
#include "cli/commands/run_live.h"

#include "base/http/server.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/supervisor.h"
#include "pipeline/runtime/checkpoint.h"

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

static void say_refused(const struct problem_list *problems, const struct error *error,
                        struct service *service) {
    char first[256] = "";
    for (uint32_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->items[i];
        char text[512];
        snprintf(text, sizeof text, "%s:%u:%u: %s: %s",
                 problem->where.file == NULL ? "" : problem->where.file, problem->where.line,
                 problem->where.column, problem->key, problem->text);
        if (i == 0)
            snprintf(first, sizeof first, "%.255s", text);
        log_write(LOG_ERROR, (struct log_site){.code = "C1010"}, "%s", text);
    }
    if (problems->count == 0)
        snprintf(first, sizeof first, "%.250s", error->message);
    log_write(LOG_ERROR, (struct log_site){.code = "C1003"},
              "the new configuration is not taken, the old one stays: %s%s",
              problems->count > 1 ? "several mistakes, the first is " : "", first);
    service_note_reload(service, false, first);
}

// The new plan, or NULL with everything said.
static struct plan *load_again(const struct live_run *run, struct service *service) {
    struct plan *plan = memory_zero(1, sizeof *plan);
    struct arena arena;
    arena_init(&arena, 16 * 1024);
    struct problem_list problems, warnings;
    problem_list_init(&problems, &arena);
    problem_list_init(&warnings, &arena);
    struct error error = {0};
    enum status status = plan_load_quietly(plan, run->request, &problems, &warnings, &error);
    if (status != STATUS_OK) {
        say_refused(&problems, &error, service);
        memory_give(plan);
        plan = NULL;
    }
    arena_release(&arena);
    return plan;
}

static void plan_give(struct plan *plan) {
    plan_release(plan);
    memory_give(plan);
}

// Exchanges the service and its plan; on failure both are what they were, but started anew.
static enum status take_over(struct live_run *run, struct service **service, struct plan **plan,
                             struct plan *next, struct error *error) {
    struct image *image = NULL;
    struct error refused = {0};
    if (service_pause(*service, &image, &refused) != STATUS_OK)
        log_write(LOG_WARN, (struct log_site){.code = "C1011"}, "%s", refused.message);
    uint32_t sources = 0;
    count_in(run, *service, &sources);
    service_free(*service);
    enum status status = service_start(service, next, false, image, &refused);
    if (status == STATUS_OK) {
        plan_give(*plan);
        *plan = next;
        if (!run->level_given)
            log_configure(next->log_level, next->log_encoding);
        log_write(LOG_INFO, (struct log_site){.code = "C1012"},
                  "the new configuration is taken: %u pipeline%s", next->pipeline_count,
                  next->pipeline_count == 1 ? "" : "s");
    } else {
        plan_give(next);
        log_write(LOG_ERROR, (struct log_site){.code = "C1013"},
                  "the new configuration cannot start, the old one goes on: %s", refused.message);
        http_server_fall_back();
        status = service_start(service, *plan, false, image, error);
        if (status == STATUS_OK)
            service_note_reload(*service, false, refused.message);
    }
    image_free(image);
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
