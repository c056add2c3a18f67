// SPDX-License-Identifier: Apache-2.0
#include "fake_feed.h"

#include "base/memory.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct feed *fake_feed_create(void) {
    struct feed *feed = calloc(1, sizeof *feed);
    pthread_mutex_init(&feed->lock, NULL);
    arena_init(&feed->arena, 4096);
    ck_assert_int_eq(pipe(feed->stop_pipe), 0);
    return feed;
}

void fake_feed_free(struct feed *feed) {
    for (uint32_t i = 0; i < feed->count; i++) {
        free(feed->records[i].path);
        free(feed->records[i].text);
    }
    for (uint32_t i = 0; i < feed->note_count; i++)
        free(feed->notes[i]);
    for (uint32_t i = 0; i < feed->source_count; i++) {
        free(feed->sources[i]->path);
        if (feed->sources[i]->decoder != NULL && feed->sources[i]->decoder->release != NULL)
            feed->sources[i]->decoder->release(feed->sources[i]->state);
        free(feed->sources[i]->state);
        free(feed->sources[i]);
    }
    free(feed->records);
    free(feed->notes);
    arena_release(&feed->arena);
    close(feed->stop_pipe[0]);
    close(feed->stop_pipe[1]);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

void fake_feed_stop(struct feed *feed) {
    atomic_store(&feed->stopping, true);
    ck_assert_int_eq(write(feed->stop_pipe[1], "x", 1), 1);
}

static bool ends_with(const char *text, const char *end) {
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

uint32_t fake_feed_accepted(struct feed *feed, const char *path_end) {
    uint32_t count = 0;
    pthread_mutex_lock(&feed->lock);
    for (uint32_t i = 0; i < feed->flushed; i++) {
        const struct fake_record *record = &feed->records[i];
        count += record->category == DECODE_OK && !record->passed &&
                 (path_end == NULL || ends_with(record->path, path_end));
    }
    pthread_mutex_unlock(&feed->lock);
    return count;
}

uint32_t fake_feed_refused(struct feed *feed, enum decode_category category) {
    uint32_t count = 0;
    pthread_mutex_lock(&feed->lock);
    for (uint32_t i = 0; i < feed->count; i++)
        count += feed->records[i].category == category;
    pthread_mutex_unlock(&feed->lock);
    return count;
}

bool fake_feed_noted(struct feed *feed, const char *one, const char *other) {
    bool found = false;
    pthread_mutex_lock(&feed->lock);
    for (uint32_t i = 0; i < feed->note_count; i++)
        found =
            found || (strstr(feed->notes[i], one) != NULL && strstr(feed->notes[i], other) != NULL);
    pthread_mutex_unlock(&feed->lock);
    return found;
}

struct source *fake_feed_find(struct feed *feed, const char *path_end) {
    struct source *found = NULL;
    pthread_mutex_lock(&feed->lock);
    for (uint32_t i = 0; i < feed->source_count && found == NULL; i++) {
        if (ends_with(feed->sources[i]->path, path_end))
            found = feed->sources[i];
    }
    pthread_mutex_unlock(&feed->lock);
    return found;
}

void source_list_add(struct source_list *list, struct slice path) {
    if (list->arena.block_size == 0)
        arena_init(&list->arena, 4096);
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        struct slice *paths = arena_take(&list->arena, capacity * sizeof *paths);
        if (list->count > 0)
            memcpy(paths, list->paths, list->count * sizeof *paths);
        list->paths = paths;
        list->capacity = capacity;
    }
    list->paths[list->count++] = arena_copy(&list->arena, path);
}

struct source *feed_source(struct feed *feed, struct slice path) {
    for (uint32_t i = 0; i < feed->source_count; i++) {
        if (!feed->sources[i]->forgotten && slice_equal(slice_of(feed->sources[i]->path), path))
            return feed->sources[i];
    }
    ck_assert_uint_lt(feed->source_count, FAKE_SOURCES_MAX);
    struct source *source = calloc(1, sizeof *source);
    source->path = strndup(path.data, path.size);
    source->feed = feed;
    pthread_mutex_lock(&feed->lock);
    feed->sources[feed->source_count++] = source;
    pthread_mutex_unlock(&feed->lock);
    return source;
}

void feed_source_format(struct source *source, const struct decoder_type *decoder,
                        const struct decoder_input *input) {
    ck_assert_ptr_null(source->decoder);
    source->decoder = decoder;
    source->state = calloc(1, decoder->state_size + 1);
    source->figures.format = decoder->name;
    struct decoder_input known = *input;
    known.path = slice_of(source->path);
    if (decoder->begin != NULL)
        decoder->begin(source->state, &known);
}

const struct decoder_type *feed_source_decoder(const struct source *source) {
    return source->decoder;
}

struct slice feed_source_path(const struct source *source) {
    return slice_of(source->path);
}

struct source_figures *feed_source_figures(struct source *source) {
    return &source->figures;
}

static void keep(struct feed *feed, const struct source *source, struct slice record,
                 uint64_t position, enum decode_category category) {
    pthread_mutex_lock(&feed->lock);
    if ((feed->count & (feed->count - 1)) == 0)
        feed->records = realloc(feed->records,
                                (feed->count == 0 ? 1 : feed->count * 2) * sizeof *feed->records);
    feed->records[feed->count++] = (struct fake_record){strdup(source->path),
                                                        strndup(record.data, record.size),
                                                        position,
                                                        category,
                                                        feed->event.kind,
                                                        record.data,
                                                        record.size,
                                                        false};
    pthread_mutex_unlock(&feed->lock);
}

struct source_position feed_source_restored(const struct source *source) {
    return source->restored;
}

struct source *feed_restored_source(struct feed *feed, uint32_t index) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < feed->source_count; i++)
        if (feed->sources[i]->restored.number != 0 && seen++ == index)
            return feed->sources[i];
    return NULL;
}

