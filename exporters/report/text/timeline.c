// SPDX-License-Identifier: Apache-2.0
// The memory of each rank over time, drawn in characters.
//
// Each row is a rank, each column a stretch of aligned time with the most that was used in it; the
// scale is common to all rows. A column without a sample repeats the one before when that is no
// further back than five sampling intervals, else it stays empty. Memory: 8 bytes a column of each
// row drawn; one walk over the samples of those ranks.
#include "exporters/report/text/parts.h"
#include "pipeline/model/series.h"

#include <assert.h>

enum { ROWS_MAX = 16, CELLS_MIN = 10, GAP_INTERVALS = 5, SILENT_SHOWN_MAX = 8 };

static const __int128 silence_min_ns = 1000000000;

static const char *const block_levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ascii_levels[] = {".", ":", "-", "=", "+", "*", "#", "%", "@"};

struct chart {
    const struct evaluation *evaluation;
    const uint32_t *rows; // indices of the ranks drawn
    uint32_t row_count;
    uint32_t columns;
    uint32_t label_width;
    __int128 start_ns, end_ns; // aligned
    int64_t lowest_bytes, highest_bytes;
    int64_t *cells; // [row_count][columns]; -1: no sample
    int64_t last_bytes[ROWS_MAX];
};

const uint32_t *text_drawing_order(const struct evaluation *evaluation, struct arena *arena) {
    const struct cause *cause = evaluation->cause;
    uint32_t *order = arena_take(arena, evaluation->rank_count * sizeof *order), count = 0;
    bool *listed = arena_zero(arena, evaluation->rank_count, sizeof *listed);
    for (uint32_t i = 0; cause != NULL && i < cause->suspects.count; i++) {
        order[count++] = cause->suspects.items[i].index;
        assert(!listed[order[count - 1]]);
        listed[order[count - 1]] = true;
    }
    for (int grew = evaluation->spikes != NULL; grew >= 0; grew--)
        for (uint32_t i = 0; i < evaluation->rank_count; i++)
            if (!listed[i] && (grew == 0 || evaluation->spikes[i].kept.found)) {
                order[count++] = i;
                listed[i] = true;
            }
    assert(count == evaluation->rank_count);
    return order;
}

static const struct sample *first_sample(const struct evaluation *evaluation, uint32_t index,
                                         struct series_cursor *cursor) {
    assert(index < evaluation->rank_count);
    *cursor = series_begin(evaluation->ranks[index].series);
    return series_next(evaluation->store, evaluation->ranks[index].series, cursor,
                       evaluation->as_of_ns);
}

bool text_span(const struct evaluation *evaluation, __int128 *start_ns, __int128 *end_ns) {
    bool any = false;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        struct series_cursor cursor;
        const struct sample *first = first_sample(evaluation, i, &cursor);
        if (first == NULL)
            continue;
        __int128 from = text_aligned(evaluation, i, first->time_ns);
        __int128 to = text_aligned(evaluation, i, evaluation->ranks[i].last_ns);
        if (!any || from < *start_ns)
            *start_ns = from;
        if (!any || to > *end_ns)
            *end_ns = to;
        any = true;
    }
    return any;
}

static uint32_t chart_column(const struct chart *chart, __int128 aligned_ns) {
    assert(chart->columns > 0 && chart->start_ns <= chart->end_ns);
    if (aligned_ns <= chart->start_ns)
        return 0;
    if (aligned_ns >= chart->end_ns)
        return chart->columns - 1;
    __int128 span_ns = chart->end_ns - chart->start_ns + 1;
    return (uint32_t)((aligned_ns - chart->start_ns) * chart->columns / span_ns);
}

// Repeats the value of column `from` up to the column before `to`, when the samples in them are
// near enough to one another.
static void cells_hold(const struct chart *chart, int64_t *cells, uint32_t from, uint32_t to,
                       __int128 apart_ns, int64_t value) {
    __int128 median_ns = chart->evaluation->median_interval_ns;
    if (median_ns > 0 && apart_ns > median_ns * GAP_INTERVALS)
        return;
    for (uint32_t column = from + 1; column < to; column++)
        cells[column] = value;
}

