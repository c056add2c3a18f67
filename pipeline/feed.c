// SPDX-License-Identifier: Apache-2.0
// From a receiver's bytes to a batch of events: decodes each record into the batch's arrays and
// hands the batch over when it is full or when the receiver says so. Allocates nothing once warmed
// up. Sources are found by path through a small hash; their progress is read by other threads
// through atomics, everything else belongs to the receiver's thread.
#include "pipeline/feed_run.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/telemetry_event.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { FEED_ARENA_BLOCK = 64 * 1024, NOTE_MAX = 1024 };

struct source {
    struct slice path;
    uint32_t id; // process-wide
    const struct decoder_type *decoder;
    void *decoder_state;
    struct source_figures figures;
    struct source_position restored;
    struct source_position reached;
    uint64_t batch;                    // number of the feed's batch that it last gave an event to
    atomic_uint_fast64_t newest_ns;    // of its events; 0 none yet
    atomic_uint_fast64_t last_seen_ns; // monotonic
};

struct feed {
    struct feed_settings settings;
    struct arena arena; // of the batch being filled
    struct event *events;
    uint32_t event_count;
    uint64_t batch;    // number of the batch being filled
    uint64_t begun_ns; // when its first event came, monotonic
    string_id stamp;
    string_id none; // the text that torchrun writes for a job without an id
    bool said_none;
    pthread_mutex_t lock; // guards the list of sources against feed_view
    struct source **sources;
    uint32_t source_count;
    uint32_t source_capacity;
};

static atomic_uint next_source_id = 1;

struct feed *feed_create(const struct feed_settings *settings) {
    struct feed *feed = memory_zero(1, sizeof *feed);
    feed->settings = *settings;
    arena_init(&feed->arena, FEED_ARENA_BLOCK);
    feed->events = memory_take(settings->batch_size * sizeof *feed->events);
    feed->batch = 1;
    feed->none = intern(SLICE("none"));
    pthread_mutex_init(&feed->lock, NULL);
    return feed;
}

void feed_free(struct feed *feed) {
    if (feed == NULL)
        return;
    for (uint32_t i = 0; i < feed->source_count; i++) {
        memory_give(feed->sources[i]->decoder_state);
        memory_give((char *)feed->sources[i]->path.data);
        memory_give(feed->sources[i]);
    }
    memory_give(feed->sources);
    memory_give(feed->events);
    arena_release(&feed->arena);
    pthread_mutex_destroy(&feed->lock);
    memory_give(feed);
}

struct source *feed_source(struct feed *feed, struct slice path) {
    for (uint32_t i = feed->source_count; i-- > 0;)
        if (slice_equal(feed->sources[i]->path, path))
            return feed->sources[i];
    struct source *source = memory_zero(1, sizeof *source);
    source->path = (struct slice){memory_copy_text(path.data, path.size), path.size};
    source->id = atomic_fetch_add(&next_source_id, 1);
    pthread_mutex_lock(&feed->lock);
    if (feed->source_count == feed->source_capacity) {
        feed->source_capacity = feed->source_capacity == 0 ? 16 : feed->source_capacity * 2;
        feed->sources =
            memory_resize(feed->sources, feed->source_capacity * sizeof(struct source *));
    }
    feed->sources[feed->source_count++] = source;
    pthread_mutex_unlock(&feed->lock);
    return source;
}

void feed_source_format(struct source *source, const struct decoder_type *decoder) {
    memory_give(source->decoder_state);
    source->decoder = decoder;
    source->decoder_state = memory_zero(1, decoder->state_size);
    source->figures.format = decoder->name;
}

const struct decoder_type *feed_source_decoder(const struct source *source) {
    return source->decoder;
}

struct slice feed_source_path(const struct source *source) {
    return source->path;
}

struct source_figures *feed_source_figures(struct source *source) {
    return &source->figures;
}

struct source_position feed_source_restored(const struct source *source) {
    return source->restored;
}

