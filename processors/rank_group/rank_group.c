// SPDX-License-Identifier: Apache-2.0
// Keeps what each rank used, and when. Each sample is copied once, 48 bytes, into the series of its
// job and rank, in time order; everything later reads from there. At an evaluation the rows up to
// its moment are counted once (settle.c) and shown to the later stages (view.c). Cost:
// amortised constant a sample. Memory: 48 bytes a sample kept plus one chunk of 1 KiB a rank.
#include "pipeline/component/component.h"

#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "base/table/row_index.h"
#include "pipeline/model/telemetry_event.h"
#include "processors/rank_group/state.h"

#include <assert.h>

enum { ALL_JOBS = 4 }; // times what one job may have

static const struct option OPTIONS[] = {
    OPTION(struct rank_group_config, retention, OPTION_DURATION, .default_value = "10m", .min = 1,
           .max = 31536000, .special = "all",
           .help = "how far back samples are kept, in event time, from the last evaluation; inputs "
                   "that end are always kept whole"),
    OPTION(struct rank_group_config, max_ranks, OPTION_INT, .default_value = "65536", .min = 1,
           .max = 16777216,
           .help = "ranks of a job; samples of further ones are dropped, with a note; all jobs "
                   "together may have four times as many, and each as many as it leaves free of "
                   "those"),
};

static const struct row_type RANKS = ROW_TYPE(struct rank_state, 64);
static const struct row_type SESSIONS =
    ROW_TYPE(struct rank_session, 256, offsetof(struct rank_session, session));
static const struct row_type JOBS = ROW_TYPE(struct job_state, 1, offsetof(struct job_state, job));
static const struct state_row STATE[] = {
    STATE_PART(struct rank_group, store, "rank_group.store", series_store_part),
    STATE_ROWS(struct rank_group, ranks, "rank_group.ranks", RANKS),
    STATE_ROWS(struct rank_group, sessions, "rank_group.sessions", SESSIONS),
    STATE_ROWS(struct rank_group, jobs, "rank_group.jobs", JOBS),
    STATE_STRUCT(struct rank_group, kept, "rank_group.kept"),
};

static const struct metric_family REPEATED = {
    .name = "culprit_repeated_samples_total",
    .help =
        "Samples that say what one of the same process and moment said before: no verdict "
        "counts them.",
    .type = METRIC_COUNTER,
};

static enum status rank_group_start(void *instance, const void *config,
                                    const struct component_context *context, struct error *error) {
    struct rank_group *self = instance;
    (void)error;
    self->config = *(const struct rank_group_config *)config;
    self->kept.pool = TABLE_NO_ROW;
    self->live = !context->once;
    self->workers = context->workers;
    self->repeated =
        METRIC(&REPEATED, "pipeline", context->pipeline == NULL ? "" : context->pipeline);
    return STATUS_OK;
}

void job_begin(const struct rank_group *self, struct job_state *job) {
    if (self->live)
        job->intervals = memory_zero(1, sizeof *job->intervals);
}

void job_release(struct job_state *job) {
    memory_give(job->ranks);
    if (job->intervals != NULL)
        order_release(job->intervals);
    memory_give(job->intervals);
    job->ranks = NULL;
    job->intervals = NULL;
}

void rank_group_clear(struct rank_group *self) {
    for (uint32_t i = 0; i < self->jobs.used; i++)
        job_release(job_at(self, i));
    for (uint32_t i = 0; i < self->ranks.used; i++)
        rows_release(&rank_at(self, i)->series);
    row_index_release(&self->job_index);
    row_index_release(&self->rank_index);
    rows_store_clear(&self->store);
    table_release(&self->jobs);
    table_release(&self->ranks);
    table_release(&self->sessions);
    changes_release(&self->changes);
    for (uint32_t i = 0; i < PIECES_MAX; i++) {
        memory_give(self->run_lists[i].runs);
        memory_give(self->run_lists[i].intervals);
    }
    memset(self->run_lists, 0, sizeof self->run_lists);
    worker_arenas_release(&self->arenas);
    self->kept = (struct rank_group_kept){.pool = TABLE_NO_ROW};
}

static void rank_group_stop(void *instance) {
    rank_group_clear(instance);
}

