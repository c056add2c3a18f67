// SPDX-License-Identifier: Apache-2.0
// From a receiver's bytes to a batch of events: decodes each record into the batch's arrays and
// hands the batch over when it is full or when the receiver says so. Allocates nothing once warmed
// up.
#include "base/log.h"
#include "pipeline/model/observation.h"
#include "pipeline/model/telemetry_event.h"
#include "pipeline/runtime/feed/feed_state.h"

#include <stdarg.h>
#include <stdio.h>

enum { NOTE_MAX = 1024, EVENTS_KEPT_MAX = 65536 };

struct feed *feed_create(const struct feed_settings *settings) {
    assert(settings->batch_size > 0);
    assert(settings->outlet.deliver != NULL && settings->outlet.restore != NULL);
    struct feed *feed = memory_zero(1, sizeof *feed);
    feed->magic = FEED_MAGIC;
    feed->settings = *settings;
    arena_init(&feed->arena, FEED_ARENA_BLOCK);
    feed->event_capacity = settings->batch_size + 1;
    feed->events = memory_take(feed->event_capacity * sizeof *feed->events);
    feed->batch = 1;
    feed->none = intern(SLICE("none"));
    return feed;
}

void feed_free(struct feed *feed) {
    if (feed == NULL)
        return;
    for (uint32_t i = 0; i < feed->source_count; i++)
        feed_source_free(feed->sources[i]);
    memory_give((uint64_t *)feed->forgotten.by_class);
    memory_give((uint64_t *)feed->forgotten.by_category);
    memory_give(feed->sources);
    hash_index_release(&feed->by_path);
    memory_give(feed->touched);
    memory_give(feed->events);
    arena_release(&feed->arena);
    feed->magic = 0;
    memory_give(feed);
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
    assert(source->magic == SOURCE_MAGIC);
    assert(decode_refused(fault->category));
    source->figures.refused++;
    feed_counts(&source->figures.by_category, DECODE_CATEGORY_COUNT)[fault->category]++;
    feed_touch(feed, source);
    if (feed->settings.silent)
        return;
    atomic_fetch_add_explicit(&feed->refused_by[fault->category], 1, memory_order_relaxed);
    intake_refuse(feed->settings.intake, source->path, position, fault);
    say_refused(feed, source, position, fault);
}

void feed_pass_over(struct feed *feed, struct source *source, uint64_t count) {
    assert(feed->magic == FEED_MAGIC && source->magic == SOURCE_MAGIC);
    source->figures.other += count;
    if (!feed->settings.silent)
        atomic_fetch_add_explicit(&feed->other, count, memory_order_relaxed);
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
    feed->event_capacity *= 2;
    feed->events = memory_resize(feed->events, feed->event_capacity * sizeof *feed->events);
}

bool feed_foresee(struct feed *feed, struct source *source, struct slice record) {
    const struct decoder_type *decoder = source->decoder;
    struct event *event = &feed->events[feed->event_count];
    event->timeless = false;
    event->lines = 1;
    feed->foreseen = NULL;
    if (decoder->decode_plain == NULL ||
        !decoder->decode_plain(source->decoder_state, record, &feed->arena, event))
        return false;
    feed->foreseen = record.data;
    return true;
}

void feed_foresee_parsed(struct feed *feed, struct slice record, void *parsed) {
    assert(feed->magic == FEED_MAGIC && record.data != NULL);
    feed->parsed = parsed;
    feed->parsed_record = record.data;
}

// A record on its way through: what belongs to it beside its bytes.
struct offer {
    struct slice record;
    uint64_t position;
    bool repeated; // what becomes of it was told before a restart
};

