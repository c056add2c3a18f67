// SPDX-License-Identifier: Apache-2.0
// Finds which rank started the growth. Twice: stormlog's ranked suspects for the summary, and a
// judgement for people. The judgement takes growth that stayed, compares the first suspect's growth
// with what the other ranks grew over the same stretch of aligned time, and calls it a leak only
// when it exceeds them; growth that fell back is a swing, growth of all alike is common (warm-up, a
// larger batch).
// Cost: O(ranks · log) an evaluation plus each new sample once. Memory: one row a rank, one a job.
#include "pipeline/component/component.h"

#include "base/sort.h"
#include "base/table/table.h"
#include "base/workers.h"
#include "pipeline/model/series.h"
#include "processors/first_cause/suspects.h"

#include <assert.h>
#include <math.h>

struct first_cause_config {
    double min_excess_ratio;
};

// How much a rank grew since a suspect's window began; row i belongs to slot i of rank_group.
struct growth_state {
    bool begun;
    uint32_t suspect_slot;
    uint32_t revision;
    uint64_t from_ns; // on this rank's clock
    struct series_cursor cursor;
    int64_t start_bytes;
    int64_t highest_bytes;
};

// Since when the same rank of a job has been first; row i belongs to slot i of rank_group's jobs.
struct standing_name {
    uint32_t slot;
    string_id job; // that it is about: the pool gets its name later
    uint32_t generation;
    uint64_t since_ns;
};

struct first_cause {
    struct table growths;
    struct table names;
    double min_excess_ratio;
    uint64_t settle_ns;
    struct workers *workers;
    struct worker_arenas arenas;
};

static const struct row_type GROWTHS = ROW_TYPE(struct growth_state, 64);
static const struct row_type NAMES =
    ROW_TYPE(struct standing_name, 16, offsetof(struct standing_name, job));
static const struct state_row STATE[] = {
    STATE_ROWS(struct first_cause, growths, "first_cause.growths", GROWTHS),
    STATE_ROWS(struct first_cause, names, "first_cause.names", NAMES),
};

static const struct option OPTIONS[] = {
    OPTION(struct first_cause_config, min_excess_ratio, OPTION_RATIO, .default_value = "1.25",
           .min = 1, .max = 100,
           .help = "a leak is growth of at least this many times the median growth of the other "
                   "ranks; below it all grew alike and no rank is named"),
};

static enum status first_cause_start(void *instance, const void *config,
                                     const struct component_context *context, struct error *error) {
    struct first_cause *self = instance;
    (void)error;
    self->min_excess_ratio = ((const struct first_cause_config *)config)->min_excess_ratio;
    self->workers = context->workers;
    self->settle_ns = context->timing == NULL ? 0 : (uint64_t)context->timing->settle.ns;
    return STATUS_OK;
}

static void first_cause_stop(void *instance) {
    worker_arenas_release(&((struct first_cause *)instance)->arenas);
}

// A moment of the generation's aligned clock, on the clock of one rank.
static uint64_t on_clock_of(const struct evaluation *evaluation, uint32_t index,
                            __int128 aligned_ns) {
    __int128 time_ns = aligned_ns + evaluation->alignment[index].generation_offset_ns;
    if (time_ns < 0)
        return 0;
    return time_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)time_ns;
}

static const struct sample *first_of_generation(const struct evaluation *evaluation,
                                                const struct rank_view *view) {
    struct series_cursor at = series_seek(evaluation->store, view->series, view->generation_ns);
    return series_next(evaluation->store, view->series, &at, evaluation->as_of_ns);
}

// The use at `from_ns`: of the last sample not after it, else of the first one.
static bool begin_growth(struct growth_state *state, const struct evaluation *evaluation,
                         const struct rank_view *view, uint32_t suspect_slot, uint64_t from_ns) {
    const struct sample *start = series_at_or_before(evaluation->store, view->series, from_ns);
    if (start == NULL || start->time_ns < view->generation_ns)
        start = first_of_generation(evaluation, view);
    if (start == NULL)
        return false;
    uint64_t after_ns = start->time_ns > from_ns ? start->time_ns : from_ns;
    // While the rank has no sample after `from_ns`, one that comes may be that at `from_ns`.
    *state = (struct growth_state){
        .begun = view->last_ns > from_ns,
        .suspect_slot = suspect_slot,
        .revision = view->series->revision,
        .from_ns = from_ns,
        .cursor = series_seek(evaluation->store, view->series, after_ns),
        .start_bytes = start->used_bytes,
        .highest_bytes = start->used_bytes,
    };
    return true;
}

