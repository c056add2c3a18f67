// SPDX-License-Identifier: Apache-2.0
// Keeps the board within its bounds, and removes what is over.
//
// Jobs are looked through at each evaluation; those that are over go with all their rows, in one
// pass over these. Rows name texts by id and one another by key, so that they can be kept across a
// restart. Memory: 80 bytes a rank, 128 a verdict that stands, 1.2 KiB a pattern.
#include "exporters/prometheus/board.h"

#include "exporters/prometheus/board_parts.h"

#include "base/memory.h"

#include <stdlib.h>

static const struct row_type jobs_type = {.size = sizeof(struct job_row),
                                          .key_size = sizeof(string_id),
                                          .rows_per_chunk = 16,
                                          .strings = {offsetof(struct job_row, job)}};
static const struct row_type counters_type = {.size = sizeof(struct counter_row),
                                              .key_size = sizeof(struct counter_key),
                                              .rows_per_chunk = 64,
                                              .strings = {offsetof(struct counter_row, key.job),
                                                          offsetof(struct counter_row, key.pattern),
                                                          offsetof(struct counter_row, key.kind)}};
static const struct row_type open_type = {
    .size = sizeof(struct open_row),
    .key_size = BOARD_ID_SIZE,
    .rows_per_chunk = 32,
    .strings = {offsetof(struct open_row, job), offsetof(struct open_row, pattern),
                offsetof(struct open_row, kind), offsetof(struct open_row, rank),
                offsetof(struct open_row, node), offsetof(struct open_row, phase)}};
static const struct row_type ranks_type = {.size = sizeof(struct rank_row),
                                           .key_size = sizeof(struct rank_key),
                                           .rows_per_chunk = 64,
                                           .strings = {offsetof(struct rank_row, key.job)}};
static const struct row_type patterns_type = {.size = sizeof(struct pattern_row),
                                              .key_size = sizeof(string_id),
                                              .rows_per_chunk = 4,
                                              .strings = {offsetof(struct pattern_row, pattern)}};

const struct state_row board_state_rows[BOARD_STATE_ROWS] = {
    STATE_ROWS(struct board, jobs, "prometheus.jobs", jobs_type),
    STATE_ROWS(struct board, counters, "prometheus.counters", counters_type),
    STATE_ROWS(struct board, open, "prometheus.open", open_type),
    STATE_ROWS(struct board, ranks, "prometheus.ranks", ranks_type),
    STATE_ROWS(struct board, patterns, "prometheus.patterns", patterns_type),
    STATE_STRUCT(struct board, folded, "prometheus.folded"),
};

void board_init(struct board *board, uint32_t max_series, uint64_t expiration_ns, bool live) {
    assert(board->jobs.table.row_size == sizeof(struct job_row));
    board->max_series = max_series;
    board->expiration_ns = expiration_ns;
    board->live = live;
}

void board_release(struct board *board) {
    board_spans_release(board);
    memory_give(board->sorted_jobs);
    memory_give(board->sorted_counters);
    memory_give(board->sorted_open);
    memory_give(board->sorted_ranks);
    memory_give(board->sorted_patterns);
}

// -- room ----------------------------------------------------------------------------------------

bool board_take_series(struct board *board, uint32_t count) {
    assert(board->series_count <= board->max_series);
    if (count > board->max_series || board->series_count > board->max_series - count)
        return false;
    board->series_count += count;
    board->sorted = false;
    return true;
}

bool board_take_rank(struct board *board) {
    uint32_t most = board->max_series - board->max_series / 4;
    uint32_t taken = board->rank_series_count + board->span_series_count;
    if (taken + BOARD_RANK_SERIES > most || !board_take_series(board, BOARD_RANK_SERIES))
        return false;
    board->rank_series_count += BOARD_RANK_SERIES;
    assert(board->rank_series_count <= board->series_count);
    return true;
}

void board_give_series(struct board *board, uint32_t count) {
    assert(count <= board->series_count);
    board->series_count -= count;
    board->sorted = false;
}

// A load may bring more than there is room for now, when max_series was lowered: what comes last in
// the tables then goes, or is folded.
static void restore_room(struct board *board) {
    board->series_count = board->span_series_count;
    board->rank_series_count = 0;
    uint32_t at = 0;
    for (struct open_row *row; (row = keyed_rows_next(&board->open, &at)) != NULL;)
        row->admitted = board_take_series(board, BOARD_OPEN_SERIES);
    at = 0;
    for (struct pattern_row *row; (row = keyed_rows_next(&board->patterns, &at)) != NULL;)
        if (!board_take_series(board, BOARD_PATTERN_SERIES))
            keyed_rows_remove(&board->patterns, row);
    at = 0;
    for (struct counter_row *row; (row = keyed_rows_next(&board->counters, &at)) != NULL;)
        if (!board_take_series(board, 1)) {
            board->folded.verdicts += row->count;
            keyed_rows_remove(&board->counters, row);
        }
    at = 0;
    for (struct job_row *row; (row = keyed_rows_next(&board->jobs, &at)) != NULL;)
        row->admitted = board_take_series(board, 1);
    at = 0;
    for (struct rank_row *row; (row = keyed_rows_next(&board->ranks, &at)) != NULL;)
        if (!board_take_rank(board))
            keyed_rows_remove(&board->ranks, row);
}

