// SPDX-License-Identifier: Apache-2.0
// Adds up the rows up to an evaluation. Each row is counted once, when an evaluation reaches it:
// how many, the most used, which world size is claimed, which sessions there were, and, in a live
// pipeline, the intervals between neighbours. Rows that come late or expire are put right one by
// one. Where this is much, several threads count the ranks' own figures, and one thread puts
// together, in the order of the ranks, what they share: it walks through what was counted, not
// through the ranks.
#include "base/memory.h"
#include "base/sort.h"
#include "base/table/row_index.h"
#include "base/workers.h"
#include "processors/rank_group/state.h"

#include <assert.h>

void rank_group_sort(struct job_state *job, struct arena *scratch) {
    if (!job->ranks_sorted)
        sort_stable(job->ranks, job->rank_count, sizeof *job->ranks, scratch, compare_by_i32);
    job->ranks_sorted = true;
}

struct world_claim *job_claim(struct rank_group *group, struct job_state *job, int64_t world_size) {
    for (uint32_t i = 0; i < job->claim_count; i++)
        if (job->claims[i].world_size == world_size)
            return &job->claims[i];
    if (job->claim_count == WORLD_CLAIMS_MAX) {
        group->kept.claims_left_out = true;
        return NULL;
    }
    struct world_claim *claim = &job->claims[job->claim_count++];
    *claim = (struct world_claim){
        .world_size = world_size, .first_arrival = UINT64_MAX, .first_named_arrival = UINT64_MAX};
    return claim;
}

static struct rank_session *known_session(const struct rank_group *group,
                                          const struct rank_state *rank, string_id session) {
    for (uint32_t row = rank->newest_session; row != TABLE_NO_ROW;
         row = session_at(group, row)->next)
        if (session_at(group, row)->session == session)
            return session_at(group, row);
    return NULL;
}

// What was carried along with a sample: it counts for the generation that it names, if the sample
// is of that generation and not of one before it.
struct claim {
    uint32_t generation; // at least
    uint64_t first_ns;   // UINT64_MAX: unknown
};

static struct claim claim_with(const struct carried *carried, uint64_t time_ns) {
    struct claim claim = {.first_ns = UINT64_MAX};
    if (carried == NULL || carried->first_sample_ns > time_ns)
        return claim;
    if (carried->first_sample_ns != 0)
        claim.first_ns = carried->first_sample_ns;
    if (carried->generation != 0)
        claim.generation = carried->generation - 1;
    return claim;
}

// When a session began, as far as the sample tells, if it is of this generation or a later one.
static uint64_t session_begin(const struct claim *claim, uint32_t generation, uint64_t time_ns) {
    return claim->generation >= generation && claim->first_ns < time_ns ? claim->first_ns : time_ns;
}

// The session when it was not seen and starts later than the newest; else NULL.
static struct rank_session *begin_session(struct rank_group *group, struct rank_state *rank,
                                          string_id session, const struct claim *claim,
                                          uint64_t time_ns) {
    if (rank->session_count == RANK_SESSIONS_MAX)
        return NULL;
    uint32_t generation = 0;
    if (rank->newest_session != TABLE_NO_ROW) {
        const struct rank_session *newest = session_at(group, rank->newest_session);
        generation = newest->generation + 1;
        if (session_begin(claim, generation, time_ns) <= newest->first_ns)
            return NULL;
    }
    assert((rank->newest_session == TABLE_NO_ROW) == (rank->session_count == 0));
    uint32_t row = table_add(&group->sessions);
    *session_at(group, row) = (struct rank_session){.session = session,
                                                    .next = rank->newest_session,
                                                    .first_ns = time_ns,
                                                    .generation = generation};
    rank->newest_session = row;
    rank->session_count++;
    return session_at(group, row);
}

// The generations of the rank's sessions rise by at least one from each to the next newer one, the
// newest being `depth` steps above `session`, which has just been raised.
static void raise_newer(const struct rank_group *group, const struct rank_state *rank,
                        const struct rank_session *session) {
    uint32_t depth = 0;
    assert(rank->newest_session != TABLE_NO_ROW);
    for (uint32_t row = rank->newest_session; session_at(group, row) != session;
         row = session_at(group, row)->next)
        depth++;
    for (uint32_t row = rank->newest_session; depth > 0; depth--) {
        struct rank_session *newer = session_at(group, row);
        if (newer->generation < session->generation + depth)
            newer->generation = session->generation + depth;
        row = newer->next;
    }
}