struct source *feed_restored_source(struct feed *feed, uint32_t index) {
    (void)feed;
    (void)index;
    return NULL;
}

void feed_source_reached(struct source *source, const struct source_position *position) {
    source->reached = *position;
}

void feed_source_leave(struct feed *feed, struct source *source) {
    (void)feed;
    atomic_store_explicit(&source->last_seen_ns, 0, memory_order_relaxed);
}

struct source_position feed_source_safe(struct feed *feed, const struct source *source) {
    (void)feed;
    return source->reached;
}

bool feed_blocked(const struct feed *feed) {
    (void)feed;
    return false;
}

bool feed_wait(struct feed *feed, uint64_t timeout_ns) {
    (void)timeout_ns;
    return !feed_blocked(feed);
}

void feed_keeps_journal(struct feed *feed, struct source *source) {
    (void)feed;
    (void)source;
}

uint64_t feed_lag(struct feed *feed, const struct source *source) {
    (void)feed;
    (void)source;
    return 0;
}

void feed_trouble(struct feed *feed, const char *sentence) {
    (void)feed;
    (void)sentence;
}

static void say_refused(const struct feed *feed, const struct source *source, uint64_t position,
                        const struct decode_fault *fault) {
    log_write(LOG_WARN, (struct log_site){"C2001", feed->settings.site},
              "%.*s:%llu: record refused: %s%s%s%s%s", (int)source->path.size, source->path.data,
              (unsigned long long)position, decode_category_name(fault->category),
              fault->field[0] == '\0' ? "" : " ", fault->field,
              fault->detail[0] == '\0' ? "" : ": ", fault->detail);
}

void feed_refuse(struct feed *feed, struct source *source, uint64_t position,
                 const struct decode_fault *fault) {
    source->figures.refused++;
    intake_refuse(feed->settings.intake, source->path, position, fault);
    say_refused(feed, source, position, fault);
}

void feed_note(struct feed *feed, struct slice path, const char *format, ...) {
    char text[NOTE_MAX];
    int used = path.size == 0
                   ? 0
                   : snprintf(text, sizeof text,
                              "%.*s: ", (int)(path.size < NOTE_MAX / 2 ? path.size : NOTE_MAX / 2),
                              path.data);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
    intake_note(feed->settings.intake, text);
    log_write(LOG_INFO, (struct log_site){"C2002", feed->settings.site}, "%s", text);
}

static void stamp_job(struct feed *feed, struct event *event, string_id job) {
    if (event->job != STRING_NONE && event->job != feed->none)
        return;
    if (job == STRING_NONE)
        job = feed->stamp;
    if (job != STRING_NONE) {
        event->job = job;
        if (event->kind == EVENT_TELEMETRY) {
            // The payload is the feed's own, in its arena, and nobody has seen it yet.
            struct telemetry *telemetry = (struct telemetry *)event->telemetry;
            telemetry->job = job;
        }
    } else if (event->job == feed->none && !feed->said_none) {
        feed->said_none = true;
        feed_note(
            feed, (struct slice){0},
            "job_id is the text \"none\" (torchrun without --rdzv-id writes it), so different "
            "jobs may share it; the receiver's job_id option names the job.");
    }
}

static void mark_progress(struct feed *feed, struct source *source, const struct event *event) {
    if (source->batch != feed->batch) {
        if (feed->event_count == 0)
            feed->begun_ns = clock_monotonic_ns();
        source->batch = feed->batch;
        atomic_store_explicit(&source->last_seen_ns, feed->begun_ns, memory_order_relaxed);
    }
    if (event->time_ns > atomic_load_explicit(&source->newest_ns, memory_order_relaxed))
        atomic_store_explicit(&source->newest_ns, event->time_ns, memory_order_relaxed);
}

enum decode_category feed_offer(struct feed *feed, struct source *source, struct slice record,
                                uint64_t position, struct decode_fault *fault) {
    return feed_offer_carried(feed, source, record, position, NULL, STRING_NONE, fault);
}

