// SPDX-License-Identifier: Apache-2.0
// Writes what culprit is doing right now, for a person who sent SIGUSR2.
//
// One line a component, a pipeline, and a receiver of a pipeline. What it reads are counters and,
// under each pipeline's lock, its sources; a pipeline that does not give its lock within a second
// is said to be busy, since the thread that asks is the one that takes signals.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text/display.h"
#include "base/text/human.h"
#include "base/text/rfc3339.h"
#include "pipeline/runtime/service.h"
#include "pipeline/runtime/service_state.h"

#include <assert.h>
#include <stdio.h>

enum { SHOWN_MAX = 256, LINE_MAX_BYTES = 900, PATH_SHOWN_MAX = 200 };
static const uint64_t PATIENCE_NS = 1000000000;

static void say(const char *component, const struct buffer *line) {
    log_write(LOG_INFO, (struct log_site){"C1008", component}, "%.*s", (int)line->size, line->data);
}

enum { SHOWN_NUMBER_MAX = 64 };

// A number for people, in the caller's buffer.
static const char *show_bytes(char text[SHOWN_NUMBER_MAX], uint64_t bytes) {
    _Static_assert((int)HUMAN_MAX <= (int)SHOWN_NUMBER_MAX, "it fits");
    human_bytes(bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes, text);
    return text;
}

static const char *show_count(char text[SHOWN_NUMBER_MAX], uint64_t count, const char *noun) {
    int size = snprintf(text, SHOWN_NUMBER_MAX, "%llu %s%s", (unsigned long long)count, noun,
                        count == 1 ? "" : "s");
    assert(size > 0 && size < SHOWN_NUMBER_MAX);
    return text;
}

static const char *show_time(char text[RFC3339_TEXT_MAX], uint64_t unix_ns) {
    rfc3339_format(unix_ns, text);
    return unix_ns == 0 ? "none yet" : text;
}

#define BYTES(bytes)       show_bytes((char[SHOWN_NUMBER_MAX]){0}, bytes)
#define COUNT(count, noun) show_count((char[SHOWN_NUMBER_MAX]){0}, count, noun)
#define TIME(unix_ns)      show_time((char[RFC3339_TEXT_MAX]){0}, unix_ns)

// -- components ---------------------------------------------------------------------------------

static void append_receiver(struct buffer *out, const struct run_receiver *receiver) {
    uint64_t refused = 0;
    for (int i = 1; i < DECODE_CATEGORY_COUNT; i++)
        refused += feed_refused(receiver->feed, (enum decode_category)i);
    buffer_append_format(out, "; %s accepted, %s refused%s",
                         COUNT(feed_accepted(receiver->feed), "event"), COUNT(refused, "record"),
                         feed_blocked(receiver->feed) ? "; waits for its pipelines" : "");
}

static void append_exporter(struct buffer *out, struct run_exporter *exporter) {
    struct sender *sender = &exporter->sender;
    if (exporter->instance.component->type->exporter.send == NULL)
        return;
    buffer_append_format(out, "; %s of %s wait; %s sent, %llu failed, %llu dropped",
                         BYTES(atomic_load(&sender->queue.bytes)),
                         BYTES(sender->config->queue.queue_size.bytes),
                         COUNT(atomic_load(&sender->sent_records), "record"),
                         (unsigned long long)atomic_load(&sender->failed_records),
                         (unsigned long long)atomic_load(&sender->dropped_records));
    uint64_t held_back = 0;
    for (int i = 0; i < ROUTE_REASONS; i++)
        held_back += atomic_load(&sender->route.held_back[i]);
    if (held_back > 0)
        buffer_append_format(out, "; %s held back", COUNT(held_back, "verdict"));
}

static void append_store(struct buffer *out, struct service *service) {
    struct storage_statistics figures = {0};
    storage_statistics(service->store, &figures);
    buffer_append_format(out, "; %s of %s, %s not written yet%s", BYTES(figures.size_bytes),
                         BYTES(figures.max_bytes), BYTES(figures.pending_bytes),
                         storage_full(service->store) ? "; full, so no input is taken" : "");
}

// Statuses stand in the order of service_list_components: extensions, receivers, stages, exporters.
static void append_figures(struct buffer *out, struct service *service, uint32_t index) {
    assert(lock_is_held(&service->status_lock));
    if (index < service->extension_count) {
        const struct instance *instance = &service->extensions[index];
        if (service->store != NULL && instance->component->type->extension.store != NULL)
            append_store(out, service);
        return;
    }
    index -= service->extension_count;
    if (index < service->receiver_count) {
        append_receiver(out, &service->receivers[index]);
        return;
    }
    index -= service->receiver_count;
    for (uint32_t i = 0; i < service->pipeline_count; i++) {
        const struct run_pipeline *pipeline = &service->pipelines[i];
        if (index < pipeline->stage_count) {
            uint64_t incoming = atomic_load(&pipeline->runner.stages[index].incoming);
            buffer_append_format(out, "; %s", COUNT(incoming, "event"));
            return;
        }
        index -= pipeline->stage_count;
    }
    append_exporter(out, &service->exporters[index]);
}

