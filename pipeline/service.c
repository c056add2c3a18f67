// SPDX-License-Identifier: Apache-2.0
// Wires a plan's components together: exporters are started first and receivers last, so that
// nothing on its way finds a closed door. Running them is in service_run.c.
#include "base/memory.h"
#include "pipeline/service_state.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

static enum status instance_start(struct instance *instance, const struct plan_component *component,
                                  const struct plan_pipeline *pipeline, bool once,
                                  struct error *error) {
    const struct component_type *type = component->type;
    instance->component = component;
    snprintf(instance->site, sizeof instance->site, "%s/%s", component_kind_name(type->kind),
             component->id);
    instance->context =
        (struct component_context){.id = component->id,
                                   .site = instance->site,
                                   .pipeline = pipeline == NULL ? NULL : pipeline->name,
                                   .timing = pipeline == NULL ? NULL : &pipeline->timing,
                                   .once = once};
    instance->memory = memory_zero(1, type->instance_size);
    struct error inner = {0};
    enum status status = type->start == NULL ? STATUS_OK
                                             : type->start(instance->memory, component->config,
                                                           &instance->context, &inner);
    instance->started = true;
    if (status != STATUS_OK)
        return error_set(error, status, "%s: %s", instance->site, inner.message);
    return STATUS_OK;
}

static void instance_stop(struct instance *instance) {
    if (instance->started && instance->component->type->stop != NULL)
        instance->component->type->stop(instance->memory);
    instance->started = false;
    memory_give(instance->memory);
    instance->memory = NULL;
}

static uint32_t count_used(const struct plan *plan, enum component_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->component_count; i++)
        count += plan->components[i].used && plan->components[i].type->kind == kind;
    return count;
}

static enum status start_exporters(struct service *service, struct error *error) {
    const struct plan *plan = service->plan;
    service->exporters =
        memory_zero(count_used(plan, COMPONENT_EXPORTER), sizeof *service->exporters);
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        if (!component->used || component->type->kind != COMPONENT_EXPORTER)
            continue;
        struct run_exporter *exporter = &service->exporters[service->exporter_count++];
        sender_init(&exporter->sender, component, NULL, exporter->instance.site, service->once,
                    &service->stopping);
        enum status status =
            instance_start(&exporter->instance, component, NULL, service->once, error);
        if (status != STATUS_OK)
            return status;
        exporter->sender.instance = exporter->instance.memory;
    }
    return STATUS_OK;
}

static enum status start_receivers(struct service *service, struct error *error) {
    const struct plan *plan = service->plan;
    service->receivers =
        memory_zero(count_used(plan, COMPONENT_RECEIVER), sizeof *service->receivers);
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        if (!component->used || component->type->kind != COMPONENT_RECEIVER)
            continue;
        struct run_receiver *receiver = &service->receivers[service->receiver_count++];
        receiver->service = service;
        receiver->runners = memory_take(plan->pipeline_count * sizeof(struct runner *));
        enum status status =
            instance_start(&receiver->instance, component, NULL, service->once, error);
        if (status != STATUS_OK)
            return status;
        struct feed_settings settings = {.site = receiver->instance.site,
                                         .batch_size = (uint32_t)plan->batch_size,
                                         .stop_descriptor = service->stop_descriptor,
                                         .stopping = &service->stopping,
                                         .intake = &service->intake,
                                         .deliver = receiver_deliver,
                                         .deliver_context = receiver};
        receiver->feed = feed_create(&settings);
    }
    return STATUS_OK;
}

static struct sender *find_sender(struct service *service, const struct plan_component *component) {
    for (uint32_t i = 0; i < service->exporter_count; i++)
        if (service->exporters[i].instance.component == component)
            return &service->exporters[i].sender;
    return NULL;
}

static struct run_receiver *find_receiver(struct service *service,
                                          const struct plan_component *component) {
    for (uint32_t i = 0; i < service->receiver_count; i++)
        if (service->receivers[i].instance.component == component)
            return &service->receivers[i];
    return NULL;
}