static uint32_t add_job(struct rank_group *self, string_id job, bool named) {
    uint32_t row = table_add(&self->jobs);
    struct job_state *state = job_at(self, row);
    state->job = job;
    state->named = named;
    state->first_arrival = UINT64_MAX;
    state->first_ns = UINT64_MAX;
    job_begin(self, state);
    changes_reserve(&self->changes, self->ranks.used, self->jobs.used);
    row_index_put(&self->job_index, job_hash(job), row);
    return row;
}

// Samples that name no job stand in the pool only while there is one job.
static void drop_nameless(struct rank_group *self) {
    assert(self->kept.named_jobs == 2);
    struct job_state *pool = job_at(self, self->kept.pool);
    for (uint32_t i = 0; i < pool->rank_count; i++) {
        struct rank_state *rank = rank_at(self, pool->ranks[i].row);
        rows_remove_flagged(&self->store, &rank->series, SAMPLE_JOB_NULL);
        rank->series.first_arrival = rank->first_named_arrival;
        rank->has_first = rank->series.sample_count > 0;
        if (rank->has_first)
            rank->first_ns = rank_group_first_held(self, rank);
    }
    for (uint32_t i = 0; i < pool->claim_count; i++)
        pool->claims[i].first_arrival = pool->claims[i].first_named_arrival;
    rank_group_unsettle(self, pool);
}

// The pool has had none that is named so far.
static void name_pool(struct rank_group *self, string_id job) {
    struct job_state *pool = job_at(self, self->kept.pool);
    assert(job != STRING_NONE);
    row_index_remove(&self->job_index, job_hash(pool->job), self->kept.pool);
    row_index_put(&self->job_index, job_hash(job), self->kept.pool);
    pool->job = job;
    pool->named = true;
    self->kept.named_jobs = 1;
}

// The pool's row for a job that was not seen before, or a new row.
static uint32_t place_new_job(struct rank_group *self, string_id job) {
    bool pooled = self->choice.mode != JOB_EACH;
    struct rank_group_kept *kept = &self->kept;
    if (table_live(&self->jobs) == 0 && pooled)
        kept->pool = add_job(self, STRING_NONE, false);
    if (pooled && job == STRING_NONE)
        return kept->pool;
    if (pooled && kept->named_jobs == 0 && kept->pool != TABLE_NO_ROW) {
        name_pool(self, job);
        return kept->pool;
    }
    if (table_live(&self->jobs) >= self->choice.max_jobs) {
        kept->jobs_left_out = true;
        return TABLE_NO_ROW;
    }
    if (job != STRING_NONE && ++kept->named_jobs == 2 && pooled && kept->pool != TABLE_NO_ROW)
        drop_nameless(self);
    return add_job(self, job, job != STRING_NONE);
}

static uint32_t known_job(const struct rank_group *self, string_id job) {
    if (self->last_job < self->jobs.used && job_at(self, self->last_job)->job == job)
        return self->last_job;
    for (uint32_t at = 0, row, hash = job_hash(job);
         (row = row_index_next(&self->job_index, hash, &at)) != TABLE_NO_ROW;)
        if (job_at(self, row)->job == job)
            return row;
    return TABLE_NO_ROW;
}

// Row of the job that takes this sample; TABLE_NO_ROW when none does.
static uint32_t find_job(struct rank_group *self, string_id job) {
    bool pooled = self->choice.mode != JOB_EACH;
    if (pooled && job == STRING_NONE && self->kept.named_jobs >= 2)
        return TABLE_NO_ROW;
    uint32_t row = known_job(self, job);
    if (row == TABLE_NO_ROW)
        row = place_new_job(self, job);
    if (row != TABLE_NO_ROW)
        self->last_job = row;
    return row;
}

void job_add_rank(struct job_state *job, int32_t rank, uint32_t row) {
    assert(rank >= 0 && rank <= RANK_MAX && row != TABLE_NO_ROW);
    if (job->rank_count == job->rank_capacity) {
        job->rank_capacity = job->rank_capacity == 0 ? 8 : job->rank_capacity * 2;
        job->ranks = memory_resize(job->ranks, job->rank_capacity * sizeof *job->ranks);
    }
    job->ranks_sorted =
        job->rank_count == 0 || (job->ranks_sorted && job->ranks[job->rank_count - 1].rank < rank);
    job->ranks[job->rank_count++] = (struct rank_entry){rank, row};
}

