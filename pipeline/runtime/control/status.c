// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/control/status.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "base/text/json_write.h"
#include "base/thread.h"
#include "pipeline/component/decoder.h"
#include "pipeline/component/feed.h"
#include "pipeline/component/service_status.h"
#include "pipeline/component/storage.h"
#include "pipeline/model/verdict.h"
#include "pipeline/runtime/control/overview.h"
#include "pipeline/runtime/feed/feed_run.h"
#include "pipeline/runtime/runner.h"
#include "pipeline/runtime/runner_state.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>
#include <unistd.h>

enum { COMPONENTS_MAX = 1024 };

static void put_time(struct json_writer *json, const char *key, uint64_t unix_ns) {
    char text[CLOCK_RFC3339_MAX];
    if (unix_ns == 0 || unix_ns >= UINT64_MAX - 1)
        return;
    clock_format_rfc3339(unix_ns, text);
    json_field_text(json, key, text);
}

static void put_name(struct json_writer *json, const char *key, string_id name) {
    if (name != STRING_NONE && name != STRING_REFUSED)
        json_field_slice(json, key, intern_slice(name));
}

// Of an event time: how far it is behind the clock on the wall, in seconds; 0 when it is ahead.
static void put_lag(struct json_writer *json, const char *key, uint64_t time_ns, uint64_t now_ns) {
    if (time_ns == 0 || time_ns >= UINT64_MAX - 1)
        return;
    json_field_double(json, key, time_ns > now_ns ? 0 : (double)(now_ns - time_ns) / 1e9);
}

// -- pipelines ------------------------------------------------------------------------------------

static void put_jobs(struct json_writer *json, const struct overview_state *view) {
    json_field_array_open(json, "jobs");
    for (uint32_t i = 0; i < view->job_count; i++) {
        const struct overview_job *job = &view->jobs[i];
        json_object_open(json);
        put_name(json, "job", job->job);
        json_field_uint(json, "ranks", job->rank_count);
        if (job->world_size > 0)
            json_field_int(json, "world_size", job->world_size);
        json_field_uint(json, "missing", job->missing_count);
        json_field_array_open(json, "missing_ranks");
        for (uint32_t j = 0; j < job->missing_count && j < OVERVIEW_MISSING_MAX; j++)
            json_int(json, job->missing[j]);
        json_array_close(json);
        json_field_uint(json, "events", job->event_count);
        put_time(json, "evaluated_to", job->as_of_ns);
        json_object_close(json);
    }
    json_array_close(json);
    json_field_bool(json, "jobs_left_out", view->jobs_left_out);
}

static void put_incidents(struct json_writer *json, const struct overview_state *view) {
    json_field_object_open(json, "open");
    for (int i = (int)SEVERITY_CRITICAL; i >= 0; i--)
        json_field_uint(json, severity_name((enum severity)i), view->open[i]);
    json_object_close(json);
    json_field_array_open(json, "incidents");
    for (uint32_t i = 0; i < view->incident_count; i++) {
        const struct overview_incident *incident = &view->incidents[i];
        json_object_open(json);
        json_field_text(json, "id", incident->id);
        json_field_text(json, "pattern", incident->pattern);
        json_field_text(json, "severity", severity_name(incident->severity));
        put_name(json, "job", incident->job);
        put_time(json, "since", incident->start_ns);
        json_field_slice(json, "headline",
                         (struct slice){incident->headline, incident->headline_size});
        json_object_close(json);
    }
    json_array_close(json);
    json_field_bool(json, "incidents_left_out", view->incidents_left_out);
}

static void put_stages(struct json_writer *json, const struct run_pipeline *pipeline) {
    json_field_array_open(json, "stages");
    for (uint32_t i = 0; i < pipeline->runner.stage_count; i++) {
        const struct runner_stage *stage = &pipeline->runner.stages[i];
        json_object_open(json);
        json_field_text(json, "id", pipeline->stages[i].component->id);
        json_field_uint(json, "events", atomic_load(&stage->incoming));
        json_field_uint(json, "filtered", atomic_load(&stage->filtered));
        json_object_close(json);
    }
    json_array_close(json);
}

static void put_ids(struct json_writer *json, const char *key, const struct plan *plan,
                    const uint32_t *components, uint32_t count) {
    json_field_array_open(json, key);
    for (uint32_t i = 0; i < count; i++)
        json_text(json, plan->components[components[i]].id);
    json_array_close(json);
}

static void put_pipeline(struct json_writer *json, const struct service *service,
                         struct run_pipeline *pipeline, struct overview_state *view,
                         uint64_t now_ns) {
    struct runner *runner = &pipeline->runner;
    struct overview *overview = &runner->overview;
    const struct plan_pipeline *planned = runner->plan;
    assert(runner->magic == RUNNER_MAGIC);
    overview_read(overview, view);
    uint64_t newest_ns = atomic_load_explicit(&overview->newest_ns, memory_order_relaxed);
    json_object_open(json);
    json_field_text(json, "name", planned->name);
    json_field_uint(json, "events", atomic_load(&runner->consumed));
    json_field_uint(json, "evaluations", atomic_load(&runner->evaluations));
    json_field_uint(json, "evaluations_waiting",
                    atomic_load_explicit(&overview->due_count, memory_order_relaxed));
    put_time(json, "newest_event", newest_ns);
    put_lag(json, "newest_event_age_s", newest_ns, now_ns);
    put_time(json, "evaluated_to", view->judged_ns);
    put_lag(json, "lag_s", view->judged_ns, now_ns);
    json_field_uint(json, "sources",
                    atomic_load_explicit(&overview->source_count, memory_order_relaxed));
    put_name(json, "held_back_by",
             (string_id)atomic_load_explicit(&overview->holder, memory_order_relaxed));
    put_ids(json, "receivers", service->plan, planned->receivers, planned->receiver_count);
    put_stages(json, pipeline);
    put_ids(json, "exporters", service->plan, planned->exporters, planned->exporter_count);
    put_jobs(json, view);
    put_incidents(json, view);
    json_object_close(json);
}

