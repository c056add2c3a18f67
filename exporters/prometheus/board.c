// SPDX-License-Identifier: Apache-2.0
// What is on the board, how much room is left, and when does something leave it?
//
// Jobs are looked through at each evaluation; those that are over go with all their rows, in one
// pass over these. Rows name texts by id and one another by key, so that they can be kept across a
// restart. Memory: 80 bytes a rank, 128 a verdict that stands, 1.2 KiB a pattern.
#include "exporters/prometheus/board_parts.h"

#include "base/memory.h"

#include <stdlib.h>

void board_init(struct board *board, uint32_t max_series, uint64_t expiration_ns, bool live) {
    *board = (struct board){.max_series = max_series, .expiration_ns = expiration_ns, .live = live};
    keyed_rows_init(&board->jobs, "prometheus.jobs", sizeof(struct job_row), sizeof(string_id), 16);
    keyed_rows_init(&board->counters, "prometheus.counters", sizeof(struct counter_row),
                    sizeof(struct counter_key), 64);
    keyed_rows_init(&board->open, "prometheus.open", sizeof(struct open_row), BOARD_ID_SIZE, 32);
    keyed_rows_init(&board->ranks, "prometheus.ranks", sizeof(struct rank_row),
                    sizeof(struct rank_key), 64);
    keyed_rows_init(&board->patterns, "prometheus.patterns", sizeof(struct pattern_row),
                    sizeof(string_id), 4);
}

void board_release(struct board *board) {
    keyed_rows_release(&board->jobs);
    keyed_rows_release(&board->counters);
    keyed_rows_release(&board->open);
    keyed_rows_release(&board->ranks);
    keyed_rows_release(&board->patterns);
    board_spans_release(board);
    memory_give(board->sorted_jobs);
    memory_give(board->sorted_counters);
    memory_give(board->sorted_open);
    memory_give(board->sorted_ranks);
    memory_give(board->sorted_patterns);
}

void board_state(struct board *board, struct state_list *list) {
    struct state_entry *jobs = state_list_table(list, &board->jobs.table);
    state_entry_string(jobs, offsetof(struct job_row, job));
    struct state_entry *counters = state_list_table(list, &board->counters.table);
    state_entry_string(counters, offsetof(struct counter_row, key.job));
    state_entry_string(counters, offsetof(struct counter_row, key.pattern));
    state_entry_string(counters, offsetof(struct counter_row, key.kind));
    struct state_entry *open = state_list_table(list, &board->open.table);
    state_entry_string(open, offsetof(struct open_row, job));
    state_entry_string(open, offsetof(struct open_row, pattern));
    state_entry_string(open, offsetof(struct open_row, kind));
    state_entry_string(open, offsetof(struct open_row, rank));
    state_entry_string(open, offsetof(struct open_row, node));
    state_entry_string(open, offsetof(struct open_row, phase));
    struct state_entry *ranks = state_list_table(list, &board->ranks.table);
    state_entry_string(ranks, offsetof(struct rank_row, key.job));
    struct state_entry *patterns = state_list_table(list, &board->patterns.table);
    state_entry_string(patterns, offsetof(struct pattern_row, pattern));
    state_list_struct(list, "prometheus.folded", &board->folded, sizeof board->folded);
}

// -- room ----------------------------------------------------------------------------------------

bool board_take_series(struct board *board, uint32_t count) {
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
    return true;
}

void board_give_series(struct board *board, uint32_t count) {
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
    keyed_rows_restored(&board->jobs);
    keyed_rows_restored(&board->counters);
    keyed_rows_restored(&board->open);
    keyed_rows_restored(&board->ranks);
    keyed_rows_restored(&board->patterns);
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
    if (row->admitted)
        board_give_series(board, BOARD_OPEN_SERIES);
    struct job_row *job = row->counted ? keyed_rows_find(&board->jobs, &row->job) : NULL;
    if (job != NULL)
        job->open--;
    keyed_rows_remove(&board->open, row);
    board->sorted = false;
}

void board_drop_job(struct board *board, struct job_row *job, bool counters) {
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