// The values are used up.
static int64_t median_of(int64_t *values, uint32_t count, struct arena *arena) {
    if (count == 0)
        return 0;
    int64_t *others = arena_take(arena, count * sizeof *others);
    memcpy(others, values, count * sizeof *others);
    int64_t high = select_i64(values, count, count / 2);
    if (count % 2 == 1)
        return high;
    int64_t low = select_i64(others, count, count / 2 - 1);
    return low + (high - low) / 2;
}

static void set_excess(struct cause *cause, int64_t median_bytes) {
    cause->median_other_growth_bytes = median_bytes;
    cause->excess_ratio =
        median_bytes <= 0 ? INFINITY : (double)cause->growth_bytes / (double)median_bytes;
}

// Whether the window begins in the first two intervals of the rank's generation. Ranks that warm up
// alike were not sampled at the same moment of it, so from there on their growth cannot be
// compared.
static bool begins_in_warm_up(const struct evaluation *evaluation, const struct suspect *first) {
    const struct rank_view *view = &evaluation->ranks[first->index];
    const struct sample *begin = first_of_generation(evaluation, view);
    return begin != NULL &&
           (__int128)first->spike.window_ns - begin->time_ns <= 2 * evaluation->median_interval_ns;
}

// What the suspect, and each other rank, grew by from its window on, and came to use at most.
struct comparison {
    int64_t growth_bytes, highest_bytes;
    int64_t *growths, *heights; // of the others
    uint32_t count;
};

// One job of an evaluation, from one round to the next.
struct turn {
    struct evaluation *evaluation;
    struct cause *cause; // NULL: nothing to judge
    bool found;          // of windows of growth
    bool stayed;
    // The suspect with whom the ranks are compared; NULL: with none.
    const struct suspect *suspect;
    struct cause creep;
    uint32_t suspect_slot;
    __int128 from_ns, to_ns;    // on the aligned clock
    int64_t *growths, *heights; // by rank, where it has samples there
    bool *is_there;
};

struct round {
    struct first_cause *self;
    struct turn *turns;
    uint32_t count, pieces;
    // Begins of the ranks of each turn, where all that are compared stand in one row; [count].
    uint32_t *begins;
    uint32_t ranks;
    void (*run)(struct first_cause *self, struct turn *turn, struct arena *arena);
};

TABLE_ACCESS(growth_at, struct first_cause, growths, struct growth_state)

// Highest use in [from, to], and by how much it is above the use at `from`; false without samples
// there.
static bool rank_growth(struct first_cause *self, const struct turn *turn, uint32_t index) {
    const struct evaluation *evaluation = turn->evaluation;
    const struct rank_view *view = &evaluation->ranks[index];
    if (!view->in_generation)
        return false;
    struct growth_state *state = growth_at(self, view->slot);
    uint64_t from = on_clock_of(evaluation, index, turn->from_ns);
    bool stands = state->begun && state->suspect_slot == turn->suspect_slot &&
                  state->from_ns == from && state->revision == view->series->revision;
    if (!stands && !begin_growth(state, evaluation, view, turn->suspect_slot, from))
        return false;
    uint64_t to = on_clock_of(evaluation, index, turn->to_ns);
    if (to > evaluation->as_of_ns)
        to = evaluation->as_of_ns;
    const struct sample *rows;
    uint32_t count;
    int64_t highest = state->highest_bytes;
    while ((count = series_next_run(evaluation->store, view->series, &state->cursor, to, &rows)) >
           0)
        for (uint32_t i = 0; i < count; i++)
            highest = rows[i].used_bytes > highest ? rows[i].used_bytes : highest;
    state->highest_bytes = highest;
    turn->growths[index] = highest - state->start_bytes;
    turn->heights[index] = highest;
    return true;
}

static void compare_ranks(struct first_cause *self, const struct turn *turn, uint32_t begin,
                          uint32_t end) {
    const struct evaluation *evaluation = turn->evaluation;
    for (uint32_t i = begin; i < end; i++) {
        if (i + 2 * SERIES_AHEAD < end)
            series_prefetch(evaluation->store, evaluation->ranks[i + 2 * SERIES_AHEAD].series);
        if (i + SERIES_AHEAD < end)
            series_prefetch_before(evaluation->store, evaluation->ranks[i + SERIES_AHEAD].series);
        turn->is_there[i] = rank_growth(self, turn, i);
    }
}