// A job gets as many as it leaves free, so that one of any size finds room beside the largest.
static bool has_room(const struct rank_group *self, const struct job_state *job) {
    uint64_t all = (uint64_t)self->config.max_ranks * ALL_JOBS;
    uint64_t live = table_live(&self->ranks);
    return job->rank_count < self->config.max_ranks && live < all && job->rank_count < all - live;
}

static uint32_t add_rank(struct rank_group *self, uint32_t job, int32_t rank) {
    if (!has_room(self, job_at(self, job))) {
        job_at(self, job)->ranks_left_out = true;
        return TABLE_NO_ROW;
    }
    uint32_t row = table_add(&self->ranks);
    struct rank_state *state = rank_at(self, row);
    state->series.rank = rank;
    state->series.first_arrival = UINT64_MAX;
    state->series.last_origin = TABLE_NO_ROW;
    state->first_named_arrival = UINT64_MAX;
    state->newest_session = TABLE_NO_ROW;
    state->job = job;
    changes_reserve(&self->changes, self->ranks.used, self->jobs.used);
    row_index_put(&self->rank_index, rank_hash(job, rank), row);
    job_add_rank(job_at(self, job), rank, row);
    return row;
}

static bool is_rank(const struct rank_group *self, uint32_t row, uint32_t job, int32_t rank) {
    const struct rank_state *state = rank_at(self, row);
    return state->series.rank == rank && state->job == job;
}

// `guess` is a row that may be it, or TABLE_NO_ROW.
static uint32_t find_rank(struct rank_group *self, uint32_t job, int32_t rank, uint32_t guess) {
    if (guess != TABLE_NO_ROW && is_rank(self, guess, job, rank))
        return guess;
    uint32_t hash = rank_hash(job, rank);
    for (uint32_t at = 0, row;
         (row = row_index_next(&self->rank_index, hash, &at)) != TABLE_NO_ROW;)
        if (is_rank(self, row, job, rank))
            return row;
    return add_rank(self, job, rank);
}

// A job of many ranks does not fit into the caches: what events will touch is asked for ahead, in
// three rounds (slot of the index, rank, end of its series), each AHEAD events before the next, so
// that none waits for another.
enum { AHEAD = 16, ROUNDS = 3, AHEAD_ROOM = 64 };
_Static_assert(AHEAD_ROOM > AHEAD * ROUNDS, "an event's place is its own until it is taken");

// Of the events that are on their way, by their number modulo AHEAD_ROOM.
struct ahead {
    uint32_t hashes[AHEAD_ROOM];
    uint32_t rows[AHEAD_ROOM]; // of the ranks table, a guess; TABLE_NO_ROW: none
};

static void fetch_slot(const struct rank_group *self, struct ahead *ahead,
                       const struct event *event, uint32_t place) {
    uint32_t hash = rank_hash(known_job(self, event->job), event->rank);
    ahead->hashes[place] = hash;
    __builtin_prefetch(row_index_slot(&self->rank_index, hash));
}

static void fetch_rank(const struct rank_group *self, struct ahead *ahead, uint32_t place) {
    uint32_t at = 0;
    ahead->rows[place] = row_index_next(&self->rank_index, ahead->hashes[place], &at);
    if (ahead->rows[place] == TABLE_NO_ROW)
        return;
    const char *rank = (const char *)rank_at(self, ahead->rows[place]);
    __builtin_prefetch(rank, 1);
    __builtin_prefetch(rank + 64, 1);
    __builtin_prefetch(rank + offsetof(struct rank_state, cursor) - 1, 1);
}

static void fetch_rows(const struct rank_group *self, const struct ahead *ahead, uint32_t place) {
    if (ahead->rows[place] != TABLE_NO_ROW)
        rows_prefetch(&self->store, &rank_at(self, ahead->rows[place])->series);
}

static struct sample sample_of(const struct telemetry *telemetry, uint32_t origin) {
    uint32_t nulls = telemetry->null_counters;
    uint32_t flags = (nulls & COUNTER_RESERVED ? SAMPLE_RESERVED_NULL : 0) |
                     (nulls & COUNTER_ALLOCATED ? SAMPLE_ALLOCATED_NULL : 0) |
                     (nulls & COUNTER_CHANGE ? SAMPLE_CHANGE_NULL : 0) |
                     (telemetry->job == STRING_NONE ? SAMPLE_JOB_NULL : 0);
    return (struct sample){.time_ns = telemetry->timestamp_ns,
                           .used_bytes = telemetry->device_used_bytes,
                           .reserved_bytes = telemetry->reserved_bytes,
                           .allocated_bytes = telemetry->allocated_bytes,
                           .change_bytes = telemetry->change_bytes,
                           .origin = origin,
                           .flags = flags};
}

