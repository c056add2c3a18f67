// SPDX-License-Identifier: Apache-2.0
// Culprit's metrics of itself.
//
// The counts live where the work is done, in the receivers' feeds, the runners and the senders.
// They are carried over into the process-wide metrics when somebody asks for those, as what was
// added since, so that counters go on rising when a reload has made new receivers and runners.
#include "base/http/server.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "pipeline/component/decoder.h"
#include "pipeline/component/feed.h"
#include "pipeline/model/observation.h"
#include "pipeline/runtime/self_metrics.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>

static const uint64_t LISTENER_GRACE_NS = 1000000000;

#define COUNTER(metric, text)                                                                      \
    { .name = (metric), .help = (text), .type = METRIC_COUNTER }
#define GAUGE(metric, text)                                                                        \
    { .name = (metric), .help = (text), .type = METRIC_GAUGE }

static const struct metric_family ACCEPTED =
    COUNTER("culprit_receiver_accepted_events_total", "Events handed to the pipelines.");
static const struct metric_family FAILED =
    COUNTER("culprit_receiver_failed_events_total", "Records that could not be decoded.");
static const struct metric_family OTHER =
    COUNTER("culprit_receiver_other_records_total", "Records that hold nothing of interest.");
static const struct metric_family UNUSED = COUNTER(
    "culprit_receiver_unused_total", "Events of kinds that no processor of their pipelines takes.");
static const struct metric_family BLOCKED =
    GAUGE("culprit_receiver_blocked", "1 while the receiver has to wait for its pipelines.");
static const struct metric_family CONSUMED =
    COUNTER("culprit_pipeline_consumed_events_total", "Events that went through a pipeline.");
static const struct metric_family EVALUATIONS =
    COUNTER("culprit_pipeline_evaluations_total", "How often a pipeline was judged.");
static const struct metric_family OUTLIERS =
    COUNTER("culprit_pipeline_outlier_times_total",
            "Times of events that stood alone too far ahead of all others.");
static const struct metric_family INCOMING =
    COUNTER("culprit_processor_incoming_events_total", "Events passed to a processor.");
static const struct metric_family OUTGOING =
    COUNTER("culprit_processor_outgoing_events_total", "Events a processor left for the next.");
static const struct metric_family DISCARDED =
    COUNTER("culprit_discarded_events_total", "Events or records dropped, by intent and reason.");
static const struct metric_family SENT =
    COUNTER("culprit_exporter_sent_records_total", "Records the destination has taken.");
static const struct metric_family SEND_FAILED =
    COUNTER("culprit_exporter_send_failed_records_total", "Records in failed attempts.");
static const struct metric_family HELD_BACK =
    COUNTER("culprit_exporter_held_back_verdicts_total",
            "Verdicts and changes of them that an exporter was not given, by the option.");
static const struct metric_family FORGOTTEN =
    COUNTER("culprit_exporter_forgotten_verdicts_total",
            "Open verdicts that were told and are not kept in mind, since there are too many.");
static const struct metric_family QUEUE_SIZE =
    GAUGE("culprit_exporter_queue_size_bytes", "Bytes waiting.");
static const struct metric_family QUEUE_CAPACITY =
    GAUGE("culprit_exporter_queue_capacity_bytes", "Room for waiting bytes.");
static const struct metric_family IN_FLIGHT =
    GAUGE("culprit_exporter_in_flight_requests", "Requests under way.");
static const struct metric_family RELOAD =
    GAUGE("culprit_config_last_reload_successful", "Whether the last configuration was taken.");
static const struct metric_family HELD =
    GAUGE("culprit_memory_held_bytes", "Memory that culprit's own code holds.");

// Brings the counter of these labels up to `now`.
static void carry(struct carried_count *count, uint64_t now, const struct metric_family *family,
                  const char *const *labels) {
    assert(family->type == METRIC_COUNTER);
    if (count->metric == NULL)
        count->metric = metric_find(family, labels);
    if (now > count->before)
        metric_add(count->metric, now - count->before);
    count->before = now;
}
#define CARRY(count, now, family, ...)                                                             \
    carry(count, now, family, (const char *const[]){__VA_ARGS__, NULL})

static void collect_receiver(struct run_receiver *receiver) {
    const char *id = receiver->instance.component->id;
    const char *transport = receiver->instance.component->type->name;
    struct carried_count *counts = receiver->instance.counts;
    // A further copy reads the same for another pipeline.
    if (receiver->instance.copy > 0)
        return;
    CARRY(&counts[0], feed_accepted(receiver->feed), &ACCEPTED, "receiver", id, "transport",
          transport);
    for (int i = 1; i < DECODE_CATEGORY_COUNT; i++) {
        uint64_t refused = feed_refused(receiver->feed, (enum decode_category)i);
        if (refused > 0)
            CARRY(&counts[i], refused, &FAILED, "receiver", id, "transport", transport, "reason",
                  decode_category_name((enum decode_category)i));
    }
    counts += DECODE_CATEGORY_COUNT;
    CARRY(&counts[0], feed_other(receiver->feed), &OTHER, "receiver", id, "transport", transport);
    for (uint32_t class = 0; class < EVENT_CLASS_COUNT; class ++) {
        uint64_t unused = feed_unused(receiver->feed, class);
        if (unused > 0)
            CARRY(&counts[1 + class], unused, &UNUSED, "receiver", id, "transport", transport,
                  "kind", event_class_name(class));
    }
    metric_set(METRIC(&BLOCKED, "receiver", id), feed_blocked(receiver->feed));
}