// -- components -----------------------------------------------------------------------------------

static void put_state(struct json_writer *json, const struct component_status *status) {
    json_field_text(json, "status", component_state_name(status->state));
    if (status->sentence[0] != '\0')
        json_field_text(json, "error", status->sentence);
}

// Several copies of a receiver read the same, each for a pipeline of its own.
static void put_receiver(struct json_writer *json, const struct run_receiver *receiver,
                         const struct component_status *status) {
    uint64_t refused = 0;
    for (int i = 1; i < DECODE_CATEGORY_COUNT; i++)
        refused += feed_refused(receiver->feed, (enum decode_category)i);
    json_object_open(json);
    json_field_text(json, "id", receiver->instance.component->id);
    if (status->pipeline[0] != '\0')
        json_field_text(json, "pipeline", status->pipeline);
    json_field_uint(json, "events", feed_accepted(receiver->feed));
    json_field_uint(json, "refused", refused);
    json_field_uint(json, "other", feed_other(receiver->feed));
    json_field_bool(json, "blocked", feed_blocked(receiver->feed));
    put_state(json, status);
    json_object_close(json);
}

static void put_exporter(struct json_writer *json, const struct run_exporter *exporter,
                         const struct component_status *status) {
    const struct sender *sender = &exporter->sender;
    json_object_open(json);
    json_field_text(json, "id", exporter->instance.component->id);
    json_field_uint(json, "queue_bytes", atomic_load(&sender->queue.bytes));
    json_field_uint(json, "queue_max_bytes", sender->config->queue.queue_size.bytes);
    json_field_uint(json, "sent", atomic_load(&sender->sent_records));
    json_field_uint(json, "retried", atomic_load(&sender->failed_records));
    json_field_uint(json, "discarded",
                    atomic_load(&sender->dropped_records) + atomic_load(&sender->refused_records));
    put_state(json, status);
    json_object_close(json);
}

static void put_components(struct json_writer *json, struct service *service) {
    assert(lock_is_held(&service->status_lock));
    struct component_status *statuses = memory_take(COMPONENTS_MAX * sizeof *statuses);
    uint32_t count = service_list_components(service, statuses, COMPONENTS_MAX);
    // They stand in this order: extensions, receivers, stages, exporters.
    uint32_t at = service->extension_count;
    json_field_array_open(json, "receivers");
    for (uint32_t i = 0; i < service->receiver_count && at < count; i++)
        put_receiver(json, &service->receivers[i], &statuses[at++]);
    json_array_close(json);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        at += service->pipelines[i].stage_count;
    json_field_array_open(json, "exporters");
    for (uint32_t i = 0; i < service->exporter_count && at < count; i++)
        put_exporter(json, &service->exporters[i], &statuses[at++]);
    json_array_close(json);
    memory_give(statuses);
}

static void put_store(struct json_writer *json, struct service *service) {
    struct storage_statistics figures = {0};
    if (service->store == NULL)
        return;
    storage_statistics(service->store, &figures);
    json_field_object_open(json, "store");
    json_field_uint(json, "size_bytes", figures.size_bytes);
    json_field_uint(json, "max_bytes", figures.max_bytes);
    json_field_uint(json, "pending_bytes", figures.pending_bytes);
    json_field_bool(json, "full", storage_full(service->store));
    if (figures.degraded)
        json_field_text(json, "error", figures.reason);
    json_object_close(json);
}

static void put_service(struct json_writer *json, struct service *service, uint64_t now_ns) {
    struct service_health health = {0};
    service->status.health(service->status.context, &health);
    json_field_text(json, "version", metrics_build_version());
    json_field_int(json, "pid", getpid());
    put_time(json, "time", now_ns);
    put_time(json, "up_since", health.up_since_unix_ns);
    put_lag(json, "uptime_s", health.up_since_unix_ns, now_ns);
    json_field_bool(json, "ready", health.ready && health.last_config_taken);
    if (health.sentence[0] != '\0')
        json_field_text(json, "reason", health.sentence);
    json_field_uint(json, "memory_bytes", memory_figures().live_bytes);
}

void control_status_write(struct service *service, struct buffer *out) {
    assert(service->magic == SERVICE_MAGIC);
    uint64_t now_ns = clock_unix_ns();
    struct overview_state *view = memory_take(sizeof *view);
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    put_service(&json, service, now_ns);
    lock_take(&service->status_lock);
    if (service->built) {
        put_store(&json, service);
        json_field_array_open(&json, "pipelines");
        for (uint32_t i = 0; i < service->pipeline_count; i++)
            put_pipeline(&json, service, &service->pipelines[i], view, now_ns);
        json_array_close(&json);
        put_components(&json, service);
    }
    lock_release(&service->status_lock);
    json_object_close(&json);
    buffer_append_char(out, '\n');
    memory_give(view);
}
