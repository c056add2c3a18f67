// SPDX-License-Identifier: Apache-2.0
// What does culprit count of itself?
//
// The counts live where the work is done, in the receivers' feeds, the runners and the senders.
// They are carried over into the process-wide metrics when somebody asks for those, as what was
// added since, so that counters go on rising when a reload has made new receivers and runners.
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "pipeline/runtime/self_metrics.h"
#include "pipeline/runtime/service_state.h"

#include <stdio.h>

static const struct metric_family ACCEPTED = {"culprit_receiver_accepted_events_total",
                                              "Events handed to the pipelines.", METRIC_COUNTER, 0};
static const struct metric_family FAILED = {"culprit_receiver_failed_events_total",
                                            "Records that could not be decoded.", METRIC_COUNTER,
                                            0};
static const struct metric_family BLOCKED = {"culprit_receiver_blocked",
                                             "1 while the receiver has to wait for its pipelines.",
                                             METRIC_GAUGE, 0};
static const struct metric_family CONSUMED = {"culprit_pipeline_consumed_events_total",
                                              "Events that went through a pipeline.",
                                              METRIC_COUNTER, 0};
static const struct metric_family EVALUATIONS = {
    "culprit_pipeline_evaluations_total", "How often a pipeline was judged.", METRIC_COUNTER, 0};
static const struct metric_family INCOMING = {"culprit_processor_incoming_events_total",
                                              "Events passed to a processor.", METRIC_COUNTER, 0};
static const struct metric_family OUTGOING = {"culprit_processor_outgoing_events_total",
                                              "Events a processor left for the next.",
                                              METRIC_COUNTER, 0};
static const struct metric_family DISCARDED = {"culprit_discarded_events_total",
                                               "Events or records dropped, by intent and reason.",
                                               METRIC_COUNTER, 0};
static const struct metric_family SENT = {"culprit_exporter_sent_records_total",
                                          "Records the destination has taken.", METRIC_COUNTER, 0};
static const struct metric_family SEND_FAILED = {"culprit_exporter_send_failed_records_total",
                                                 "Records in failed attempts.", METRIC_COUNTER, 0};
static const struct metric_family QUEUE_SIZE = {"culprit_exporter_queue_size_bytes",
                                                "Bytes waiting.", METRIC_GAUGE, 0};
static const struct metric_family QUEUE_CAPACITY = {"culprit_exporter_queue_capacity_bytes",
                                                    "Room for waiting bytes.", METRIC_GAUGE, 0};
static const struct metric_family IN_FLIGHT = {"culprit_exporter_in_flight_requests",
                                               "Requests under way.", METRIC_GAUGE, 0};
static const struct metric_family RELOAD = {"culprit_config_last_reload_successful",
                                            "Whether the last configuration was taken.",
                                            METRIC_GAUGE, 0};
static const struct metric_family HELD = {"culprit_memory_held_bytes",
                                          "Memory that culprit's own code holds.", METRIC_GAUGE, 0};

// What was carried over before, of one counter.
struct carried_count {
    struct metric *metric;
    uint64_t before;
};

enum { RECEIVER_COUNTS = 1 + DECODE_CATEGORY_COUNT, EXPORTER_COUNTS = 3 };

struct service_metrics {
    struct service *service;
    struct self_metrics *listener;
    struct carried_count (*receivers)[RECEIVER_COUNTS];
    struct carried_count (*exporters)[EXPORTER_COUNTS];
    struct carried_count *pipelines; // consumed, evaluations, then three a stage
};

static void carry(struct carried_count *count, uint64_t now) {
    if (now > count->before)
        metric_add(count->metric, now - count->before);
    count->before = now;
}

// -- receivers ----------------------------------------------------------------------------------

static void collect_receiver(struct service_metrics *metrics, uint32_t index) {
    const struct run_receiver *receiver = &metrics->service->receivers[index];
    const char *id = receiver->instance.component->id;
    const char *transport = receiver->instance.component->type->name;
    struct carried_count *counts = metrics->receivers[index];
    // A further copy reads the same for another pipeline.
    if (receiver->instance.context.copy > 0)
        return;
    if (counts[0].metric == NULL)
        counts[0].metric = METRIC(&ACCEPTED, "receiver", id, "transport", transport);
    carry(&counts[0], feed_accepted(receiver->feed));
    for (int i = 1; i < DECODE_CATEGORY_COUNT; i++) {
        uint64_t refused = feed_refused(receiver->feed, (enum decode_category)i);
        if (refused == 0)
            continue;
        if (counts[i].metric == NULL)
            counts[i].metric = METRIC(&FAILED, "receiver", id, "transport", transport, "reason",
                                      decode_category_name((enum decode_category)i));
        carry(&counts[i], refused);
    }
    metric_set(METRIC(&BLOCKED, "receiver", id), feed_blocked(receiver->feed));
}

// -- pipelines ----------------------------------------------------------------------------------

enum { PIPELINE_COUNTS = 2, STAGE_COUNTS = 3 };

static uint32_t pipeline_counts(const struct run_pipeline *pipeline) {
    return PIPELINE_COUNTS + STAGE_COUNTS * pipeline->runner.stage_count;
}