// Each session of the rank that begins later than the ones before begins a generation.
static void note_session(struct rank_group *group, struct rank_state *rank,
                         const struct origin *origin, uint64_t time_ns) {
    struct claim claim = claim_with(origin_carried(&group->store, origin), time_ns);
    struct rank_session *session = NULL;
    if (origin->session != STRING_NONE) {
        session = known_session(group, rank, origin->session);
        if (session == NULL)
            session = begin_session(group, rank, origin->session, &claim, time_ns);
    }
    if (session != NULL) {
        uint64_t begin_ns = session_begin(&claim, session->generation, time_ns);
        if (begin_ns < session->first_ns)
            session->first_ns = begin_ns;
        if (claim.generation > session->generation) {
            session->generation = claim.generation;
            raise_newer(group, rank, session);
        }
        claim.generation = session_at(group, rank->newest_session)->generation;
    }
    if (claim.generation > rank->generation)
        rank->generation = claim.generation;
}

static struct world_claim *claim_of(struct rank_group *group, struct job_state *job,
                                    int32_t world_size) {
    return world_size > 1 ? job_claim(group, job, world_size) : NULL;
}

static void add_interval(const struct rank_group *group, struct job_state *job, uint64_t from_ns,
                         uint64_t to_ns) {
    if (group->live && to_ns > from_ns)
        order_add(job->intervals, to_ns - from_ns);
}

static void erase_interval(const struct rank_group *group, struct job_state *job, uint64_t from_ns,
                           uint64_t to_ns) {
    if (group->live && to_ns > from_ns)
        order_erase(job->intervals, to_ns - from_ns);
}

void rank_group_refresh(const struct rank_group *group, struct rank_state *rank) {
    assert(!rank->series.settled_any || rank->series.settled_ns <= group->kept.judged_ns);
    if (rank->series.settled_any)
        rank->series.settled_ns = group->kept.judged_ns;
}

// -- new rows -------------------------------------------------------------------------------------

// Samples of one origin that stand one behind the other.
struct origin_run {
    uint64_t first_ns, count;
    uint32_t origin;
    int32_t world_size;
    bool new_session; // it may begin a session, or tell more of one
};

// What was counted of one rank.
struct rank_count {
    uint32_t job;
    uint32_t first_run, run_count; // of its piece's list
    uint32_t interval_count;       // behind those of the ranks before it in its piece
    uint64_t rows;
    bool active; // rows that are new
    bool done;   // none of its rows is behind the evaluation
    bool shown;  // it has rows up to the evaluation
};

struct settling {
    struct rank_group *group;
    const uint32_t *rows; // of the ranks table
    struct rank_count *counts;
    uint32_t count, pieces;
    uint64_t as_of_ns;
};

// Whether its samples tell nothing of the rank's sessions that is not known: those of the newest
// session do not, where nothing was carried with them.
static bool tells_session(const struct rank_group *group, const struct rank_state *rank,
                          const struct origin *origin, uint64_t time_ns) {
    if (origin->carried != 0)
        return true;
    if (origin->session == STRING_NONE)
        return false;
    if (rank->newest_session == TABLE_NO_ROW)
        return true;
    const struct rank_session *newest = session_at(group, rank->newest_session);
    return newest->session != origin->session || time_ns < newest->first_ns ||
           rank->generation < newest->generation;
}

static void add_run(const struct rank_group *group, const struct rank_state *rank,
                    struct run_list *list, struct rank_count *counted, const struct sample *row,
                    uint64_t count) {
    assert(count > 0);
    struct origin_run *runs = list->runs;
    if (counted->run_count > 0 && runs[list->count - 1].origin == row->origin) {
        runs[list->count - 1].count += count;
        return;
    }
    const struct origin *origin = series_origin(&group->store, row);
    list->runs = runs = memory_room(runs, &list->capacity, list->count, sizeof *runs);
    runs[list->count++] =
        (struct origin_run){.origin = row->origin,
                            .world_size = origin->world_size,
                            .new_session = tells_session(group, rank, origin, row->time_ns),
                            .first_ns = row->time_ns,
                            .count = count};
    counted->run_count++;
}

static void list_interval(struct run_list *list, uint64_t from_ns, uint64_t to_ns) {
    if (to_ns <= from_ns)
        return;
    list->intervals = memory_room(list->intervals, &list->interval_capacity, list->interval_count,
                                  sizeof *list->intervals);
    list->intervals[list->interval_count++] = to_ns - from_ns;
}

