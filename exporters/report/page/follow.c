// SPDX-License-Identifier: Apache-2.0
// Reads behind a cursor for each rank. Cost: for a rank without a new sample a comparison of what
// lies together in its series; else a copy of each new sample.
#include "exporters/report/page/follow.h"

#include "base/memory.h"
#include "base/table/table.h"
#include "pipeline/model/series.h"

#include <assert.h>

enum { HEAD_ENTRIES = 3 }; // what is written of a rank beside its samples, at most

struct followed_rank {
    struct series_cursor cursor;
    uint32_t row; // of the mirror, from 1; 0: not followed
    uint32_t revision;
    uint32_t expired; // chunks
    uint32_t origin;  // of the last sample, TABLE_NO_ROW: none, and its …
    string_id host;
};

struct followed_pipeline {
    const struct arena *arena;
    struct followed_rank *ranks; // by slot
    uint32_t count;
};

struct page_follower {
    struct followed_pipeline *pipelines;
    uint32_t pipeline_count, pipeline_capacity;
    uint32_t *free_rows; // rows of the mirror that were given back
    uint32_t free_count, free_capacity;
    uint32_t rows; // ever given out
    uint32_t rereads_left;
};

struct page_follower *page_follower_new(void) {
    return memory_zero(1, sizeof(struct page_follower));
}

void page_follower_release(struct page_follower *follower) {
    if (follower == NULL)
        return;
    for (uint32_t i = 0; i < follower->pipeline_count; i++)
        memory_give(follower->pipelines[i].ranks);
    memory_give(follower->pipelines);
    memory_give(follower->free_rows);
    memory_give(follower);
}

static struct followed_pipeline *pipeline_of(struct page_follower *follower,
                                             const struct arena *arena) {
    assert(arena != NULL);
    for (uint32_t i = 0; i < follower->pipeline_count; i++)
        if (follower->pipelines[i].arena == arena)
            return &follower->pipelines[i];
    follower->pipelines = memory_room(follower->pipelines, &follower->pipeline_capacity,
                                      follower->pipeline_count, sizeof *follower->pipelines);
    struct followed_pipeline *pipeline = &follower->pipelines[follower->pipeline_count++];
    *pipeline = (struct followed_pipeline){.arena = arena};
    return pipeline;
}

static void head_add(struct page_log *log, uint32_t row, enum page_log_kind kind, uint64_t value) {
    *page_log_add(log, 1) = (union page_log_entry){.head = {row, kind, value}};
}

// -- who is followed ------------------------------------------------------------------------------

static uint32_t row_take(struct page_follower *follower) {
    return follower->free_count > 0 ? follower->free_rows[--follower->free_count]
                                    : ++follower->rows;
}

// A row is emptied before it is given to another, too, should the log be full now.
static void rank_forget(struct page_follower *follower, struct followed_rank *rank,
                        struct page_log *log) {
    if (rank->row == 0)
        return;
    if (page_log_room(log) > 0)
        head_add(log, rank->row - 1, PAGE_LOG_FORGET, 0);
    follower->free_rows = memory_room(follower->free_rows, &follower->free_capacity,
                                      follower->free_count, sizeof *follower->free_rows);
    follower->free_rows[follower->free_count++] = rank->row;
    *rank = (struct followed_rank){0};
}

static void forget(struct page_follower *follower, struct followed_pipeline *pipeline,
                   const struct forgotten *forgotten, struct page_log *log) {
    if (forgotten->everything)
        for (uint32_t i = 0; i < pipeline->count; i++)
            rank_forget(follower, &pipeline->ranks[i], log);
    for (uint32_t i = 0; i < forgotten->slot_count; i++)
        if (forgotten->slots[i] < pipeline->count)
            rank_forget(follower, &pipeline->ranks[forgotten->slots[i]], log);
}

static struct followed_rank *rank_of(struct followed_pipeline *pipeline, uint32_t slot) {
    if (slot >= pipeline->count) {
        uint32_t count = pipeline->count == 0 ? 64 : pipeline->count;
        while (count <= slot)
            count *= 2;
        pipeline->ranks = memory_resize(pipeline->ranks, count * sizeof *pipeline->ranks);
        memset(pipeline->ranks + pipeline->count, 0,
               (count - pipeline->count) * sizeof *pipeline->ranks);
        pipeline->count = count;
    }
    return &pipeline->ranks[slot];
}

