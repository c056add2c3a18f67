// SPDX-License-Identifier: Apache-2.0
// Runs what was wired: receivers stop first and exporters last. A receiver's thread carries its
// batches through the pipelines itself; the main thread sees to silence, checkpoints and the end,
// and sleeps when there is nothing of the kind.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/supervisor.h"
#include "base/thread.h"
#include "pipeline/runtime/service.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t DOZE_NS = 10 * UINT64_C(1000000000); // the longest sleep

void service_wake(struct service *service) {
    assert(service->magic == SERVICE_MAGIC);
    uint64_t one = 1;
    // A full counter is readable too, so a failed write changes nothing.
    if (write(service->wake_descriptor, &one, sizeof one) < 0)
        return;
}

static void wake_on_commit(void *context) {
    service_wake(context);
}

static uint64_t shutdown_deadline(const struct service *service) {
    return clock_monotonic_ns() + (uint64_t)service->plan->settings.shutdown_timeout.ns;
}

// -- the end ------------------------------------------------------------------------------------

// What the answer does without, for the last batch; the service's intake holds the paths.
static void tell_missing(struct service *service) {
    assert(service->once);
    struct intake *intake = &service->intake;
    struct slice *paths = memory_zero(intake->missing_count, sizeof *paths);
    for (uint32_t i = 0; i < intake->missing_count; i++)
        paths[i] = slice_of(intake->missing[i]);
    memory_give(service->missing_inputs);
    service->missing_inputs = paths;
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        service->pipelines[i].runner.missing_inputs = paths;
        service->pipelines[i].runner.missing_count = intake->missing_count;
        service->pipelines[i].runner.refused_count = atomic_load(&intake->refused);
    }
}

// Lists are empty as well: nothing was taken for a record.
static bool is_empty(const struct source_figures *figures) {
    return !figures->unread && !figures->torn &&
           figures->accepted + figures->refused + figures->other == 0;
}

// The paths of all inputs of a feed behind the `count` others; false when something stands in one.
static bool add_empty(const struct feed *feed, struct slice *paths, uint32_t *count) {
    for (uint32_t i = 0; i < feed_source_count(feed); i++) {
        struct report_source source;
        if (!feed_source_report(feed, i, &source))
            continue;
        if (!is_empty(&source.figures))
            return false;
        paths[(*count)++] = source.path;
    }
    return true;
}

static void tell_empty(struct service *service) {
    uint32_t room = 0, count = 0;
    for (uint32_t i = 0; i < service->receiver_count; i++)
        room += feed_source_count(service->receivers[i].feed);
    struct slice *paths = memory_zero(room, sizeof *paths);
    for (uint32_t i = 0; i < service->receiver_count; i++)
        if (!add_empty(service->receivers[i].feed, paths, &count)) {
            count = 0;
            break;
        }
    memory_give(service->empty_inputs);
    service->empty_inputs = paths;
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        service->pipelines[i].runner.empty_inputs = paths;
        service->pipelines[i].runner.empty_count = count;
    }
}

static void judge_last(struct service *service) {
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        lock_take(&service->pipelines[i].runner.lock);
        runner_finish(&service->pipelines[i].runner);
        lock_release(&service->pipelines[i].runner.lock);
    }
}

// How delivery to one exporter ended.
struct ending {
    enum status status;
    struct error error;
};

static void finish_senders(struct service *service, uint64_t deadline_ns, struct ending *endings) {
    for (uint32_t i = 0; i < service->exporter_count; i++)
        sender_finish_begin(&service->exporters[i].sender, deadline_ns);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        endings[i].status =
            sender_finish(&service->exporters[i].sender, deadline_ns, &endings[i].error);
}

