// SPDX-License-Identifier: Apache-2.0
// What a feed remembers, shared by the files it is made of. Everything belongs to the receiver's
// thread, but for the counts.
#pragma once

#include "base/clock.h"
#include "base/hash/hash_index.h"
#include "base/memory.h"
#include "pipeline/model/observation.h"
#include "pipeline/runtime/feed/feed_run.h"

#include <assert.h>

enum { FEED_ARENA_BLOCK = 64 * 1024 };

#define FEED_MAGIC UINT32_C(0x46656564)

struct feed {
    uint32_t magic;
    struct feed_settings settings;
    struct arena arena; // of the batch being filled
    struct event *events;
    uint32_t event_count;
    uint32_t kinds; // of them
    uint32_t told;  // of them: counted nowhere, since their records are
    uint32_t event_capacity;
    const char *foreseen; // the record that the next event was made of already; NULL: none
    // What was parsed already, and the record that it was made of; NULL: nothing.
    void *parsed;
    const char *parsed_record;
    bool journal; // flushed only when asked
    bool caught_up;
    bool steps;              // one source at a time is read (feed_steps)
    bool turned;             // the record at hand may bring a moment of a pipeline
    uint64_t batch;          // number of the batch being filled
    uint64_t begun_ns;       // when its first event came, monotonic
    struct feed_stamp stamp; // for events that name none
    string_id none;          // the text that torchrun writes for a job without an id
    bool said_none;
    struct source **touched; // by this batch
    uint32_t touched_count;
    uint32_t touched_capacity;
    struct source *reached; // whose position was told last
    void (*refused)(void *context, const struct source *source, struct slice record,
                    uint64_t position, const struct decode_fault *fault);
    void *refused_context;
    struct source **sources; // NULL: forgotten
    uint32_t source_count;
    uint32_t source_capacity;
    struct hash_index by_path;       // of the sources
    struct source_figures forgotten; // of sources that are gone
    atomic_uint_fast64_t accepted;
    atomic_uint_fast64_t refused_by[DECODE_CATEGORY_COUNT];
    atomic_uint_fast64_t other;
    atomic_uint_fast64_t unused_by[EVENT_CLASS_COUNT];
};

// Of a source that is forgotten, or of a feed that ends. NULL is fine.
void feed_source_free(struct source *source);

// The source is of this batch.
static inline void feed_touch(struct feed *feed, struct source *source) {
    assert(source->feed == feed);
    source->caught_up = false;
    if (source->batch == feed->batch)
        return;
    if (feed->touched_count == 0)
        feed->begun_ns = clock_monotonic_ns();
    source->batch = feed->batch;
    source->times = (struct source_times){0};
    source->left = false;
    feed->touched = memory_room(feed->touched, &feed->touched_capacity, feed->touched_count,
                                sizeof(struct source *));
    feed->touched[feed->touched_count++] = source;
}

// The counts behind a pointer that readers may not write through; made when first needed.
static inline uint64_t *feed_counts(const uint64_t **counts, size_t count) {
    if (*counts == NULL)
        *counts = memory_zero(count, sizeof **counts);
    return (uint64_t *)(uintptr_t)*counts;
}
