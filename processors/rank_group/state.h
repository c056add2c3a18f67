// SPDX-License-Identifier: Apache-2.0
// What rank_group remembers, shared by the files it is made of.
#pragma once

#include "base/table/row_index.h"
#include "base/workers.h"
#include "config/option.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"
#include "pipeline/model/evaluation.h"
#include "processors/rank_group/order_statistic.h"
#include "processors/rank_group/rows.h"

enum { RANK_SESSIONS_MAX = 64, WORLD_CLAIMS_MAX = 64 };

// A session of one rank: each that starts later than the one before begins a generation of the
// rank.
struct rank_session {
    uint32_t next; // row of the next older one, or TABLE_NO_ROW
    string_id session;
    uint64_t first_ns;
    uint32_t generation; // of the rank, from 0
};

struct rank_state {
    struct rank_series series;
    uint32_t job;                 // row of the jobs table; TABLE_NO_ROW: this row is free
    uint64_t first_named_arrival; // of its first row with a job; UINT64_MAX none
    uint64_t first_ns;            // of its first row ever, here or where it was carried from
    bool has_first;
    uint16_t session_count; // read off the settled rows, like what follows; here for its size

    // Read off the rows up to series.settled_ns:
    struct series_cursor cursor;
    uint32_t repeated_count; // of the settled ones, rows that repeat one
    uint64_t settled_count;
    uint64_t last_ns;
    int64_t max_used_bytes;
    uint32_t newest_session; // row of the sessions table, or TABLE_NO_ROW
    uint32_t generation;
};

struct rank_entry {
    int32_t rank; // first, for compare_by_i32
    uint32_t row; // of the ranks table
};

// How many samples say that the world has this size.
struct world_claim {
    int64_t world_size;
    uint64_t count; // settled
    uint64_t first_arrival;
    uint64_t first_named_arrival;
};

// The samples of one job. The first job is the pool: it takes the samples of the first job that
// is named and those that name none, until a second job turns up; then the nameless ones are
// dropped. Under `each` there is no pool: nameless samples are a job of their own. When all jobs
// were forgotten, the next one is a pool again.
struct job_state {
    uint32_t claim_count; // first, where a free row has the chain of free rows
    string_id job;        // STRING_REFUSED: this row is free
    bool named;
    bool ranks_left_out;    // there was no room for some
    uint64_t first_arrival; // of its first named row
    uint64_t first_ns;
    uint64_t settled_count;   // rows in all its ranks
    uint64_t active_ns;       // the last evaluation that had new rows of it
    bool had_late;            // rows at or before the last evaluation came since then
    struct rank_entry *ranks; // ascending once `ranks_sorted`
    bool ranks_sorted;
    uint32_t rank_count;
    uint32_t rank_capacity;
    struct world_claim claims[WORLD_CLAIMS_MAX];
    struct order_statistic *intervals; // live only: of the settled rows
};

// What has to outlive a restart beside the tables.
struct rank_group_kept {
    uint64_t arrivals; // samples seen so far
    uint64_t event_count;
    uint64_t first_other_ns, first_null_used_ns; // when seen, in event time
    uint64_t judged_ns;                          // moment of the last evaluation; 0 none yet
    uint32_t named_jobs;                         // seen since there was none
    uint32_t pool;                               // row of the jobs table, or TABLE_NO_ROW
    bool saw_other, saw_null_used;
    bool jobs_left_out, claims_left_out;
};

struct rank_group_config {
    struct duration retention; // DURATION_SPECIAL: all
    int64_t max_ranks;         // of one job
};

// -- what evaluations keep (changes.c), none of which is state: after a restart all ranks count as
// changed

// What is shown of one job.
struct job_views {
    bool stale; // is made anew when the job is shown next
    bool shown; // in the newest evaluation
    uint32_t count, capacity;
    struct rank_view *views; // [count], ranks ascending
    uint32_t *generations;   // [count], of the ranks
    uint32_t *changed;       // [count]: which views the newest evaluation changed
    uint32_t changed_count;
    uint32_t generation; // of the job
};

struct rank_changes {
    // By row of the ranks table:
    uint64_t *marks;      // one bit a rank: rows came in that no evaluation has counted, or figures
                          // were started again
    uint64_t *expires_ns; // time of the last row of its first chunk, where another chunk follows
                          // and that row is settled; UINT64_MAX: none, or not known
    uint32_t *places;     // its view's place in its job's; TABLE_NO_ROW: it has none
    uint32_t rank_capacity; // of the three; a multiple of 64
    struct job_views *jobs; // by row of the jobs table
    uint32_t job_capacity;
};

// Scratch of an evaluation (settle.c), by piece; not state.
struct run_list {
    struct origin_run *runs;
    uint32_t count, capacity;
    uint64_t *intervals; // live only
    uint32_t interval_count, interval_capacity;
};