static void rank_begin(struct followed_rank *rank, const struct rank_series *series) {
    rank->cursor = series_begin(series);
    rank->revision = series->revision;
    rank->expired = series->chunks_expired;
}

// -- what is new ----------------------------------------------------------------------------------

static bool samples_follow(struct followed_rank *rank, const struct series_store *store,
                           const struct rank_series *series, uint64_t as_of_ns,
                           struct page_log *log) {
    const struct sample *rows;
    uint32_t room = page_log_room(log), head = log->count;
    if (room <= HEAD_ENTRIES + SAMPLES_PER_CHUNK)
        return false;
    for (uint32_t count; room > SAMPLES_PER_CHUNK; room = page_log_room(log)) {
        count = series_next_run(store, series, &rank->cursor, as_of_ns, &rows);
        if (count == 0)
            return true;
        if (log->count == head)
            head_add(log, rank->row - 1, PAGE_LOG_SAMPLES, 0);
        union page_log_entry *entries = page_log_add(log, count);
        for (uint32_t i = 0; i < count; i++)
            entries[i] = (union page_log_entry){.sample = {rows[i].time_ns, rows[i].used_bytes}};
        log->entries[head].head.value += count;
        rank->origin = rows[count - 1].origin;
    }
    return false;
}

// False: the log is full.
static bool rank_follow(struct page_follower *follower, struct followed_rank *rank,
                        const struct series_store *store, const struct rank_view *view,
                        uint64_t as_of_ns, struct page_log *log) {
    const struct rank_series *series = view->series;
    if (page_log_room(log) <= HEAD_ENTRIES + SAMPLES_PER_CHUNK)
        return false;
    if (rank->row == 0) {
        rank->row = row_take(follower);
        rank->origin = TABLE_NO_ROW;
        rank_begin(rank, series);
        head_add(log, rank->row - 1, PAGE_LOG_FORGET, 0);
    } else if (rank->revision != series->revision && follower->rereads_left > 0) {
        follower->rereads_left--;
        rank_begin(rank, series);
        head_add(log, rank->row - 1, PAGE_LOG_FORGET, 0);
    }
    if (rank->expired != series->chunks_expired && series->chunk_count > 0) {
        rank->expired = series->chunks_expired;
        head_add(log, rank->row - 1, PAGE_LOG_EXPIRED,
                 series_chunk(store, series, 0)->rows[0].time_ns);
    }
    uint32_t origin = rank->origin;
    bool all = samples_follow(rank, store, series, as_of_ns, log);
    if (rank->origin != origin) {
        const struct origin *writer = table_row(&store->origins, rank->origin);
        rank->host = writer->host;
    }
    return all;
}

bool page_follow(struct page_follower *follower, const struct batch *batch, struct page_log *log) {
    assert(batch->evaluate || batch->evaluation_count == 0);
    struct followed_pipeline *pipeline = pipeline_of(follower, batch->arena);
    if (batch->forgotten != NULL)
        forget(follower, pipeline, batch->forgotten, log);
    follower->rereads_left = PAGE_REREAD_MAX;
    bool all = true;
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        const struct evaluation *evaluation = &batch->evaluations[i];
        for (uint32_t j = 0; j < evaluation->rank_count; j++) {
            const struct rank_view *view = &evaluation->ranks[j];
            all = rank_follow(follower, rank_of(pipeline, view->slot), evaluation->store, view,
                              evaluation->as_of_ns, log) &&
                  all;
        }
    }
    return all;
}

const struct page_rank *page_follower_ranks(const struct page_follower *follower,
                                            const struct batch *batch,
                                            const struct evaluation *evaluation,
                                            struct arena *arena) {
    const struct followed_pipeline *pipeline = follower->pipelines;
    while (pipeline->arena != batch->arena)
        pipeline++;
    assert(pipeline < follower->pipelines + follower->pipeline_count);
    struct page_rank *ranks = arena_take(arena, evaluation->rank_count * sizeof *ranks);
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_view *view = &evaluation->ranks[i];
        const struct followed_rank *rank = &pipeline->ranks[view->slot];
        ranks[i] = (struct page_rank){view->series->rank, rank->row - 1, rank->host};
    }
    return ranks;
}
