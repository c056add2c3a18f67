// SPDX-License-Identifier: Apache-2.0
// Draws the memory of many ranks in a few kilobytes without losing a peak.
//
// A rank with a line of its own: when it has more samples than a line has points, time is cut into
// half as many stretches, and of each the least and the most is drawn, in the order of time. Points
// on a level stretch are left out. A line is broken where no sample came for five times the usual
// interval. All other ranks together are a band from the least to the most of any of them. Memory:
// a few bytes a rank and column; one walk over the samples.
#include "exporters/report/page/plot.h"
#include "exporters/report/text/layout.h"
#include "pipeline/model/series.h"

#include <assert.h>
#include <math.h>

enum { GAP_INTERVALS = 5, BAND_COLUMNS = 280 };

static const struct sample *next_sample(const struct plot *plot, uint32_t index,
                                        struct series_cursor *cursor) {
    const struct evaluation *evaluation = plot->evaluation;
    return series_next(evaluation->store, evaluation->ranks[index].series, cursor,
                       evaluation->as_of_ns);
}

static bool is_gap(const struct plot *plot, uint64_t from_ns, uint64_t to_ns) {
    __int128 median_ns = plot->evaluation->median_interval_ns, apart_ns = (__int128)to_ns - from_ns;
    return median_ns > 0 && apart_ns > median_ns * GAP_INTERVALS &&
           apart_ns > plot->view->input->near_ns;
}

// -- who is drawn -------------------------------------------------------------------------------

void plot_choose_lines(struct plot *plot) {
    const struct evaluation *evaluation = plot->evaluation;
    struct arena *arena = plot->view->html.arena;
    const uint32_t *order = text_drawing_order(evaluation, arena);
    uint32_t suspects = evaluation->cause == NULL ? 0 : evaluation->cause->suspects.count;
    uint32_t *lines = arena_take(arena, evaluation->rank_count * sizeof *lines), count = 0;
    bool *has_line = arena_zero(arena, evaluation->rank_count, sizeof *has_line);
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        bool room = i < suspects && i < plot->view->max_suspect_lines;
        if ((room || count < plot->view->max_lines) && plot_shows(plot, order[i])) {
            lines[count++] = order[i];
            has_line[order[i]] = true;
        }
    }
    assert(count <= plot->view->max_lines + plot->view->max_suspect_lines);
    plot->lines = lines;
    plot->line_count = count;
    plot->has_line = has_line;
}

// -- a line -------------------------------------------------------------------------------------

struct point {
    int x, y;
};

// Draws from point to point; what lies on one level with its neighbours is not drawn.
struct pen {
    struct buffer *out;
    struct point drawn;   // where the path is
    struct point pending; // the last point, not drawn yet
    bool down, has_pending;
};

static void number_append(struct buffer *out, int value, bool separate) {
    if (separate && value >= 0)
        buffer_append_char(out, ' ');
    buffer_append_int(out, value);
}

static void pen_draw(struct pen *pen) {
    if (!pen->has_pending)
        return;
    number_append(pen->out, pen->pending.x - pen->drawn.x, true);
    number_append(pen->out, pen->pending.y - pen->drawn.y, true);
    pen->drawn = pen->pending;
    pen->has_pending = false;
}

static void pen_to(struct pen *pen, struct point to) {
    if (!pen->down) {
        buffer_append_char(pen->out, 'M');
        number_append(pen->out, to.x, false);
        number_append(pen->out, to.y, true);
        buffer_append_char(pen->out, 'l');
        // A point that stays alone is drawn as a dot.
        buffer_append_text(pen->out, "0 0");
        pen->drawn = to;
        pen->down = true;
        return;
    }
    if (pen->has_pending && (pen->pending.y != to.y || pen->drawn.y != to.y))
        pen_draw(pen);
    pen->pending = to;
    pen->has_pending = true;
}

static void pen_up(struct pen *pen) {
    pen_draw(pen);
    pen->down = false;
}