static void collect_stage(struct instance *instance, const struct runner_stage *stage,
                          const char *pipeline) {
    const char *id = instance->component->id;
    uint64_t incoming = atomic_load(&stage->incoming), filtered = atomic_load(&stage->filtered);
    CARRY(&instance->counts[0], incoming, &INCOMING, "processor", id, "pipeline", pipeline);
    CARRY(&instance->counts[1], incoming - filtered, &OUTGOING, "processor", id, "pipeline",
          pipeline);
    if ((instance->component->type->gives & FACT_JOBS) != 0)
        CARRY(&instance->counts[2], filtered, &DISCARDED, "component", id, "pipeline", pipeline,
              "intentional", "true", "reason", "other_job");
}

static void collect_pipeline(struct run_pipeline *pipeline) {
    assert(pipeline->stage_count >= pipeline->runner.stage_count);
    struct runner *runner = &pipeline->runner;
    const char *name = runner->plan->name;
    // The lock makes one moment of it.
    lock_take(&runner->lock);
    CARRY(&pipeline->counts[0], atomic_load(&runner->consumed), &CONSUMED, "pipeline", name);
    CARRY(&pipeline->counts[1], atomic_load(&runner->evaluations), &EVALUATIONS, "pipeline", name);
    CARRY(&pipeline->counts[2], runner->watch.outliers, &OUTLIERS, "pipeline", name);
    for (uint32_t i = 0; i < runner->stage_count; i++)
        collect_stage(&pipeline->stages[i], &runner->stages[i], name);
    lock_release(&runner->lock);
}

static void collect_route(struct run_exporter *exporter, struct carried_count *counts) {
    const char *id = exporter->instance.component->id;
    const struct sender_route *route = &exporter->sender.route;
    if (route->config == NULL)
        return;
    for (int i = 0; i < ROUTE_REASONS; i++)
        CARRY(&counts[i], atomic_load(&route->held_back[i]), &HELD_BACK, "exporter", id, "reason",
              ROUTE_REASON_NAMES[i]);
    CARRY(&counts[ROUTE_REASONS], atomic_load(&route->forgotten), &FORGOTTEN, "exporter", id);
}

static void collect_exporter(struct run_exporter *exporter) {
    const char *id = exporter->instance.component->id;
    struct sender *sender = &exporter->sender;
    struct carried_count *counts = exporter->instance.counts;
    CARRY(&counts[0], atomic_load(&sender->sent_records), &SENT, "exporter", id);
    CARRY(&counts[1], atomic_load(&sender->failed_records), &SEND_FAILED, "exporter", id);
    CARRY(&counts[2], atomic_load(&sender->dropped_records), &DISCARDED, "component", id,
          "intentional", "false", "reason", "undeliverable");
    CARRY(&counts[3], atomic_load(&sender->refused_records), &DISCARDED, "component", id,
          "intentional", "false", "reason", "refused");
    collect_route(exporter, &counts[4]);
    metric_set(METRIC(&QUEUE_SIZE, "exporter", id), atomic_load(&sender->queue.bytes));
    metric_set(METRIC(&QUEUE_CAPACITY, "exporter", id), sender->config->queue.queue_size.bytes);
    metric_set(METRIC(&IN_FLIGHT, "exporter", id), atomic_load(&sender->in_flight));
}

static void collect(void *context) {
    struct service *service = context;
    assert(service->magic == SERVICE_MAGIC);
    for (uint32_t i = 0; i < service->receiver_count; i++)
        collect_receiver(&service->receivers[i]);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        collect_pipeline(&service->pipelines[i]);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        collect_exporter(&service->exporters[i]);
    lock_take(&service->reload_lock);
    metric_set(METRIC_PLAIN(&RELOAD), !service->reload_refused);
    lock_release(&service->reload_lock);
    metric_set(METRIC_PLAIN(&HELD), memory_figures().live_bytes);
}

enum status service_metrics_start(struct service *service, struct error *error) {
    assert(!service->collects);
    const char *endpoint = service->plan->settings.telemetry.metrics.endpoint;
    struct error inner = {0};
    service->collects = true;
    metrics_on_collect(collect, service);
    enum status status = endpoint == NULL ? STATUS_OK
                                          : self_metrics_start(&service->metrics_listener, endpoint,
                                                               "service/telemetry/metrics", &inner);
    return status == STATUS_OK
               ? status
               : error_set(error, status, "service.telemetry.metrics.endpoint: %s", inner.message);
}

void service_metrics_stop(struct service *service) {
    if (!service->collects)
        return;
    // At a reload the next one of this endpoint takes its socket.
    http_server_stop(service->metrics_listener, LISTENER_GRACE_NS, atomic_load(&service->pausing));
    // What was counted since somebody asked last goes on into the next service's time.
    metrics_remove_collect(collect, service);
    collect(service);
    service->collects = false;
}