static void chart_fill_row(struct chart *chart, uint32_t row) {
    assert(row < chart->row_count && chart->cells != NULL);
    const struct evaluation *evaluation = chart->evaluation;
    uint32_t index = chart->rows[row];
    int64_t *cells = chart->cells + (size_t)row * chart->columns;
    for (uint32_t column = 0; column < chart->columns; column++)
        cells[column] = -1;
    struct series_cursor cursor;
    const struct sample *sample = first_sample(evaluation, index, &cursor);
    const struct sample *before = NULL;
    uint32_t column_before = 0;
    for (; sample != NULL;
         before = sample, sample = series_next(evaluation->store, evaluation->ranks[index].series,
                                               &cursor, evaluation->as_of_ns)) {
        uint32_t column = chart_column(chart, text_aligned(evaluation, index, sample->time_ns));
        if (before != NULL)
            cells_hold(chart, cells, column_before, column, sample->time_ns - before->time_ns,
                       before->used_bytes);
        if (sample->used_bytes > cells[column])
            cells[column] = sample->used_bytes;
        if (sample->used_bytes > chart->highest_bytes)
            chart->highest_bytes = sample->used_bytes;
        if (sample->used_bytes < chart->lowest_bytes)
            chart->lowest_bytes = sample->used_bytes;
        chart->last_bytes[row] = sample->used_bytes;
        column_before = column;
    }
}

static const char *cell_text(const struct text_page *page, const struct chart *chart,
                             int64_t value) {
    if (value < 0)
        return " ";
    const char *const *levels = page->style->utf8 ? block_levels : ascii_levels;
    __int128 steps = page->style->utf8 ? 7 : 8;
    // At least a tenth of the highest use from bottom to top: noise is not drawn as a cliff.
    __int128 bottom = chart->highest_bytes - chart->highest_bytes / 10;
    if (chart->lowest_bytes < bottom)
        bottom = chart->lowest_bytes;
    __int128 range = chart->highest_bytes - bottom;
    if (range == 0)
        return levels[0];
    return levels[((value - bottom) * steps * 2 + range) / (range * 2)];
}

static enum text_color row_color(const struct chart *chart, uint32_t index) {
    const struct cause *cause = chart->evaluation->cause;
    if (cause == NULL || cause->kind != CAUSE_LEAK)
        return COLOR_NONE;
    for (uint32_t i = 0; i < cause->suspects.count; i++)
        if (cause->suspects.items[i].index == index)
            return i == 0 && cause->sole_earliest ? COLOR_CULPRIT : COLOR_SUSPECT;
    return COLOR_NONE;
}

static void row_append(struct text_page *page, const struct chart *chart, uint32_t row) {
    assert(row < chart->row_count);
    enum text_color color = row_color(chart, chart->rows[row]);
    buffer_append_format(page->out, "  ");
    page_color(page, color);
    buffer_append_format(page->out, "rank %*d  ", (int)chart->label_width,
                         text_rank_at(chart->evaluation, chart->rows[row]));
    const int64_t *cells = chart->cells + (size_t)row * chart->columns;
    for (uint32_t column = 0; column < chart->columns; column++)
        buffer_append_text(page->out, cell_text(page, chart, cells[column]));
    buffer_append_format(page->out, "  %s", page_bytes(page, chart->last_bytes[row]));
    page_color_end(page, color);
    buffer_append_char(page->out, '\n');
}

// Under the first suspect: where its growth began.
static void mark_append(struct text_page *page, const struct chart *chart, uint32_t row) {
    const struct cause *cause = chart->evaluation->cause;
    if (cause == NULL || cause->suspects.count == 0 ||
        cause->suspects.items[0].index != chart->rows[row])
        return;
    static const char after[] = "^ growth began", before[] = "growth began ^";
    uint32_t column = chart_column(chart, text_aligned(chart->evaluation, chart->rows[row],
                                                       cause->suspects.items[0].spike.window_ns));
    bool fits_after = column + sizeof after - 1 <= chart->columns;
    bool fits_before = column + 1 >= sizeof before - 1;
    int indent = (int)(9 + chart->label_width + column);
    const char *text = fits_after ? after : fits_before ? before : "^";
    if (!fits_after && fits_before)
        indent -= (int)sizeof before - 2;
    page_line(page, COLOR_DIM, "%*s%s", indent, "", text);
}

