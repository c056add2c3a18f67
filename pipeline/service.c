// SPDX-License-Identifier: Apache-2.0
// Wires a plan's components together and runs them: exporters are started first and receivers last,
// receivers stop first and exporters last, so that nothing on its way finds a closed door. A
// receiver's thread carries its batches through the pipelines itself; the main thread only ticks.
#include "pipeline/service.h"

#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/feed_run.h"
#include "pipeline/runner.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const int TICK_MS = 1000;
static const uint64_t FINISH_BUDGET_NS = 5 * UINT64_C(1000000000);
enum { SITE_MAX = 160 };

struct instance {
    const struct plan_component *component;
    struct component_context context;
    char site[SITE_MAX];
    void *memory;
    bool started;
};

struct run_receiver {
    struct service *service;
    struct instance instance;
    struct feed *feed;
    struct runner **runners; // of the pipelines that list it
    uint32_t runner_count;
    pthread_t thread;
    bool running;
    atomic_bool ended;
    enum status status;
    struct error error;
};

struct run_exporter {
    struct instance instance;
    struct sender sender;
};

struct run_pipeline {
    struct runner runner;
    struct instance *stages;
    struct run_receiver **receivers;
    uint32_t receiver_count;
};

struct service {
    const struct plan *plan;
    bool once;
    atomic_bool stopping;
    int stop_descriptor; // readable once it is stopping
    struct intake intake;
    struct run_receiver *receivers;
    uint32_t receiver_count;
    struct run_exporter *exporters;
    uint32_t exporter_count;
    struct run_pipeline *pipelines;
    uint32_t pipeline_count;
};

static const char *kind_word(enum component_kind kind) {
    return component_kind_name(kind);
}

static enum status instance_start(struct instance *instance, const struct plan_component *component,
                                  const struct plan_pipeline *pipeline, bool once,
                                  struct error *error) {
    const struct component_type *type = component->type;
    instance->component = component;
    snprintf(instance->site, sizeof instance->site, "%s/%s", kind_word(type->kind), component->id);
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

static void receiver_deliver(void *context, const struct event *events, uint32_t count);

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

// -- time
// ------------------------------------------------------------------------------------------

// How far all inputs of a pipeline have come; false when none has given an event.
static bool pipeline_progress(const struct run_pipeline *pipeline, uint64_t idle_timeout_ns,
                              struct feed_progress_view *all) {
    *all = (struct feed_progress_view){.lowest_ns = UINT64_MAX};
    uint64_t now = clock_monotonic_ns();
    for (uint32_t i = 0; i < pipeline->receiver_count; i++) {
        struct feed_progress_view view;
        feed_view(pipeline->receivers[i]->feed, now, idle_timeout_ns, &view);
        all->any |= view.any;
        all->any_active |= view.any_active;
        if (view.lowest_ns < all->lowest_ns)
            all->lowest_ns = view.lowest_ns;
    }
    return all->any;
}

static void advance_pipeline(struct run_pipeline *pipeline) {
    const struct pipeline_timing *timing = &pipeline->runner.plan->timing;
    struct feed_progress_view progress;
    if (!pipeline_progress(pipeline, (uint64_t)timing->idle_timeout.ns, &progress))
        return;
    uint64_t lateness = (uint64_t)timing->allowed_lateness.ns;
    if (!progress.any_active)
        runner_idle(&pipeline->runner);
    else if (progress.lowest_ns > lateness)
        runner_advance(&pipeline->runner, progress.lowest_ns - lateness);
}

static struct run_pipeline *pipeline_of(struct service *service, const struct runner *runner) {
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        if (&service->pipelines[i].runner == runner)
            return &service->pipelines[i];
    return NULL;
}

static void receiver_deliver(void *context, const struct event *events, uint32_t count) {
    struct run_receiver *receiver = context;
    for (uint32_t i = 0; i < receiver->runner_count; i++) {
        struct runner *runner = receiver->runners[i];
        pthread_mutex_lock(&runner->lock);
        runner_consume(runner, events, count);
        if (!runner->once && runner->due_count > 0 && runner->newest_ns >= runner->due[0])
            advance_pipeline(pipeline_of(receiver->service, runner));
        pthread_mutex_unlock(&runner->lock);
    }
}

static void tick(struct service *service) {
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct run_pipeline *pipeline = &service->pipelines[i];
        pthread_mutex_lock(&pipeline->runner.lock);
        advance_pipeline(pipeline);
        pthread_mutex_unlock(&pipeline->runner.lock);
    }
    for (uint32_t i = 0; i < service->exporter_count; i++)
        sender_tick(&service->exporters[i].sender);
}

// -- running
// ---------------------------------------------------------------------------------------

// The last evaluation of every pipeline, then the last request of every exporter.
static enum status finish(struct service *service, struct error *error) {
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        pthread_mutex_lock(&service->pipelines[i].runner.lock);
        runner_finish(&service->pipelines[i].runner);
        pthread_mutex_unlock(&service->pipelines[i].runner.lock);
    }
    enum status worst = STATUS_OK;
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        enum status status = sender_finish(&service->exporters[i].sender, FINISH_BUDGET_NS,
                                           worst == STATUS_OK ? error : NULL);
        if (worst == STATUS_OK)
            worst = status;
    }
    return worst;
}

// One source and who reads it.
struct reading {
    struct slice path;
    struct run_receiver *receiver;
    uint32_t receiver_index;
};

