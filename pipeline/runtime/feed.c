// SPDX-License-Identifier: Apache-2.0
// From a receiver's bytes to a batch of events: decodes each record into the batch's arrays and
// hands the batch over when it is full or when the receiver says so. Allocates nothing once warmed
// up. Sources are found by path through a small hash. Everything belongs to the receiver's thread,
// but for the two counts.
#include "pipeline/runtime/feed_run.h"

#include "base/clock.h"
#include "base/hash/hash.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/table/table.h"
#include "pipeline/model/telemetry_event.h"

#include <assert.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    FEED_ARENA_BLOCK = 64 * 1024,
    NOTE_MAX = 1024,
    BLOCKED_LOOK_MS = 5,
    EVENTS_KEPT_MAX = 65536
};

struct feed {
    struct feed_settings settings;
    struct arena arena; // of the batch being filled
    struct event *events;
    uint32_t event_count;
    uint32_t kinds; // of them
    uint32_t told;  // of them: tell of refused records
    uint32_t event_capacity;
    const char *foreseen; // the record that the next event was made of already; NULL: none
    bool journal;         // flushed only when asked
    bool caught_up;
    uint64_t batch;          // number of the batch being filled
    uint64_t begun_ns;       // when its first event came, monotonic
    struct feed_stamp stamp; // for events that name none
    string_id none;          // the text that torchrun writes for a job without an id
    bool said_none;
    struct source **touched; // by this batch
    uint32_t touched_count;
    uint32_t touched_capacity;
    struct source **sources; // NULL: forgotten
    uint32_t source_count;
    uint32_t source_capacity;
    uint32_t *buckets; // heads of chains by path
    uint32_t bucket_count;
    struct source_figures forgotten; // of sources that are gone
    atomic_uint_fast64_t accepted;
    atomic_uint_fast64_t refused_by[DECODE_CATEGORY_COUNT];
};

struct feed *feed_create(const struct feed_settings *settings) {
    struct feed *feed = memory_zero(1, sizeof *feed);
    feed->settings = *settings;
    arena_init(&feed->arena, FEED_ARENA_BLOCK);
    feed->event_capacity = settings->batch_size;
    feed->events = memory_take(settings->batch_size * sizeof *feed->events);
    feed->batch = 1;
    feed->none = intern(SLICE("none"));
    return feed;
}

static void source_free(struct source *source) {
    if (source == NULL)
        return;
    memory_give(source->decoder_state);
    memory_give((char *)source->path.data);
    memory_give(source->rows);
    memory_give(source);
}

void feed_free(struct feed *feed) {
    if (feed == NULL)
        return;
    for (uint32_t i = 0; i < feed->source_count; i++)
        source_free(feed->sources[i]);
    memory_give(feed->sources);
    memory_give(feed->buckets);
    memory_give(feed->touched);
    memory_give(feed->events);
    arena_release(&feed->arena);
    memory_give(feed);
}

// -- sources ------------------------------------------------------------------------------------

static uint32_t path_bucket(const struct feed *feed, struct slice path) {
    return hash_folded(hash_slice(path)) & (feed->bucket_count - 1);
}

static void chain_source(struct feed *feed, uint32_t index) {
    struct source *source = feed->sources[index];
    uint32_t bucket = path_bucket(feed, source->path);
    source->next = feed->buckets[bucket];
    feed->buckets[bucket] = index;
}

static void grow_sources(struct feed *feed) {
    feed->source_capacity = feed->source_capacity == 0 ? 16 : feed->source_capacity * 2;
    feed->sources = memory_resize(feed->sources, feed->source_capacity * sizeof(struct source *));
    memory_give(feed->buckets);
    feed->bucket_count = feed->source_capacity * 2;
    feed->buckets = memory_take(feed->bucket_count * sizeof *feed->buckets);
    memset(feed->buckets, 0xff, feed->bucket_count * sizeof *feed->buckets);
    for (uint32_t i = 0; i < feed->source_count; i++)
        if (feed->sources[i] != NULL)
            chain_source(feed, i);
}

// A place in the list that is free, or a new one.
static uint32_t free_place(struct feed *feed) {
    if (feed->source_count == feed->source_capacity) {
        for (uint32_t i = 0; i < feed->source_count; i++)
            if (feed->sources[i] == NULL)
                return i;
        grow_sources(feed);
    }
    return feed->source_count++;
}

struct source *feed_source(struct feed *feed, struct slice path) {
    uint32_t at = feed->bucket_count == 0 ? TABLE_NO_ROW : feed->buckets[path_bucket(feed, path)];
    for (; at != TABLE_NO_ROW; at = feed->sources[at]->next)
        if (slice_equal(feed->sources[at]->path, path))
            return feed->sources[at];
    struct source *source = memory_zero(1, sizeof *source);
    source->path = (struct slice){memory_copy_text(path.data, path.size), path.size};
    source->feed = feed;
    source->id = intern(path);
    source->rows = memory_take((feed->settings.runner_count + 1) * sizeof *source->rows);
    memset(source->rows, 0xff, (feed->settings.runner_count + 1) * sizeof *source->rows);
    uint32_t place = free_place(feed);
    feed->sources[place] = source;
    chain_source(feed, place);
    feed->settings.outlet.restore(feed->settings.outlet.context, source);
    source->reached = source->restored;
    source->highest = source->restored.number;
    return source;
}