// Into the next event.
static enum decode_category decode(struct feed *feed, struct source *source,
                                   const struct offer *offer, struct decode_fault *fault) {
    struct event *event = &feed->events[feed->event_count];
    fault->told = false;
    event->position = offer->position;
    event->lines = 1;
    event->raw = offer->record;
    if (feed->foreseen == offer->record.data) {
        feed->foreseen = NULL;
        event->decoder = source->decoder->plain == NULL ? source->decoder : source->decoder->plain;
        return DECODE_OK;
    }
    feed->foreseen = NULL;
    event->timeless = false;
    event->time_ns = 0;
    event->decoder = source->decoder;
    bool is_parsed = feed->parsed != NULL && feed->parsed_record == offer->record.data;
    enum decode_category category =
        is_parsed
            ? source->decoder->decode_parsed(source->decoder_state, feed->parsed, event, fault)
            : source->decoder->decode(source->decoder_state, offer->record, &feed->arena, event,
                                      fault);
    feed->parsed = NULL;
    if (source->decoder->next == NULL) {
        event->position = offer->position;
        event->lines = 1;
        event->raw = offer->record;
        event->decoder = source->decoder;
    }
    return category;
}

// What was told before a restart is decoded once more only for the sake of what follows it.
static bool is_repeated(const struct feed *feed) {
    return feed->reached != NULL && feed->reached->told >= feed->reached->reached.number;
}

// The same of what is held when it is finished. What was held at the last record that was told is
// still to be told: else the position would have gone on behind it.
static bool is_finish_repeated(const struct source *source) {
    const struct source *positions = source->positions;
    return positions != NULL && positions->told > positions->reached.number;
}

// Said once a kind: who sends such events sends many.
static void count_unused(struct feed *feed, uint32_t class) {
    if (atomic_fetch_add_explicit(&feed->unused_by[class], 1, memory_order_relaxed) > 0 ||
        feed->settings.silent)
        return;
    log_write(LOG_WARN, (struct log_site){"C2004", feed->settings.site},
              "events of the kind %s come in, and no processor of their pipelines looks at them "
              "(culprit validate lists the kinds that a pipeline takes)",
              event_class_name(class));
}

static void count_event(struct feed *feed, struct source *source, const struct event *event) {
    uint32_t class = event_class(event);
    source->figures.accepted++;
    source->figures.event_lines += event->lines;
    feed_counts(&source->figures.by_class, EVENT_CLASS_COUNT)[class]++;
    if (feed->settings.taken != NULL && !feed->settings.taken[class])
        count_unused(feed, class);
}

// A pipeline is judged between two records, wherever a read ended: so the record that reaches a
// turn is the last of its batch. A source that went back by more than max_jump begins anew.
static void reach(struct feed *feed, struct source *source, uint64_t time_ns) {
    const struct feed_outlet *outlet = &feed->settings.outlet;
    uint64_t jump = feed->settings.max_jump_ns;
    if (outlet->turn == NULL) {
        source->steady_for_ns = UINT64_MAX;
        return;
    }
    feed->turned = feed->steps;
    source->steady_ns = time_ns > jump ? time_ns - jump : 0;
    source->steady_for_ns = outlet->turn(outlet->context, time_ns) - source->steady_ns;
}

static inline void pass_time(struct feed *feed, struct source *source, uint64_t time_ns) {
    source_times_note(&source->times, time_ns, feed->settings.max_jump_ns);
    if (time_ns - source->steady_ns >= source->steady_for_ns)
        reach(feed, source, time_ns);
}

static void note_time(struct feed *feed, struct source *source, const struct event *event) {
    if (!event->timeless && event->time_ns != 0)
        pass_time(feed, source, event->time_ns);
    if (event->kind == EVENT_KERNEL)
        source_times_tell(&source->times);
}

// What travelled with the record.
static void set_forwarded(struct feed *feed, struct event *event,
                          const struct forwarded *forwarded) {
    struct carried carried = forwarded->carried;
    if (event->kind == EVENT_TELEMETRY)
        carried.path = STRING_NONE; // it is kept with the samples, and nobody asks for it
    if (carried.generation != 0 || carried.first_sample_ns != 0 || carried.path != STRING_NONE) {
        struct carried *copy = arena_take(&feed->arena, sizeof *copy);
        *copy = carried;
        event->carried = copy;
    }
    if (event->node == STRING_NONE)
        event->node = forwarded->node;
}