// Pieces are ranks one behind the other, of one job or several.
static void compare_piece(void *context, uint32_t piece, uint32_t worker) {
    const struct round *round = context;
    (void)worker;
    uint32_t begin = piece_begin(round->ranks, round->pieces, piece);
    uint32_t end = piece_begin(round->ranks, round->pieces, piece + 1);
    for (uint32_t i = 0; i < round->count; i++) {
        const struct turn *turn = &round->turns[i];
        uint32_t first = round->begins[i];
        if (turn->suspect == NULL || first >= end || first + turn->evaluation->rank_count <= begin)
            continue;
        uint32_t last = first + turn->evaluation->rank_count;
        compare_ranks(round->self, turn, begin > first ? begin - first : 0,
                      (end < last ? end : last) - first);
    }
}

enum { PIECE_SAMPLES = 32768, LIVE_RANK_WEIGHT = 16 };

// A live evaluation has few new rows a rank.
static uint64_t compare_weight(const struct evaluation *evaluation) {
    if (!evaluation->last)
        return (uint64_t)evaluation->rank_count * LIVE_RANK_WEIGHT;
    uint64_t samples = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        samples += evaluation->ranks[i].sample_count;
    return samples;
}

// Compares the ranks of all jobs that have a suspect with him.
static void compare_all(struct round *round, struct arena *arena) {
    uint64_t weight = 0;
    round->ranks = 0;
    for (uint32_t i = 0; i < round->count; i++) {
        struct turn *turn = &round->turns[i];
        round->begins[i] = round->ranks;
        if (turn->suspect == NULL)
            continue;
        const struct evaluation *evaluation = turn->evaluation;
        assert(turn->suspect->index < evaluation->rank_count);
        const struct rank_view *view = &evaluation->ranks[turn->suspect->index];
        __int128 offset = evaluation->alignment[turn->suspect->index].generation_offset_ns;
        uint32_t ranks = evaluation->rank_count;
        turn->suspect_slot = view->slot;
        turn->from_ns = turn->suspect->spike.window_ns - offset;
        turn->to_ns = view->last_ns - offset;
        turn->growths = arena_take(arena, ranks * sizeof *turn->growths);
        turn->heights = arena_take(arena, ranks * sizeof *turn->heights);
        turn->is_there = arena_take(arena, ranks * sizeof *turn->is_there);
        round->ranks += ranks;
        weight += compare_weight(evaluation);
        // The table does not grow while ranks are compared.
        for (uint32_t j = 0; j < ranks; j++)
            while (evaluation->ranks[j].in_generation &&
                   round->self->growths.used <= evaluation->ranks[j].slot)
                table_add(&round->self->growths);
    }
    round->pieces = workers_pieces(round->self->workers, weight, PIECE_SAMPLES, round->ranks);
    if (round->ranks > 0)
        workers_run(round->self->workers, round->pieces, compare_piece, round);
}

// The others move to the front.
static struct comparison compared(const struct turn *turn) {
    struct comparison all = {.growths = turn->growths, .heights = turn->heights};
    for (uint32_t i = 0; i < turn->evaluation->rank_count; i++) {
        if (!turn->is_there[i])
            continue;
        if (i == turn->suspect->index) {
            all.growth_bytes = turn->growths[i];
            all.highest_bytes = turn->heights[i];
        } else {
            all.growths[all.count] = turn->growths[i];
            all.heights[all.count++] = turn->heights[i];
        }
    }
    return all;
}

// Whether it seems to have grown only because it was sampled early in a warm-up of all: it did not
// come to use more than the others by what counts as growth.
static bool warmed_up_alike(const struct evaluation *evaluation, const struct suspect *suspect,
                            const struct comparison *all, struct arena *arena) {
    return begins_in_warm_up(evaluation, suspect) &&
           all->highest_bytes - median_of(all->heights, all->count, arena) <
               evaluation->spikes[suspect->index].threshold_bytes;
}