// `is_kept`: the store holds what waits. What a sender dropped nobody holds.
static enum status say_undelivered(struct service *service, const struct ending *endings,
                                   bool is_kept, struct error *error) {
    enum status worst = STATUS_OK;
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        const struct sender *sender = &service->exporters[i].sender;
        if (endings[i].status == STATUS_OK)
            continue;
        bool kept = is_kept && !sender->dead && sender->lost_records == 0;
        const char *message = endings[i].error.message;
        log_write(kept ? LOG_WARN : LOG_ERROR,
                  (struct log_site){kept ? "C1009" : "C1014", service->exporters[i].instance.site},
                  "stops before all is delivered; %s: %s",
                  kept ? "the store keeps it for the next start" : "it is lost", message);
        if (worst == STATUS_OK || (worst == STATUS_AGAIN && !kept))
            worst = error_set(error, kept ? STATUS_AGAIN : endings[i].status, "%s; %s", message,
                              kept ? "the store keeps it for the next start" : "it is lost");
    }
    return worst;
}

// A delivery that hangs holds its thread, and nothing can be taken from under that.
static void end_without(const struct service *service, enum status status) {
    assert(service->exporter_count == 0 || service->exporters != NULL);
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        if (!service->exporters[i].sender.stuck)
            continue;
        log_write(LOG_ERROR, (struct log_site){"C1005", service->exporters[i].instance.site},
                  "did not stop within shutdown_timeout; culprit ends without it");
        log_flush();
        _exit(status_exit_code(status));
    }
}

// The last evaluation of every pipeline, then the last request of every exporter. What the last
// evaluation made of the state is not kept: a start goes on as if there had been none. With a store
// a quarter of the time is for the checkpoint before, and one for that of what is left.
static enum status finish(struct service *service, uint64_t deadline_ns, struct error *error) {
    assert(!service->once);
    uint64_t now = clock_monotonic_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
    uint64_t part = service->store == NULL ? 0 : left / 4;
    struct ending *endings = memory_zero(service->exporter_count, sizeof *endings);
    service_checkpoint_finish(service, now + part, false);
    judge_last(service);
    finish_senders(service, deadline_ns - part, endings);
    bool is_kept = service_checkpoint_senders(service, deadline_ns);
    enum status status = say_undelivered(service, endings, is_kept, error);
    if (service->store != NULL && !is_kept && (status == STATUS_OK || status == STATUS_AGAIN))
        status = error_set(error, STATUS_IO,
                           "the store could not be written before the end: the next start goes on "
                           "from the last checkpoint that it holds");
    memory_give(endings);
    end_without(service, status);
    storage_close_by(service->store, deadline_ns);
    return status;
}

// Inputs that end are there to be read again: nothing is kept and nothing lost.
static enum status finish_once(struct service *service, struct error *error) {
    assert(service->once);
    struct ending *endings = memory_zero(service->exporter_count, sizeof *endings);
    finish_senders(service, shutdown_deadline(service), endings);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < service->exporter_count && status == STATUS_OK; i++)
        if (endings[i].status != STATUS_OK)
            status = error_set(error, endings[i].status, "%s", endings[i].error.message);
    memory_give(endings);
    return status;
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
    return COMPARE_KEYS(slice_compare(a->path, b->path),
                        COMPARE(a->receiver_index, b->receiver_index));
}

// One that finds nothing is no failure while another finds something: a node without dumps is
// judged by its logs.
static enum status list_sources(struct service *service, struct source_list *lists,
                                struct error *error) {
    uint32_t empty_count = 0;
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        struct instance *instance = &service->receivers[i].instance;
        const struct receiver_calls *calls = &instance->component->type->receiver;
        if (calls->list == NULL)
            return error_set(error, STATUS_CONFIG,
                             "%s: its input has no end, so it cannot be read once", instance->site);
        struct error own = {0};
        enum status status = calls->list(instance->memory, &lists[i], &own);
        if (status == STATUS_OK)
            continue;
        if (status != STATUS_NOT_FOUND || service->receiver_count == 1)
            return error_set(error, status, "%s", own.message);
        feed_note(service->receivers[i].feed, (struct slice){0}, "%s", own.message);
        if (++empty_count == service->receiver_count)
            return error_set(error, STATUS_NOT_FOUND,
                             "there is nothing to read: no receiver found any input");
    }
    return STATUS_OK;
}

