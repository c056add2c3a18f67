// SPDX-License-Identifier: Apache-2.0
// A stretch is what shares the upper bits of its time. A rank that has as many as it may have loses
// those that are expired; when that gives too little room, its stretches double in length and
// neighbours become one. Cost: a comparison a sample, and now and then a walk over one rank's
// stretches.
#include "exporters/report/page/mirror.h"

#include "base/memory.h"
#include "base/table/table.h"
#include "pipeline/model/series.h"

#include <assert.h>
#include <string.h>

enum {
    SHIFT_MIN = 20, // a stretch is a millisecond at least
    SHIFT_MAX = 63,
    LOG_MIN = 1024,
};

struct point {
    uint64_t time_ns;
    int64_t used_bytes;
};

struct stretch {
    struct point least, most;
};

struct mirrored {
    struct stretch *stretches; // ascending
    uint32_t count, capacity;
    uint32_t shift; // 0: nothing was told of it yet
    uint64_t expired_ns;
    struct point first, last; // of all samples since it began
};

struct page_mirror {
    struct mirrored *ranks;
    uint32_t count, capacity;
    uint32_t live; // of those with a sample
};

union page_log_entry *page_log_add(struct page_log *log, uint32_t count) {
    assert(count <= page_log_room(log));
    if (log->capacity - log->count < count) {
        uint32_t capacity = log->capacity == 0 ? LOG_MIN : log->capacity;
        while (capacity - log->count < count)
            capacity *= 2;
        log->entries = memory_resize(log->entries, capacity * sizeof *log->entries);
        log->capacity = capacity;
    }
    log->count += count;
    return &log->entries[log->count - count];
}

void page_log_release(struct page_log *log) {
    memory_give(log->entries);
    *log = (struct page_log){0};
}

struct page_mirror *page_mirror_new(void) {
    return memory_zero(1, sizeof(struct page_mirror));
}

void page_mirror_release(struct page_mirror *mirror) {
    if (mirror == NULL)
        return;
    for (uint32_t i = 0; i < mirror->count; i++)
        memory_give(mirror->ranks[i].stretches);
    memory_give(mirror->ranks);
    memory_give(mirror);
}

// -- taking in ------------------------------------------------------------------------------------

// How many stretches each rank may have.
static uint32_t share_of(const struct page_mirror *mirror) {
    uint32_t share = PAGE_STRETCHES / (mirror->live == 0 ? 1 : mirror->live);
    return share > PAGE_STRETCHES_MAX   ? PAGE_STRETCHES_MAX
           : share < PAGE_STRETCHES_MIN ? PAGE_STRETCHES_MIN
                                        : share;
}

static uint64_t stretch_end(const struct stretch *stretch) {
    return stretch->least.time_ns > stretch->most.time_ns ? stretch->least.time_ns
                                                          : stretch->most.time_ns;
}

static void stretches_expire(struct mirrored *rank) {
    uint32_t gone = 0;
    while (gone < rank->count && stretch_end(&rank->stretches[gone]) < rank->expired_ns)
        gone++;
    rank->count -= gone;
    memmove(rank->stretches, rank->stretches + gone, rank->count * sizeof *rank->stretches);
}

static void stretch_add(struct stretch *stretch, const struct point *point) {
    if (point->used_bytes < stretch->least.used_bytes)
        stretch->least = *point;
    if (point->used_bytes > stretch->most.used_bytes)
        stretch->most = *point;
}

static void stretches_double(struct mirrored *rank) {
    assert(rank->shift < SHIFT_MAX);
    rank->shift++;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rank->count; i++) {
        const struct stretch *stretch = &rank->stretches[i];
        if (kept > 0 && rank->stretches[kept - 1].least.time_ns >> rank->shift ==
                            stretch->least.time_ns >> rank->shift) {
            stretch_add(&rank->stretches[kept - 1], &stretch->least);
            stretch_add(&rank->stretches[kept - 1], &stretch->most);
        } else {
            rank->stretches[kept++] = *stretch;
        }
    }
    rank->count = kept;
}

static void stretches_make_room(struct mirrored *rank, uint32_t share) {
    if (rank->count < share)
        return;
    stretches_expire(rank);
    if (rank->count < share - share / 4)
        return;
    while (rank->count > share / 2 && rank->shift < SHIFT_MAX)
        stretches_double(rank);
}

