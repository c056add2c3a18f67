// SPDX-License-Identifier: Apache-2.0
// The newest summary of each job.
//
// With every job by itself, an evaluation holds only the jobs that changed, but a file that is
// replaced whole must hold all of them. So the newest text of each job is kept, sorted by the job's
// name. Memory: one summary a job, at most max_jobs of them.
#include "exporters/json/json.h"

#include "base/memory.h"

#include <assert.h>

struct cached_summary {
    string_id job;
    uint64_t updated; // counts updates
    struct buffer text;
};

// Where the job is, or belongs.
static uint32_t cache_place(const struct summary_cache *cache, string_id job, bool *found) {
    uint32_t begin = 0, end = cache->count;
    *found = false;
    while (begin < end) {
        uint32_t middle = begin + (end - begin) / 2;
        string_id other = cache->items[middle].job;
        if (other == job) {
            *found = true;
            return middle;
        }
        // No name stands before the empty name.
        bool before =
            job != STRING_NONE &&
            (other == STRING_NONE || slice_compare(intern_slice(other), intern_slice(job)) < 0);
        if (before)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static void cache_drop_oldest(struct summary_cache *cache) {
    assert(cache->count > 0);
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < cache->count; i++)
        if (cache->items[i].updated < cache->items[oldest].updated)
            oldest = i;
    buffer_release(&cache->items[oldest].text);
    cache->count--;
    memmove(cache->items + oldest, cache->items + oldest + 1,
            (cache->count - oldest) * sizeof cache->items[0]);
}

static struct cached_summary *cache_add(struct summary_cache *cache, string_id job,
                                        uint32_t max_jobs) {
    assert(max_jobs > 0);
    while (cache->count > 0 && cache->count >= max_jobs)
        cache_drop_oldest(cache);
    cache->items =
        memory_room(cache->items, &cache->capacity, cache->count, sizeof cache->items[0]);
    bool found;
    uint32_t at = cache_place(cache, job, &found);
    memmove(cache->items + at + 1, cache->items + at, (cache->count - at) * sizeof cache->items[0]);
    cache->count++;
    cache->items[at] = (struct cached_summary){.job = job};
    buffer_init(&cache->items[at].text, SIZE_MAX / 4);
    return &cache->items[at];
}

void summary_cache_update(struct summary_cache *cache, const struct evaluation *evaluation,
                          uint32_t max_jobs) {
    bool found;
    uint32_t at = cache_place(cache, evaluation->job, &found);
    struct cached_summary *item =
        found ? &cache->items[at] : cache_add(cache, evaluation->job, max_jobs);
    item->updated = ++cache->updates;
    buffer_reset(&item->text);
    summary_encode(evaluation, &item->text);
    assert(!item->text.failed);
}

void summary_cache_encode(const struct summary_cache *cache, struct buffer *out) {
    for (uint32_t i = 0; i < cache->count; i++)
        buffer_append(out, buffer_slice(&cache->items[i].text));
}

void summary_cache_release(struct summary_cache *cache) {
    for (uint32_t i = 0; i < cache->count; i++)
        buffer_release(&cache->items[i].text);
    memory_give(cache->items);
    *cache = (struct summary_cache){0};
}