// Takes the event that was decoded into the batch.
static void take_event(struct feed *feed, struct source *source, bool counted) {
    struct event *event = &feed->events[feed->event_count];
    note_time(feed, source, event);
    event->source = source->id;
    event->carried = NULL;
    if (source->forwarded != NULL)
        set_forwarded(feed, event, source->forwarded);
    stamp_job(feed, event, source->forwarded == NULL ? STRING_NONE : source->forwarded->job);
    if (event->node == STRING_NONE)
        event->node = feed->stamp.node;
    if (counted)
        count_event(feed, source, event);
    feed->kinds |= 1u << event->kind;
    if (++feed->event_count == feed->event_capacity)
        make_room(feed);
}

// A full batch goes on its way between two records: what a decoder is still to give of one stands
// in the batch's arena.
static void end_record(struct feed *feed) {
    assert(feed->event_count < feed->event_capacity);
    if (!feed->journal && (feed->turned || feed->event_count >= feed->settings.batch_size))
        feed_flush(feed);
}

// What became of a record, or of those that were held; the event at hand is of them.
static void settle(struct feed *feed, struct source *source, enum decode_category category,
                   const struct offer *offer, const struct decode_fault *fault) {
    const struct event *event = &feed->events[feed->event_count];
    if (category == DECODE_HELD || offer->repeated)
        return;
    if (decode_refused(category)) {
        feed_refuse(feed, source, event->position, fault);
        // A refusal is of one record; others that were held with it say nothing by themselves.
        if (event->lines > 1)
            source->figures.other += event->lines - 1;
        if (!fault->told)
            return;
    }
    feed_touch(feed, source);
    if (category == DECODE_NOTHING) {
        // Time passes by such records, too.
        note_time(feed, source, event);
        source->figures.other += event->lines;
        if (!feed->settings.silent)
            atomic_fetch_add_explicit(&feed->other, event->lines, memory_order_relaxed);
    } else {
        feed->told += category != DECODE_OK;
        take_event(feed, source, category == DECODE_OK);
    }
}

void feed_tell_refused(struct feed *feed, struct source *source, struct slice start,
                       uint64_t position, struct slice why) {
    assert(feed->magic == FEED_MAGIC && source->magic == SOURCE_MAGIC);
    const struct decoder_type *decoder = source->decoder;
    struct event *event = &feed->events[feed->event_count];
    if (decoder == NULL || decoder->tell_refused == NULL || is_repeated(feed))
        return;
    *event = (struct event){.position = position, .lines = 1, .rank = RANK_NONE, .raw = start};
    event->decoder = decoder;
    if (!decoder->tell_refused(source->decoder_state, start, why, &feed->arena, event))
        return;
    event->position = position;
    event->lines = 1;
    event->raw = start;
    feed->told++;
    feed_touch(feed, source);
    take_event(feed, source, false);
    end_record(feed);
}

// While records are held, the position stays in front of the first of them.
static void note_held(struct feed *feed, struct source *source) {
    bool holds = source->decoder->holds != NULL && source->decoder->holds(source->decoder_state);
    if (holds == source->holds)
        return;
    source->holds = holds;
    if (holds) {
        source->positions = feed->reached;
        if (source->positions == NULL)
            return;
        source->positions->holder = source;
        source->positions->held_at = source->positions->before;
    } else if (source->positions != NULL) {
        source->positions->holder = NULL;
        feed_touch(feed, source->positions);
        source->positions = NULL;
    }
}

// Takes what the decoder gives beyond one event for one record.
static void take_more(struct feed *feed, struct source *source, const struct offer *offer) {
    const struct decoder_type *decoder = source->decoder;
    struct decode_fault fault;
    for (;;) {
        struct event *event = &feed->events[feed->event_count];
        fault.told = false;
        event->timeless = false;
        event->position = offer->position;
        event->lines = 1;
        event->raw = offer->record;
        event->decoder = decoder;
        enum decode_category category =
            decoder->next(source->decoder_state, &feed->arena, event, &fault);
        if (category == DECODE_END)
            break;
        struct slice raw = event->raw;
        uint64_t position = event->position;
        settle(feed, source, category, offer, &fault);
        if (decode_refused(category) && feed->refused != NULL && !offer->repeated)
            feed->refused(feed->refused_context, source, raw, position, &fault);
    }
    note_held(feed, source);
}