// A new origin of this rank: notes when its claim of a world size was first made.
static void note_origin(struct rank_group *self, struct job_state *job,
                        const struct telemetry *telemetry, uint64_t arrival) {
    if (telemetry->world_size <= 1)
        return;
    struct world_claim *claim = job_claim(self, job, telemetry->world_size);
    if (claim == NULL)
        return;
    if (arrival < claim->first_arrival)
        claim->first_arrival = arrival;
    if (telemetry->job != STRING_NONE && arrival < claim->first_named_arrival)
        claim->first_named_arrival = arrival;
}

static void note_first(struct job_state *job, struct rank_state *rank, const struct event *event,
                       uint64_t arrival) {
    const struct telemetry *telemetry = event->telemetry;
    if (rank->series.first_arrival == UINT64_MAX)
        rank->series.first_arrival = arrival;
    if (!rank->has_first || telemetry->timestamp_ns < rank->first_ns)
        rank->first_ns = telemetry->timestamp_ns;
    if (event->carried != NULL && event->carried->first_sample_ns != 0 &&
        event->carried->first_sample_ns < rank->first_ns)
        rank->first_ns = event->carried->first_sample_ns;
    rank->has_first = true;
    if (telemetry->job == STRING_NONE)
        return;
    if (rank->first_named_arrival == UINT64_MAX)
        rank->first_named_arrival = arrival;
    if (job->first_arrival == UINT64_MAX)
        job->first_arrival = arrival;
    if (telemetry->timestamp_ns < job->first_ns)
        job->first_ns = telemetry->timestamp_ns;
}

static void take_sample(struct rank_group *self, const struct event *event, uint32_t guess) {
    const struct telemetry *telemetry = event->telemetry;
    assert(telemetry->type == TELEMETRY_SAMPLE);
    uint32_t job_row = find_job(self, telemetry->job);
    if (job_row == TABLE_NO_ROW)
        return;
    uint32_t rank_row = find_rank(self, job_row, telemetry->rank, guess);
    if (rank_row == TABLE_NO_ROW)
        return;
    struct job_state *job = job_at(self, job_row);
    struct rank_state *rank = rank_at(self, rank_row);
    uint64_t arrival = self->kept.arrivals++;
    struct origin_key key = {telemetry, event->carried, job_row};
    uint32_t origin = rows_origin(&self->store, rank->series.last_origin, &key);
    if (origin != rank->series.last_origin) {
        rank->series.last_origin = origin;
        note_origin(self, job, telemetry, arrival);
    }
    note_first(job, rank, event, arrival);
    struct sample row = sample_of(telemetry, origin);
    enum rows_held held = rows_have(&self->store, &rank->series, &row);
    self->repeats += held != ROWS_HELD_NOT;
    if (held == ROWS_HELD && self->live)
        return;
    if (held != ROWS_HELD_NOT)
        row.flags |= SAMPLE_REPEATED;
    changes_mark(&self->changes, rank_row);
    rank_group_refresh(self, rank);
    struct row_place place = rows_insert(&self->store, &rank->series, &row, self->by_value);
    if (place.late) {
        changes_unknown_expiry(&self->changes, rank_row);
        rank_group_settle_late(self, rank, &row, &place);
    }
}

static void note_time(bool *seen, uint64_t *first_ns, uint64_t time_ns) {
    if (!*seen || time_ns < *first_ns)
        *first_ns = time_ns;
    *seen = true;
}

static void take_event(struct rank_group *self, const struct event *event, uint32_t guess) {
    const struct telemetry *telemetry = event->telemetry;
    struct rank_group_kept *kept = &self->kept;
    kept->event_count++;
    if (telemetry->type != TELEMETRY_SAMPLE)
        note_time(&kept->saw_other, &kept->first_other_ns, event->time_ns);
    else if (telemetry->null_counters & COUNTER_DEVICE_USED)
        note_time(&kept->saw_null_used, &kept->first_null_used_ns, event->time_ns);
    else
        take_sample(self, event, guess);
}