// The least and the most of one stretch of time.
struct stretch {
    bool any;
    uint64_t number;
    struct point least, most; // y grows downwards: `least` has the largest y
};

static void stretch_draw(struct stretch *stretch, struct pen *pen) {
    if (!stretch->any)
        return;
    bool rises = stretch->least.x < stretch->most.x ||
                 (stretch->least.x == stretch->most.x && stretch->least.y >= pen->pending.y);
    struct point first = rises ? stretch->least : stretch->most;
    struct point second = rises ? stretch->most : stretch->least;
    pen_to(pen, first);
    if (first.x != second.x || first.y != second.y)
        pen_to(pen, second);
    stretch->any = false;
}

static void stretch_add(struct stretch *stretch, struct point point) {
    if (!stretch->any || point.y > stretch->least.y)
        stretch->least = point;
    if (!stretch->any || point.y < stretch->most.y)
        stretch->most = point;
    stretch->any = true;
}

static void line_draw(const struct plot *plot, uint32_t index) {
    assert(plot->view->points >= 2 && plot->span_ns > 0);
    const struct rank_series *series = plot->evaluation->ranks[index].series;
    struct pen pen = {.out = plot->view->html.out};
    struct stretch stretch = {0};
    uint64_t stretches = plot->view->points / 2;
    bool thin = series->sample_count > plot->view->points;
    struct series_cursor cursor = series_begin(series);
    const struct sample *before = NULL;
    for (const struct sample *sample; (sample = next_sample(plot, index, &cursor)) != NULL;
         before = sample) {
        __int128 at_ns = text_aligned(plot->evaluation, index, sample->time_ns);
        uint64_t number =
            (uint64_t)((at_ns - plot->start_ns) * (__int128)stretches / (plot->span_ns + 1));
        bool apart = before != NULL && is_gap(plot, before->time_ns, sample->time_ns);
        bool further = thin && before != NULL && number == stretch.number;
        if (!further)
            stretch_draw(&stretch, &pen);
        // Gaps within one stretch are too short to be seen.
        if (apart && !further)
            pen_up(&pen);
        stretch.number = number;
        stretch_add(&stretch,
                    (struct point){plot_x(plot, at_ns),
                                   plot_y(plot, plot_value(plot, index, sample->used_bytes))});
    }
    stretch_draw(&stretch, &pen);
    pen_up(&pen);
}

static void line_append(const struct plot *plot, uint32_t index) {
    struct page_view *view = plot->view;
    struct html *html = &view->html;
    const struct evaluation *evaluation = plot->evaluation;
    const struct rank_figures *figures = &plot->figures[index];
    int32_t rank = text_rank_at(evaluation, index);
    char letter = plot->kind == PLOT_MEMORY ? 'r' : 'u';
    html_format(html,
                "<g id=\"j%u%c%d\" class=\"l %s\"><title>rank %d: %s to %s, last %s</title>"
                "<path id=\"j%u%c%dp\" d=\"",
                view->job_number, letter, rank, page_rank_class(evaluation, figures->suspect), rank,
                page_bytes(&view->words, figures->lowest_bytes),
                page_bytes(&view->words, figures->highest_bytes),
                page_bytes(&view->words, figures->last_bytes), view->job_number, letter, rank);
    line_draw(plot, index);
    // A wider one that is not seen, to be pointed at.
    html_format(html, "\"/><use href=\"#j%u%c%dp\" class=\"hit\"/></g>\n", view->job_number, letter,
                rank);
}

void plot_field_begin(const struct plot *plot, const char *class) {
    html_format(&plot->view->html,
                "<svg class=\"%s\" width=\"100%%\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                "preserveAspectRatio=\"none\" overflow=\"visible\">",
                class, plot->height, PLOT_WIDTH * PLOT_FINE, plot->height * PLOT_FINE);
}

