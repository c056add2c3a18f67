// SPDX-License-Identifier: Apache-2.0
// The sources of a feed: found by path through a small hash, what is counted of them, and what the
// feed tells and asks beside their records.
#include "pipeline/runtime/feed/feed_state.h"

#include "base/hash/hash.h"
#include "pipeline/model/observation.h"

#include <poll.h>

enum { BLOCKED_LOOK_MS = 5 };

static void drop_decoder(struct source *source) {
    if (source->decoder != NULL && source->decoder->release != NULL)
        source->decoder->release(source->decoder_state);
    memory_give(source->decoder_state);
    source->decoder_state = NULL;
}

void feed_source_free(struct source *source) {
    if (source == NULL)
        return;
    drop_decoder(source);
    memory_give((uint64_t *)source->figures.by_class);
    memory_give((uint64_t *)source->figures.by_category);
    memory_give((char *)source->path.data);
    memory_give(source->rows);
    source->magic = 0;
    memory_give(source);
}

// A place in the list that is free, or a new one.
static uint32_t free_place(struct feed *feed) {
    for (uint32_t i = 0; feed->source_count == feed->source_capacity && i < feed->source_count; i++)
        if (feed->sources[i] == NULL)
            return i;
    feed->sources = memory_room(feed->sources, &feed->source_capacity, feed->source_count,
                                sizeof(struct source *));
    return feed->source_count++;
}

struct source *feed_source(struct feed *feed, struct slice path) {
    assert(feed->magic == FEED_MAGIC);
    uint64_t hash = hash_slice(path);
    for (uint32_t probe = 0, at;
         (at = hash_index_next(&feed->by_path, hash, &probe)) != HASH_INDEX_NONE;)
        if (slice_equal(feed->sources[at]->path, path))
            return feed->sources[at];
    struct source *source = memory_zero(1, sizeof *source);
    source->path = (struct slice){memory_copy_text(path.data, path.size), path.size};
    source->magic = SOURCE_MAGIC;
    source->feed = feed;
    source->id = intern(path);
    source->rows = memory_take((feed->settings.runner_count + 1) * sizeof *source->rows);
    memset(source->rows, 0xff, (feed->settings.runner_count + 1) * sizeof *source->rows);
    uint32_t place = free_place(feed);
    feed->sources[place] = source;
    source->place = place;
    hash_index_add(&feed->by_path, hash, place);
    feed->settings.outlet.restore(feed->settings.outlet.context, source);
    source->reached = source->before = source->restored;
    source->highest = source->restored.number;
    return source;
}

struct source *feed_place(struct feed *feed, struct slice name) {
    assert(name.size > 0 && name.data[0] == PLACE_MARK);
    return feed_source(feed, name);
}

struct source *feed_restored_source(struct feed *feed, uint32_t index) {
    assert(feed->magic == FEED_MAGIC);
    struct slice path;
    const struct feed_outlet *outlet = &feed->settings.outlet;
    if (!outlet->restored_path(outlet->context, index, &path))
        return NULL;
    return feed_source(feed, path);
}

void feed_source_format(struct source *source, const struct decoder_type *decoder,
                        const struct decoder_input *input) {
    assert(source->magic == SOURCE_MAGIC);
    assert(decoder != NULL);
    drop_decoder(source);
    source->decoder = decoder;
    source->decoder_state = memory_zero(1, decoder->state_size + 1); // some have none
    source->figures.format = decoder->name;
    struct decoder_input known = *input;
    known.path = source->path;
    known.forms = source->feed->settings.forms;
    if (decoder->begin != NULL)
        decoder->begin(source->decoder_state, &known);
}

const struct decoder_type *feed_source_decoder(const struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    return source->decoder;
}

struct slice feed_source_path(const struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    return source->path;
}

struct source_figures *feed_source_figures(struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    return &source->figures;
}

struct source_position feed_source_restored(const struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    return source->restored;
}

void feed_source_reached(struct source *source, const struct source_position *position) {
    assert(source->magic == SOURCE_MAGIC);
    assert(source->journal || position->number >= source->reached.number);
    feed_touch(source->feed, source);
    source->feed->reached = source;
    source->before = source->reached;
    source->reached = *position;
    if (position->number > source->highest)
        source->highest = position->number;
}

void feed_source_leave(struct feed *feed, struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    assert(source->feed == feed);
    source->left = true;
    feed->settings.outlet.leave(feed->settings.outlet.context, source, false);
}

void feed_source_caught_up(struct feed *feed, struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    if (source->caught_up || feed_source_holds(source))
        return;
    feed_touch(feed, source);
    source->caught_up = true;
}

static void add_counts(const uint64_t **to, const uint64_t *from, size_t count) {
    uint64_t *sums = from == NULL ? NULL : feed_counts(to, count);
    for (size_t i = 0; sums != NULL && i < count; i++)
        sums[i] += from[i];
}

