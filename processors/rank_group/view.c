// SPDX-License-Identifier: Apache-2.0
// Chooses the job that is evaluated, its ranks and their generation. Builds struct evaluation from
// the settled figures: O(ranks) for the views, O(ranks · log) for the generation, and the exact
// median interval. Job choice, world size and the wording of notes follow stormlog's cross-rank
// analysis.
#include "base/memory.h"
#include "base/sort.h"
#include "processors/rank_group/interval_median.h"
#include "processors/rank_group/state.h"

#include <assert.h>
#include <stdlib.h>

enum { SCRATCH_BLOCK = 4096 };
// Pieces are ranks of one job, or jobs one behind the other.
enum { PIECE_RANKS = 1024, PIECE_SAMPLES = 32768 };

static bool comes_first(const struct rank_group *group, const struct job_state *a,
                        const struct job_state *b) {
    if (!group->by_value)
        return a->first_arrival < b->first_arrival;
    if (a->first_ns != b->first_ns)
        return a->first_ns < b->first_ns;
    return slice_compare(intern_slice(a->job), intern_slice(b->job)) < 0;
}

// The named job with the most samples; without named ones the nameless; TABLE_NO_ROW without
// samples.
static uint32_t choose_job(const struct rank_group *group, uint32_t *distinct) {
    uint32_t best_row = TABLE_NO_ROW;
    *distinct = 0;
    for (uint32_t i = 0; i < group->jobs.used; i++) {
        const struct job_state *job = job_at(group, i);
        if (job->settled_count == 0)
            continue;
        *distinct += job->named;
        const struct job_state *best = best_row == TABLE_NO_ROW ? NULL : job_at(group, best_row);
        bool better = best == NULL || job->settled_count > best->settled_count ||
                      (job->settled_count == best->settled_count && comes_first(group, job, best));
        if (better)
            best_row = i;
    }
    return best_row;
}

static void note_selection(const struct rank_group *group, struct evaluation *evaluation,
                           struct arena *arena, uint32_t distinct_jobs, bool ranks_left_out) {
    uint64_t now = evaluation->as_of_ns;
    const struct rank_group_kept *kept = &group->kept;
    const struct {
        bool holds;
        const char *text;
    } notes[] = {
        {kept->event_count == 0, "No telemetry events were provided."},
        {kept->saw_other && kept->first_other_ns <= now,
         "Ignored non-sample events during cross-rank analysis."},
        {kept->saw_null_used && kept->first_null_used_ns <= now,
         "Ignored samples without device-used memory during cross-rank analysis."},
        {evaluation->rank_count == 0,
         "No sample telemetry events were available for distributed analysis."},
        {distinct_jobs > 1,
         "Multiple job_id values were observed; filtering to the most common value."},
        {kept->jobs_left_out, "More jobs were seen than max_jobs allows; some were left out."},
        {ranks_left_out, "More ranks were seen than max_ranks allows; some were left out."},
        {kept->claims_left_out,
         "More than 64 different world sizes were claimed; some were left out."},
    };
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++)
        if (notes[i].holds)
            evaluation_note(evaluation, arena, "%s", notes[i].text);
}

static bool claim_wins(const struct rank_group *group, const struct world_claim *a,
                       const struct world_claim *b) {
    if (a->count != b->count)
        return a->count > b->count;
    return group->by_value ? a->world_size > b->world_size : a->first_arrival < b->first_arrival;
}

static int64_t claimed_world_size(const struct rank_group *group, const struct job_state *job) {
    const struct world_claim *best = NULL;
    for (uint32_t i = 0; i < job->claim_count; i++) {
        const struct world_claim *claim = &job->claims[i];
        if (claim->count > 0 && (best == NULL || claim_wins(group, claim, best)))
            best = claim;
    }
    return best == NULL ? 1 : best->world_size;
}

// The largest number of restarts that at least half of the ranks have had.
static uint32_t job_generation(const struct job_views *views, struct arena *arena) {
    uint32_t count = views->count, most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = views->generations[i] > most ? views->generations[i] : most;
    if (most == 0)
        return 0;
    uint32_t *generations = arena_take(arena, count * sizeof *generations);
    memcpy(generations, views->generations, count * sizeof *generations);
    sort_stable(generations, count, sizeof *generations, arena, compare_by_u32);
    return generations[count / 2];
}

