// SPDX-License-Identifier: Apache-2.0
// What do the rows up to now add up to? Each row is counted once, when an evaluation reaches it:
// how many, the most used, which world size is claimed, which sessions there were, and, in a live
// pipeline, the intervals between neighbours. Rows that come late or expire are put right one by
// one.
#include "base/sort.h"
#include "processors/rank_group_state.h"

static int compare_entries(const void *left, const void *right) {
    int32_t a = ((const struct rank_entry *)left)->rank;
    int32_t b = ((const struct rank_entry *)right)->rank;
    return (a > b) - (a < b);
}

void rank_group_sort(struct job_state *job, struct arena *scratch) {
    if (!job->ranks_sorted)
        sort_stable(job->ranks, job->rank_count, sizeof *job->ranks, scratch, compare_entries);
    job->ranks_sorted = true;
}

struct world_claim *job_claim(struct rank_group *group, struct job_state *job, int64_t world_size) {
    for (uint32_t i = 0; i < job->claim_count; i++)
        if (job->claims[i].world_size == world_size)
            return &job->claims[i];
    if (job->claim_count == WORLD_CLAIMS_MAX) {
        group->claims_left_out = true;
        return NULL;
    }
    struct world_claim *claim = &job->claims[job->claim_count++];
    *claim = (struct world_claim){
        .world_size = world_size, .first_arrival = UINT64_MAX, .first_named_arrival = UINT64_MAX};
    return claim;
}

// Begins a generation of the rank when the session was not seen and starts later than the newest.
static void note_session(struct rank_group *group, struct rank_state *rank, string_id session,
                         uint64_t time_ns) {
    if (session == STRING_NONE)
        return;
    for (uint32_t row = rank->newest_session; row != TABLE_NO_ROW;) {
        struct rank_session *known = table_row(&group->sessions, row);
        if (known->session == session) {
            if (time_ns < known->first_ns)
                known->first_ns = time_ns;
            return;
        }
        row = known->next;
    }
    if (rank->session_count == RANK_SESSIONS_MAX)
        return;
    if (rank->newest_session != TABLE_NO_ROW) {
        const struct rank_session *newest = table_row(&group->sessions, rank->newest_session);
        if (time_ns <= newest->first_ns)
            return;
    }
    uint32_t row = table_add(&group->sessions);
    *(struct rank_session *)table_row(&group->sessions, row) = (struct rank_session){
        .session = session, .next = rank->newest_session, .first_ns = time_ns};
    rank->newest_session = row;
    rank->session_count++;
}

static struct world_claim *claim_of(struct rank_group *group, struct job_state *job,
                                    const struct origin *origin) {
    return origin->world_size > 1 ? job_claim(group, job, origin->world_size) : NULL;
}

static void add_interval(const struct rank_group *group, struct job_state *job, uint64_t from_ns,
                         uint64_t to_ns) {
    if (group->live && to_ns > from_ns)
        order_add(&job->intervals, to_ns - from_ns);
}

static void erase_interval(const struct rank_group *group, struct job_state *job, uint64_t from_ns,
                           uint64_t to_ns) {
    if (group->live && to_ns > from_ns)
        order_erase(&job->intervals, to_ns - from_ns);
}

// What the samples of one origin have in common.
struct settling {
    uint32_t origin;
    struct world_claim *claim;
};

static void settle_row(struct rank_group *group, struct job_state *job, struct rank_state *rank,
                       struct settling *settling, const struct sample *row) {
    if (row->origin != settling->origin) {
        const struct origin *origin = series_origin(&group->store, row);
        settling->origin = row->origin;
        settling->claim = claim_of(group, job, origin);
        note_session(group, rank, origin->session, row->time_ns);
    }
    if (settling->claim != NULL)
        settling->claim->count++;
    if (row->used_bytes > rank->max_used_bytes)
        rank->max_used_bytes = row->used_bytes;
    if (rank->settled_count++ > 0)
        add_interval(group, job, rank->last_ns, row->time_ns);
    rank->last_ns = row->time_ns;
}