// Those that want to wait for the others are at the front of `readings` afterwards.
static enum status read_sources(struct service *service, struct reading *readings, size_t count,
                                size_t *waiting, struct error *error) {
    *waiting = 0;
    for (size_t i = 0; i < count; i++) {
        if (atomic_load(&service->stopping))
            return error_set(error, STATUS_STOPPED, "stopped before all inputs were read");
        struct run_receiver *receiver = readings[i].receiver;
        const struct receiver_calls *calls = &receiver->instance.component->type->receiver;
        enum status status =
            calls->read(receiver->instance.memory, receiver->feed, readings[i].path, error);
        feed_flush(receiver->feed);
        if (status == STATUS_AGAIN)
            readings[(*waiting)++] = readings[i];
        else if (status != STATUS_OK && status != STATUS_STOPPED)
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
    size_t waiting, none;
    enum status status = read_sources(service, readings, count, &waiting, error);
    if (status == STATUS_OK)
        status = read_sources(service, readings, waiting, &none, error);
    memory_give(readings);
    return status;
}

enum status service_run_once(struct service *service, struct error *error) {
    assert(service->magic == SERVICE_MAGIC);
    assert(service->once);
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
    tell_missing(service);
    tell_empty(service);
    judge_last(service);
    enum status finished = finish_once(service, status == STATUS_OK ? error : NULL);
    return status != STATUS_OK ? status : finished;
}

static void *receiver_thread(void *argument) {
    struct run_receiver *receiver = argument;
    assert(receiver->magic == RECEIVER_MAGIC);
    thread_name("in", receiver->instance.component->id);
    const struct receiver_calls *calls = &receiver->instance.component->type->receiver;
    receiver->status = calls->run(receiver->instance.memory, receiver->feed, &receiver->error);
    feed_flush(receiver->feed);
    feed_caught_up(receiver->feed);
    atomic_store(&receiver->ended, true);
    service_wake(receiver->service);
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

static void say_waiting(const struct service *service) {
    for (uint32_t i = 0; i < service->exporter_count; i++) {
        const struct run_exporter *exporter = &service->exporters[i];
        unsigned long long bytes = atomic_load(&exporter->sender.queue.bytes);
        if (bytes > 0)
            log_write(LOG_ERROR, (struct log_site){"C1014", exporter->instance.site},
                      "stops before all is delivered; %llu bytes wait, of which %s", bytes,
                      service->store == NULL ? "nothing is kept"
                                             : "the last checkpoint keeps what came before it");
    }
}

// A thread that does not come back in time cannot be taken away: the process ends with what is
// safe.
static void join_receiver(struct run_receiver *receiver, uint64_t deadline_ns) {
    assert(receiver->running);
    enum { LOOK_MS = 100 };
    struct pollfd wake = {.fd = receiver->service->wake_descriptor, .events = POLLIN};
    while (!atomic_load(&receiver->ended)) {
        if (clock_monotonic_ns() >= deadline_ns) {
            say_waiting(receiver->service);
            log_write(LOG_ERROR, (struct log_site){"C1005", receiver->instance.site},
                      "did not stop within shutdown_timeout; culprit ends without it");
            log_flush();
            _exit(status_exit_code(STATUS_OS));
        }
        uint64_t count;
        if (poll(&wake, 1, LOOK_MS) > 0 && read(wake.fd, &count, sizeof count) < 0)
            clock_sleep_ns(LOOK_MS * UINT64_C(1000));
        supervisor_alive();
    }
    pthread_join(receiver->thread, NULL);
    receiver->running = false;
}

static enum status join_receivers(struct service *service, uint64_t deadline_ns,
                                  struct error *error) {
    enum status worst = STATUS_OK;
    for (uint32_t i = 0; i < service->receiver_count; i++) {
        struct run_receiver *receiver = &service->receivers[i];
        if (!receiver->running)
            continue;
        join_receiver(receiver, deadline_ns);
        if (worst == STATUS_OK && receiver->status != STATUS_OK &&
            receiver->status != STATUS_STOPPED)
            worst = error_set(error, receiver->status, "%s: %s", receiver->instance.site,
                              receiver->error.message);
    }
    return worst;
}

// -- the main loop ------------------------------------------------------------------------------

// All inputs of this pipeline are quiet or silent: that is judged too. With a store it is written
// down before, so that after a crash the same is judged at the same place.
static void judge_rest(struct service *service, struct run_pipeline *pipeline) {
    assert(pipeline->runner.magic == RUNNER_MAGIC);
    enum { WAIT_NS = 1000 * 1000 * 1000 };
    struct runner *runner = &pipeline->runner;
    service_lock_runners(service);
    enum runner_rest rest = runner_advance(runner, clock_monotonic_ns());
    if (rest != RUNNER_ACTIVE) {
        runner->state.rest_due = (uint8_t)rest;
        runner->state.rest_unix_ns = clock_unix_ns();
        runner->changed = true;
        service_checkpoint_finish(service, clock_monotonic_ns() + WAIT_NS, true);
        runner_judge_rest(runner, rest);
    }
    service_unlock_runners(service);
}

static void look_after(struct service *service, struct run_pipeline *pipeline) {
    struct runner *runner = &pipeline->runner;
    lock_take(&runner->lock);
    enum runner_rest rest = runner_advance(runner, clock_monotonic_ns());
    lock_release(&runner->lock);
    if (rest != RUNNER_ACTIVE)
        judge_rest(service, pipeline);
}

static bool anything_unsaved(struct service *service) {
    bool unsaved = service->rewrite;
    for (uint32_t i = 0; i < service->pipeline_count && !unsaved; i++) {
        struct runner *runner = &service->pipelines[i].runner;
        lock_take(&runner->lock);
        unsaved = runner->changed;
        lock_release(&runner->lock);
    }
    return unsaved;
}

// When to look again, at the latest.
static uint64_t next_look(struct service *service, uint64_t now) {
    uint64_t patience = supervisor_patience_ns();
    uint64_t next = now + (patience == 0 || patience / 2 > DOZE_NS ? DOZE_NS : patience / 2);
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct runner *runner = &service->pipelines[i].runner;
        lock_take(&runner->lock);
        uint64_t own = runner->look_ns = runner_next_look(runner);
        lock_release(&runner->lock);
        next = own < next ? own : next;
    }
    if (service->store != NULL && service->ticket == 0 && anything_unsaved(service)) {
        uint64_t due =
            service->checkpoint_ns + (uint64_t)service->plan->settings.checkpoint_interval.ns;
        next = due < next ? due : next;
    }
    return next;
}

static void turn(struct service *service) {
    uint64_t now = clock_monotonic_ns();
    atomic_store(&service->turned_ns, now);
    supervisor_alive();
    service_checkpoint_publish(service, false);
    for (uint32_t i = 0; i < service->pipeline_count; i++)
        look_after(service, &service->pipelines[i]);
    uint64_t due =
        service->checkpoint_ns + (uint64_t)service->plan->settings.checkpoint_interval.ns;
    if (atomic_load(&service->checkpoint_asked) || now >= due)
        service_checkpoint(service, false);
}

static void sleep_until_next(struct service *service) {
    uint64_t now = clock_monotonic_ns();
    atomic_store(&service->dozing, true);
    uint64_t next = next_look(service, now);
    struct pollfd events[] = {{.fd = service->stop_descriptor, .events = POLLIN},
                              {.fd = service->wake_descriptor, .events = POLLIN}};
    int wait_ms = next <= now ? 0 : (int)((next - now) / 1000000 + 1);
    if (poll(events, 2, wait_ms) > 0 && events[1].revents != 0) {
        uint64_t count;
        if (read(service->wake_descriptor, &count, sizeof count) < 0)
            return;
    }
    atomic_store(&service->dozing, false);
}

// What a crash left to be judged before anything new comes.
static void judge_what_was_due(struct service *service) {
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct runner *runner = &service->pipelines[i].runner;
        lock_take(&runner->lock);
        runner_judge_rest(runner, runner->state.rest_due);
        lock_release(&runner->lock);
    }
}

