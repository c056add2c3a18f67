// SPDX-License-Identifier: Apache-2.0
// How is each rank of a job?
//
// Every evaluation shows all ranks of its job, so a rank without a series is folded into its job's
// figures, which are made anew each time: nothing is kept of it, and it gets a series as soon as
// there is room. O(ranks), each with one look-up by hash and one of its last sample.
#include "exporters/prometheus/board_parts.h"

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void fold(struct rank_fold *into, const struct rank_row *rank) {
    if (into->count == 0 || rank->last_ns < into->last_ns)
        into->last_ns = rank->last_ns;
    into->count++;
    into->samples += rank->samples;
    if (rank->has_memory) {
        into->used_bytes =
            into->has_memory ? larger(into->used_bytes, rank->used_bytes) : rank->used_bytes;
        into->peak_bytes =
            into->has_memory ? larger(into->peak_bytes, rank->peak_bytes) : rank->peak_bytes;
        into->has_memory = 1;
    }
    if (rank->has_growth) {
        into->growth_bytes =
            into->has_growth ? larger(into->growth_bytes, rank->growth_bytes) : rank->growth_bytes;
        into->has_growth = 1;
    }
}

static void measure(struct rank_row *row, const struct evaluation *evaluation, uint32_t index) {
    const struct rank_view *view = &evaluation->ranks[index];
    const struct sample *last = series_at_or_before(evaluation->store, view->series, view->last_ns);
    row->last_ns = view->last_ns;
    row->samples = view->sample_count;
    if (last != NULL) {
        row->has_memory = 1;
        row->used_bytes = last->used_bytes;
        row->peak_bytes = larger(view->max_used_bytes, last->used_bytes);
    }
    row->has_growth = evaluation->spikes != NULL;
    if (row->has_growth)
        row->growth_bytes = evaluation->spikes[index].low_growth_bytes;
}

void board_evaluation(struct board *board, const struct evaluation *evaluation,
                      uint64_t monotonic_ns) {
    if (evaluation->rank_count == 0)
        return;
    struct rank_key key = {.job = board_label_id(evaluation->job)};
    struct job_row *job = board_job(board, key.job, monotonic_ns);
    if (job == NULL) {
        board->overflow_count += 1 + (uint64_t)BOARD_RANK_SERIES * evaluation->rank_count;
        return;
    }
    if (!job->admitted)
        job->admitted = board_take_series(board, 1);
    board->overflow_count += !job->admitted;
    job->evaluated = 1;
    job->generation = evaluation->generation;
    job->world_size =
        evaluation->world_size > 0 ? evaluation->world_size : evaluation->claimed_world_size;
    job->fold = (struct rank_fold){0};
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        struct rank_row folded = {0};
        key.rank = evaluation->ranks[i].series->rank;
        struct rank_row *row = keyed_rows_find(&board->ranks, &key);
        if (row == NULL && board_take_rank(board))
            row = keyed_rows_add(&board->ranks, &key);
        measure(row == NULL ? &folded : row, evaluation, i);
        if (row != NULL)
            continue;
        fold(&job->fold, &folded);
        board->overflow_count += BOARD_RANK_SERIES;
    }
}