static void count_run(const struct rank_group *group, struct rank_state *rank,
                      const struct sample *rows, uint32_t count, struct run_list *list,
                      struct rank_count *counted) {
    int64_t highest = rank->max_used_bytes;
    for (uint32_t begin = 0, end = 0; begin < count; begin = end) {
        uint32_t origin = rows[begin].origin;
        for (; end < count && rows[end].origin == origin; end++)
            highest = rows[end].used_bytes > highest ? rows[end].used_bytes : highest;
        add_run(group, rank, list, counted, &rows[begin], end - begin);
    }
    rank->max_used_bytes = highest;
    if (group->live) {
        if (rank->settled_count > 0)
            list_interval(list, rank->last_ns, rows[0].time_ns);
        for (uint32_t i = 1; i < count; i++)
            list_interval(list, rows[i - 1].time_ns, rows[i].time_ns);
    }
    for (uint32_t i = 0; rank->series.has_repeats && i < count; i++)
        rank->repeated_count += (rows[i].flags & SAMPLE_REPEATED) != 0;
    rank->settled_count += count;
    rank->last_ns = rows[count - 1].time_ns;
    counted->rows += count;
}

// What is the rank's own.
static void count_rank(const struct settling *settling, uint32_t number, struct run_list *list) {
    struct rank_group *group = settling->group;
    struct rank_state *rank = rank_at(group, settling->rows[number]);
    struct rank_series *series = &rank->series;
    struct rank_count *counted = &settling->counts[number];
    uint32_t intervals = list->interval_count;
    rank_group_refresh(group, rank);
    *counted = (struct rank_count){.job = rank->job, .first_run = list->count};
    const struct sample *rows;
    uint32_t count;
    while ((count = series_next_run(&group->store, series, &rank->cursor, settling->as_of_ns,
                                    &rows)) > 0)
        count_run(group, rank, rows, count, list, counted);
    assert(rank->settled_count <= series->sample_count);
    counted->interval_count = list->interval_count - intervals;
    // Rows that are only settled again, in a job whose figures were started again, are not new.
    counted->active = counted->rows > 0 && rank->last_ns > series->settled_ns;
    counted->done = series->sample_count == rank->settled_count;
    counted->shown = rank->settled_count > 0;
    series->settled_ns = settling->as_of_ns;
    series->settled_any = true;
    changes_note_expiry(group, settling->rows[number]);
}

static void count_piece(void *context, uint32_t piece, uint32_t worker) {
    const struct settling *settling = context;
    const struct rank_group *group = settling->group;
    (void)worker;
    struct run_list *list = &settling->group->run_lists[piece];
    uint32_t end = piece_begin(settling->count, settling->pieces, piece + 1);
    list->count = list->interval_count = 0;
    for (uint32_t i = piece_begin(settling->count, settling->pieces, piece); i < end; i++) {
        if (i + 2 * SERIES_AHEAD < end)
            series_prefetch(&group->store,
                            &rank_at(group, settling->rows[i + 2 * SERIES_AHEAD])->series);
        if (i + SERIES_AHEAD < end)
            series_prefetch_before(&group->store,
                                   &rank_at(group, settling->rows[i + SERIES_AHEAD])->series);
        count_rank(settling, i, list);
    }
}

// What ranks of a job have in common.
static void settle_rank(const struct settling *settling, uint32_t number,
                        const struct run_list *list, const uint64_t *intervals) {
    struct rank_group *group = settling->group;
    const struct rank_count *counted = &settling->counts[number];
    struct job_state *job = job_at(group, counted->job);
    for (uint32_t i = 0; i < counted->run_count; i++) {
        const struct origin_run *run = &list->runs[counted->first_run + i];
        struct world_claim *claim = claim_of(group, job, run->world_size);
        if (claim != NULL)
            claim->count += run->count;
        if (run->new_session)
            note_session(group, rank_at(group, settling->rows[number]),
                         table_row(&group->store.origins, run->origin), run->first_ns);
    }
    for (uint32_t i = 0; i < counted->interval_count; i++)
        order_add(job->intervals, intervals[i]);
    if (counted->active)
        job->active_ns = settling->as_of_ns;
    job->settled_count += counted->rows;
    changes_counted(&group->changes, settling->rows[number], counted->job, counted->done,
                    counted->shown);
}