static enum status start_stages(struct service *service, struct run_pipeline *pipeline,
                                const struct plan_pipeline *planned, struct error *error) {
    struct runner *runner = &pipeline->runner;
    pipeline->stages = memory_zero(planned->processor_count, sizeof *pipeline->stages);
    runner->stages = memory_zero(planned->processor_count, sizeof *runner->stages);
    for (uint32_t i = 0; i < planned->processor_count; i++) {
        const struct plan_component *component = &service->plan->components[planned->processors[i]];
        enum status status =
            instance_start(&pipeline->stages[i], component, planned, service->once, error);
        runner->stage_count++;
        runner->stages[i] = (struct runner_stage){component->type, pipeline->stages[i].memory};
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status start_pipeline(struct service *service, const struct plan_pipeline *planned,
                                  struct error *error) {
    struct run_pipeline *pipeline = &service->pipelines[service->pipeline_count++];
    struct runner *runner = &pipeline->runner;
    runner_init(runner, planned, service->once);
    enum status status = start_stages(service, pipeline, planned, error);
    if (status != STATUS_OK)
        return status;
    runner->senders = memory_zero(planned->exporter_count, sizeof(struct sender *));
    for (uint32_t i = 0; i < planned->exporter_count; i++)
        runner->senders[runner->sender_count++] =
            find_sender(service, &service->plan->components[planned->exporters[i]]);
    pipeline->receivers = memory_zero(planned->receiver_count, sizeof(struct run_receiver *));
    for (uint32_t i = 0; i < planned->receiver_count; i++) {
        struct run_receiver *receiver =
            find_receiver(service, &service->plan->components[planned->receivers[i]]);
        pipeline->receivers[pipeline->receiver_count++] = receiver;
        receiver->runners[receiver->runner_count++] = runner;
    }
    return STATUS_OK;
}

static enum status start_all(struct service *service, struct error *error) {
    service->stop_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (service->stop_descriptor < 0)
        return error_set_os(error, STATUS_OS, errno, "cannot make an event descriptor");
    enum status status = start_exporters(service, error);
    if (status == STATUS_OK)
        status = start_receivers(service, error);
    service->pipelines = memory_zero(service->plan->pipeline_count, sizeof *service->pipelines);
    for (uint32_t i = 0; status == STATUS_OK && i < service->plan->pipeline_count; i++)
        status = start_pipeline(service, &service->plan->pipelines[i], error);
    return status;
}

enum status service_start(struct service **out, const struct plan *plan, bool once,
                          struct error *error) {
    struct service *service = memory_zero(1, sizeof *service);
    service->plan = plan;
    service->once = once;
    intake_init(&service->intake);
    enum status status = start_all(service, error);
    *out = status == STATUS_OK ? service : NULL;
    if (status != STATUS_OK)
        service_free(service);
    return status;
}

static void stop_pipeline(struct run_pipeline *pipeline) {
    for (uint32_t i = 0; i < pipeline->runner.stage_count; i++)
        instance_stop(&pipeline->stages[i]);
    memory_give(pipeline->stages);
    memory_give(pipeline->receivers);
    runner_release(&pipeline->runner);
}

void service_free(struct service *service) {
    if (service == NULL)
        return;
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        instance_stop(&service->receivers[i].instance);
        feed_free(service->receivers[i].feed);
        memory_give(service->receivers[i].runners);
    }
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        stop_pipeline(&service->pipelines[i]);
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        sender_release(&service->exporters[i].sender);
        instance_stop(&service->exporters[i].instance);
    }
    memory_give(service->receivers);
    memory_give(service->pipelines);
    memory_give(service->exporters);
    intake_release(&service->intake);
    if (service->stop_descriptor >= 0)
        close(service->stop_descriptor);
    memory_give(service);
}

static void report_sources(const struct service *service, struct report *report) {
    size_t count = 0;
    for (uint32_t i = 0; i < service->receiver_count; i++)
        count += feed_source_count(service->receivers[i].feed);
    report->sources = memory_take(count * sizeof *report->sources);
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        const struct feed *feed = service->receivers[i].feed;
        for (uint32_t j = 0; j < feed_source_count(feed); j++) {
            struct report_source *source = &report->sources[report->source_count++];
            feed_source_report(feed, j, source);
            report->bytes += source->figures.bytes;
        }
    }
}

void service_progress(struct service *service, uint64_t *done_bytes, uint64_t *total_bytes) {
    *done_bytes = atomic_load_explicit(&service->intake.done_bytes, memory_order_relaxed);
    *total_bytes = atomic_load_explicit(&service->intake.total_bytes, memory_order_relaxed);
}

void service_report(struct service *service, struct report *report) {
    *report = (struct report){0};
    intake_report(&service->intake, report);
    report_sources(service, report);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        runner_tally(&service->pipelines[i].runner, report->verdict_count);
}

void report_release(struct report *report) {
    for (uint32_t i = 0; i < report->note_count; i++)
        memory_give(report->notes[i]);
    memory_give(report->notes);
    memory_give(report->refusals);
    memory_give(report->sources);
    *report = (struct report){0};
}