static void heading_append(struct text_page *page, const struct chart *chart) {
    page_heading(page, "Memory of each rank, %s to %s, over %s",
                 page_bytes(page, chart->lowest_bytes), page_bytes(page, chart->highest_bytes),
                 page_duration(page, chart->end_ns - chart->start_ns));
}

static void chart_layout(struct text_page *page, struct chart *chart) {
    chart->label_width = 1;
    for (uint32_t i = 0; i < chart->row_count; i++)
        for (int32_t left = text_rank_at(chart->evaluation, chart->rows[i]), width = 1; left > 0;
             left /= 10, width++)
            if ((uint32_t)width > chart->label_width)
                chart->label_width = (uint32_t)width;
    // "  rank 12  " before, "  1.25 GiB" after.
    uint32_t around = 9 + chart->label_width + 12;
    chart->columns =
        page->style->width > around + CELLS_MIN ? page->style->width - around : CELLS_MIN;
    chart->cells =
        arena_take(page->arena, (size_t)chart->row_count * chart->columns * sizeof *chart->cells);
}

// How long before the end this rank fell silent; 0: it did not.
static __int128 silence_of(const struct evaluation *evaluation, uint32_t index, __int128 end_ns) {
    assert(index < evaluation->rank_count);
    __int128 limit_ns = evaluation->median_interval_ns * GAP_INTERVALS;
    __int128 silent_ns = end_ns - text_aligned(evaluation, index, evaluation->ranks[index].last_ns);
    return silent_ns > limit_ns && silent_ns > silence_min_ns ? silent_ns : 0;
}

bool text_any_silent(const struct evaluation *evaluation) {
    __int128 start_ns, end_ns;
    if (!text_span(evaluation, &start_ns, &end_ns))
        return false;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        if (silence_of(evaluation, i, end_ns) > 0)
            return true;
    return false;
}

void text_silent_append(struct text_page *page, const struct evaluation *evaluation,
                        __int128 end_ns) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        __int128 silent_ns = silence_of(evaluation, i, end_ns);
        if (silent_ns == 0)
            continue;
        if (count++ == 0)
            page_heading(page, "Fell silent before the end");
        if (count <= SILENT_SHOWN_MAX)
            page_paragraph(page, COLOR_NONE, 2,
                           "rank %d: last sample %s before the end: died or was "
                           "killed?",
                           text_rank_at(evaluation, i), page_duration(page, silent_ns));
    }
    if (count > SILENT_SHOWN_MAX)
        page_paragraph(page, COLOR_NONE, 2, "and %u more ranks", count - SILENT_SHOWN_MAX);
    if (count > 0)
        page_paragraph(page, COLOR_DIM, 2,
                       "A killed process loses its last samples, so the order of these ends does "
                       "not tell who ended first.");
}

void text_timeline_append(struct text_page *page, const struct evaluation *evaluation) {
    struct chart chart = {.evaluation = evaluation, .lowest_bytes = INT64_MAX};
    if (!text_span(evaluation, &chart.start_ns, &chart.end_ns))
        return;
    chart.rows = text_drawing_order(evaluation, page->arena);
    chart.row_count = evaluation->rank_count < ROWS_MAX ? evaluation->rank_count : ROWS_MAX;
    chart_layout(page, &chart);
    for (uint32_t row = 0; row < chart.row_count; row++)
        chart_fill_row(&chart, row);
    heading_append(page, &chart);
    for (uint32_t row = 0; row < chart.row_count; row++) {
        row_append(page, &chart, row);
        mark_append(page, &chart, row);
    }
    if (evaluation->rank_count > chart.row_count)
        page_line(page, COLOR_DIM, "  %u more ranks are not shown",
                  evaluation->rank_count - chart.row_count);
    text_silent_append(page, evaluation, chart.end_ns);
}
