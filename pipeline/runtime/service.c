// SPDX-License-Identifier: Apache-2.0
// Wires a plan's components together: extensions are started first, then exporters, and receivers
// last, so that nothing on its way finds a closed door. Running them is in service_run.c.
#include "pipeline/runtime/service.h"

#include "base/cores.h"
#include "base/http/late.h"
#include "base/late_library.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/workers.h"
#include "pipeline/model/observation.h"
#include "pipeline/runtime/control/control.h"
#include "pipeline/runtime/feed/intake.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

// Names of savers: nothing else begins like this.
static void owner_of(const struct instance *instance, char out[SITE_MAX * 2]) {
    const char *kind = component_kind_name(instance->component->type->kind);
    if (instance->pipeline != NULL)
        snprintf(out, SITE_MAX * 2, "%s/%s", instance->pipeline, instance->component->id);
    else
        snprintf(out, SITE_MAX * 2, "%s:%s", kind, instance->component->id);
}

// `before`: the fingerprint of the stages in front of it.
static void instance_saver(struct instance *instance, uint64_t before) {
    assert(instance->started);
    char owner[SITE_MAX * 2];
    owner_of(instance, owner);
    const struct component_type *type = instance->component->type;
    uint64_t own = config_fingerprint(type, instance->component->config);
    saver_init(&instance->saver, owner,
               fingerprint_add(before, (struct slice){(const char *)&own, sizeof own}));
    component_list_state(type, instance->memory, &instance->saver.list);
}

static uint32_t threads_wanted(const struct plan *plan) {
    int64_t wanted = plan->settings.threads;
    uint32_t threads = wanted > 0 ? (uint32_t)wanted : cores_usable();
    return threads < WORKERS_MAX ? threads : WORKERS_MAX;
}

// `pipeline` and `before` (the fingerprint of the stages in front of it): of a processor.
static enum status instance_start(struct service *service, struct instance *instance,
                                  const struct plan_component *component,
                                  const struct plan_pipeline *pipeline, uint64_t before,
                                  struct error *error) {
    const struct component_type *type = component->type;
    assert(!instance->started);
    assert((pipeline != NULL) == (type->kind == COMPONENT_PROCESSOR));
    instance->component = component;
    instance->pipeline = pipeline == NULL ? NULL : pipeline->name;
    condition_init(&instance->condition);
    snprintf(instance->site, sizeof instance->site, "%s/%s", component_kind_name(type->kind),
             component->id);
    instance->context =
        (struct component_context){.id = component->id,
                                   .site = instance->site,
                                   .pipeline = instance->pipeline,
                                   .timing = pipeline == NULL ? NULL : &pipeline->timing,
                                   .components = &service->plan->components_known,
                                   .once = service->once,
                                   .threads = service->threads,
                                   .workers = instance->workers,
                                   .store = service->store,
                                   .forms = service->plan->forms,
                                   .copy = instance->copy,
                                   .status = &service->status};
    instance->memory = memory_zero(1, type->instance_size);
    struct error inner = {0};
    enum status status =
        component_start(type, instance->memory, component->config, &instance->context, &inner);
    instance->started = true;
    if (status != STATUS_OK)
        return error_set(error, status, "%s: %s", instance->site, inner.message);
    instance_saver(instance, before);
    instance_condition(instance, COMPONENT_OK, NULL);
    return STATUS_OK;
}

static void instance_stop(struct instance *instance) {
    assert(instance->component != NULL || !instance->started);
    if (instance->started) {
        component_stop(instance->component->type, instance->memory);
        lock_destroy(&instance->condition.lock);
    }
    saver_release(&instance->saver);
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

static enum status start_extensions(struct service *service, struct error *error) {
    const struct plan *plan = service->plan;
    service->extensions =
        memory_zero(count_used(plan, COMPONENT_EXTENSION), sizeof *service->extensions);
    for (uint32_t i = 0; i < plan->component_count && !service->once; i++) {
        const struct plan_component *component = &plan->components[i];
        if (!component->used || component->type->kind != COMPONENT_EXTENSION)
            continue;
        struct instance *instance = &service->extensions[service->extension_count++];
        enum status status = instance_start(service, instance, component, NULL, 0, error);
        if (status != STATUS_OK)
            return status;
        const struct extension_calls *calls = &component->type->extension;
        if (calls->store != NULL && service->store == NULL)
            service->store = calls->store(instance->memory);
    }
    return STATUS_OK;
}

static void ask_checkpoint(void *context) {
    struct service *service = context;
    if (!atomic_exchange(&service->checkpoint_asked, true))
        service_wake(service);
}

// What the sink was told holds also under other options.
static void make_route_saver(struct run_exporter *exporter) {
    char owner[SITE_MAX * 2];
    snprintf(owner, sizeof owner, "route:%s", exporter->instance.component->id);
    saver_init(&exporter->route_saver, owner, 0);
    sender_route_state(&exporter->sender.route, &exporter->route_saver.list);
}

// How many pipelines list this exporter.
static uint32_t feeders_of(const struct plan *plan, uint32_t component) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->pipeline_count; i++)
        for (uint32_t j = 0; j < plan->pipelines[i].exporter_count; j++)
            count += plan->pipelines[i].exporters[j] == component;
    return count;
}