void feed_source_reached(struct source *source, const struct source_position *position) {
    ck_assert(source->journal || position->number >= source->reached.number);
    source->reached = *position;
    source->feed->told = source;
    if (position->number > source->newest)
        source->newest = position->number;
}

void feed_source_leave(struct feed *feed, struct source *source) {
    ck_assert_uint_eq(feed->flushed, feed->count);
    atomic_store(&source->left, true);
}

void feed_source_caught_up(struct feed *feed, struct source *source) {
    ck_assert(source->feed == feed);
    if (!feed_source_holds(source))
        atomic_store(&source->at_end, true);
}

void feed_source_forget(struct feed *feed, struct source *source) {
    (void)feed;
    source->forgotten = true;
    atomic_store(&source->left, true);
}

struct source *feed_place(struct feed *feed, struct slice name) {
    return feed_source(feed, name);
}

bool feed_pausing(const struct feed *feed) {
    return feed_stopping(feed) && atomic_load(&feed->pausing);
}

struct source_position feed_source_safe(struct feed *feed, const struct source *source) {
    pthread_mutex_lock(&feed->lock);
    struct source_position safe = atomic_load(&feed->unsafe) ? source->restored : source->flushed;
    pthread_mutex_unlock(&feed->lock);
    return safe;
}

bool feed_blocked(const struct feed *feed) {
    return atomic_load(&feed->blocked);
}

bool feed_wait(struct feed *feed, uint64_t timeout_ns) {
    for (uint64_t waited = 0; waited < timeout_ns && feed_blocked(feed) && !feed_stopping(feed);
         waited += 1000000)
        usleep(1000);
    return !feed_blocked(feed);
}

void feed_keeps_journal(struct feed *feed, struct source *source) {
    (void)feed;
    source->journal = true;
    source->flushed = source->restored;
}

uint64_t feed_lag(struct feed *feed, const struct source *source) {
    if (!source->journal)
        return feed->lag;
    bool lags = source->flushed.number < source->newest && !atomic_load(&feed->passed_over);
    return lags ? source->flushed.number + 1 : 0;
}

bool feed_knows_node(struct feed *feed, struct slice name) {
    (void)feed;
    (void)name;
    return false;
}

int32_t feed_settle_zone(struct feed *feed, struct slice path, const struct local_times *times) {
    (void)path;
    (void)times;
    feed->zones_settled++;
    return 0;
}

bool feed_may_settle_zone(struct feed *feed) {
    return feed->may_settle_zone;
}

uint64_t feed_latest_ns(struct feed *feed) {
    (void)feed;
    return 0;
}

void feed_steps(struct feed *feed, bool one_source) {
    (void)feed;
    (void)one_source;
}