// The rank whose lows rose most, if they rose by so much more than those of the others: a leak
// under swings, or after growth that all shared. It is the turn's suspect then.
static void seek_creep(struct first_cause *self, struct turn *turn, struct arena *arena) {
    const struct evaluation *evaluation = turn->evaluation;
    const struct rank_spike *spikes = NULL;
    turn->suspect = NULL;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_spike *other = &evaluation->spikes[i];
        if ((evaluation->found[i] & FOUND_CREEP) != 0 &&
            (spikes == NULL || other->low_growth_bytes > spikes->low_growth_bytes))
            spikes = other;
    }
    if (spikes == NULL)
        return;
    uint32_t best = (uint32_t)(spikes - evaluation->spikes);
    int64_t *others = arena_take(arena, evaluation->rank_count * sizeof *others);
    uint32_t count = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (i != best && evaluation->ranks[i].in_generation)
            others[count++] = evaluation->spikes[i].low_growth_bytes;
    int64_t median = median_of(others, count, arena);
    turn->creep = (struct cause){.kind = CAUSE_LEAK,
                                 .growth_bytes = spikes->low_growth_bytes,
                                 .sole_earliest = true,
                                 .creeping = true};
    set_excess(&turn->creep, median);
    // What it leaked beyond the others has to be worth a word by itself.
    if (turn->creep.excess_ratio < self->min_excess_ratio ||
        spikes->low_growth_bytes - median < spikes->threshold_bytes)
        return;
    struct suspect *suspect = arena_zero(arena, 1, sizeof *suspect);
    suspect->index = best;
    suspect->spike = spikes->creep;
    suspect->aligned_ns = spikes->creep.time_ns - evaluation->alignment[best].generation_offset_ns;
    turn->creep.suspects = (struct suspect_list){.items = suspect,
                                                 .count = 1,
                                                 .candidate_count = 1,
                                                 .onset_ns = suspect->aligned_ns,
                                                 .sparse = turn->cause->suspects.sparse};
    turn->suspect = suspect;
}

TABLE_ACCESS(name_at, struct first_cause, names, struct standing_name)

static struct standing_name *name_of(struct first_cause *self,
                                     const struct evaluation *evaluation) {
    struct standing_name *name = name_at(self, evaluation->job_slot);
    if (name->job != evaluation->job)
        *name = (struct standing_name){.job = evaluation->job, .slot = TABLE_NO_ROW};
    return name;
}

// A first name can still change while other ranks report, so it has to stand for a while.
static bool has_settled(struct first_cause *self, const struct evaluation *evaluation,
                        uint32_t slot) {
    struct standing_name *name = name_of(self, evaluation);
    if (name->slot != slot || name->generation != evaluation->generation) {
        name->slot = slot;
        name->generation = evaluation->generation;
        name->since_ns = evaluation->as_of_ns;
    }
    return evaluation->last || evaluation->as_of_ns - name->since_ns >= self->settle_ns;
}

static uint32_t ranks_in_generation(const struct evaluation *evaluation) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        count += evaluation->ranks[i].in_generation;
    return count;
}

static void summarise(struct evaluation *evaluation, struct arena *arena) {
    struct suspect_list *suspects = arena_zero(arena, 1, sizeof *suspects);
    evaluation->suspects = suspects;
    if (evaluation->rank_count == 0)
        return;
    if (evaluation->rank_count == 1) {
        evaluation_note(evaluation, arena,
                        "At least two ranks are required for cross-rank first-cause analysis.");
        return;
    }
    suspects_rank(evaluation, SUSPECTS_OF_ALL, arena, suspects);
    int32_t *sparse = arena_take(arena, evaluation->rank_count * sizeof *sparse);
    uint32_t count = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (evaluation->ranks[i].sample_count < 2)
            sparse[count++] = evaluation->ranks[i].series->rank;
    evaluation_note_ranks(evaluation, arena,
                          "Some ranks have fewer than two samples and cannot contribute to spike "
                          "detection: ",
                          sparse, count);
    if (suspects->candidate_count == 0)
        evaluation_note(evaluation, arena, "No qualifying cross-rank spikes were detected.");
    if (suspects->candidate_count == 1)
        evaluation_note(evaluation, arena,
                        "Only one rank produced a qualifying spike; confidence is limited.");
}

// From windows of growth: who was first? He is the turn's suspect.
static void seek_spike(struct first_cause *self, struct turn *turn, struct arena *arena) {
    (void)self;
    const struct evaluation *evaluation = turn->evaluation;
    summarise(turn->evaluation, arena);
    if (ranks_in_generation(evaluation) < 2)
        return;
    struct cause *cause = turn->cause = arena_zero(arena, 1, sizeof *cause);
    suspects_rank(evaluation, SUSPECTS_KEPT_OF_GENERATION, arena, &cause->suspects);
    turn->stayed = cause->suspects.count > 0;
    if (!turn->stayed)
        suspects_rank(evaluation, SUSPECTS_OF_GENERATION, arena, &cause->suspects);
    turn->found = cause->suspects.count > 0;
    turn->suspect = turn->found ? &cause->suspects.items[0] : NULL;
}

