// SPDX-License-Identifier: Apache-2.0
// Forgets jobs that are over, with all that is kept of them, so that memory follows the jobs that
// run, not those that ever ran. A job is over when no new sample of it was settled for
// `idle_jobs_expire`, from one evaluation to another. (Its own clock does not matter: it may lag
// behind the others' for good.) Rows later than the evaluation begin the job anew, so that the
// answer does not depend on what raced ahead. Cost: O(jobs) an evaluation; when one is forgotten,
// O(ranks and processes known).
#include "base/sort.h"
#include "processors/rank_group/state.h"

#include <assert.h>

uint64_t rank_group_first_held(const struct rank_group *group, const struct rank_state *rank) {
    assert(rank->series.sample_count > 0);
    const struct sample *first = series_chunk(&group->store, &rank->series, 0)->rows;
    const struct carried *carried =
        origin_carried(&group->store, series_origin(&group->store, first));
    bool earlier = carried != NULL && carried->first_sample_ns != 0 &&
                   carried->first_sample_ns < first->time_ns;
    return earlier ? carried->first_sample_ns : first->time_ns;
}

// What is collected for the batch.
struct collection {
    struct forgotten_job *jobs;
    uint32_t *slots;
    struct forgotten_process *processes;
    bool *is_collected; // by row of the jobs table
    struct forgotten all;
};

static void collect_job(struct collection *collection, const struct rank_group *group, uint32_t row,
                        struct arena *arena) {
    if (collection->jobs == NULL) {
        collection->jobs = arena_take(arena, group->jobs.used * sizeof *collection->jobs);
        collection->is_collected = arena_zero(arena, group->jobs.used, sizeof(bool));
        collection->slots = arena_take(arena, group->ranks.used * sizeof *collection->slots);
        collection->processes =
            arena_take(arena, group->store.origins.used * sizeof *collection->processes);
    }
    const struct job_state *job = job_at(group, row);
    collection->is_collected[row] = true;
    collection->jobs[collection->all.job_count++] =
        (struct forgotten_job){.job = job->job, .slot = row};
    for (uint32_t i = 0; i < job->rank_count; i++)
        collection->slots[collection->all.slot_count++] = job->ranks[i].row;
}

// The processes of all collected jobs; origins of jobs that are gone go too.
static void collect_processes(struct collection *collection, struct rank_group *group) {
    for (uint32_t row = 0; row < group->store.origins.used; row++) {
        const struct origin *origin = table_row(&group->store.origins, row);
        if (origin->job == TABLE_NO_ROW || !collection->is_collected[origin->job])
            continue;
        struct forgotten_process process = {.session = origin->session};
        if (origin->session == STRING_NONE) {
            process.host = origin->host;
            process.pid = origin->pid;
        }
        collection->processes[collection->all.process_count++] = process;
        if (job_at(group, origin->job)->job == STRING_REFUSED)
            rows_free_origin(&group->store, row);
    }
}

static bool has_later_rows(const struct rank_group *group, const struct job_state *job) {
    for (uint32_t i = 0; i < job->rank_count; i++) {
        const struct rank_state *rank = rank_at(group, job->ranks[i].row);
        if (rank->series.sample_count > rank->settled_count)
            return true;
    }
    return false;
}

static bool is_over(const struct rank_group *group, const struct job_state *job, uint64_t now_ns) {
    // Without any row when there was no room for its ranks.
    if (job->settled_count == 0)
        return !has_later_rows(group, job);
    return now_ns > job->active_ns && now_ns - job->active_ns > group->choice.idle_ns;
}

static void forget_job(struct rank_group *group, uint32_t row) {
    struct job_state *job = job_at(group, row);
    assert(job->job != STRING_REFUSED);
    for (uint32_t i = 0; i < job->rank_count; i++)
        rank_group_free_rank(group, job->ranks[i].row);
    row_index_remove(&group->job_index, job_hash(job->job), row);
    changes_drop_job(&group->changes, row);
    job_release(job);
    memset(job, 0, sizeof *job);
    table_free(&group->jobs, row);
    job->job = STRING_REFUSED;
    if (group->kept.pool == row)
        group->kept.pool = TABLE_NO_ROW;
    if (table_live(&group->jobs) == 0)
        group->kept.named_jobs = 0;
}

// It came back while nobody had looked: what was settled goes, the rest is a job that begins.
static void begin_anew(struct rank_group *group, uint32_t row, uint64_t as_of_ns,
                       struct arena *arena) {
    struct job_state *job = job_at(group, row);
    uint32_t count = job->rank_count;
    job->rank_count = 0;
    job->ranks_left_out = false;
    job->first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        struct rank_entry entry = job->ranks[i];
        struct rank_state *rank = rank_at(group, entry.row);
        rows_remove_until(&group->store, &rank->series, as_of_ns);
        if (rank->series.sample_count == 0) {
            rank_group_free_rank(group, entry.row);
            continue;
        }
        rank->first_ns = rank_group_first_held(group, rank);
        if (rank->first_ns < job->first_ns)
            job->first_ns = rank->first_ns;
        job->ranks[job->rank_count++] = entry;
    }
    rank_group_unsettle(group, job);
    uint32_t *rows = arena_take(arena, (job->rank_count + 1) * sizeof *rows);
    for (uint32_t i = 0; i < job->rank_count; i++)
        rows[i] = job->ranks[i].row;
    group->changes.jobs[row].stale = true;
    rank_group_settle(group, rows, job->rank_count, as_of_ns, arena);
}

static void announce(const struct collection *collection, struct batch *batch) {
    struct forgotten *forgotten = arena_take(batch->arena, sizeof *forgotten);
    _Static_assert(offsetof(struct forgotten_job, job) == 0, "for compare_by_u32");
    sort_stable(collection->jobs, collection->all.job_count, sizeof *collection->jobs, batch->arena,
                compare_by_u32);
    *forgotten = collection->all;
    forgotten->jobs = collection->jobs;
    forgotten->slots = collection->slots;
    forgotten->processes = collection->processes;
    batch->forgotten = forgotten;
}

void rank_group_forget(struct rank_group *group, struct batch *batch) {
    struct collection collection = {0};
    if (group->choice.idle_ns > 0 && group->live && !batch->last) {
        for (uint32_t row = 0; row < group->jobs.used; row++) {
            struct job_state *job = job_at(group, row);
            if (job->job == STRING_REFUSED || !is_over(group, job, batch->as_of_ns))
                continue;
            collect_job(&collection, group, row, batch->arena);
            if (has_later_rows(group, job))
                begin_anew(group, row, batch->as_of_ns, batch->arena);
            else
                forget_job(group, row);
        }
    }
    collection.all.everything = group->lost;
    group->lost = false;
    if (collection.all.job_count > 0)
        collect_processes(&collection, group);
    if (collection.all.job_count > 0 || collection.all.everything)
        announce(&collection, batch);
}