static void view_generation(const struct rank_group *group, struct rank_view *view,
                            uint32_t generation) {
    const struct rank_state *rank = rank_at(group, view->slot);
    view->in_generation = generation <= rank->generation;
    view->generation_ns = view->first_ns;
    if (generation == 0 || !view->in_generation)
        return;
    // The oldest session that is not of an earlier generation.
    const struct rank_session *session;
    for (uint32_t row = rank->newest_session; row != TABLE_NO_ROW; row = session->next) {
        session = session_at(group, row);
        if (session->generation < generation)
            break;
        view->generation_ns = session->first_ns;
    }
}

static void view_rank(const struct rank_group *group, struct job_views *views, uint32_t place,
                      uint32_t row) {
    const struct rank_state *rank = rank_at(group, row);
    assert(rank->settled_count > 0);
    uint64_t appeared = group->by_value ? place : rank->series.first_arrival;
    views->views[place] = (struct rank_view){.series = &rank->series,
                                             .slot = row,
                                             .sample_count = rank->settled_count,
                                             .repeated_count = rank->repeated_count,
                                             .first_arrival = appeared,
                                             .first_ns = rank->first_ns,
                                             .last_ns = rank->last_ns,
                                             .max_used_bytes = rank->max_used_bytes};
    views->generations[place] = rank->generation;
}

static void views_reserve(struct job_views *views, uint32_t count) {
    if (count <= views->capacity)
        return;
    views->capacity = count;
    views->views = memory_resize(views->views, count * sizeof *views->views);
    views->generations = memory_resize(views->generations, count * sizeof *views->generations);
    views->changed = memory_resize(views->changed, count * sizeof *views->changed);
}

static void view_all(struct rank_group *group, const struct job_state *job,
                     struct job_views *views) {
    views_reserve(views, job->rank_count);
    views->count = 0;
    for (uint32_t i = 0; i < job->rank_count; i++) {
        uint32_t row = job->ranks[i].row;
        assert(i == 0 || job->ranks[i - 1].rank < job->ranks[i].rank);
        group->changes.places[row] = TABLE_NO_ROW;
        if (rank_at(group, row)->settled_count == 0)
            continue;
        group->changes.places[row] = views->count;
        view_rank(group, views, views->count++, row);
    }
    views->stale = false;
}

// Views of ranks that changed, in the generation that the job had.
struct reviewing {
    const struct rank_group *group;
    struct job_views *views;
    uint32_t pieces;
};

static void review_piece(void *context, uint32_t piece, uint32_t worker) {
    const struct reviewing *reviewing = context;
    struct job_views *views = reviewing->views;
    (void)worker;
    uint32_t end = piece_begin(views->changed_count, reviewing->pieces, piece + 1);
    for (uint32_t i = piece_begin(views->changed_count, reviewing->pieces, piece); i < end; i++) {
        struct rank_view *view = &views->views[views->changed[i]];
        view_rank(reviewing->group, views, views->changed[i], view->slot);
        view_generation(reviewing->group, view, views->generation);
    }
}

static void review(const struct rank_group *group, struct job_views *views,
                   struct workers *workers) {
    struct reviewing reviewing = {.group = group, .views = views};
    reviewing.pieces =
        workers_pieces(workers, views->changed_count, PIECE_RANKS, views->changed_count);
    workers_run(workers, reviewing.pieces, review_piece, &reviewing);
}

static void view_ranks(struct rank_group *group, uint32_t job_row, struct evaluation *evaluation,
                       struct workers *workers, struct arena *arena) {
    struct job_views *views = &group->changes.jobs[job_row];
    bool all = views->stale;
    if (all)
        view_all(group, job_at(group, job_row), views);
    else
        review(group, views, workers);
    uint32_t generation = job_generation(views, arena);
    all |= generation != views->generation;
    views->generation = generation;
    for (uint32_t i = 0; all && i < views->count; i++)
        view_generation(group, &views->views[i], generation);
    views->shown = true;
    evaluation->ranks = views->views;
    evaluation->rank_count = views->count;
    evaluation->generation = generation;
    evaluation->all_changed = all;
    evaluation->changed = views->changed;
    evaluation->changed_count = views->changed_count;
}

// `row`: of the jobs table, or TABLE_NO_ROW. `workers` may be NULL, as where jobs are viewed beside
// one another. What is shown lies in `arena`; what `scratch` held is void.
static void view_job(struct rank_group *group, uint32_t row, uint32_t distinct_jobs,
                     const struct batch *batch, struct evaluation *evaluation,
                     struct workers *workers, struct arena *arena, struct arena *scratch) {
    *evaluation = (struct evaluation){.as_of_ns = batch->as_of_ns,
                                      .last = batch->last,
                                      .store = &group->store,
                                      .event_count = group->kept.event_count,
                                      .claimed_world_size = 1};
    bool ranks_left_out = false;
    if (row != TABLE_NO_ROW) {
        const struct job_state *job = job_at(group, row);
        ranks_left_out = job->ranks_left_out;
        evaluation->job = job->job;
        evaluation->job_slot = row;
        evaluation->claimed_world_size = claimed_world_size(group, job);
        view_ranks(group, row, evaluation, workers, arena);
        arena_reset(scratch);
        evaluation->median_interval_ns =
            group->live ? interval_median_of_set(evaluation, job->intervals, scratch)
                        : interval_median_of_samples(evaluation, workers, scratch);
    }
    note_selection(group, evaluation, arena, distinct_jobs, ranks_left_out);
}

