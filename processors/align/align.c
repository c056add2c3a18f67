// SPDX-License-Identifier: Apache-2.0
// Finds how far each rank's clock is from the others': one offset a rank, its first sample against
// that of the anchor (rank 0, else the lowest), as stormlog's cross-rank analysis has it. First
// samples are remembered by rank_group when their rows have expired: a window aligned by itself
// names the wrong rank. Timestamps are never rewritten. Cost: O(ranks) an evaluation.
#include "pipeline/component/component.h"

#include "base/text/number.h"
#include "base/workers.h"

#include <assert.h>

struct align_config {
    int64_t max_world_size;
};

struct align {
    int64_t max_world_size;
    struct workers *workers;
    struct worker_arenas arenas;
};

enum { SKEW_NOTE_INTERVALS = 5 };

static const struct option OPTIONS[] = {
    OPTION(struct align_config, max_world_size, OPTION_INT, .default_value = "1048576", .min = 1,
           .max = 16777216,
           .help = "a larger world size that is claimed is not believed, with a note; ranks are "
                   "then missing only below the highest one seen"),
};

static enum status align_start(void *instance, const void *config,
                               const struct component_context *context, struct error *error) {
    struct align *self = instance;
    (void)error;
    self->max_world_size = ((const struct align_config *)config)->max_world_size;
    self->workers = context->workers;
    return STATUS_OK;
}

static void align_stop(void *instance) {
    worker_arenas_release(&((struct align *)instance)->arenas);
}

static void find_world(const struct align *self, struct evaluation *evaluation,
                       struct arena *arena) {
    int64_t highest = evaluation->ranks[evaluation->rank_count - 1].series->rank;
    int64_t claimed = evaluation->claimed_world_size;
    assert(highest + 1 >= evaluation->rank_count && "ranks ascend");
    if (claimed > self->max_world_size) {
        evaluation_note(evaluation, arena,
                        "A world size of %lld was claimed; more than %lld is not believed.",
                        (long long)claimed, (long long)self->max_world_size);
        claimed = 1;
    }
    evaluation->world_size = claimed > highest + 1 ? claimed : highest + 1;
    if (evaluation->world_size > self->max_world_size)
        evaluation->world_size = highest + 1;
}

// Ranks below the world size that never spoke. Beyond max_world_size none are listed one by one.
static void find_missing(const struct align *self, struct evaluation *evaluation,
                         struct arena *arena) {
    int64_t absent = evaluation->world_size - evaluation->rank_count;
    if (absent <= 0)
        return;
    if (evaluation->world_size > self->max_world_size) {
        evaluation_note(evaluation, arena, "Ranks are too far apart to list the missing ones.");
        return;
    }
    int32_t *missing = arena_take(arena, (size_t)absent * sizeof *missing);
    uint32_t count = 0;
    uint32_t next = 0;
    for (int32_t rank = 0; rank < evaluation->world_size; rank++) {
        if (next < evaluation->rank_count && evaluation->ranks[next].series->rank == rank)
            next++;
        else
            missing[count++] = rank;
    }
    assert(count == absent);
    evaluation->missing_ranks = missing;
    evaluation->missing_count = count;
    evaluation_note_ranks(evaluation, arena, "Missing rank data for ranks: ", missing, count);
}

// The verdict's anchor: the lowest rank that is in the job's generation.
static uint64_t generation_anchor(const struct evaluation *evaluation) {
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (evaluation->ranks[i].in_generation)
            return evaluation->ranks[i].generation_ns;
    return 0;
}

static void find_offsets(struct evaluation *evaluation, struct arena *arena) {
    struct rank_alignment *alignment =
        arena_take(arena, evaluation->rank_count * sizeof *alignment);
    uint64_t anchor_ns = evaluation->ranks[0].first_ns;
    uint64_t generation_ns = generation_anchor(evaluation);
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_view *view = &evaluation->ranks[i];
        alignment[i] = (struct rank_alignment){
            .offset_ns = (__int128)view->first_ns - (__int128)anchor_ns,
            .generation_offset_ns = (__int128)view->generation_ns - (__int128)generation_ns};
    }
    evaluation->alignment = alignment;
}

static void note_skew(struct evaluation *evaluation, struct arena *arena) {
    __int128 median = evaluation->median_interval_ns;
    char digits[NUMBER_TEXT_MAX];
    for (uint32_t i = 0; median > 0 && i < evaluation->rank_count; i++) {
        __int128 offset = evaluation->alignment[i].offset_ns;
        if ((offset < 0 ? -offset : offset) <= SKEW_NOTE_INTERVALS * median)
            continue;
        struct slice text = number_text(offset, digits);
        evaluation_note(evaluation, arena,
                        "Rank %d starts %.*s ns from the anchor; first-sample alignment may be "
                        "approximate.",
                        evaluation->ranks[i].series->rank, (int)text.size, text.data);
    }
}

// Pieces are jobs one behind the other.
enum { PIECE_RANKS = 2048 };

struct aligning {
    struct align *self;
    struct batch *batch;
    uint32_t pieces;
};

static void align_piece(void *context, uint32_t piece, uint32_t worker) {
    const struct aligning *aligning = context;
    const struct align *self = aligning->self;
    struct arena *arena = worker_arena(&aligning->self->arenas, worker);
    uint32_t count = aligning->batch->evaluation_count;
    uint32_t end = piece_begin(count, aligning->pieces, piece + 1);
    for (uint32_t i = piece_begin(count, aligning->pieces, piece); i < end; i++) {
        struct evaluation *evaluation = &aligning->batch->evaluations[i];
        if (evaluation->rank_count == 0)
            continue;
        find_world(self, evaluation, arena);
        find_missing(self, evaluation, arena);
        find_offsets(evaluation, arena);
        note_skew(evaluation, arena);
    }
}

static void align_consume(void *instance, struct batch *batch) {
    struct align *self = instance;
    uint64_t ranks = 0;
    if (batch->evaluation_count == 0)
        return;
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        ranks += batch->evaluations[i].rank_count;
    struct aligning aligning = {.self = self, .batch = batch};
    aligning.pieces = workers_pieces(self->workers, ranks, PIECE_RANKS, batch->evaluation_count);
    worker_arenas_begin(&self->arenas, batch->arena);
    workers_run(self->workers, aligning.pieces, align_piece, &aligning);
}

const struct component_type processor_align = {
    .name = "align",
    .summary = "Sets one clock offset for each rank, from its first sample.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_MEMORY | 1u << PRESET_ALL,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct align_config),
    .instance_size = sizeof(struct align),
    .needs = FACT_SERIES,
    .gives = FACT_ALIGNMENT,
    .start = align_start,
    .stop = align_stop,
    .processor = {.consume = align_consume},
};