static void add_figures(struct source_figures *to, const struct source_figures *from) {
    to->bytes += from->bytes;
    to->accepted += from->accepted;
    to->event_lines += from->event_lines;
    to->refused += from->refused;
    to->blank += from->blank;
    to->other += from->other;
    add_counts(&to->by_class, from->by_class, EVENT_CLASS_COUNT);
    add_counts(&to->by_category, from->by_category, DECODE_CATEGORY_COUNT);
}

void feed_source_forget(struct feed *feed, struct source *source) {
    assert(source->magic == SOURCE_MAGIC);
    assert(source->feed == feed);
    feed_source_finish(feed, source);
    if (source->holder != NULL)
        source->holder->positions = NULL;
    if (feed->reached == source)
        feed->reached = NULL;
    feed_flush(feed);
    feed->settings.outlet.leave(feed->settings.outlet.context, source, true);
    assert(feed->sources[source->place] == source);
    hash_index_remove(&feed->by_path, hash_slice(source->path), source->place);
    add_figures(&feed->forgotten, &source->figures);
    feed->sources[source->place] = NULL;
    feed_source_free(source);
}

struct source_position feed_source_safe(struct feed *feed, const struct source *source) {
    assert(feed->magic == FEED_MAGIC);
    assert(source->magic == SOURCE_MAGIC);
    return feed->settings.outlet.safe(feed->settings.outlet.context, source);
}

bool feed_blocked(const struct feed *feed) {
    assert(feed->magic == FEED_MAGIC);
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
    assert(source->magic == SOURCE_MAGIC);
    return feed->settings.outlet.lag(feed->settings.outlet.context, source);
}

bool feed_knows_node(struct feed *feed, struct slice name) {
    assert(feed->magic == FEED_MAGIC);
    const struct feed_outlet *outlet = &feed->settings.outlet;
    return outlet->knows_node != NULL && outlet->knows_node(outlet->context, name);
}

int32_t feed_settle_zone(struct feed *feed, struct slice path, const struct local_times *times) {
    assert(feed->magic == FEED_MAGIC);
    const struct feed_outlet *outlet = &feed->settings.outlet;
    feed_flush(feed);
    return outlet->settle_zone == NULL ? 0 : outlet->settle_zone(outlet->context, path, times);
}

bool feed_may_settle_zone(struct feed *feed) {
    assert(feed->magic == FEED_MAGIC);
    const struct feed_outlet *outlet = &feed->settings.outlet;
    feed_flush(feed);
    return outlet->may_settle_zone != NULL && outlet->may_settle_zone(outlet->context);
}

uint64_t feed_latest_ns(struct feed *feed) {
    assert(feed->magic == FEED_MAGIC);
    const struct feed_outlet *outlet = &feed->settings.outlet;
    feed_flush(feed);
    return outlet->latest_ns == NULL ? 0 : outlet->latest_ns(outlet->context);
}

void feed_steps(struct feed *feed, bool one_source) {
    assert(feed->magic == FEED_MAGIC);
    feed->steps = one_source;
}

void feed_caught_up(struct feed *feed) {
    assert(feed->magic == FEED_MAGIC);
    if (feed->caught_up)
        return;
    feed_flush(feed);
    feed->caught_up = true;
    feed->settings.outlet.caught_up(feed->settings.outlet.context);
}

void feed_trouble(struct feed *feed, const char *sentence) {
    assert(feed->magic == FEED_MAGIC);
    feed->settings.outlet.trouble(feed->settings.outlet.context, sentence);
}

// -- what it was given ---------------------------------------------------------------------------

uint32_t feed_source_count(const struct feed *feed) {
    return feed->source_count + 1;
}

bool feed_source_report(const struct feed *feed, uint32_t index, struct report_source *out) {
    assert(index <= feed->source_count);
    *out = (struct report_source){.figures = feed->forgotten, .taken = feed->settings.taken};
    if (index == feed->source_count)
        return feed->forgotten.bytes + feed->forgotten.accepted > 0;
    const struct source *source = feed->sources[index];
    if (source == NULL || source->path.data[0] == PLACE_MARK)
        return false;
    *out = (struct report_source){
        .path = source->path, .figures = source->figures, .taken = feed->settings.taken};
    return true;
}

uint64_t feed_accepted(const struct feed *feed) {
    return atomic_load_explicit(&feed->accepted, memory_order_relaxed);
}

uint64_t feed_other(const struct feed *feed) {
    return atomic_load_explicit(&feed->other, memory_order_relaxed);
}

uint64_t feed_unused(const struct feed *feed, uint32_t class) {
    assert(class < EVENT_CLASS_COUNT);
    return atomic_load_explicit(&feed->unused_by[class], memory_order_relaxed);
}

uint64_t feed_refused(const struct feed *feed, enum decode_category category) {
    assert(category < DECODE_CATEGORY_COUNT);
    return atomic_load_explicit(&feed->refused_by[category], memory_order_relaxed);
}

void source_list_add(struct source_list *list, struct slice path) {
    if (list->arena.block_size == 0)
        arena_init(&list->arena, FEED_ARENA_BLOCK);
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        list->paths = arena_enlarge(&list->arena, list->paths, list->count, list->capacity,
                                    sizeof *list->paths);
    }
    list->paths[list->count++] = arena_copy(&list->arena, path);
}