// Of the one that is shown, if any.
static void view_one_job(struct rank_group *group, uint32_t row, uint32_t distinct_jobs,
                         struct batch *batch) {
    struct arena scratch;
    arena_init(&scratch, SCRATCH_BLOCK);
    assert(batch->evaluation_count == 0);
    view_job(group, row, distinct_jobs, batch, &batch->evaluations[batch->evaluation_count++],
             group->workers, batch->arena, &scratch);
    arena_release(&scratch);
}

// A job of an evaluation, where arrival is a race.
struct job_turn {
    const struct rank_group *group;
    uint32_t row;
};

static int compare_turns(const void *left, const void *right) {
    const struct job_turn *a = left;
    const struct job_turn *b = right;
    const struct job_state *x = job_at(a->group, a->row);
    const struct job_state *y = job_at(b->group, b->row);
    return comes_first(a->group, x, y) ? -1 : comes_first(a->group, y, x);
}

struct viewing {
    struct rank_group *group;
    const struct job_turn *turns;
    struct batch *batch;
    uint32_t count, pieces;
};

static void view_piece(void *context, uint32_t piece, uint32_t worker) {
    const struct viewing *viewing = context;
    struct rank_group *group = viewing->group;
    // The same for one job after the other: half a MiB each would stay with the batch.
    struct arena scratch;
    arena_init(&scratch, SCRATCH_BLOCK);
    uint32_t end = piece_begin(viewing->count, viewing->pieces, piece + 1);
    for (uint32_t i = piece_begin(viewing->count, viewing->pieces, piece); i < end; i++)
        view_job(group, viewing->turns[i].row, 1, viewing->batch, &viewing->batch->evaluations[i],
                 viewing->pieces == 1 ? group->workers : NULL, worker_arena(&group->arenas, worker),
                 &scratch);
    arena_release(&scratch);
}

// Jobs are many, or their samples are all looked at.
static uint32_t view_pieces(const struct rank_group *group, const struct job_turn *turns,
                            uint32_t count) {
    uint64_t ranks = 0, samples = 0;
    for (uint32_t i = 0; i < count; i++) {
        ranks += job_at(group, turns[i].row)->rank_count;
        samples += job_at(group, turns[i].row)->settled_count;
    }
    uint32_t by_ranks = workers_pieces(group->workers, ranks, PIECE_RANKS, count);
    uint32_t by_samples = workers_pieces(group->workers, samples, PIECE_SAMPLES, count);
    return group->live || by_ranks > by_samples ? by_ranks : by_samples;
}

// All jobs: as they came where that is defined, else the one that began first comes first.
static void view_each_job(struct rank_group *group, struct batch *batch) {
    struct job_turn *turns = arena_take(batch->arena, (group->jobs.used + 1) * sizeof *turns);
    uint32_t count = 0;
    for (uint32_t i = 0; i < group->jobs.used; i++)
        if (job_at(group, i)->settled_count > 0)
            turns[count++] = (struct job_turn){group, i};
    if (group->by_value && count > 1)
        qsort(turns, count, sizeof *turns, compare_turns);
    struct viewing viewing = {.group = group, .turns = turns, .batch = batch, .count = count};
    viewing.pieces = view_pieces(group, turns, count);
    batch->evaluation_count = count;
    worker_arenas_begin(&group->arenas, batch->arena);
    workers_run(group->workers, viewing.pieces, view_piece, &viewing);
}

void rank_group_view(struct rank_group *group, struct batch *batch) {
    batch->evaluations = arena_zero(batch->arena, group->jobs.used + 1, sizeof(struct evaluation));
    if (group->choice.mode == JOB_EACH) {
        view_each_job(group, batch);
    } else {
        uint32_t distinct;
        uint32_t row = choose_job(group, &distinct);
        if (row != TABLE_NO_ROW)
            view_one_job(group, row, distinct, batch);
    }
    if (batch->evaluation_count == 0 && batch->last)
        view_one_job(group, TABLE_NO_ROW, 0, batch);
}