static void dump_components(struct service *service, struct buffer *line) {
    assert(lock_is_held(&service->status_lock));
    struct component_status *statuses = memory_zero(SHOWN_MAX, sizeof *statuses);
    uint32_t count = service_list_components(service, statuses, SHOWN_MAX);
    for (uint32_t i = 0; i < count; i++) {
        char site[sizeof statuses[i].id + sizeof statuses[i].pipeline + 1];
        bool stands = statuses[i].pipeline[0] != '\0';
        snprintf(site, sizeof site, "%s%s%s", stands ? statuses[i].pipeline : "", stands ? "/" : "",
                 statuses[i].id);
        buffer_reset(line);
        buffer_append_text(line, component_state_name(statuses[i].state));
        if (statuses[i].sentence[0] != '\0')
            buffer_append_format(line, ": %s", statuses[i].sentence);
        append_figures(line, service, i);
        say(site, line);
    }
    memory_give(statuses);
}

// -- pipelines ----------------------------------------------------------------------------------

static void append_verdicts(struct buffer *out, const struct runner *runner) {
    assert(lock_is_held(&runner->lock));
    uint64_t all[SEVERITY_CRITICAL + 1] = {0}, open[SEVERITY_CRITICAL + 1] = {0};
    uint64_t all_count = 0, open_count = 0;
    runner_tally(runner, all);
    runner_tally_open(runner, open);
    for (int i = 0; i <= (int)SEVERITY_CRITICAL; i++) {
        all_count += all[i];
        open_count += open[i];
    }
    buffer_append_format(out, "%s, %llu open", COUNT(all_count, "verdict"),
                         (unsigned long long)open_count);
    const char *before = " (";
    for (int i = (int)SEVERITY_CRITICAL; i >= 0; i--) {
        if (open[i] == 0)
            continue;
        buffer_append_format(out, "%s%llu %s", before, (unsigned long long)open[i],
                             severity_name((enum severity)i));
        before = ", ";
    }
    buffer_append_text(out, open_count > 0 ? ")" : "");
}

static void append_judged(struct buffer *out, const struct runner *runner) {
    assert(lock_is_held(&runner->lock));
    const struct runner_state *state = &runner->state;
    buffer_append_format(out, "%s, the newest of %s; judged %s",
                         COUNT(atomic_load(&runner->consumed), "event"), TIME(state->newest_ns),
                         COUNT(atomic_load(&runner->evaluations), "time"));
    if (state->idle_judged)
        buffer_append_text(out, ", to the end of what came");
    else if (state->judged_any)
        buffer_append_format(out, ", up to %s", TIME(state->judged_ns));
    buffer_append_format(out, ", %s wait%s; ", COUNT(state->due_count, "moment"),
                         state->due_count == 1 ? "s" : "");
}

// The sources of one receiver, and the one that is furthest behind.
static void append_sources(struct buffer *out, const struct runner *runner, string_id receiver) {
    assert(lock_is_held(&runner->lock));
    const struct runner_source *behind = NULL;
    uint32_t count = 0, left = 0;
    for (uint32_t i = 0; i < runner->sources.used; i++) {
        const struct runner_source *source = runner_source_at(runner, i);
        if (!source->in_use || source->receiver != receiver || source->newest_ns == 0)
            continue;
        count++;
        left += source->left != 0;
        if (behind == NULL || source->newest_ns < behind->newest_ns)
            behind = source;
    }
    buffer_append_text(out, COUNT(count, "source"));
    if (behind == NULL)
        return;
    char age[HUMAN_MAX];
    human_duration((__int128)runner->state.newest_ns - behind->newest_ns, age);
    buffer_append_format(out, ", %u of them not awaited; furthest behind is ", left);
    display_append(out, intern_slice(behind->path), PATH_SHOWN_MAX);
    if (behind->position.number > 0)
        buffer_append_format(out, " at record %llu", (unsigned long long)behind->position.number);
    buffer_append_format(out, ", %s behind the newest event", age);
}

static void dump_pipeline(struct run_pipeline *pipeline, struct buffer *line) {
    struct runner *runner = &pipeline->runner;
    char site[SITE_MAX * 2];
    snprintf(site, sizeof site, "pipeline/%s", runner->plan->name);
    buffer_reset(line);
    if (!lock_take_within(&runner->lock, PATIENCE_NS)) {
        buffer_append_text(line, "busy for more than a second");
        say(site, line);
        return;
    }
    append_judged(line, runner);
    append_verdicts(line, runner);
    say(site, line);
    for (uint32_t i = 0; i < pipeline->receiver_count; i++) {
        buffer_reset(line);
        append_sources(line, runner, pipeline->receivers[i]->id);
        snprintf(site, sizeof site, "pipeline/%s/%s", runner->plan->name,
                 pipeline->receivers[i]->instance.component->id);
        say(site, line);
    }
    lock_release(&runner->lock);
}

void service_dump(struct service *service) {
    assert(service->magic == SERVICE_MAGIC);
    struct buffer line;
    buffer_init(&line, LINE_MAX_BYTES);
    lock_take(&service->status_lock);
    if (service->built) {
        dump_components(service, &line);
        for (uint32_t i = 0; i < service->pipeline_count; i++)
            dump_pipeline(&service->pipelines[i], &line);
    }
    lock_release(&service->status_lock);
    buffer_release(&line);
}
