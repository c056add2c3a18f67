// SPDX-License-Identifier: Apache-2.0
// Makes of the rows that were loaded what is derived from them: lists of ranks, chunk directories,
// indexes and the multiset of intervals. Rows that do not fit together are not believed: the stage
// starts empty, and says so to the stages behind it. Cost: O(rows) once.
#include "base/table/row_index.h"
#include "processors/rank_group/state.h"

// Pointers that came with the rows are another process's.
static void clear_pointers(struct rank_group *self) {
    for (uint32_t i = 0; i < self->jobs.used; i++) {
        struct job_state *job = job_at(self, i);
        job->ranks = NULL;
        job->rank_count = job->rank_capacity = 0;
        job->intervals = NULL;
    }
    for (uint32_t i = 0; i < self->ranks.used; i++) {
        struct rank_series *series = &rank_at(self, i)->series;
        series->chunks = NULL;
        series->chunk_capacity = 0;
    }
    self->last_job = 0;
}

static bool is_job(const struct rank_group *self, uint32_t row) {
    return row < self->jobs.used && job_at(self, row)->job != STRING_REFUSED;
}

static bool origins_are_whole(const struct rank_group *self) {
    for (uint32_t i = 0; i < self->store.origins.used; i++) {
        const struct origin *origin = table_row(&self->store.origins, i);
        if (origin->job != TABLE_NO_ROW &&
            (!is_job(self, origin->job) || origin->carried > self->store.carried.used))
            return false;
    }
    return true;
}

static bool sessions_are_whole(const struct rank_group *self, const struct rank_state *rank) {
    uint32_t row = rank->newest_session;
    for (uint32_t i = 0; i < rank->session_count; i++) {
        if (row >= self->sessions.used)
            return false;
        row = session_at(self, row)->next;
    }
    return row == TABLE_NO_ROW;
}

static bool restore_rank(struct rank_group *self, uint32_t row) {
    struct rank_state *rank = rank_at(self, row);
    if (rank->job == TABLE_NO_ROW)
        return true;
    bool whole = is_job(self, rank->job) && sessions_are_whole(self, rank) &&
                 (rank->series.last_origin == TABLE_NO_ROW ||
                  rank->series.last_origin < self->store.origins.used) &&
                 rank->settled_count <= rank->series.sample_count;
    if (!whole || !rows_restore(&self->store, &rank->series))
        return false;
    job_add_rank(job_at(self, rank->job), rank->series.rank, row);
    return true;
}

static bool figures_fit(const struct rank_group *self, uint32_t row) {
    const struct job_state *job = job_at(self, row);
    uint64_t settled = 0;
    for (uint32_t i = 0; i < job->rank_count; i++)
        settled += rank_at(self, job->ranks[i].row)->settled_count;
    return settled == job->settled_count;
}

static bool restore_rows(struct rank_group *self) {
    if (self->kept.arrivals == 0 && table_live(&self->jobs) > 0)
        return false;
    for (uint32_t i = 0; i < self->jobs.used; i++) {
        if (!is_job(self, i))
            continue;
        if (job_at(self, i)->claim_count > WORLD_CLAIMS_MAX)
            return false;
        job_begin(self, job_at(self, i));
    }
    if (self->kept.pool != TABLE_NO_ROW && !is_job(self, self->kept.pool))
        return false;
    if (!origins_are_whole(self))
        return false;
    for (uint32_t i = 0; i < self->ranks.used; i++)
        if (!restore_rank(self, i))
            return false;
    for (uint32_t i = 0; i < self->jobs.used; i++)
        if (is_job(self, i) && !figures_fit(self, i))
            return false;
    return true;
}

void rank_group_restored(void *instance) {
    struct rank_group *self = instance;
    clear_pointers(self);
    if (!restore_rows(self))
        rank_group_clear(self);
    changes_release(&self->changes);
    changes_reserve(&self->changes, self->ranks.used, self->jobs.used);
    for (uint32_t row = 0; row < self->ranks.used; row++)
        if (rank_at(self, row)->job != TABLE_NO_ROW)
            changes_mark(&self->changes, row);
    // Also when rows of other stages came alone.
    self->lost = self->kept.arrivals == 0;
    row_index_clear(&self->job_index);
    for (uint32_t row = 0; row < self->jobs.used; row++)
        if (is_job(self, row))
            row_index_put(&self->job_index, job_hash(job_at(self, row)->job), row);
    row_index_clear(&self->rank_index);
    for (uint32_t row = 0; row < self->ranks.used; row++)
        if (rank_at(self, row)->job != TABLE_NO_ROW)
            row_index_put(&self->rank_index,
                          rank_hash(rank_at(self, row)->job, rank_at(self, row)->series.rank), row);
    rank_group_count_intervals(self);
}