void feed_caught_up(struct feed *feed) {
    atomic_store(&feed->caught_up, true);
}

void feed_trouble(struct feed *feed, const char *sentence) {
    pthread_mutex_lock(&feed->lock);
    snprintf(feed->trouble, sizeof feed->trouble, "%s", sentence == NULL ? "" : sentence);
    pthread_mutex_unlock(&feed->lock);
}

void feed_source_passed_on(struct feed *feed, struct source *source,
                           const struct forwarded *forwarded) {
    (void)feed;
    if (source->decoder->pass_on != NULL)
        source->decoder->pass_on(source->state, forwarded);
}

bool feed_foresee(struct feed *feed, struct source *source, struct slice record) {
    const struct decoder_type *decoder = source->decoder;
    bool foreseen = decoder->decode_plain != NULL &&
                    decoder->decode_plain(source->state, record, &feed->arena, &feed->event);
    feed->foreseen = foreseen ? record.data : NULL;
    feed->foreseen_count += foreseen;
    return foreseen;
}

bool feed_offer_foreseen(struct feed *feed, struct source *source, const struct event *events,
                         uint32_t count, uint64_t position) {
    struct decode_fault fault;
    for (uint32_t i = 0; i < count; i++) {
        feed->event = events[i];
        feed->foreseen = events[i].raw.data;
        feed->foreseen_count++;
        ck_assert_int_eq(feed_offer(feed, source, events[i].raw, position + i, &fault), DECODE_OK);
    }
    return true;
}

void feed_foresee_parsed(struct feed *feed, struct slice record, void *parsed) {
    feed->parsed_record = record.data;
    feed->parsed = parsed;
    feed->foreseen_count++;
}

static void settle(struct feed *feed, struct source *source, struct slice record, uint64_t position,
                   enum decode_category category) {
    keep(feed, source, record, position, category);
    if (category == DECODE_OK)
        source->figures.accepted++;
    else if (decode_refused(category))
        source->figures.refused++;
    else if (category == DECODE_NOTHING)
        source->figures.other++;
}

// What the decoder gives beyond one event for one record: texts in the feed's arena.
static void take_more(struct feed *feed, struct source *source) {
    struct decode_fault fault;
    enum decode_category category;
    if (source->decoder->next == NULL)
        return;
    feed->event.raw = SLICE("");
    while ((category = source->decoder->next(source->state, &feed->arena, &feed->event, &fault)) !=
           DECODE_END) {
        settle(feed, source, SLICE(""), feed->event.position, category);
        if (decode_refused(category) && feed->refused != NULL)
            feed->refused(feed->refused_context, source, feed->event.raw, feed->event.position,
                          &fault);
    }
    bool holds = source->decoder->holds != NULL && source->decoder->holds(source->state);
    for (uint32_t i = 0; !holds && i < feed->source_count; i++)
        if (feed->sources[i]->holder == source)
            feed->sources[i]->holder = NULL;
    if (holds && feed->told != NULL)
        feed->told->holder = source;
}

enum decode_category feed_offer(struct feed *feed, struct source *source, struct slice record,
                                uint64_t position, struct decode_fault *fault) {
    ck_assert_ptr_nonnull(source->decoder);
    atomic_store(&source->left, false);
    atomic_store(&source->at_end, false);
    ck_assert(feed->foreseen == NULL || feed->foreseen == record.data);
    feed->event.position = position;
    feed->event.lines = 1;
    fault->told = false;
    enum decode_category category =
        feed->foreseen != NULL ? DECODE_OK
        : feed->parsed != NULL && feed->parsed_record == record.data
            ? source->decoder->decode_parsed(source->state, feed->parsed, &feed->event, fault)
            : source->decoder->decode(source->state, record, &feed->arena, &feed->event, fault);
    feed->foreseen = NULL;
    feed->parsed = NULL;
    if (feed->event.kind == EVENT_FLIGHT &&
        (category == DECODE_OK || (decode_refused(category) && fault->told)))
        feed->dump_written_ns[category != DECODE_OK] = feed->event.flight->observed_ns;
    settle(feed, source, record, position, category);
    take_more(feed, source);
    return decode_refused(category) ? category : DECODE_OK;
}

bool feed_source_holds(const struct source *source) {
    if (source->holder != NULL)
        return true;
    return source->decoder != NULL && source->decoder->holds != NULL &&
           source->decoder->holds(source->state);
}

