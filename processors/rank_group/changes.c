// SPDX-License-Identifier: Apache-2.0
// A bit a rank is set where a sample comes in, and stays while the rank has rows behind the moment
// of the evaluation. When a rank's oldest rows expire is kept beside it, so that an evaluation
// passes over the others in sequential memory and does not touch their rows.
#include "base/memory.h"
#include "processors/rank_group/state.h"

#include <assert.h>

static void views_release(struct job_views *views) {
    memory_give(views->views);
    memory_give(views->generations);
    memory_give(views->changed);
    *views = (struct job_views){.stale = true};
}

void changes_release(struct rank_changes *changes) {
    for (uint32_t i = 0; i < changes->job_capacity; i++)
        views_release(&changes->jobs[i]);
    memory_give(changes->jobs);
    memory_give(changes->marks);
    memory_give(changes->expires_ns);
    memory_give(changes->places);
    *changes = (struct rank_changes){0};
}

static uint32_t larger_capacity(uint32_t capacity, uint32_t count) {
    if (capacity == 0)
        capacity = 64;
    while (capacity < count)
        capacity *= 2;
    return capacity;
}

static void reserve_ranks(struct rank_changes *changes, uint32_t count) {
    uint32_t from = changes->rank_capacity, to = larger_capacity(from, count);
    assert(from % 64 == 0 && to % 64 == 0);
    changes->marks = memory_resize(changes->marks, to / 8);
    changes->expires_ns = memory_resize(changes->expires_ns, to * sizeof *changes->expires_ns);
    changes->places = memory_resize(changes->places, to * sizeof *changes->places);
    memset(changes->marks + from / 64, 0, (to - from) / 8);
    for (uint32_t i = from; i < to; i++) {
        changes->expires_ns[i] = UINT64_MAX;
        changes->places[i] = TABLE_NO_ROW;
    }
    changes->rank_capacity = to;
}

void changes_reserve(struct rank_changes *changes, uint32_t ranks, uint32_t jobs) {
    if (ranks > changes->rank_capacity)
        reserve_ranks(changes, ranks);
    if (jobs <= changes->job_capacity)
        return;
    uint32_t to = changes->job_capacity == 0 ? 1 : changes->job_capacity;
    while (to < jobs)
        to *= 2;
    changes->jobs = memory_resize(changes->jobs, to * sizeof *changes->jobs);
    for (uint32_t i = changes->job_capacity; i < to; i++)
        changes->jobs[i] = (struct job_views){.stale = true};
    changes->job_capacity = to;
}

void changes_drop_rank(struct rank_changes *changes, uint32_t rank_row, uint32_t job_row) {
    assert(rank_row < changes->rank_capacity && job_row < changes->job_capacity);
    changes->marks[rank_row / 64] &= ~(UINT64_C(1) << rank_row % 64);
    changes->expires_ns[rank_row] = UINT64_MAX;
    changes->places[rank_row] = TABLE_NO_ROW;
    changes->jobs[job_row].stale = true;
}

void changes_drop_job(struct rank_changes *changes, uint32_t job_row) {
    assert(job_row < changes->job_capacity);
    views_release(&changes->jobs[job_row]);
}

// Marks the ranks of which rows expire.
static void mark_expired(struct rank_changes *changes, uint32_t ranks, uint64_t before_ns) {
    assert(ranks <= changes->rank_capacity);
    for (uint32_t i = 0; i < ranks; i++)
        if (changes->expires_ns[i] < before_ns)
            changes_mark(changes, i);
}

uint32_t changes_list(struct rank_group *group, uint64_t before_ns, struct arena *arena,
                      const uint32_t **rows) {
    struct rank_changes *changes = &group->changes;
    if (before_ns > 0)
        mark_expired(changes, group->ranks.used, before_ns);
    uint32_t words = (group->ranks.used + 63) / 64, count = 0;
    for (uint32_t i = 0; i < words; i++)
        count += (uint32_t)__builtin_popcountll(changes->marks[i]);
    uint32_t *list = arena_take(arena, (count + 1) * sizeof *list);
    uint32_t filled = 0;
    for (uint32_t i = 0; i < words; i++)
        for (uint64_t bits = changes->marks[i]; bits != 0; bits &= bits - 1)
            list[filled++] = i * 64 + (uint32_t)__builtin_ctzll(bits);
    assert(filled == count);
    *rows = list;
    return count;
}

void changes_begin(struct rank_group *group) {
    for (uint32_t i = 0; i < group->jobs.used; i++) {
        struct job_views *views = &group->changes.jobs[i];
        views->stale |= !views->shown;
        views->shown = false;
        views->changed_count = 0;
    }
}

void changes_note_expiry(struct rank_group *group, uint32_t rank_row) {
    const struct rank_series *series = &rank_at(group, rank_row)->series;
    uint64_t *expires_ns = &group->changes.expires_ns[rank_row];
    assert(series->settled_any);
    if (*expires_ns != UINT64_MAX || !group->live || series->chunk_count < 2)
        return;
    const struct sample_chunk *first = series_chunk(&group->store, series, 0);
    uint64_t last_ns = first->rows[first->count - 1].time_ns;
    // What is not settled yet expires at none of the next evaluations, and may still change.
    if (last_ns <= series->settled_ns)
        *expires_ns = last_ns;
}

void changes_counted(struct rank_changes *changes, uint32_t rank_row, uint32_t job_row, bool all,
                     bool any) {
    assert(rank_row < changes->rank_capacity && job_row < changes->job_capacity);
    struct job_views *views = &changes->jobs[job_row];
    if (all)
        changes->marks[rank_row / 64] &= ~(UINT64_C(1) << rank_row % 64);
    uint32_t place = changes->places[rank_row];
    views->stale |= (place == TABLE_NO_ROW) == any;
    if (!views->stale && place != TABLE_NO_ROW)
        views->changed[views->changed_count++] = place;
}
