// SPDX-License-Identifier: Apache-2.0
// Runs what was wired: receivers stop first and exporters last. A receiver's thread carries its
// batches through the pipelines itself; the main thread only ticks.
#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/service_state.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static const int TICK_MS = 1000;
static const uint64_t FINISH_BUDGET_NS = 5 * UINT64_C(1000000000);

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

void receiver_deliver(void *context, const struct event *events, uint32_t count) {
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