static void settle_rank(struct rank_group *group, struct job_state *job, struct rank_state *rank,
                        uint64_t as_of_ns) {
    struct rank_series *series = &rank->series;
    struct settling settling = {.origin = TABLE_NO_ROW};
    uint64_t before = rank->settled_count;
    const struct sample *rows;
    uint32_t count;
    while ((count = series_next_run(&group->store, series, &rank->cursor, as_of_ns, &rows)) > 0)
        for (uint32_t i = 0; i < count; i++)
            settle_row(group, job, rank, &settling, &rows[i]);
    job->settled_count += rank->settled_count - before;
    series->settled_ns = as_of_ns;
    series->settled_any = true;
}

void rank_group_settle(struct rank_group *group, struct job_state *job, uint64_t as_of_ns) {
    for (uint32_t i = 0; i < job->rank_count; i++)
        settle_rank(group, job, rank_at(group, job->ranks[i].row), as_of_ns);
}

void rank_group_settle_late(struct rank_group *group, struct rank_state *rank,
                            const struct sample *row, const struct row_place *place) {
    struct job_state *job = job_at(group, rank->job);
    struct rank_series *series = &rank->series;
    const struct origin *origin = series_origin(&group->store, row);
    struct world_claim *claim = claim_of(group, job, origin);
    if (claim != NULL)
        claim->count++;
    note_session(group, rank, origin->session, row->time_ns);
    bool after_settled = place->has_after && place->after_ns <= series->settled_ns;
    if (place->has_before && after_settled)
        erase_interval(group, job, place->before_ns, place->after_ns);
    if (place->has_before)
        add_interval(group, job, place->before_ns, row->time_ns);
    if (after_settled)
        add_interval(group, job, row->time_ns, place->after_ns);
    if (row->used_bytes > rank->max_used_bytes)
        rank->max_used_bytes = row->used_bytes;
    if (rank->settled_count == 0 || row->time_ns > rank->last_ns)
        rank->last_ns = row->time_ns;
    rank->settled_count++;
    job->settled_count++;
    rank->cursor = series_seek(&group->store, series, series->settled_ns + 1);
}

void rank_group_unsettle(struct rank_group *group, struct job_state *job) {
    for (uint32_t i = 0; i < job->rank_count; i++) {
        struct rank_state *rank = rank_at(group, job->ranks[i].row);
        while (rank->newest_session != TABLE_NO_ROW) {
            uint32_t row = rank->newest_session;
            rank->newest_session = ((struct rank_session *)table_row(&group->sessions, row))->next;
            table_free(&group->sessions, row);
        }
        rank->session_count = 0;
        rank->cursor = series_begin(&rank->series);
        rank->settled_count = 0;
        rank->last_ns = 0;
        rank->max_used_bytes = 0;
        rank->series.settled_any = false;
    }
    for (uint32_t i = 0; i < job->claim_count; i++)
        job->claims[i].count = 0;
    job->settled_count = 0;
    order_release(&job->intervals);
    order_init(&job->intervals);
}

static void expire_rank(struct rank_group *group, struct job_state *job, struct rank_state *rank,
                        uint64_t before_ns) {
    struct rank_series *series = &rank->series;
    const struct sample_chunk *chunk;
    while ((chunk = rows_expired_chunk(&group->store, series, before_ns)) != NULL) {
        const struct sample_chunk *next = series_chunk(&group->store, series, 1);
        for (uint32_t i = 0; i < chunk->count; i++) {
            const struct sample *row = &chunk->rows[i];
            const struct sample *after = i + 1 < chunk->count ? row + 1 : next->rows;
            struct world_claim *claim = claim_of(group, job, series_origin(&group->store, row));
            if (claim != NULL)
                claim->count--;
            if (after->time_ns <= series->settled_ns)
                erase_interval(group, job, row->time_ns, after->time_ns);
        }
        rank->settled_count -= chunk->count;
        job->settled_count -= chunk->count;
        rows_drop_first_chunk(&group->store, series);
    }
}

void rank_group_expire(struct rank_group *group, struct job_state *job, uint64_t before_ns) {
    for (uint32_t i = 0; i < job->rank_count; i++)
        expire_rank(group, job, rank_at(group, job->ranks[i].row), before_ns);
}