// Takes the next event, which is telemetry, into the batch.
static inline void take_telemetry(struct feed *feed, struct source *source, struct slice record,
                                  uint64_t position) {
    struct event *event = &feed->events[feed->event_count];
    const struct decoder_type *decoder = source->decoder;
    assert(event->kind == EVENT_TELEMETRY);
    feed_touch(feed, source);
    pass_time(feed, source, event->time_ns);
    event->source = source->id;
    event->position = position;
    event->lines = 1;
    event->decoder = decoder->plain == NULL ? decoder : decoder->plain;
    event->raw = record;
    event->carried = NULL;
    if (event->job == STRING_NONE || event->job == feed->none)
        stamp_job(feed, event, STRING_NONE);
    if (event->node == STRING_NONE)
        event->node = feed->stamp.node;
    source->figures.accepted++;
    source->figures.event_lines++;
    feed_counts(&source->figures.by_class, EVENT_CLASS_COUNT)[EVENT_CLASS_TELEMETRY]++;
    if (feed->settings.taken != NULL && !feed->settings.taken[EVENT_CLASS_TELEMETRY])
        count_unused(feed, EVENT_CLASS_TELEMETRY);
    feed->kinds |= 1u << EVENT_TELEMETRY;
    if (++feed->event_count == feed->event_capacity)
        make_room(feed);
    end_record(feed);
}

bool feed_pass_lines(struct feed *feed, struct source *source, struct slice text,
                     const struct found_lines *found, struct line_run runs[LINE_RUNS]) {
    const struct decoder_type *decoder = source->decoder;
    if (decoder->pass_over == NULL || source->forwarded != NULL || is_repeated(feed))
        return false;
    decoder->pass_over(source->decoder_state, text, found, runs);
    uint64_t lines = 0, blank = 0;
    for (int i = 0; i < LINE_RUNS; i++) {
        lines += runs[i].lines;
        blank += runs[i].blank;
    }
    source->figures.blank += blank;
    if (lines > 0) {
        feed_touch(feed, source);
        feed_pass_over(feed, source, lines - blank);
    }
    return true;
}

bool feed_offer_foreseen(struct feed *feed, struct source *source, const struct event *events,
                         uint32_t count, uint64_t position) {
    assert(feed->magic == FEED_MAGIC && source->magic == SOURCE_MAGIC);
    if (source->forwarded != NULL || is_repeated(feed))
        return false;
    feed->foreseen = NULL;
    for (uint32_t i = 0; i < count; i++) {
        feed->events[feed->event_count] = events[i];
        take_telemetry(feed, source, events[i].raw, position + i);
    }
    return true;
}

// Telemetry, which is most of what comes: a record that is one event beyond doubt, and of which
// nothing is to be done but to take it. False: nothing has happened.
static inline bool take_plain(struct feed *feed, struct source *source, struct slice record,
                              uint64_t position) {
    struct event *event = &feed->events[feed->event_count];
    const struct decoder_type *decoder = source->decoder;
    if (source->forwarded != NULL || decoder->decode_plain == NULL || is_repeated(feed))
        return false;
    if (feed->foreseen != record.data) {
        event->timeless = false;
        if (!decoder->decode_plain(source->decoder_state, record, &feed->arena, event))
            return false;
    }
    feed->foreseen = NULL;
    take_telemetry(feed, source, record, position);
    return true;
}

enum decode_category feed_offer(struct feed *feed, struct source *source, struct slice record,
                                uint64_t position, struct decode_fault *fault) {
    assert(source->magic == SOURCE_MAGIC && source->decoder != NULL);
    assert(feed->event_count < feed->event_capacity);
    if (take_plain(feed, source, record, position))
        return DECODE_OK;
    struct offer offer = {record, position, is_repeated(feed)};
    enum decode_category category = decode(feed, source, &offer, fault);
    bool plain = category == DECODE_OK && feed->events[feed->event_count].kind == EVENT_TELEMETRY;
    settle(feed, source, category, &offer, fault);
    if (!plain && source->decoder->next != NULL)
        take_more(feed, source, &offer);
    end_record(feed);
    return decode_refused(category) && !offer.repeated ? category : DECODE_OK;
}