// Suspects last, so that they lie above the others.
void plot_lines_append(const struct plot *plot) {
    plot_field_begin(plot, plot->line_count > 24 ? "lines many" : "lines");
    html_raw(&plot->view->html, "\n");
    for (uint32_t i = plot->line_count; i > 0; i--)
        line_append(plot, plot->lines[i - 1]);
    html_raw(&plot->view->html, "</svg>\n");
}

// -- the band of all others -----------------------------------------------------------------------

struct band {
    double least[BAND_COLUMNS], most[BAND_COLUMNS];
    bool any[BAND_COLUMNS];
    uint32_t rank_count;
};

static int band_column(const struct plot *plot, __int128 aligned_ns) {
    assert(aligned_ns >= plot->start_ns);
    int column = (int)((aligned_ns - plot->start_ns) * BAND_COLUMNS / (plot->span_ns + 1));
    return column < 0 ? 0 : column >= BAND_COLUMNS ? BAND_COLUMNS - 1 : column;
}

static void band_put(struct band *band, int column, double value) {
    assert(column >= 0 && column < BAND_COLUMNS);
    if (!band->any[column] || value < band->least[column])
        band->least[column] = value;
    if (!band->any[column] || value > band->most[column])
        band->most[column] = value;
    band->any[column] = true;
}

static void band_add(const struct plot *plot, struct band *band, uint32_t index) {
    struct series_cursor cursor = series_begin(plot->evaluation->ranks[index].series);
    const struct sample *before = NULL;
    int column_before = 0;
    double value_before = 0;
    for (const struct sample *sample; (sample = next_sample(plot, index, &cursor)) != NULL;
         before = sample) {
        double value = plot_value(plot, index, sample->used_bytes);
        int column = band_column(plot, text_aligned(plot->evaluation, index, sample->time_ns));
        if (before != NULL && !is_gap(plot, before->time_ns, sample->time_ns))
            for (int between = column_before + 1; between < column; between++)
                band_put(band, between, value_before);
        band_put(band, column, value);
        column_before = column;
        value_before = value;
    }
    band->rank_count++;
}

static int band_edge(int column) {
    return column * PLOT_WIDTH * PLOT_FINE / BAND_COLUMNS;
}

static void band_run_append(const struct plot *plot, const struct band *band, int from, int to) {
    assert(from >= 0 && from < to && to <= BAND_COLUMNS && band->any[from]);
    struct buffer *out = plot->view->html.out;
    int width = PLOT_WIDTH * PLOT_FINE / BAND_COLUMNS;
    buffer_append_format(out, "M%d %d", band_edge(from), plot_y(plot, band->most[from]));
    for (int column = from; column < to; column++)
        buffer_append_format(out, "L%d %d", band_edge(column) + width / 2,
                             plot_y(plot, band->most[column]));
    buffer_append_format(out, "L%d %dV%d", band_edge(to), plot_y(plot, band->most[to - 1]),
                         plot_y(plot, band->least[to - 1]));
    for (int column = to - 1; column >= from; column--)
        buffer_append_format(out, "L%d %d", band_edge(column) + width / 2,
                             plot_y(plot, band->least[column]));
    buffer_append_format(out, "L%d %dZ", band_edge(from), plot_y(plot, band->least[from]));
}

void plot_band_append(const struct plot *plot) {
    struct html *html = &plot->view->html;
    struct band *band = arena_zero(html->arena, 1, sizeof *band);
    for (uint32_t i = 0; i < plot->evaluation->rank_count; i++)
        if (!plot->has_line[i] && plot_shows(plot, i))
            band_add(plot, band, i);
    if (band->rank_count == 0)
        return;
    plot_field_begin(plot, "band");
    html_format(html, "<title>least and most of %u further rank%s</title><path d=\"",
                band->rank_count, band->rank_count == 1 ? "" : "s");
    for (int from = 0, to; from < BAND_COLUMNS; from = to) {
        for (to = from; to < BAND_COLUMNS && band->any[to] == band->any[from];)
            to++;
        if (band->any[from])
            band_run_append(plot, band, from, to);
    }
    html_raw(html, "\"/></svg>\n");
}
