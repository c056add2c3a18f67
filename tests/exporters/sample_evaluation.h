// SPDX-License-Identifier: Apache-2.0
// An evaluation made by hand: ranks, their samples, suspects and a cause, without the stages.
#pragma once

#include "base/memory.h"
#include "pipeline/model/batch.h"

#include <assert.h>

enum { SAMPLE_RANKS_MAX = 256 };

struct sample_evaluation {
    struct arena arena;
    struct series_store store;
    uint32_t rank_count;
    struct rank_series series[SAMPLE_RANKS_MAX];
    struct rank_view views[SAMPLE_RANKS_MAX];
    struct rank_alignment alignment[SAMPLE_RANKS_MAX];
    struct rank_spike spikes[SAMPLE_RANKS_MAX];
    uint32_t origins[SAMPLE_RANKS_MAX];
    struct suspect suspects[SAMPLE_RANKS_MAX];
    struct phase_attribution phases[SAMPLE_RANKS_MAX];
    struct suspect_list list; // the summary's
    struct cause cause;
    struct evaluation evaluation;
};

static inline void sample_init(struct sample_evaluation *sample, struct slice job) {
    memset(sample, 0, sizeof *sample);
    arena_init(&sample->arena, 1 << 16);
    table_init(&sample->store.chunks, "test.chunks", sizeof(struct sample_chunk), 64);
    table_init(&sample->store.origins, "test.origins", sizeof(struct origin), 16);
    sample->evaluation = (struct evaluation){
        .as_of_ns = UINT64_MAX,
        .last = true,
        .store = &sample->store,
        .job = job.data == NULL ? STRING_NONE : intern(job),
        .ranks = sample->views,
        .alignment = sample->alignment,
        .spikes = sample->spikes,
        .claimed_world_size = 1,
        .median_interval_ns = 100 * 1000 * 1000,
    };
}

static inline void sample_release(struct sample_evaluation *sample) {
    for (uint32_t i = 0; i < sample->rank_count; i++)
        memory_give(sample->series[i].chunks);
    table_release(&sample->store.chunks);
    table_release(&sample->store.origins);
    arena_release(&sample->arena);
}

// Ranks are added in ascending order; returns the index into the arrays.
static inline uint32_t sample_rank(struct sample_evaluation *sample, int32_t rank,
                                   struct slice host, int64_t pid) {
    assert(sample->rank_count < SAMPLE_RANKS_MAX);
    uint32_t index = sample->rank_count++;
    uint32_t row = table_add(&sample->store.origins);
    *(struct origin *)table_row(&sample->store.origins, row) =
        (struct origin){.host = intern(host), .pid = pid, .world_size = 1};
    sample->origins[index] = row;
    sample->series[index].rank = rank;
    sample->views[index] = (struct rank_view){.series = &sample->series[index],
                                              .slot = index,
                                              .first_arrival = index,
                                              .in_generation = true};
    sample->evaluation.rank_count = sample->rank_count;
    if (sample->evaluation.world_size <= rank)
        sample->evaluation.world_size = rank + 1;
    return index;
}

// Times ascend within a rank. The first sample of the first rank is the anchor.
static inline void sample_row(struct sample_evaluation *sample, uint32_t index, struct sample row) {
    struct rank_series *series = &sample->series[index];
    struct sample_chunk *chunk =
        series->chunk_count == 0
            ? NULL
            : table_row(&sample->store.chunks, series->chunks[series->chunk_count - 1]);
    if (chunk == NULL || chunk->count == SAMPLES_PER_CHUNK) {
        series->chunks =
            memory_resize(series->chunks, (series->chunk_count + 1) * sizeof(uint32_t));
        series->chunks[series->chunk_count++] = table_add(&sample->store.chunks);
        chunk = table_row(&sample->store.chunks, series->chunks[series->chunk_count - 1]);
    }
    row.origin = sample->origins[index];
    chunk->rows[chunk->count++] = row;
    struct rank_view *view = &sample->views[index];
    if (series->sample_count++ == 0) {
        view->first_ns = view->generation_ns = row.time_ns;
        __int128 anchor = sample->views[0].first_ns;
        sample->alignment[index].offset_ns = (__int128)row.time_ns - anchor;
        sample->alignment[index].generation_offset_ns = (__int128)row.time_ns - anchor;
    }
    view->sample_count = series->sample_count;
    view->last_ns = row.time_ns;
}

static inline void sample_add(struct sample_evaluation *sample, uint32_t index, uint64_t time_ns,
                              int64_t used_bytes) {
    sample_row(sample, index, (struct sample){.time_ns = time_ns, .used_bytes = used_bytes});
}

static inline void sample_note(struct sample_evaluation *sample, struct slice note) {
    struct notes *notes = &sample->evaluation.notes;
    struct slice *items = arena_take(&sample->arena, (notes->count + 1) * sizeof *items);
    if (notes->count > 0)
        memcpy(items, notes->items, notes->count * sizeof *items);
    items[notes->count++] = arena_copy(&sample->arena, note);
    notes->items = items;
}

// Appends a suspect, in order, to the summary's list and to the cause's, which both then have it.
static inline struct suspect *sample_suspect(struct sample_evaluation *sample, uint32_t index,
                                             struct spike spike) {
    struct suspect *suspect = &sample->suspects[sample->list.count++];
    spike.found = true;
    spike.origin = sample->origins[index];
    *suspect = (struct suspect){
        .index = index,
        .spike = spike,
        .aligned_ns = (__int128)spike.time_ns - sample->alignment[index].offset_ns,
    };
    sample->spikes[index].first = sample->spikes[index].kept = spike;
    sample->list.items = sample->suspects;
    sample->list.candidate_count = sample->list.count;
    if (sample->list.count == 2) {
        sample->list.has_onset = true;
        sample->list.onset_ns = suspect->aligned_ns;
        sample->suspects[0].lead_ns = suspect->aligned_ns - sample->suspects[0].aligned_ns;
    }
    sample->evaluation.suspects = &sample->list;
    sample->evaluation.suspect_phases = sample->evaluation.cause_phases = sample->phases;
    return suspect;
}

// The verdict's judgement on the suspects so far.
static inline void sample_cause(struct sample_evaluation *sample, enum cause_kind kind,
                                int64_t growth_bytes, int64_t median_other_growth_bytes,
                                double excess_ratio, bool sole_earliest) {
    sample->cause = (struct cause){
        .kind = kind,
        .suspects = sample->list,
        .growth_bytes = growth_bytes,
        .median_other_growth_bytes = median_other_growth_bytes,
        .excess_ratio = excess_ratio,
        .sole_earliest = sole_earliest,
        .settled = true,
    };
    sample->evaluation.cause = &sample->cause;
}

// A last batch that holds this evaluation.
static inline struct batch sample_batch(struct sample_evaluation *sample) {
    return (struct batch){
        .arena = &sample->arena,
        .evaluate = true,
        .as_of_ns = UINT64_MAX,
        .last = true,
        .ordered = true,
        .evaluations = &sample->evaluation,
        .evaluation_count = 1,
    };
}