void feed_source_finish(struct feed *feed, struct source *source) {
    if (!feed_source_holds(source))
        return;
    if (source->holder != NULL)
        source = source->holder;
    atomic_fetch_add(&source->finished, 1);
    source->decoder->finish(source->state);
    take_more(feed, source);
    ck_assert(!feed_source_holds(source));
}

void feed_on_refusal(struct feed *feed,
                     void (*refused)(void *context, const struct source *source,
                                     struct slice record, uint64_t position,
                                     const struct decode_fault *fault),
                     void *context) {
    feed->refused = refused;
    feed->refused_context = context;
}

void feed_refuse(struct feed *feed, struct source *source, uint64_t position,
                 const struct decode_fault *fault) {
    source->figures.refused++;
    keep(feed, source, SLICE(""), position, fault->category);
}

void feed_tell_refused(struct feed *feed, struct source *source, struct slice start,
                       uint64_t position, struct slice why) {
    const struct decoder_type *decoder = source->decoder;
    feed->refusal = (struct event){.position = position, .raw = start};
    if (decoder == NULL || decoder->tell_refused == NULL ||
        !decoder->tell_refused(source->state, start, why, &feed->arena, &feed->refusal))
        return;
    feed->refusals_told++;
    feed->unread = *feed->refusal.flight;
    snprintf(feed->why, sizeof feed->why, "%.*s", (int)feed->unread.unreadable.size,
             feed->unread.unreadable.data);
}

bool feed_pass_lines(struct feed *feed, struct source *source, struct slice text,
                     const struct found_lines *found, struct line_run runs[LINE_RUNS]) {
    (void)feed;
    (void)found;
    (void)source;
    (void)text;
    (void)runs;
    return false;
}

void feed_pass_over(struct feed *feed, struct source *source, uint64_t count) {
    (void)feed;
    source->figures.other += count;
}

void feed_note(struct feed *feed, struct slice path, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char *note = NULL;
    ck_assert_int_gt(asprintf(&note, "%.*s: %s", (int)path.size, path.data, text), 0);
    pthread_mutex_lock(&feed->lock);
    feed->notes = realloc(feed->notes, (feed->note_count + 1) * sizeof *feed->notes);
    feed->notes[feed->note_count++] = note;
    pthread_mutex_unlock(&feed->lock);
}

void feed_missing(struct feed *feed, struct slice path, struct slice why) {
    feed_note(feed, path, "%.*s", (int)why.size, why.data);
}

// What was offered since the last flush must still stand where it stood.
void feed_flush(struct feed *feed) {
    pthread_mutex_lock(&feed->lock);
    uint32_t first = feed->flushed;
    for (; feed->flushed < feed->count; feed->flushed++) {
        const struct fake_record *record = &feed->records[feed->flushed];
        if (record->category == DECODE_OK)
            ck_assert_int_eq(memcmp(record->at, record->text, record->size), 0);
    }
    for (uint32_t i = 0; i < feed->source_count; i++) {
        struct source *source = feed->sources[i];
        bool takes = !source->journal || (source->reached.number == source->flushed.number + 1 &&
                                          !atomic_load(&feed->passed_over));
        for (uint32_t j = first; j < feed->flushed; j++)
            feed->records[j].passed = source->journal && !takes;
        if (takes)
            source->flushed = source->reached;
    }
    feed->flush_count++;
    pthread_mutex_unlock(&feed->lock);
    arena_reset(&feed->arena);
}

void feed_stamp(struct feed *feed, struct feed_stamp stamp) {
    feed->stamped = stamp.job;
}

void feed_progress(struct feed *feed, uint64_t done_bytes, uint64_t total_bytes) {
    feed->done_bytes = done_bytes;
    feed->total_bytes = total_bytes;
}

bool feed_stopping(const struct feed *feed) {
    return atomic_load(&feed->stopping);
}

int feed_stop_descriptor(const struct feed *feed) {
    return feed->stop_pipe[0];
}

bool feed_source_cut(struct source *source) {
    if (source->decoder->cut == NULL)
        return false;
    source->decoder->cut(source->state);
    return true;
}

void feed_source_written(struct source *source, uint64_t written_ns) {
    if (source->decoder->written != NULL)
        source->decoder->written(source->state, written_ns);
}