static enum status start_exporters(struct service *service, struct error *error) {
    const struct plan *plan = service->plan;
    uint64_t patience_ns = (uint64_t)plan->settings.shutdown_timeout.ns;
    service->exporters =
        memory_zero(count_used(plan, COMPONENT_EXPORTER), sizeof *service->exporters);
    for (uint32_t i = 0; i < plan->component_count; i++) {
        const struct plan_component *component = &plan->components[i];
        if (!component->used || component->type->kind != COMPONENT_EXPORTER)
            continue;
        struct run_exporter *exporter = &service->exporters[service->exporter_count++];
        enum status status =
            instance_start(service, &exporter->instance, component, NULL, 0, error);
        exporter->sender = (struct sender){.component = component,
                                           .instance = exporter->instance.memory,
                                           .site = exporter->instance.site,
                                           .once = service->once,
                                           .patience_ns = service->once ? patience_ns : 0,
                                           .with_store = service->store != NULL,
                                           .shared = feeders_of(plan, i) > 1,
                                           .stopping = &service->stopping,
                                           .wake_checkpoint = ask_checkpoint,
                                           .wake_context = service};
        sender_init(&exporter->sender);
        make_route_saver(exporter);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static struct sender *find_sender(struct service *service, const struct plan_component *component) {
    assert(component->type->kind == COMPONENT_EXPORTER);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        if (service->exporters[i].instance.component == component)
            return &service->exporters[i].sender;
    return NULL;
}

static enum status start_stages(struct service *service, struct run_pipeline *pipeline,
                                const struct plan_pipeline *planned, struct error *error) {
    struct runner *runner = &pipeline->runner;
    pipeline->workers = workers_new(service->threads);
    pipeline->stages = memory_zero(planned->processor_count, sizeof *pipeline->stages);
    runner->stages = memory_zero(planned->processor_count, sizeof *runner->stages);
    uint64_t fingerprint = 0;
    for (uint32_t i = 0; i < planned->processor_count; i++) {
        const struct plan_component *component = &service->plan->components[planned->processors[i]];
        struct instance *instance = &pipeline->stages[i];
        instance->workers = pipeline->workers;
        pipeline->stage_count++;
        enum status status =
            instance_start(service, instance, component, planned, fingerprint, error);
        runner->stage_count++;
        runner->stages[i].type = component->type;
        runner->stages[i].instance = instance->memory;
        if (status != STATUS_OK)
            return status;
        // A stage that only lets input in or not shapes nobody's state.
        if (component->type->processor.admits == NULL)
            fingerprint = instance->saver.fingerprint;
    }
    return STATUS_OK;
}

static enum status start_pipeline(struct service *service, const struct plan_pipeline *planned,
                                  struct error *error) {
    assert(service->pipeline_count < service->plan->pipeline_count);
    struct run_pipeline *pipeline = &service->pipelines[service->pipeline_count++];
    struct runner *runner = &pipeline->runner;
    runner_init(runner, planned, (uint32_t)service->plan->settings.batch_size, service->once);
    runner->watch.intake = &service->intake;
    char owner[SITE_MAX * 2];
    snprintf(owner, sizeof owner, "%s/", planned->name);
    saver_init(&pipeline->saver, owner, 0);
    runner_state_list(runner, &pipeline->saver.list);
    enum status status = start_stages(service, pipeline, planned, error);
    if (status != STATUS_OK)
        return status;
    runner_stages_ready(runner);
    runner->senders = memory_zero(planned->exporter_count, sizeof(struct sender *));
    for (uint32_t i = 0; i < planned->exporter_count; i++)
        runner->senders[runner->sender_count++] =
            find_sender(service, &service->plan->components[planned->exporters[i]]);
    pipeline->receivers = memory_zero(planned->receiver_count, sizeof(struct run_receiver *));
    return STATUS_OK;
}

// -- receivers ----------------------------------------------------------------------------------

static enum status start_receiver(struct service *service, struct run_receiver *receiver,
                                  const struct plan_component *component, uint32_t copy,
                                  struct error *error) {
    receiver->magic = RECEIVER_MAGIC;
    receiver->service = service;
    receiver->id = intern(slice_of(component->id));
    receiver->runners = memory_take(service->plan->pipeline_count * sizeof(struct runner *));
    service->receiver_count++;
    receiver->instance.copy = copy;
    return instance_start(service, &receiver->instance, component, NULL, 0, error);
}

// Which events some pipeline of the receiver looks at, by event_class.
static bool *taken_classes(const struct service *service, const struct run_receiver *receiver) {
    bool *taken = memory_zero(EVENT_CLASS_COUNT, sizeof *taken);
    for (uint32_t class = 0; class < EVENT_CLASS_COUNT; class ++)
        for (uint32_t i = 0; i < receiver->runner_count && !taken[class]; i++)
            taken[class] = event_class_name(class) != NULL &&
                           plan_pipeline_takes(service->plan, receiver->runners[i]->plan, class);
    return taken;
}

static void make_feed(struct service *service, struct run_receiver *receiver) {
    assert(receiver->feed == NULL);
    assert(receiver->runner_count > 0);
    receiver->taken = taken_classes(service, receiver);
    uint64_t max_jump_ns = UINT64_MAX;
    for (uint32_t i = 0; i < receiver->runner_count; i++) {
        uint64_t own = runner_max_jump(receiver->runners[i]);
        max_jump_ns = own < max_jump_ns ? own : max_jump_ns;
    }
    struct feed_settings settings = {.site = receiver->instance.site,
                                     .batch_size = (uint32_t)service->plan->settings.batch_size,
                                     .runner_count = receiver->runner_count,
                                     .max_jump_ns = max_jump_ns,
                                     .stop_descriptor = service->stop_descriptor,
                                     .stopping = &service->stopping,
                                     .pausing = &service->pausing,
                                     .taken = receiver->taken,
                                     .forms = service->plan->forms,
                                     .silent = receiver->instance.copy > 0,
                                     .intake = &service->intake,
                                     .outlet = receiver_outlet(receiver)};
    receiver->feed = feed_create(&settings);
}

static bool lists_receiver(const struct plan_pipeline *planned, uint32_t component) {
    for (uint32_t i = 0; i < planned->receiver_count; i++)
        if (planned->receivers[i] == component)
            return true;
    return false;
}

static void join_pipeline(struct run_receiver *receiver, struct run_pipeline *pipeline) {
    assert(receiver->runner_count < receiver->service->plan->pipeline_count);
    receiver->runners[receiver->runner_count++] = &pipeline->runner;
    pipeline->receivers[pipeline->receiver_count++] = receiver;
    receiver->instance.pipeline = receiver->runner_count == 1 ? pipeline->runner.plan->name : NULL;
}

// One receiver for all pipelines that list it, or one for each.
static enum status start_copies(struct service *service, uint32_t component, struct error *error) {
    assert(component < service->plan->component_count);
    const struct plan_component *planned = &service->plan->components[component];
    bool each = planned->type->receiver.each_pipeline && !service->once;
    struct run_receiver *receiver = NULL;
    uint32_t copies = 0;
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct run_pipeline *pipeline = &service->pipelines[i];
        if (!lists_receiver(pipeline->runner.plan, component))
            continue;
        if (receiver == NULL || each) {
            receiver = &service->receivers[service->receiver_count];
            enum status status = start_receiver(service, receiver, planned, copies++, error);
            if (status != STATUS_OK)
                return status;
        }
        join_pipeline(receiver, pipeline);
    }
    return STATUS_OK;
}

static enum status start_receivers(struct service *service, struct error *error) {
    const struct plan *plan = service->plan;
    uint32_t most = count_used(plan, COMPONENT_RECEIVER) * plan->pipeline_count;
    service->receivers = memory_zero(most, sizeof *service->receivers);
    for (uint32_t i = 0; i < plan->component_count; i++) {
        if (!plan->components[i].used || plan->components[i].type->kind != COMPONENT_RECEIVER)
            continue;
        enum status status = start_copies(service, i, error);
        if (status != STATUS_OK)
            return status;
    }
    for (uint32_t i = 0; i < service->receiver_count; i++)
        make_feed(service, &service->receivers[i]);
    return STATUS_OK;
}

// -- all ----------------------------------------------------------------------------------------

static enum status go_on(struct service *service, struct snapshot *given, struct error *error) {
    assert(!service->once);
    struct snapshot *read = NULL;
    enum status status = STATUS_OK;
    if (given == NULL && service->store != NULL)
        status = service_read_store(service, &read, error);
    struct snapshot *snapshot = given != NULL ? given : read;
    if (status == STATUS_OK && snapshot != NULL)
        status = service_restore(service, snapshot, error);
    snapshot_free(read);
    for (uint32_t i = 0; i < service->exporter_count && status == STATUS_OK; i++)
        sender_note_place(&service->exporters[i].sender);
    service->rewrite = service->store != NULL;
    return status;
}

// The libraries that the start will load, in the order in which it comes to them.
struct libraries {
    struct late_library *items[8];
    uint32_t count;
};

static void libraries_add(struct libraries *libraries, struct late_library *library) {
    for (uint32_t i = 0; i < libraries->count; i++)
        if (libraries->items[i] == library)
            return;
    assert(libraries->count < sizeof libraries->items / sizeof libraries->items[0]);
    if (library != NULL)
        libraries->items[libraries->count++] = library;
}

static void libraries_of_kind(struct libraries *libraries, const struct plan *plan,
                              enum component_kind kind) {
    for (uint32_t i = 0; i < plan->component_count; i++)
        if (plan->components[i].used && plan->components[i].type->kind == kind)
            libraries_add(libraries, plan->components[i].type->library);
}

// With one library there is nothing to do beside loading it. NULL: none is loaded ahead.
static struct late_ahead *load_ahead(const struct service *service) {
    const struct plan *plan = service->plan;
    struct libraries libraries = {.count = 0};
    libraries_of_kind(&libraries, plan, COMPONENT_EXTENSION);
    libraries_of_kind(&libraries, plan, COMPONENT_EXPORTER);
    libraries_of_kind(&libraries, plan, COMPONENT_RECEIVER);
    if (plan->settings.telemetry.metrics.endpoint != NULL)
        libraries_add(&libraries, &http_server_library);
    bool is_worth_it = !service->once && libraries.count > 1;
    return is_worth_it ? late_ahead_begin(libraries.items, libraries.count) : NULL;
}

static enum status start_all(struct service *service, struct snapshot *snapshot,
                             struct error *error) {
    service->stop_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    service->wake_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (service->stop_descriptor < 0 || service->wake_descriptor < 0)
        return error_set_os(error, STATUS_OS, errno, "cannot make an event descriptor");
    enum status status = start_extensions(service, error);
    if (status == STATUS_OK)
        status = start_exporters(service, error);
    service->pipelines = memory_zero(service->plan->pipeline_count, sizeof *service->pipelines);
    for (uint32_t i = 0; status == STATUS_OK && i < service->plan->pipeline_count; i++)
        status = start_pipeline(service, &service->plan->pipelines[i], error);
    if (status == STATUS_OK)
        status = start_receivers(service, error);
    if (status == STATUS_OK && !service->once)
        status = go_on(service, snapshot, error);
    return status;
}

// At the usual place it is an offer: a system without a directory for it (a container that is read
// only) is no reason not to start.
static enum status start_control(struct service *service, bool reloads, struct error *error) {
    const struct control_config *settings = &service->plan->settings.control;
    struct error inner = {0};
    assert(service->control == NULL && service->built);
    if (!settings->enabled)
        return STATUS_OK;
    enum status status = control_start(&service->control, service, settings->socket, &inner);
    if (status == STATUS_OK) {
        log_write(reloads ? LOG_DEBUG : LOG_INFO, (struct log_site){.code = "C1021"},
                  "culprit top and culprit tap are answered at %s", control_path(service->control));
        return STATUS_OK;
    }
    if (settings->socket != NULL)
        return error_set(error, status, "service.control.socket: %s", inner.message);
    log_write(reloads ? LOG_DEBUG : LOG_INFO, (struct log_site){.code = "C1022"},
              "culprit top and culprit tap cannot be used: %s", inner.message);
    return STATUS_OK;
}

enum status service_start(struct service **out, const struct plan *plan, bool once,
                          struct snapshot *snapshot, struct error *error) {
    assert(plan != NULL);
    assert(snapshot == NULL || !once);
    struct service *service = memory_zero(1, sizeof *service);
    service->magic = SERVICE_MAGIC;
    service->plan = plan;
    service->once = once;
    service->threads = threads_wanted(plan); // the control group is asked once
    service->stop_descriptor = service->wake_descriptor = -1;
    intake_init(&service->intake);
    service_status_init(service);
    struct late_ahead *ahead = load_ahead(service);
    enum status status = start_all(service, snapshot, error);
    if (status == STATUS_OK && !once)
        status = service_metrics_start(service, error);
    late_ahead_end(ahead);
    service_set_built(service, status == STATUS_OK);
    if (status == STATUS_OK && !once)
        status = start_control(service, snapshot != NULL, error);
    *out = status == STATUS_OK ? service : NULL;
    if (status != STATUS_OK)
        service_free(service);
    return status;
}

static void stop_pipeline(struct run_pipeline *pipeline) {
    for (uint32_t i = 0; i < pipeline->stage_count; i++)
        instance_stop(&pipeline->stages[i]);
    workers_free(pipeline->workers);
    memory_give(pipeline->stages);
    memory_give(pipeline->receivers);
    saver_release(&pipeline->saver);
    runner_release(&pipeline->runner);
}

static void stop_receivers(struct service *service) {
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        struct run_receiver *receiver = &service->receivers[i];
        instance_stop(&receiver->instance);
        feed_free(receiver->feed);
        memory_give(receiver->taken);
        memory_give(receiver->runners);
        memory_give(receiver->rows);
    }
    memory_give(service->receivers);
}