static int compare_readings(const void *left, const void *right) {
    const struct reading *a = left;
    const struct reading *b = right;
    int order = slice_compare(a->path, b->path);
    if (order != 0)
        return order;
    return (a->receiver_index > b->receiver_index) - (a->receiver_index < b->receiver_index);
}

static enum status list_sources(struct service *service, struct source_list *lists,
                                struct error *error) {
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        struct instance *instance = &service->receivers[i].instance;
        const struct receiver_calls *calls = &instance->component->type->receiver;
        if (calls->list == NULL)
            return error_set(
                error, STATUS_CONFIG,
                "%s: its input has no end, so it cannot be read once; leave out --once "
                "or use a file receiver",
                instance->site);
        enum status status = calls->list(instance->memory, &lists[i], error);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status read_sources(struct service *service, const struct reading *readings,
                                size_t count, struct error *error) {
    for (size_t i = 0; i < count; i++) {
        if (atomic_load(&service->stopping))
            return error_set(error, STATUS_STOPPED, "stopped before all inputs were read");
        struct run_receiver *receiver = readings[i].receiver;
        const struct receiver_calls *calls = &receiver->instance.component->type->receiver;
        enum status status =
            calls->read(receiver->instance.memory, receiver->feed, readings[i].path, error);
        feed_flush(receiver->feed);
        if (status != STATUS_OK && status != STATUS_STOPPED)
            return status;
    }
    return STATUS_OK;
}

static enum status read_in_order(struct service *service, const struct source_list *lists,
                                 struct error *error) {
    size_t total = 0;
    for (uint32_t i = 0; i < service->receiver_count; i++)
        total += lists[i].count;
    struct reading *readings = memory_take(total * sizeof *readings);
    size_t count = 0;
    for (uint32_t i = 0; i < service->receiver_count; i++)
        for (uint32_t j = 0; j < lists[i].count; j++)
            readings[count++] = (struct reading){lists[i].paths[j], &service->receivers[i], i};
    qsort(readings, count, sizeof *readings, compare_readings);
    enum status status = read_sources(service, readings, count, error);
    memory_give(readings);
    return status;
}

enum status service_run_once(struct service *service, struct error *error) {
    struct source_list *lists = memory_zero(service->receiver_count, sizeof *lists);
    enum status status = list_sources(service, lists, error);
    bool listed = status == STATUS_OK;
    if (listed)
        status = read_in_order(service, lists, error);
    for (uint32_t i = 0; i < service->receiver_count; i++)
        arena_release(&lists[i].arena);
    memory_give(lists);
    if (!listed)
        return status;
    enum status finished = finish(service, status == STATUS_OK ? error : NULL);
    return status != STATUS_OK ? status : finished;
}

static void *receiver_thread(void *argument) {
    struct run_receiver *receiver = argument;
    const struct receiver_calls *calls = &receiver->instance.component->type->receiver;
    receiver->status = calls->run(receiver->instance.memory, receiver->feed, &receiver->error);
    feed_flush(receiver->feed);
    atomic_store(&receiver->ended, true);
    return NULL;
}

static enum status run_receivers(struct service *service, struct error *error) {
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        struct run_receiver *receiver = &service->receivers[i];
        int failure = pthread_create(&receiver->thread, NULL, receiver_thread, receiver);
        if (failure != 0)
            return error_set_os(error, STATUS_OS, failure, "%s: cannot start a thread",
                                receiver->instance.site);
        receiver->running = true;
    }
    return STATUS_OK;
}

// The first receiver that ended by itself with a failure; receivers run until they are asked to
// stop.
static bool receiver_failed(const struct service *service) {
    for (uint32_t i = 0; i < service->receiver_count; i++)
        if (atomic_load(&service->receivers[i].ended) && service->receivers[i].status != STATUS_OK)
            return true;
    return false;
}

static enum status join_receivers(struct service *service, struct error *error) {
    enum status worst = STATUS_OK;
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        struct run_receiver *receiver = &service->receivers[i];
        if (!receiver->running)
            continue;
        pthread_join(receiver->thread, NULL);
        receiver->running = false;
        if (worst == STATUS_OK && receiver->status != STATUS_OK &&
            receiver->status != STATUS_STOPPED)
            worst = error_set(error, receiver->status, "%s: %s", receiver->instance.site,
                              receiver->error.message);
    }
    return worst;
}

enum status service_run(struct service *service, struct error *error) {
    enum status status = run_receivers(service, error);
    struct pollfd stop = {.fd = service->stop_descriptor, .events = POLLIN};
    while (status == STATUS_OK && !atomic_load(&service->stopping) && !receiver_failed(service)) {
        if (poll(&stop, 1, TICK_MS) == 0)
            tick(service);
    }
    service_ask_stop(service);
    enum status joined = join_receivers(service, status == STATUS_OK ? error : NULL);
    if (status == STATUS_OK)
        status = joined;
    enum status finished = finish(service, status == STATUS_OK ? error : NULL);
    return status != STATUS_OK ? status : finished;
}

void service_ask_stop(struct service *service) {
    atomic_store_explicit(&service->stopping, true, memory_order_release);
    uint64_t one = 1;
    // A full counter is readable too, so a failed write changes nothing.
    if (write(service->stop_descriptor, &one, sizeof one) < 0)
        return;
}

// -- report
// ----------------------------------------------------------------------------------------

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