static void collect_stage(struct carried_count counts[STAGE_COUNTS],
                          const struct run_pipeline *pipeline, uint32_t index) {
    const struct plan_component *component = pipeline->stages[index].component;
    const struct runner_stage *stage = &pipeline->runner.stages[index];
    const char *id = component->id, *name = pipeline->runner.plan->name;
    uint64_t incoming = atomic_load(&stage->incoming), filtered = atomic_load(&stage->filtered);
    bool filters = (component->type->gives & FACT_JOBS) != 0;
    if (counts[0].metric == NULL) {
        counts[0].metric = METRIC(&INCOMING, "processor", id, "pipeline", name);
        counts[1].metric = METRIC(&OUTGOING, "processor", id, "pipeline", name);
        if (filters)
            counts[2].metric = METRIC(&DISCARDED, "component", id, "pipeline", name, "intentional",
                                      "true", "reason", "other_job");
    }
    carry(&counts[0], incoming);
    carry(&counts[1], incoming - filtered);
    if (filters)
        carry(&counts[2], filtered);
}

static void collect_pipeline(struct run_pipeline *pipeline, struct carried_count *counts) {
    struct runner *runner = &pipeline->runner;
    const char *name = runner->plan->name;
    if (counts[0].metric == NULL) {
        counts[0].metric = METRIC(&CONSUMED, "pipeline", name);
        counts[1].metric = METRIC(&EVALUATIONS, "pipeline", name);
    }
    // The lock makes one moment of it.
    pthread_mutex_lock(&runner->lock);
    carry(&counts[0], atomic_load(&runner->consumed));
    carry(&counts[1], atomic_load(&runner->evaluations));
    for (uint32_t i = 0; i < runner->stage_count; i++)
        collect_stage(&counts[PIPELINE_COUNTS + STAGE_COUNTS * i], pipeline, i);
    pthread_mutex_unlock(&runner->lock);
}

// -- exporters ----------------------------------------------------------------------------------

static void collect_exporter(struct run_exporter *exporter, struct carried_count *counts) {
    const char *id = exporter->instance.component->id;
    struct sender *sender = &exporter->sender;
    if (counts[0].metric == NULL) {
        counts[0].metric = METRIC(&SENT, "exporter", id);
        counts[1].metric = METRIC(&SEND_FAILED, "exporter", id);
        counts[2].metric =
            METRIC(&DISCARDED, "component", id, "intentional", "false", "reason", "undeliverable");
    }
    carry(&counts[0], atomic_load(&sender->sent_records));
    carry(&counts[1], atomic_load(&sender->failed_records));
    carry(&counts[2], atomic_load(&sender->dropped_records));
    metric_set(METRIC(&QUEUE_SIZE, "exporter", id), atomic_load(&sender->queued_bytes));
    metric_set(METRIC(&QUEUE_CAPACITY, "exporter", id), sender->config->queue.queue_size.bytes);
    metric_set(METRIC(&IN_FLIGHT, "exporter", id), atomic_load(&sender->in_flight));
}

static void collect(void *context) {
    struct service_metrics *metrics = context;
    struct service *service = metrics->service;
    for (uint32_t i = 0; i < service->receiver_count; i++)
        collect_receiver(metrics, i);
    struct carried_count *counts = metrics->pipelines;
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        collect_pipeline(&service->pipelines[i], counts);
        counts += pipeline_counts(&service->pipelines[i]);
    }
    for (uint32_t i = 0; i < service->exporter_count; i++)
        collect_exporter(&service->exporters[i], metrics->exporters[i]);
    pthread_mutex_lock(&service->reload_lock);
    metric_set(METRIC_PLAIN(&RELOAD), !service->reload_refused);
    pthread_mutex_unlock(&service->reload_lock);
    metric_set(METRIC_PLAIN(&HELD), memory_figures().live_bytes);
}

enum status service_metrics_start(struct service *service, struct error *error) {
    struct service_metrics *metrics = memory_zero(1, sizeof *metrics);
    service->metrics = metrics;
    metrics->service = service;
    metrics->receivers = memory_zero(service->receiver_count, sizeof *metrics->receivers);
    metrics->exporters = memory_zero(service->exporter_count, sizeof *metrics->exporters);
    uint32_t count = 0;
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        count += pipeline_counts(&service->pipelines[i]);
    metrics->pipelines = memory_zero(count, sizeof *metrics->pipelines);
    metrics_on_collect(collect, metrics);
    if (service->plan->metrics_endpoint == NULL)
        return STATUS_OK;
    struct error inner = {0};
    enum status status = self_metrics_start(&metrics->listener, service->plan->metrics_endpoint,
                                            "service/telemetry/metrics", &inner);
    if (status != STATUS_OK)
        return error_set(error, status, "service.telemetry.metrics.endpoint: %s", inner.message);
    return STATUS_OK;
}

void service_metrics_stop(struct service *service) {
    struct service_metrics *metrics = service->metrics;
    if (metrics == NULL)
        return;
    self_metrics_stop(metrics->listener, atomic_load(&service->pausing));
    // What was counted since somebody asked last goes on into the next service's time.
    metrics_remove_collect(collect, metrics);
    collect(metrics);
    memory_give(metrics->receivers);
    memory_give(metrics->exporters);
    memory_give(metrics->pipelines);
    memory_give(metrics);
    service->metrics = NULL;
}