struct rank_group {
    struct rank_group_config config;
    struct series_store store;
    struct table ranks;
    struct table sessions;
    struct table jobs;
    struct row_index job_index;  // jobs by their names
    struct row_index rank_index; // ranks by job row and rank
    uint32_t last_job;           // row that matched last
    struct rank_group_kept kept;
    bool live;    // evaluated again and again; intervals are kept up to date
    bool expired; // what the last evaluation left to expire is gone
    bool lost;    // rows of a restart did not fit: the other stages have to forget too
    struct job_choice choice;
    bool by_value;    // order of equal rows: by value, since arrival is a race
    uint64_t repeats; // samples that came before, told to `repeated` up to …
    uint64_t repeats_told;
    struct metric *repeated;
    struct rank_changes changes;
    struct workers *workers;
    struct run_list run_lists[PIECES_MAX];
    struct worker_arenas arenas; // of views of many jobs
};

TABLE_ACCESS(job_at, struct rank_group, jobs, struct job_state)
TABLE_ACCESS(rank_at, struct rank_group, ranks, struct rank_state)
TABLE_ACCESS(session_at, struct rank_group, sessions, struct rank_session)

static inline uint32_t job_hash(string_id job) {
    return row_hash(job, 0);
}

static inline uint32_t rank_hash(uint32_t job, int32_t rank) {
    enum { TOGETHER = 8 }; // slots of neighbours stand in one line of the cache
    return row_hash(job, (uint32_t)rank / TOGETHER) * TOGETHER + (uint32_t)rank % TOGETHER;
}

// Forgets all and gives its memory back; the options stay.
void rank_group_clear(struct rank_group *group);
// What a job holds beside its row.
void job_begin(const struct rank_group *group, struct job_state *job);
void job_release(struct job_state *job);
// Time of the rank's first row that is held, or what was carried with it when that is earlier.
uint64_t rank_group_first_held(const struct rank_group *group, const struct rank_state *rank);
void job_add_rank(struct job_state *job, int32_t rank, uint32_t row);
// All of the rank, the entry in its job's list aside.
void rank_group_free_rank(struct rank_group *group, uint32_t row);

// pipeline/component/state.h
void rank_group_restored(void *instance);

// Forgets jobs that had no new row for choice.idle_ns, and says so in the batch.
void rank_group_forget(struct rank_group *group, struct batch *batch);

// The claim of this size among the job's, made when new; NULL when there are too many.
struct world_claim *job_claim(struct rank_group *group, struct job_state *job, int64_t world_size);

// Puts the job's ranks in order; O(1) when none was added since. Scratch is taken from the arena.
void rank_group_sort(struct job_state *job, struct arena *scratch);
// The intervals between the rows that were settled, from the rows. O(rows).
void rank_group_count_intervals(struct rank_group *group);
// Takes the rows up to `as_of_ns` of these ranks (rows of the ranks table) into the figures of
// their ranks and jobs. O(ranks + new rows).
void rank_group_settle(struct rank_group *group, const uint32_t *rows, uint32_t count,
                       uint64_t as_of_ns, struct arena *arena);
// Brings series.settled_ns up to date, which an evaluation leaves alone where nothing changed.
void rank_group_refresh(const struct rank_group *group, struct rank_state *rank);
// A row came in at or before what was settled: puts the figures right.
void rank_group_settle_late(struct rank_group *group, struct rank_state *rank,
                            const struct sample *row, const struct row_place *place);
// Starts the figures of the job again from nothing (its rows were changed).
void rank_group_unsettle(struct rank_group *group, struct job_state *job);
// Gives back chunks of these ranks (rows of the ranks table) whose rows are all before `before_ns`.
void rank_group_expire(struct rank_group *group, const uint32_t *rows, uint32_t count,
                       uint64_t before_ns, struct arena *arena);

// Adds the evaluations that are due to the batch. O(ranks · log).
void rank_group_view(struct rank_group *group, struct batch *batch);

void changes_release(struct rank_changes *changes);
// Room for so many rows of both tables. New ranks are marked.
void changes_reserve(struct rank_changes *changes, uint32_t ranks, uint32_t jobs);

static inline void changes_mark(struct rank_changes *changes, uint32_t rank_row) {
    changes->marks[rank_row / 64] |= UINT64_C(1) << rank_row % 64;
}

// Its first chunk, or the end of it, changed.
static inline void changes_unknown_expiry(struct rank_changes *changes, uint32_t rank_row) {
    changes->expires_ns[rank_row] = UINT64_MAX;
}

static inline bool changes_marked(const struct rank_changes *changes, uint32_t rank_row) {
    return changes->marks[rank_row / 64] >> rank_row % 64 & 1;
}

// The rank's row is free: nothing is known of it any more.
void changes_drop_rank(struct rank_changes *changes, uint32_t rank_row, uint32_t job_row);
void changes_drop_job(struct rank_changes *changes, uint32_t job_row);

void changes_begin(struct rank_group *group); // an evaluation
// The rows of the ranks table that are marked, and from now on those with a chunk that ends before
// `before_ns`, ascending, in memory of the arena. O(ranks / 64), and 8 bytes a rank are read when
// `before_ns` is not 0.
uint32_t changes_list(struct rank_group *group, uint64_t before_ns, struct arena *arena,
                      const uint32_t **rows);
// When rows of the settled rank will expire, where that is not known. Of other ranks it may be
// called meanwhile.
void changes_note_expiry(struct rank_group *group, uint32_t rank_row);
// The rank's rows were counted, up to the moment of the evaluation: whether that is all that it
// has, and whether there are any.
void changes_counted(struct rank_changes *changes, uint32_t rank_row, uint32_t job_row, bool all,
                     bool any);