enum decode_category feed_offer_carried(struct feed *feed, struct source *source,
                                        struct slice record, uint64_t position,
                                        const struct carried *carried, string_id job,
                                        struct decode_fault *fault) {
    assert(source->decoder != NULL);
    struct event *event = &feed->events[feed->event_count];
    enum decode_category category =
        source->decoder->decode(source->decoder_state, record, &feed->arena, event, fault);
    if (category != DECODE_OK) {
        feed_refuse(feed, source, position, fault);
        return category;
    }
    event->source = source->id;
    event->position = position;
    event->decoder = source->decoder;
    event->raw = record;
    event->carried = carried;
    if (carried != NULL) {
        struct carried *copy = arena_take(&feed->arena, sizeof *copy);
        *copy = *carried;
        event->carried = copy;
    }
    stamp_job(feed, event, job);
    mark_progress(feed, source, event);
    source->figures.accepted++;
    if (++feed->event_count == feed->settings.batch_size)
        feed_flush(feed);
    return DECODE_OK;
}

void feed_flush(struct feed *feed) {
    if (feed->event_count > 0) {
        atomic_fetch_add_explicit(&feed->settings.intake->accepted, feed->event_count,
                                  memory_order_relaxed);
        feed->settings.deliver(feed->settings.deliver_context, feed->events, feed->event_count);
        feed->event_count = 0;
        feed->batch++;
    }
    arena_reset(&feed->arena);
}

void feed_stamp_job(struct feed *feed, string_id job) {
    feed->stamp = job;
}

void feed_progress(struct feed *feed, uint64_t done_bytes, uint64_t total_bytes) {
    struct intake *intake = feed->settings.intake;
    atomic_store_explicit(&intake->done_bytes, done_bytes, memory_order_relaxed);
    atomic_store_explicit(&intake->total_bytes, total_bytes, memory_order_relaxed);
}

bool feed_stopping(const struct feed *feed) {
    return atomic_load_explicit(feed->settings.stopping, memory_order_acquire);
}

int feed_stop_descriptor(const struct feed *feed) {
    return feed->settings.stop_descriptor;
}

void feed_view(struct feed *feed, uint64_t monotonic_ns, uint64_t idle_timeout_ns,
               struct feed_progress_view *view) {
    *view = (struct feed_progress_view){.lowest_ns = UINT64_MAX};
    pthread_mutex_lock(&feed->lock);
    for (uint32_t i = 0; i < feed->source_count; i++) {
        struct source *source = feed->sources[i];
        uint64_t newest = atomic_load_explicit(&source->newest_ns, memory_order_relaxed);
        uint64_t seen = atomic_load_explicit(&source->last_seen_ns, memory_order_relaxed);
        if (seen == 0)
            continue;
        view->any = true;
        if (newest > view->newest_ns)
            view->newest_ns = newest;
        if (seen > view->last_seen_ns)
            view->last_seen_ns = seen;
        if (seen + idle_timeout_ns < monotonic_ns)
            continue;
        view->any_active = true;
        if (newest < view->lowest_ns)
            view->lowest_ns = newest;
    }
    pthread_mutex_unlock(&feed->lock);
}

uint32_t feed_source_count(const struct feed *feed) {
    return feed->source_count;
}

void feed_source_report(const struct feed *feed, uint32_t index, struct report_source *out) {
    *out = (struct report_source){.path = feed->sources[index]->path,
                                  .figures = feed->sources[index]->figures};
}

void source_list_add(struct source_list *list, struct slice path) {
    if (list->arena.block_size == 0)
        arena_init(&list->arena, FEED_ARENA_BLOCK);
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        struct slice *paths = arena_take(&list->arena, list->capacity * sizeof *paths);
        if (list->count > 0)
            memcpy(paths, list->paths, list->count * sizeof *paths);
        list->paths = paths;
    }
    list->paths[list->count++] = arena_copy(&list->arena, path);
}