enum { PIECE_SAMPLES = 32768, LIVE_PIECE_RANKS = 1024 };

// A live evaluation has few new rows a rank.
static uint32_t pieces_of(const struct rank_group *group, const uint32_t *rows, uint32_t count) {
    if (workers_count(group->workers) == 1)
        return 1;
    if (group->live)
        return workers_pieces(group->workers, count, LIVE_PIECE_RANKS, count);
    uint64_t samples = 0;
    for (uint32_t i = 0; i < count; i++)
        samples += rank_at(group, rows[i])->series.sample_count;
    return workers_pieces(group->workers, samples, PIECE_SAMPLES, count);
}

void rank_group_settle(struct rank_group *group, const uint32_t *rows, uint32_t count,
                       uint64_t as_of_ns, struct arena *arena) {
    for (uint32_t i = 0; i < group->jobs.used; i++) {
        struct job_state *job = job_at(group, i);
        if (job->had_late)
            job->active_ns = as_of_ns;
        job->had_late = false;
    }
    struct settling settling = {.group = group, .rows = rows, .count = count, .as_of_ns = as_of_ns};
    settling.counts = arena_take(arena, (count + 1) * sizeof *settling.counts);
    settling.pieces = pieces_of(group, rows, count);
    workers_run(group->workers, settling.pieces, count_piece, &settling);
    for (uint32_t piece = 0; piece < settling.pieces; piece++) {
        const struct run_list *list = &group->run_lists[piece];
        uint32_t end = piece_begin(count, settling.pieces, piece + 1), interval = 0;
        for (uint32_t i = piece_begin(count, settling.pieces, piece); i < end; i++) {
            settle_rank(&settling, i, list, list->intervals + interval);
            interval += settling.counts[i].interval_count;
        }
        assert(interval == list->interval_count);
    }
}

void rank_group_settle_late(struct rank_group *group, struct rank_state *rank,
                            const struct sample *row, const struct row_place *place) {
    struct job_state *job = job_at(group, rank->job);
    struct rank_series *series = &rank->series;
    const struct origin *origin = series_origin(&group->store, row);
    struct world_claim *claim = claim_of(group, job, origin->world_size);
    if (claim != NULL)
        claim->count++;
    note_session(group, rank, origin, row->time_ns);
    bool after_settled = place->has_after && place->after_ns <= series->settled_ns;
    if (place->has_before && after_settled)
        erase_interval(group, job, place->before_ns, place->after_ns);
    assert(place->late && (!place->has_before || place->before_ns <= row->time_ns));
    if (place->has_before)
        add_interval(group, job, place->before_ns, row->time_ns);
    if (after_settled)
        add_interval(group, job, row->time_ns, place->after_ns);
    if (row->used_bytes > rank->max_used_bytes)
        rank->max_used_bytes = row->used_bytes;
    if (rank->settled_count == 0 || row->time_ns > rank->last_ns)
        rank->last_ns = row->time_ns;
    rank->repeated_count += (row->flags & SAMPLE_REPEATED) != 0;
    rank->settled_count++;
    job->settled_count++;
    job->had_late = true;
    rank->cursor = series_seek(&group->store, series, series->settled_ns + 1);
}

static void free_sessions(struct rank_group *group, struct rank_state *rank) {
    table_free_list(&group->sessions, offsetof(struct rank_session, next), &rank->newest_session);
    rank->session_count = 0;
    rank->generation = 0;
}

void rank_group_free_rank(struct rank_group *group, uint32_t row) {
    struct rank_state *rank = rank_at(group, row);
    assert(rank->job != TABLE_NO_ROW);
    row_index_remove(&group->rank_index, rank_hash(rank->job, rank->series.rank), row);
    free_sessions(group, rank);
    changes_drop_rank(&group->changes, row, rank->job);
    rows_free(&group->store, &rank->series);
    table_free(&group->ranks, row);
    rank->job = TABLE_NO_ROW;
}

void rank_group_unsettle(struct rank_group *group, struct job_state *job) {
    for (uint32_t i = 0; i < job->rank_count; i++) {
        struct rank_state *rank = rank_at(group, job->ranks[i].row);
        changes_mark(&group->changes, job->ranks[i].row);
        changes_unknown_expiry(&group->changes, job->ranks[i].row);
        rank_group_refresh(group, rank);
        free_sessions(group, rank);
        rank->cursor = series_begin(&rank->series);
        rank->settled_count = rank->repeated_count = 0;
        rank->last_ns = 0;
        rank->max_used_bytes = 0;
        rank->series.settled_any = false;
    }
    for (uint32_t i = 0; i < job->claim_count; i++)
        job->claims[i].count = 0;
    job->settled_count = 0;
    if (job->intervals != NULL)
        order_release(job->intervals);
}