void board_restored(struct board *board, uint64_t monotonic_ns) {
    uint32_t at = 0;
    for (struct job_row *job; (job = keyed_rows_next(&board->jobs, &at)) != NULL;) {
        job->touched_ns = monotonic_ns; // that clock began anew
        job->open = 0;
    }
    at = 0;
    for (struct open_row *row; (row = keyed_rows_next(&board->open, &at)) != NULL;) {
        struct job_row *job = keyed_rows_find(&board->jobs, &row->job);
        row->counted = job != NULL;
        if (job != NULL)
            job->open++;
    }
    restore_room(board);
    board->sorted = false;
}

// -- coming and going ----------------------------------------------------------------------------

string_id board_label(struct slice text) {
    char room[EXPOSITION_LABEL_MAX];
    struct slice shown = exposition_label_value(text, room);
    string_id id = shown.size == 0 ? STRING_NONE : intern(shown);
    return id == STRING_REFUSED ? STRING_NONE : id;
}

string_id board_label_id(string_id text) {
    if (text == STRING_NONE || text == STRING_REFUSED)
        return STRING_NONE;
    char room[EXPOSITION_LABEL_MAX];
    struct slice given = intern_slice(text);
    bool shown_alike = given.size > 0 && exposition_label_value(given, room).data == given.data;
    return shown_alike ? text : board_label(given);
}

struct job_row *board_job(struct board *board, string_id name, uint64_t monotonic_ns) {
    struct job_row *job = keyed_rows_find(&board->jobs, &name);
    if (job == NULL) {
        if (keyed_rows_count(&board->jobs) >= BOARD_JOBS_MAX)
            return NULL;
        job = keyed_rows_add(&board->jobs, &name);
        board->sorted = false;
    }
    job->touched_ns = monotonic_ns;
    return job;
}

void board_close(struct board *board, struct open_row *row) {
    assert(row->head.live);
    if (row->admitted)
        board_give_series(board, BOARD_OPEN_SERIES);
    struct job_row *job = row->counted ? keyed_rows_find(&board->jobs, &row->job) : NULL;
    assert(job == NULL || job->open > 0);
    if (job != NULL)
        job->open--;
    keyed_rows_remove(&board->open, row);
    board->sorted = false;
}

void board_drop_job(struct board *board, struct job_row *job, bool counters) {
    assert(job->head.live);
    string_id name = job->job;
    uint32_t at = 0;
    for (struct open_row *row; (row = keyed_rows_next(&board->open, &at)) != NULL;)
        if (row->job == name)
            board_close(board, row);
    at = 0;
    for (struct rank_row *row; (row = keyed_rows_next(&board->ranks, &at)) != NULL;)
        if (row->key.job == name) {
            keyed_rows_remove(&board->ranks, row);
            board->rank_series_count -= BOARD_RANK_SERIES;
            board_give_series(board, BOARD_RANK_SERIES);
        }
    if (job->admitted)
        board_give_series(board, 1);
    board_spans_forget(board, name);
    job->admitted = 0;
    job->evaluated = 0;
    job->fold = (struct rank_fold){0};
    board->sorted = false;
    if (!counters)
        return;
    at = 0;
    for (struct counter_row *row; (row = keyed_rows_next(&board->counters, &at)) != NULL;)
        if (row->key.job == name) {
            keyed_rows_remove(&board->counters, row);
            board_give_series(board, 1);
        }
    keyed_rows_remove(&board->jobs, job);
}

bool board_job_expired(const struct board *board, const struct job_row *job,
                       uint64_t monotonic_ns) {
    return job->open == 0 && monotonic_ns >= job->touched_ns &&
           monotonic_ns - job->touched_ns >= board->expiration_ns;
}

static void expire(struct board *board, uint64_t monotonic_ns) {
    uint32_t at = 0;
    for (struct job_row *job; (job = keyed_rows_next(&board->jobs, &at)) != NULL;)
        if (board_job_expired(board, job, monotonic_ns))
            board_drop_job(board, job, true);
}

// What was counted of a forgotten job stays until it expires, so that rates come out right.
static void forget(struct board *board, const struct forgotten *forgotten) {
    uint32_t at = 0;
    if (forgotten->everything)
        for (struct job_row *job; (job = keyed_rows_next(&board->jobs, &at)) != NULL;)
            board_drop_job(board, job, false);
    for (uint32_t i = 0; i < forgotten->job_count; i++) {
        string_id name = board_label_id(forgotten->jobs[i].job);
        struct job_row *job = keyed_rows_find(&board->jobs, &name);
        if (job != NULL)
            board_drop_job(board, job, false);
    }
}

void board_update(struct board *board, const struct batch *batch, struct board_moment now) {
    assert(board->series_count <= board->max_series);
    if (batch->evaluate && batch->forgotten != NULL)
        forget(board, batch->forgotten);
    expire(board, now.monotonic_ns);
    board_spans_expire(board, now.monotonic_ns);
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        board_verdict(board, &batch->verdicts.items[i], now);
    board_unfold(board);
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        board_evaluation(board, &batch->evaluations[i], now.monotonic_ns);
    board_spans(board, batch, now.monotonic_ns);
}
