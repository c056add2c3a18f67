// SPDX-License-Identifier: Apache-2.0
// Records the figures of each rank on the board.
//
// Every evaluation shows all ranks of its job, so a rank without a series is folded into its job's
// figures, which are made anew each time: nothing is kept of it, and it gets a series as soon as
// there is room. O(ranks), each with one look-up by hash and one of its last sample.
#include "exporters/prometheus/board_parts.h"
#include "pipeline/model/series.h"

// By name, as they are written.
const struct rank_family rank_families[BOARD_RANK_SERIES] = {
    {"culprit_rank_device_memory_peak_bytes",
     "Most device memory that a rank was ever seen to use.", EXPOSITION_GAUGE, RANK_PEAK_BYTES,
     RANK_MEMORY, FOLD_LARGEST},
    {"culprit_rank_device_memory_used_bytes", "Device memory in use at a rank's newest sample.",
     EXPOSITION_GAUGE, RANK_USED_BYTES, RANK_MEMORY, FOLD_LARGEST},
    {"culprit_rank_last_event_timestamp_seconds", "Time of the newest event of a rank.",
     EXPOSITION_GAUGE, RANK_LAST_NS, RANK_ALWAYS, FOLD_SMALLEST},
    {"culprit_rank_memory_growth_bytes",
     "How far the lows of a rank's memory have risen since its job's generation began.",
     EXPOSITION_GAUGE, RANK_GROWTH_BYTES, RANK_GROWTH, FOLD_LARGEST},
    {"culprit_rank_samples_total", "Samples that were taken in of a rank.", EXPOSITION_COUNTER,
     RANK_SAMPLES, RANK_ALWAYS, FOLD_SUM},
};

int64_t rank_fold_value(enum fold_rule rule, bool first, int64_t have, int64_t more) {
    assert(rule <= FOLD_SMALLEST);
    if (first)
        return more;
    if (rule == FOLD_SUM)
        return have + more;
    return (more > have) == (rule == FOLD_LARGEST) ? more : have;
}

static void fold(struct rank_fold *into, const struct rank_row *rank) {
    for (uint32_t i = 0; i < BOARD_RANK_SERIES; i++) {
        const struct rank_family *of = &rank_families[i];
        bool always = of->group == RANK_ALWAYS;
        bool first = always ? into->count == 0 : into->has[of->group] == 0;
        int64_t *figure = &into->figures[of->figure];
        if (always || rank->has[of->group])
            *figure = rank_fold_value(of->rule, first, *figure, rank->figures[of->figure]);
    }
    into->count++;
    for (uint32_t i = 0; i < RANK_GROUPS; i++)
        into->has[i] |= rank->has[i];
}

static void measure(struct rank_row *row, const struct evaluation *evaluation, uint32_t index) {
    const struct rank_view *view = &evaluation->ranks[index];
    assert(index < evaluation->rank_count);
    const struct sample *last = series_at_or_before(evaluation->store, view->series, view->last_ns);
    row->figures[RANK_LAST_NS] = (int64_t)view->last_ns;
    row->figures[RANK_SAMPLES] = (int64_t)view->sample_count;
    if (last != NULL) {
        row->has[RANK_MEMORY] = 1;
        row->figures[RANK_USED_BYTES] = last->used_bytes;
        row->figures[RANK_PEAK_BYTES] =
            rank_fold_value(FOLD_LARGEST, false, view->max_used_bytes, last->used_bytes);
    }
    row->has[RANK_GROWTH] = evaluation->spikes != NULL;
    if (evaluation->spikes != NULL)
        row->figures[RANK_GROWTH_BYTES] = evaluation->spikes[index].low_growth_bytes;
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