struct source *feed_place(struct feed *feed, struct slice name) {
    assert(name.size > 0 && name.data[0] == PLACE_MARK);
    return feed_source(feed, name);
}

struct source *feed_restored_source(struct feed *feed, uint32_t index) {
    struct slice path;
    const struct feed_outlet *outlet = &feed->settings.outlet;
    if (!outlet->restored_path(outlet->context, index, &path))
        return NULL;
    return feed_source(feed, path);
}

void feed_source_format(struct source *source, const struct decoder_type *decoder,
                        const struct decoder_input *input) {
    memory_give(source->decoder_state);
    source->decoder = decoder;
    source->decoder_state = memory_zero(1, decoder->state_size + 1); // some have none
    source->figures.format = decoder->name;
    struct decoder_input known = *input;
    known.path = source->path;
    if (decoder->begin != NULL)
        decoder->begin(source->decoder_state, &known);
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

static void touch(struct feed *feed, struct source *source) {
    if (source->batch == feed->batch)
        return;
    if (feed->touched_count == 0)
        feed->begun_ns = clock_monotonic_ns();
    source->batch = feed->batch;
    source->newest_ns = 0;
    source->left = false;
    if (feed->touched_count == feed->touched_capacity) {
        feed->touched_capacity = feed->touched_capacity == 0 ? 64 : feed->touched_capacity * 2;
        feed->touched =
            memory_resize(feed->touched, feed->touched_capacity * sizeof(struct source *));
    }
    feed->touched[feed->touched_count++] = source;
}

void feed_source_reached(struct source *source, const struct source_position *position) {
    assert(source->journal || position->number >= source->reached.number);
    touch(source->feed, source);
    source->reached = *position;
    if (position->number > source->highest)
        source->highest = position->number;
}

void feed_source_leave(struct feed *feed, struct source *source) {
    source->left = true;
    feed->settings.outlet.leave(feed->settings.outlet.context, source, false);
}

void feed_source_forget(struct feed *feed, struct source *source) {
    feed_flush(feed);
    feed->settings.outlet.leave(feed->settings.outlet.context, source, true);
    uint32_t *link = &feed->buckets[path_bucket(feed, source->path)];
    while (feed->sources[*link] != source)
        link = &feed->sources[*link]->next;
    uint32_t place = *link;
    *link = source->next;
    feed->forgotten.bytes += source->figures.bytes;
    feed->forgotten.accepted += source->figures.accepted;
    feed->forgotten.refused += source->figures.refused;
    feed->forgotten.blank += source->figures.blank;
    feed->forgotten.other += source->figures.other;
    feed->sources[place] = NULL;
    source_free(source);
}

struct source_position feed_source_safe(struct feed *feed, const struct source *source) {
    return feed->settings.outlet.safe(feed->settings.outlet.context, source);
}

bool feed_blocked(const struct feed *feed) {
    return feed->settings.outlet.blocked(feed->settings.outlet.context);
}

bool feed_wait(struct feed *feed, uint64_t timeout_ns) {
    uint64_t until = clock_monotonic_ns() + timeout_ns;
    struct pollfd stop = {.fd = feed->settings.stop_descriptor, .events = POLLIN};
    while (feed_blocked(feed)) {
        if (feed_stopping(feed) || clock_monotonic_ns() >= until)
            return false;
        if (poll(&stop, 1, BLOCKED_LOOK_MS) > 0)
            return !feed_blocked(feed);
    }
    return true;
}

void feed_keeps_journal(struct feed *feed, struct source *source) {
    feed->journal = source->journal = true;
}

bool feed_has_journal(const struct feed *feed) {
    return feed->journal;
}

uint64_t feed_lag(struct feed *feed, const struct source *source) {
    return feed->settings.outlet.lag(feed->settings.outlet.context, source);
}

void feed_caught_up(struct feed *feed) {
    if (feed->caught_up)
        return;
    feed_flush(feed);
    feed->caught_up = true;
    feed->settings.outlet.caught_up(feed->settings.outlet.context);
}

void feed_trouble(struct feed *feed, const char *sentence) {
    feed->settings.outlet.trouble(feed->settings.outlet.context, sentence);
}

// -- records ------------------------------------------------------------------------------------

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
    touch(feed, source);
    if (feed->settings.silent)
        return;
    atomic_fetch_add_explicit(&feed->refused_by[fault->category], 1, memory_order_relaxed);
    intake_refuse(feed->settings.intake, source->path, position, fault);
    say_refused(feed, source, position, fault);
}