// Takes the rows of the first chunk, all of which were settled, out of the figures.
static void discount_chunk(struct rank_group *group, struct job_state *job, struct rank_state *rank,
                           const struct sample_chunk *chunk, const struct sample *next) {
    const struct rank_series *series = &rank->series;
    struct world_claim *claim = NULL;
    for (uint32_t i = 0; i < chunk->count; i++) {
        const struct sample *row = &chunk->rows[i];
        const struct sample *after = i + 1 < chunk->count ? row + 1 : next;
        if (i == 0 || row->origin != row[-1].origin)
            claim = claim_of(group, job, series_origin(&group->store, row)->world_size);
        assert(claim == NULL || claim->count > 0);
        if (claim != NULL)
            claim->count--;
        rank->repeated_count -= (row->flags & SAMPLE_REPEATED) != 0;
        if (after->time_ns <= series->settled_ns)
            erase_interval(group, job, row->time_ns, after->time_ns);
    }
    assert(rank->settled_count >= chunk->count && job->settled_count >= chunk->count);
    rank->settled_count -= chunk->count;
    job->settled_count -= chunk->count;
}

static void expire_rank(struct rank_group *group, uint32_t row, uint64_t before_ns) {
    struct rank_state *rank = rank_at(group, row);
    changes_unknown_expiry(&group->changes, row);
    struct job_state *job = job_at(group, rank->job);
    struct rank_series *series = &rank->series;
    rank_group_refresh(group, rank);
    const struct sample_chunk *chunk;
    while ((chunk = rows_expired_chunk(&group->store, series, before_ns)) != NULL) {
        // Not so when the rank turned up late, or its job's figures were started again.
        if (series->settled_any)
            discount_chunk(group, job, rank, chunk, series_chunk(&group->store, series, 1)->rows);
        rows_drop_first_chunk(&group->store, series);
    }
}

// Of the first chunk all is read, of the one behind it the first row.
static void prefetch_first(const struct rank_group *group, uint32_t row) {
    const struct rank_series *series = &rank_at(group, row)->series;
    if (series->chunk_count < 2)
        return;
    const char *chunk = table_row(&group->store.chunks, series->head);
    for (size_t at = 0; at < sizeof(struct sample_chunk); at += 64)
        __builtin_prefetch(chunk + at, 1);
    __builtin_prefetch(series_chunk(&group->store, series, 1));
}

void rank_group_expire(struct rank_group *group, const uint32_t *rows, uint32_t count,
                       uint64_t before_ns, struct arena *arena) {
    uint32_t *due = arena_take(arena, (count + 1) * sizeof *due), due_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t expires_ns = group->changes.expires_ns[rows[i]];
        if (expires_ns < before_ns || expires_ns == UINT64_MAX)
            due[due_count++] = rows[i];
    }
    for (uint32_t i = 0; i < due_count; i++) {
        if (i + 2 * SERIES_AHEAD < due_count)
            __builtin_prefetch(rank_at(group, due[i + 2 * SERIES_AHEAD])->series.chunks);
        if (i + SERIES_AHEAD < due_count)
            prefetch_first(group, due[i + SERIES_AHEAD]);
        expire_rank(group, due[i], before_ns);
    }
}

void rank_group_count_intervals(struct rank_group *group) {
    if (!group->live)
        return;
    for (uint32_t i = 0; i < group->ranks.used; i++) {
        struct rank_state *rank = rank_at(group, i);
        if (rank->job == TABLE_NO_ROW || !rank->series.settled_any)
            continue;
        rank_group_refresh(group, rank);
        struct job_state *job = job_at(group, rank->job);
        struct series_cursor cursor = series_begin(&rank->series);
        const struct sample *row;
        uint64_t before_ns = UINT64_MAX;
        while ((row = series_next(&group->store, &rank->series, &cursor,
                                  rank->series.settled_ns)) != NULL) {
            if (before_ns != UINT64_MAX)
                add_interval(group, job, before_ns, row->time_ns);
            before_ns = row->time_ns;
        }
    }
}