// Samples come in order, but for those that were told before and come again.
static void sample_add(struct mirrored *rank, struct point point, uint32_t share) {
    if (rank->count > 0 && point.time_ns < rank->last.time_ns)
        return;
    rank->last = point;
    struct stretch *last = rank->count == 0 ? NULL : &rank->stretches[rank->count - 1];
    if (last != NULL && last->least.time_ns >> rank->shift == point.time_ns >> rank->shift) {
        stretch_add(last, &point);
        return;
    }
    stretches_make_room(rank, share);
    // Its stretch may have become one with the last.
    last = rank->count == 0 ? NULL : &rank->stretches[rank->count - 1];
    if (last != NULL && last->least.time_ns >> rank->shift == point.time_ns >> rank->shift) {
        stretch_add(last, &point);
        return;
    }
    rank->stretches =
        memory_room(rank->stretches, &rank->capacity, rank->count, sizeof *rank->stretches);
    rank->stretches[rank->count++] = (struct stretch){point, point};
}

static struct mirrored *rank_at(struct page_mirror *mirror, uint32_t row) {
    while (mirror->count <= row) {
        mirror->ranks =
            memory_room(mirror->ranks, &mirror->capacity, mirror->count, sizeof *mirror->ranks);
        mirror->ranks[mirror->count++] = (struct mirrored){0};
    }
    return &mirror->ranks[row];
}

static void rank_forget(struct page_mirror *mirror, struct mirrored *rank) {
    assert(rank->shift == 0 || mirror->live > 0);
    mirror->live -= rank->shift != 0;
    memory_give(rank->stretches);
    *rank = (struct mirrored){0};
}

static void samples_add(struct page_mirror *mirror, struct mirrored *rank,
                        const union page_log_entry *entries, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        struct point point = {entries[i].sample.time_ns, entries[i].sample.used_bytes};
        if (rank->shift == 0) {
            rank->shift = SHIFT_MIN;
            rank->first = point;
            mirror->live++;
        }
        sample_add(rank, point, share_of(mirror));
    }
}

void page_mirror_fold(struct page_mirror *mirror, struct page_log *log) {
    for (uint32_t at = 0; at < log->count;) {
        const union page_log_entry *entry = &log->entries[at++];
        struct mirrored *rank = rank_at(mirror, entry->head.row);
        uint64_t value = entry->head.value;
        if (entry->head.kind == PAGE_LOG_FORGET) {
            rank_forget(mirror, rank);
        } else if (entry->head.kind == PAGE_LOG_EXPIRED) {
            rank->expired_ns = value;
        } else {
            assert(value <= log->count - at);
            samples_add(mirror, rank, log->entries + at, value);
            at += (uint32_t)value;
        }
    }
    log->count = 0;
}

// -- reading --------------------------------------------------------------------------------------

struct writer {
    struct series_store *store;
    struct rank_series *series;
    uint32_t origin;
    uint64_t last_ns;
};

static void row_write(struct writer *writer, const struct point *point) {
    struct rank_series *series = writer->series;
    if (series->sample_count > 0 && point->time_ns <= writer->last_ns)
        return;
    if (series->chunk_count == 0 || series->tail_count == SAMPLES_PER_CHUNK) {
        series->chunks = memory_room(series->chunks, &series->chunk_capacity, series->chunk_count,
                                     sizeof *series->chunks);
        series->tail = table_add(&writer->store->chunks);
        series->chunks[series->chunk_count++] = series->tail;
    }
    struct sample_chunk *chunk = table_row(&writer->store->chunks, series->tail);
    chunk->rows[chunk->count++] = (struct sample){
        .time_ns = point->time_ns, .used_bytes = point->used_bytes, .origin = writer->origin};
    series->tail_count = chunk->count;
    series->tail_ns = writer->last_ns = point->time_ns;
    series->sample_count++;
}

void page_mirror_read(const struct page_mirror *mirror, uint32_t row, uint32_t origin,
                      struct series_store *store, struct rank_series *series) {
    if (row >= mirror->count || mirror->ranks[row].shift == 0)
        return;
    const struct mirrored *rank = &mirror->ranks[row];
    struct writer writer = {store, series, origin, 0};
    if (rank->first.time_ns >= rank->expired_ns)
        row_write(&writer, &rank->first);
    for (uint32_t i = 0; i < rank->count; i++) {
        const struct stretch *stretch = &rank->stretches[i];
        bool falls = stretch->most.time_ns < stretch->least.time_ns;
        const struct point *points[] = {falls ? &stretch->most : &stretch->least,
                                        falls ? &stretch->least : &stretch->most};
        for (int j = 0; j < 2; j++)
            if (points[j]->time_ns >= rank->expired_ns)
                row_write(&writer, points[j]);
    }
    row_write(&writer, &rank->last);
}

uint64_t page_mirror_stretch_ns(const struct page_mirror *mirror) {
    uint32_t shift = SHIFT_MIN;
    for (uint32_t i = 0; i < mirror->count; i++)
        if (mirror->ranks[i].shift > shift)
            shift = mirror->ranks[i].shift;
    return UINT64_C(1) << shift;
}

uint32_t page_mirror_count(const struct page_mirror *mirror, uint32_t row) {
    return row < mirror->count ? mirror->ranks[row].count : 0;
}