void feed_note(struct feed *feed, struct slice path, const char *format, ...) {
    if (feed->settings.silent)
        return;
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

void feed_missing(struct feed *feed, struct slice path, struct slice why) {
    if (!feed->settings.silent)
        intake_missing(feed->settings.intake, path);
    feed_note(feed, path, "%.*s", (int)why.size, why.data);
}

static void stamp_job(struct feed *feed, struct event *event, string_id job) {
    if (event->job != STRING_NONE && event->job != feed->none)
        return;
    if (job == STRING_NONE)
        job = feed->stamp.job;
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

static void make_room(struct feed *feed) {
    if (!feed->journal) {
        feed_flush(feed);
        return;
    }
    feed->event_capacity *= 2;
    feed->events = memory_resize(feed->events, feed->event_capacity * sizeof *feed->events);
}

bool feed_foresee(struct feed *feed, struct source *source, struct slice record) {
    const struct decoder_type *decoder = source->decoder;
    struct event *event = &feed->events[feed->event_count];
    event->timeless = false;
    feed->foreseen = NULL;
    if (decoder->decode_plain == NULL ||
        !decoder->decode_plain(source->decoder_state, record, &feed->arena, event))
        return false;
    feed->foreseen = record.data;
    return true;
}

// Into the next event.
static enum decode_category decode(struct feed *feed, struct source *source, struct slice record,
                                   struct decode_fault *fault) {
    struct event *event = &feed->events[feed->event_count];
    fault->told = false;
    if (feed->foreseen == record.data) {
        feed->foreseen = NULL;
        return DECODE_OK;
    }
    feed->foreseen = NULL;
    event->timeless = false;
    return source->decoder->decode(source->decoder_state, record, &feed->arena, event, fault);
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
    enum decode_category category = decode(feed, source, record, fault);
    if (category != DECODE_OK && category != DECODE_NOTHING) {
        feed_refuse(feed, source, position, fault);
        if (!fault->told)
            return category;
        feed->told++;
    }
    touch(feed, source);
    if (event->time_ns > source->newest_ns && !event->timeless)
        source->newest_ns = event->time_ns;
    if (category == DECODE_NOTHING) {
        source->figures.other++;
        return DECODE_OK;
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
    if (event->node == STRING_NONE)
        event->node = feed->stamp.node;
    if (category == DECODE_OK)
        source->figures.accepted++;
    feed->kinds |= 1u << event->kind;
    if (++feed->event_count == feed->event_capacity)
        make_room(feed);
    return category;
}

void feed_flush(struct feed *feed) {
    if (feed->touched_count > 0) {
        uint32_t accepted = feed->event_count - feed->told;
        atomic_fetch_add_explicit(&feed->settings.intake->accepted,
                                  feed->settings.silent ? 0 : accepted, memory_order_relaxed);
        atomic_fetch_add_explicit(&feed->accepted, accepted, memory_order_relaxed);
        struct delivery delivery = {.events = feed->events,
                                    .count = feed->event_count,
                                    .kinds = feed->kinds,
                                    .touched = feed->touched,
                                    .touched_count = feed->touched_count,
                                    .begun_ns = feed->begun_ns};
        feed->settings.outlet.deliver(feed->settings.outlet.context, &delivery);
        feed->event_count = 0;
        feed->told = 0;
        feed->kinds = 0;
        feed->touched_count = 0;
        feed->batch++;
    }
    if (feed->event_capacity > EVENTS_KEPT_MAX && feed->journal) {
        feed->event_capacity = feed->settings.batch_size;
        feed->events = memory_resize(feed->events, feed->event_capacity * sizeof *feed->events);
    }
    feed->foreseen = NULL;
    arena_reset(&feed->arena);
}

void feed_stamp(struct feed *feed, struct feed_stamp stamp) {
    feed->stamp = stamp;
}

void feed_progress(struct feed *feed, uint64_t done_bytes, uint64_t total_bytes) {
    struct intake *intake = feed->settings.intake;
    atomic_store_explicit(&intake->done_bytes, done_bytes, memory_order_relaxed);
    atomic_store_explicit(&intake->total_bytes, total_bytes, memory_order_relaxed);
}

bool feed_stopping(const struct feed *feed) {
    return atomic_load_explicit(feed->settings.stopping, memory_order_acquire);
}

bool feed_pausing(const struct feed *feed) {
    return feed_stopping(feed) &&
           atomic_load_explicit(feed->settings.pausing, memory_order_acquire);
}

int feed_stop_descriptor(const struct feed *feed) {
    return feed->settings.stop_descriptor;
}

uint32_t feed_source_count(const struct feed *feed) {
    return feed->source_count + 1;
}

bool feed_source_report(const struct feed *feed, uint32_t index, struct report_source *out) {
    *out = (struct report_source){.figures = feed->forgotten};
    if (index == feed->source_count)
        return feed->forgotten.bytes + feed->forgotten.accepted > 0;
    const struct source *source = feed->sources[index];
    if (source == NULL || source->path.data[0] == PLACE_MARK)
        return false;
    *out = (struct report_source){.path = source->path, .figures = source->figures};
    return true;
}

uint64_t feed_accepted(const struct feed *feed) {
    return atomic_load_explicit(&feed->accepted, memory_order_relaxed);
}

uint64_t feed_refused(const struct feed *feed, enum decode_category category) {
    return atomic_load_explicit(&feed->refused_by[category], memory_order_relaxed);
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