void service_free(struct service *service) {
    if (service == NULL)
        return;
    control_stop(service->control, atomic_load(&service->pausing) ? "reloaded" : "stopped");
    service_set_built(service, false);
    service_metrics_stop(service);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        sender_halt(&service->exporters[i].sender);
    stop_receivers(service);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        stop_pipeline(&service->pipelines[i]);
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        saver_release(&service->exporters[i].route_saver);
        sender_release(&service->exporters[i].sender);
        instance_stop(&service->exporters[i].instance);
    }
    for (uint32_t i = service->extension_count; i-- > 0;)
        instance_stop(&service->extensions[i]);
    memory_give(service->extensions);
    memory_give(service->pipelines);
    memory_give(service->exporters);
    memory_give(service->missing_inputs);
    memory_give(service->empty_inputs);
    intake_release(&service->intake);
    lock_destroy(&service->reload_lock);
    lock_destroy(&service->status_lock);
    if (service->stop_descriptor >= 0)
        close(service->stop_descriptor);
    if (service->wake_descriptor >= 0)
        close(service->wake_descriptor);
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
            struct report_source *source = &report->sources[report->source_count];
            if (!feed_source_report(feed, j, source))
                continue;
            report->bytes += source->figures.bytes;
            report->source_count++;
        }
    }
}