static enum status start_senders(struct service *service, struct error *error) {
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < service->exporter_count && status == STATUS_OK; i++)
        status = sender_start(&service->exporters[i].sender, error);
    return status;
}

static void hold_until_caught_up(struct service *service) {
    uint64_t now = clock_monotonic_ns();
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        struct run_pipeline *pipeline = &service->pipelines[i];
        pipeline->runner.holds = pipeline->receiver_count;
        pipeline->runner.hold_until_ns =
            now + (uint64_t)pipeline->runner.plan->timing.idle_timeout.ns;
    }
}

static enum status begin(struct service *service, struct error *error) {
    if (service->store != NULL)
        storage_on_commit(service->store, wake_on_commit, service);
    // Before anything is read or delivered, the store says where all began.
    service_checkpoint_finish(service, clock_monotonic_ns() + 5 * SECOND_NS, false);
    judge_what_was_due(service);
    hold_until_caught_up(service);
    atomic_store(&service->turned_ns, clock_monotonic_ns());
    enum status status = start_senders(service, error);
    if (status == STATUS_OK)
        status = run_receivers(service, error);
    atomic_store(&service->running, status == STATUS_OK);
    if (status == STATUS_OK)
        supervisor_ready();
    return status;
}

enum status service_run(struct service *service, bool *reload, struct error *error) {
    assert(service->magic == SERVICE_MAGIC);
    assert(!service->once);
    *reload = false;
    enum status status = STATUS_OK;
    if (!atomic_load(&service->running))
        status = begin(service, error);
    while (status == STATUS_OK && !atomic_load(&service->stopping) && !receiver_failed(service)) {
        if (atomic_exchange(&service->reload_asked, false)) {
            *reload = true;
            return STATUS_OK;
        }
        turn(service);
        log_look();
        sleep_until_next(service);
    }
    supervisor_stopping();
    service_ask_stop(service);
    uint64_t deadline_ns = shutdown_deadline(service);
    enum status joined = join_receivers(service, deadline_ns, status == STATUS_OK ? error : NULL);
    if (status == STATUS_OK)
        status = joined;
    enum status finished = finish(service, deadline_ns, status == STATUS_OK ? error : NULL);
    return status != STATUS_OK ? status : finished;
}

enum status service_pause(struct service *service, struct snapshot **snapshot,
                          struct error *error) {
    assert(!service->once);
    assert(service->magic == SERVICE_MAGIC);
    atomic_store(&service->pausing, true);
    service_ask_stop(service);
    enum status status = join_receivers(service, shutdown_deadline(service), error);
    for (uint32_t i = 0; i < service->exporter_count; i++)
        sender_halt(&service->exporters[i].sender);
    service_checkpoint_publish(service, false);
    *snapshot = service_snapshot(service);
    return status;
}

void service_ask_reload(struct service *service) {
    assert(service->magic == SERVICE_MAGIC);
    atomic_store(&service->reload_asked, true);
    service_wake(service);
}

void service_ask_stop(struct service *service) {
    assert(service->magic == SERVICE_MAGIC);
    atomic_store_explicit(&service->stopping, true, memory_order_release);
    uint64_t one = 1;
    if (write(service->stop_descriptor, &one, sizeof one) < 0)
        return;
}