// Was it more than what the others grew? Unless a window says so, lows may.
static void judge_spike(struct first_cause *self, struct turn *turn, struct arena *arena) {
    struct cause *cause = turn->cause;
    if (cause == NULL)
        return;
    if (turn->found) {
        const struct suspect_list *suspects = &cause->suspects;
        struct comparison all = compared(turn);
        cause->growth_bytes = all.growth_bytes;
        set_excess(cause, median_of(all.growths, all.count, arena));
        cause->sole_earliest =
            suspects->count < 2 || suspects->items[1].aligned_ns != suspects->items[0].aligned_ns;
        bool alike = cause->excess_ratio < self->min_excess_ratio ||
                     warmed_up_alike(turn->evaluation, turn->suspect, &all, arena);
        cause->kind = !turn->stayed ? CAUSE_SWING : alike ? CAUSE_COMMON_GROWTH : CAUSE_LEAK;
        turn->suspect = NULL;
    }
    if (!turn->found || cause->kind != CAUSE_LEAK)
        seek_creep(self, turn, arena);
}

static void conclude(struct first_cause *self, struct turn *turn, struct arena *arena) {
    struct evaluation *evaluation = turn->evaluation;
    struct cause *cause = turn->cause;
    if (cause == NULL)
        return;
    bool found = turn->found;
    if (turn->suspect != NULL) {
        struct comparison all = compared(turn);
        if (!warmed_up_alike(evaluation, turn->suspect, &all, arena)) {
            *cause = turn->creep;
            found = true;
        }
    }
    if (!found)
        return;
    assert(cause->suspects.count > 0);
    cause->generation = evaluation->generation;
    cause->settled =
        has_settled(self, evaluation, evaluation->ranks[cause->suspects.items[0].index].slot);
    evaluation->cause = cause;
}

static void forget(struct first_cause *self, const struct forgotten *forgotten) {
    if (forgotten->everything) {
        table_release(&self->growths);
        table_release(&self->names);
    }
    for (uint32_t i = 0; i < forgotten->slot_count; i++)
        if (forgotten->slots[i] < self->growths.used)
            memset(table_row(&self->growths, forgotten->slots[i]), 0, sizeof(struct growth_state));
    for (uint32_t i = 0; i < forgotten->job_count; i++)
        if (forgotten->jobs[i].slot < self->names.used)
            *name_at(self, forgotten->jobs[i].slot) = (struct standing_name){.slot = TABLE_NO_ROW};
}

static void run_piece(void *context, uint32_t piece, uint32_t worker) {
    const struct round *round = context;
    struct arena *arena = worker_arena(&round->self->arenas, worker);
    uint32_t end = piece_begin(round->count, round->pieces, piece + 1);
    for (uint32_t i = piece_begin(round->count, round->pieces, piece); i < end; i++)
        round->run(round->self, &round->turns[i], arena);
}

// Pieces are jobs one behind the other.
enum { PIECE_RANKS = 2048 };

static void run_round(struct round *round, uint64_t ranks,
                      void (*run)(struct first_cause *, struct turn *, struct arena *)) {
    round->run = run;
    round->pieces = workers_pieces(round->self->workers, ranks, PIECE_RANKS, round->count);
    workers_run(round->self->workers, round->pieces, run_piece, round);
}

static void first_cause_consume(void *instance, struct batch *batch) {
    struct first_cause *self = instance;
    if (batch->forgotten != NULL)
        forget(self, batch->forgotten);
    uint32_t count = batch->evaluation_count;
    if (count == 0)
        return;
    struct round round = {.self = self, .count = count};
    round.turns = arena_zero(batch->arena, count, sizeof *round.turns);
    round.begins = arena_zero(batch->arena, count, sizeof *round.begins);
    uint64_t ranks = 0;
    for (uint32_t i = 0; i < count; i++) {
        round.turns[i].evaluation = &batch->evaluations[i];
        ranks += batch->evaluations[i].rank_count;
        while (self->names.used <= batch->evaluations[i].job_slot)
            name_at(self, table_add(&self->names))->slot = TABLE_NO_ROW;
    }
    worker_arenas_begin(&self->arenas, batch->arena);
    run_round(&round, ranks, seek_spike);
    compare_all(&round, batch->arena);
    run_round(&round, ranks, judge_spike);
    compare_all(&round, batch->arena);
    run_round(&round, ranks, conclude);
}

const struct component_type processor_first_cause = {
    .name = "first_cause",
    .summary = "Ranks the suspects and decides whether one rank leaked.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_MEMORY | 1u << PRESET_ALL,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct first_cause_config),
    .instance_size = sizeof(struct first_cause),
    .needs = FACT_SPIKES | FACT_ALIGNMENT,
    .gives = FACT_SUSPECTS,
    .start = first_cause_start,
    .stop = first_cause_stop,
    .state_rows = STATE,
    .state_row_count = STATE_ROW_COUNT(STATE),
    .processor = {.consume = first_cause_consume},
};