// Before which rows go: what was judged before and is older than the retention. 0: none do.
static uint64_t expire_before(const struct rank_group *self) {
    uint64_t retention_ns = (uint64_t)self->config.retention.ns;
    if (!self->live || self->config.retention.ns == DURATION_SPECIAL ||
        self->kept.judged_ns < retention_ns)
        return 0;
    return self->kept.judged_ns - retention_ns;
}

// Lets rows go that are too old. The ranks that changed: how many, and which.
static uint32_t expire(struct rank_group *self, struct arena *arena, const uint32_t **rows) {
    uint64_t before_ns = expire_before(self);
    uint32_t count = changes_list(self, before_ns, arena, rows);
    if (before_ns > 0)
        rank_group_expire(self, *rows, count, before_ns, arena);
    self->expired = true;
    return count;
}

static void evaluate(struct rank_group *self, struct batch *batch) {
    changes_begin(self);
    const uint32_t *rows;
    uint32_t count = expire(self, batch->arena, &rows);
    for (uint32_t i = 0; i < self->jobs.used; i++)
        rank_group_sort(job_at(self, i), batch->arena);
    rank_group_settle(self, rows, count, batch->as_of_ns, batch->arena);
    self->kept.judged_ns = batch->as_of_ns;
    self->expired = false;
    rank_group_forget(self, batch);
    rank_group_view(self, batch);
}

// Takes the events of the batch from `first` on one after the other, those behind on their way.
static void take_events(struct rank_group *self, const struct batch *batch, uint32_t first) {
    assert(first <= batch->event_count);
    const struct event *events = batch->events + first;
    const uint32_t count = batch->event_count - first, step = count < AHEAD ? count : AHEAD;
    struct ahead ahead = {.hashes = {0}};
    for (uint32_t i = 0; i < count + ROUNDS * step; i++) {
        uint32_t ranks = i - step, rows = i - 2 * step, take = i - 3 * step; // wrap at first
        if (i < count)
            fetch_slot(self, &ahead, &events[i], i % AHEAD_ROOM);
        if (ranks < count)
            fetch_rank(self, &ahead, ranks % AHEAD_ROOM);
        if (rows < count)
            fetch_rows(self, &ahead, rows % AHEAD_ROOM);
        if (take < count && events[take].kind == EVENT_TELEMETRY &&
            batch_selects(batch, first + take))
            take_event(self, &events[take], ahead.rows[take % AHEAD_ROOM]);
    }
}

static uint32_t first_telemetry(const struct batch *batch) {
    uint32_t first = 0;
    while (first < batch->event_count && batch->events[first].kind != EVENT_TELEMETRY)
        first++;
    return first;
}

static void rank_group_consume(void *instance, struct batch *batch) {
    struct rank_group *self = instance;
    assert(batch->job_choice != NULL && "job_filter stands before");
    self->choice = *batch->job_choice;
    self->by_value = !batch->ordered;
    uint32_t first = first_telemetry(batch);
    if (first < batch->event_count) {
        // What the evaluation before leaves to expire goes now, while nobody waits for a verdict.
        const uint32_t *rows;
        if (!self->expired && expire_before(self) > 0)
            expire(self, batch->arena, &rows);
        take_events(self, batch, first);
    }
    metric_add(self->repeated, self->repeats - self->repeats_told);
    self->repeats_told = self->repeats;
    if (batch->evaluate)
        evaluate(self, batch);
}

const struct component_type processor_rank_group = {
    .name = "rank_group",
    .summary = "Keeps the samples of each rank of a job in time order.",
    .kind = COMPONENT_PROCESSOR,
    .stability = STABILITY_BETA,
    .presets = 1u << PRESET_MEMORY | 1u << PRESET_ALL,
    .options = OPTIONS,
    .option_count = OPTION_COUNT(OPTIONS),
    .config_size = sizeof(struct rank_group_config),
    .instance_size = sizeof(struct rank_group),
    .needs = FACT_JOBS,
    .gives = FACT_SERIES,
    .start = rank_group_start,
    .stop = rank_group_stop,
    .state_rows = STATE,
    .state_row_count = STATE_ROW_COUNT(STATE),
    .restored = rank_group_restored,
    .processor = {.consume = rank_group_consume},
};