void service_progress(struct service *service, uint64_t *done_bytes, uint64_t *total_bytes) {
    assert(service->magic == SERVICE_MAGIC);
    *done_bytes = atomic_load_explicit(&service->intake.done_bytes, memory_order_relaxed);
    *total_bytes = atomic_load_explicit(&service->intake.total_bytes, memory_order_relaxed);
}

static void report_titles(const struct service *service, struct report *report) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        count += service->pipelines[i].runner.title_count;
    report->verdicts = memory_zero(count, sizeof *report->verdicts);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        for (uint32_t j = 0; j < service->pipelines[i].runner.title_count; j++)
            report->verdicts[report->title_count++] = service->pipelines[i].runner.titles[j];
}

void service_report(struct service *service, struct report *report) {
    assert(service->magic == SERVICE_MAGIC);
    *report = (struct report){0};
    intake_report(&service->intake, report);
    report_sources(service, report);
    report_titles(service, report);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        runner_tally(&service->pipelines[i].runner, report->verdict_count);
}

void report_release(struct report *report) {
    for (uint32_t i = 0; i < report->note_count; i++)
        memory_give(report->notes[i]);
    memory_give(report->notes);
    memory_give(report->refusals);
    memory_give(report->sources);
    memory_give(report->verdicts);
    *report = (struct report){0};
}