void feed_source_passed_on(struct feed *feed, struct source *source,
                           const struct forwarded *forwarded) {
    assert(source->magic == SOURCE_MAGIC && source->feed == feed && source->decoder != NULL);
    assert(!source->holds);
    if (source->forwarded == NULL && forwarded == NULL)
        return;
    source->forwarded = forwarded;
    if (source->decoder->pass_on != NULL)
        source->decoder->pass_on(source->decoder_state, forwarded);
}

bool feed_source_holds(const struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    return source->holds || source->holder != NULL;
}

void feed_source_finish(struct feed *feed, struct source *source) {
    assert(source->magic == SOURCE_MAGIC && source->feed == feed);
    if (source->holder != NULL)
        source = source->holder;
    if (!source->holds)
        return;
    assert(source->decoder->finish != NULL);
    source->decoder->finish(source->decoder_state);
    take_more(feed, source, &(struct offer){.repeated = is_finish_repeated(source)});
    assert(!source->holds);
    end_record(feed);
}

bool feed_source_cut(struct source *source) {
    assert(source->magic == SOURCE_MAGIC && source->decoder != NULL);
    if (source->decoder->cut == NULL)
        return false;
    source->decoder->cut(source->decoder_state);
    return true;
}

void feed_source_written(struct source *source, uint64_t written_ns) {
    assert(source->magic == SOURCE_MAGIC && source->decoder != NULL);
    if (source->decoder->written != NULL)
        source->decoder->written(source->decoder_state, written_ns);
}

void feed_on_refusal(struct feed *feed,
                     void (*refused)(void *context, const struct source *source,
                                     struct slice record, uint64_t position,
                                     const struct decode_fault *fault),
                     void *context) {
    assert(feed->magic == FEED_MAGIC);
    feed->refused = refused;
    feed->refused_context = context;
}

void feed_flush(struct feed *feed) {
    assert(feed->magic == FEED_MAGIC);
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
                                    .begun_ns = feed->begun_ns,
                                    .turned = feed->turned};
        feed->settings.outlet.deliver(feed->settings.outlet.context, &delivery);
        feed->event_count = 0;
        feed->told = 0;
        feed->kinds = 0;
        feed->touched_count = 0;
        feed->batch++;
    }
    uint32_t usual = feed->settings.batch_size + 1;
    if (feed->event_capacity > EVENTS_KEPT_MAX && feed->event_capacity > usual) {
        feed->event_capacity = usual;
        feed->events = memory_resize(feed->events, feed->event_capacity * sizeof *feed->events);
    }
    feed->foreseen = NULL;
    feed->parsed = NULL;
    feed->turned = false;
    arena_reset(&feed->arena);
}

void feed_stamp(struct feed *feed, struct feed_stamp stamp) {
    assert(feed->magic == FEED_MAGIC);
    feed->stamp = stamp;
}

void feed_progress(struct feed *feed, uint64_t done_bytes, uint64_t total_bytes) {
    struct intake *intake = feed->settings.intake;
    atomic_store_explicit(&intake->done_bytes, done_bytes, memory_order_relaxed);
    atomic_store_explicit(&intake->total_bytes, total_bytes, memory_order_relaxed);
}

bool feed_stopping(const struct feed *feed) {
    assert(feed->magic == FEED_MAGIC);
    return atomic_load_explicit(feed->settings.stopping, memory_order_acquire);
}

bool feed_pausing(const struct feed *feed) {
    return feed_stopping(feed) &&
           atomic_load_explicit(feed->settings.pausing, memory_order_acquire);
}

int feed_stop_descriptor(const struct feed *feed) {
    return feed->settings.stop_descriptor;
}
