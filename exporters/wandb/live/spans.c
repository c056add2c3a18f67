// SPDX-License-Identifier: Apache-2.0
// Writes the tables of spans and phases.
//
// Those of the outline that the other reports tell, and the phases with the most thread time with
// the rank that lags most in each. Tables are said anew no more often than table_interval, and at
// the end. Bounded: SPAN_ROWS_MAX and PHASE_ROWS_MAX rows a run.
#include "config/option.h"
#include "exporters/report/span_outline.h"
#include "exporters/report/span_words.h"
#include "exporters/report/text/layout.h"
#include "exporters/wandb/live/live.h"
#include "exporters/wandb/table.h"
#include "pipeline/model/span_report.h"

#include <math.h>

enum {
    SPAN_ROWS_MAX = 1000,
    PHASE_ROWS_MAX = 500,
    OUTLINE_LINES = 200,
    OUTLINE_CHILDREN = 30,
    OUTLINE_DEPTH = 8,
    NAME_BYTES = 200
};

static const char *const SPAN_COLUMNS[] = {"source", "name",   "depth",           "spans",
                                           "state",  "open_s", "thread_s",        "idle_s",
                                           "busy_s", "bytes",  "unfinished_tasks"};

static const char *const PHASE_COLUMNS[] = {"phase",  "openings",   "thread_s",
                                            "busy_s", "idle_s",     "lagging_rank",
                                            "lag_s",  "slowest_in", "ranks_inside"};

// -- which are told -------------------------------------------------------------------------------

static uint64_t nanoseconds(double seconds) {
    return seconds > 0 && seconds < 1.8e10 ? (uint64_t)(seconds * 1e9) : 0;
}

static bool says_something(const struct span_report *report) {
    return report->from_telemetry ? report->phase_count > 0 : report->span_count > 0;
}

uint64_t live_spans_until(const struct batch *batch, string_id job) {
    uint64_t until = 0;
    for (uint32_t i = 0; i < batch->spans.count; i++) {
        const struct span_report *report = &batch->spans.items[i];
        if (report->job == job && says_something(report) && nanoseconds(report->now_s) > until)
            until = nanoseconds(report->now_s);
    }
    return until;
}

uint64_t live_spans_begin(const struct batch *batch, string_id job) {
    uint64_t begin = UINT64_MAX;
    for (uint32_t i = 0; i < batch->spans.count; i++) {
        const struct span_report *report = &batch->spans.items[i];
        if (report->job != job || report->history_count == 0)
            continue;
        uint64_t first = nanoseconds(report->history[0].time_s);
        if (first < begin)
            begin = first;
    }
    return begin == UINT64_MAX ? live_spans_until(batch, job) : begin;
}

struct span_report_list live_spans_of(const struct batch *batch, string_id job) {
    struct span_report *items = arena_take(batch->arena, (batch->spans.count + 1) * sizeof *items);
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->spans.count; i++)
        if (batch->spans.items[i].job == job)
            items[count++] = batch->spans.items[i];
    return (struct span_report_list){items, count};
}

// -- tables ---------------------------------------------------------------------------------------

static void span_row(struct wandb_table *table, struct text_page *words, const char *source,
                     const struct span_line *line) {
    WANDB_TABLE_ROW(table, cell_text(source), cell_text(span_label(words, line, NAME_BYTES)),
                    cell_int(line->depth), cell_int(line->count),
                    cell_text(line->done ? "done" : "running"), cell_number(line->seconds),
                    cell_number(line->thread_s), cell_number(line->measured ? line->idle_s : NAN),
                    cell_number(line->busy_s), cell_int(span_bytes(line->nbytes)),
                    cell_text(span_states(words->arena, line->states)));
}

static uint32_t stream_rows(struct wandb_table *table, struct text_page *words,
                            const struct span_report *report, uint32_t room) {
    struct span_outline_limits limits = {.lines = room < OUTLINE_LINES ? room : OUTLINE_LINES,
                                         .children = OUTLINE_CHILDREN,
                                         .depth = OUTLINE_DEPTH};
    struct span_outline outline;
    assert(room > 0);
    span_outline_make(report, &limits, words->arena, &outline);
    for (uint32_t i = 0; i < outline.count; i++)
        span_row(table, words, span_source(words, report), &outline.lines[i]);
    return outline.count;
}

static void say_spans(const struct span_report_list *reports, struct text_page *words,
                      struct wandb_writer *writer) {
    struct wandb_table table = {0};
    uint32_t rows = 0;
    wandb_table_begin(&table, SPAN_COLUMNS, OPTION_COUNT(SPAN_COLUMNS));
    for (uint32_t i = 0; i < reports->count && rows < SPAN_ROWS_MAX; i++)
        if (!reports->items[i].from_telemetry && says_something(&reports->items[i]))
            rows += stream_rows(&table, words, &reports->items[i], SPAN_ROWS_MAX - rows);
    wandb_table_end(&table);
    if (rows > 0)
        (void)wandb_table_say(&table, "culprit_spans", writer);
    wandb_table_release(&table);
}

static void phase_row(struct wandb_table *table, struct text_page *words,
                      const struct span_phase *phase) {
    const struct span_phase_rank *worst = span_laggards(phase, 1) > 0 ? &phase->ranks[0] : NULL;
    int32_t *inside;
    WANDB_TABLE_ROW(
        table, cell_text(page_shown(words, phase->label, NAME_BYTES)), cell_int(phase->openings),
        cell_number(phase->thread_s), cell_number(phase->busy_s), cell_number(phase->idle_s),
        worst == NULL ? cell_null : cell_int(worst->rank),
        cell_number(worst == NULL ? 0 : worst->lag_s), cell_int(worst == NULL ? 0 : worst->slowest),
        cell_int(span_inside(phase, words->arena, &inside)));
}

static void say_phases(const struct span_report_list *reports, struct text_page *words,
                       struct wandb_writer *writer) {
    struct wandb_table table = {0};
    uint32_t rows = 0;
    wandb_table_begin(&table, PHASE_COLUMNS, OPTION_COUNT(PHASE_COLUMNS));
    for (uint32_t i = 0; i < reports->count; i++) {
        const struct span_phase **phases;
        if (!reports->items[i].from_telemetry)
            continue;
        uint32_t count =
            span_phases_choose(&reports->items[i], PHASE_ROWS_MAX - rows, words->arena, &phases);
        for (uint32_t j = 0; j < count; j++)
            phase_row(&table, words, phases[j]);
        rows += count;
        assert(rows <= PHASE_ROWS_MAX);
    }
    wandb_table_end(&table);
    if (rows > 0)
        (void)wandb_table_say(&table, "culprit_phases", writer);
    wandb_table_release(&table);
}

void live_say_spans(struct live *live, struct live_run *run, const struct batch *batch,
                    struct wandb_writer *writer) {
    if (!batch->last && run->spans_ns > 0 &&
        writer->time_ns < run->spans_ns + (uint64_t)live->config->table_interval.ns)
        return;
    struct span_report_list reports = live_spans_of(batch, run->job);
    struct text_style style = {.utf8 = true, .width = 80};
    struct text_page words = {.style = &style, .arena = batch->arena};
    say_spans(&reports, &words, writer);
    say_phases(&reports, &words, writer);
    run->spans_ns = writer->time_ns;
}
