// SPDX-License-Identifier: Apache-2.0
// What the files of the board share.
#pragma once

#include "exporters/prometheus/board_rows.h"

// Takes room for so many series; false when there is none.
bool board_take_series(struct board *board, uint32_t count);
bool board_take_rank(struct board *board);
void board_give_series(struct board *board, uint32_t count);
// The job's row, made when new, touched now; NULL when there are too many.
struct job_row *board_job(struct board *board, string_id job, uint64_t monotonic_ns);
// Takes everything of a job away but, unless `counters`, what was counted.
void board_drop_job(struct board *board, struct job_row *job, bool counters);
void board_close(struct board *board, struct open_row *row);
// The id of a text as it is shown; STRING_NONE for an empty one.
string_id board_label(struct slice text);
string_id board_label_id(string_id text);

// One figure of ranks, and how those without series of their own become one value: the rank that
// was silent longest, all samples, the largest use.
enum fold_rule { FOLD_SUM, FOLD_LARGEST, FOLD_SMALLEST };
struct rank_family {
    const char *name, *help;
    enum exposition_type type;
    enum rank_figure figure;
    enum rank_group group;
    enum fold_rule rule;
};
extern const struct rank_family rank_families[BOARD_RANK_SERIES];
// `more` taken into `have`, which holds nothing yet when `first`.
int64_t rank_fold_value(enum fold_rule rule, bool first, int64_t have, int64_t more);

void board_verdict(struct board *board, const struct verdict *verdict, struct board_moment now);
void board_evaluation(struct board *board, const struct evaluation *evaluation,
                      uint64_t monotonic_ns);
// Trees of spans (board_spans.c).
void board_spans(struct board *board, const struct batch *batch, uint64_t monotonic_ns);
void board_spans_expire(struct board *board, uint64_t monotonic_ns);
void board_spans_release(struct board *board);
void board_spans_forget(struct board *board, string_id job);
void board_spans_expose(struct board *board, struct exposition *exposition, uint64_t monotonic_ns);
// Gives series to verdicts that had none when they opened, as far as there is room now.
void board_unfold(struct board *board);
// Whether a job is over and no longer shown.
bool board_job_expired(const struct board *board, const struct job_row *job, uint64_t monotonic_ns);
