// SPDX-License-Identifier: Apache-2.0
// The charts: the memory of each rank over time, where growth began, alerts meanwhile.
//
// A picture in SVG: axes, a band of the ranks without a line, lines, marks, alerts, names at the
// lines' ends. Its words are repeated in its description and in the tables below, so that nothing
// is told by colour or place alone.
#include "exporters/report/page/plot.h"

#include "base/sort.h"
#include "exporters/report/text/layout.h"
#include "pipeline/model/series.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAMED_LINES_MAX = 8, NAME_HEIGHT = 15, LEGEND_SUSPECTS_MAX = 6, LONG_RANK = 1000 };

static const int heights[] = {[PLOT_MEMORY] = 280, [PLOT_UTILISATION] = 150};

// -- scales -------------------------------------------------------------------------------------

bool plot_shows(const struct plot *plot, uint32_t index) {
    assert(index < plot->evaluation->rank_count);
    const struct rank_figures *figures = &plot->figures[index];
    return figures->held && (plot->kind == PLOT_MEMORY || figures->device_bytes > 0);
}

bool plot_has_growth(const struct plot *plot) {
    const struct cause *cause = plot->evaluation->cause;
    return cause != NULL && cause->suspects.count > 0 && cause->kind != CAUSE_SWING;
}

double plot_value(const struct plot *plot, uint32_t index, int64_t used_bytes) {
    if (plot->kind == PLOT_MEMORY)
        return (double)used_bytes;
    return 100.0 * (double)used_bytes / (double)plot->figures[index].device_bytes;
}

int plot_x(const struct plot *plot, __int128 aligned_ns) {
    assert(plot->span_ns > 0);
    __int128 into_ns = aligned_ns - plot->start_ns;
    if (into_ns < 0)
        into_ns = 0;
    if (into_ns > plot->span_ns)
        into_ns = plot->span_ns;
    return (int)((into_ns * (PLOT_WIDTH * PLOT_FINE) * 2 + plot->span_ns) / (plot->span_ns * 2));
}

int plot_y(const struct plot *plot, double value) {
    assert(plot->top > plot->bottom && plot->height > 0);
    double share = (plot->top - value) / (plot->top - plot->bottom);
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return (int)lround(share * plot->height * PLOT_FINE);
}

static bool plot_find_scale(struct plot *plot) {
    bool any = false;
    double lowest = 0, highest = 0;
    for (uint32_t i = 0; i < plot->evaluation->rank_count; i++) {
        if (!plot_shows(plot, i))
            continue;
        double low = plot_value(plot, i, plot->figures[i].lowest_bytes);
        double high = plot_value(plot, i, plot->figures[i].highest_bytes);
        lowest = any && lowest < low ? lowest : low;
        highest = any && highest > high ? highest : high;
        any = true;
    }
    if (plot->kind == PLOT_MEMORY)
        plot_scale_bytes(plot, lowest, highest);
    else
        plot_scale_percent(plot, highest);
    return any;
}

// -- marks --------------------------------------------------------------------------------------

// Its words lie towards the middle, those of the second mark lower.
static void mark_append(const struct plot *plot, const char *name, int x, int row,
                        const char *text) {
    bool left = x > PLOT_WIDTH * PLOT_FINE / 2;
    int share = plot_share(x);
    struct html *html = &plot->view->html;
    html_format(html,
                "<g class=\"mark %s\"><line x1=\"" PAGE_SHARE "\" x2=\"" PAGE_SHARE
                "\" y1=\"%d\" y2=\"%d\"/>",
                name, PAGE_SHARE_OF(share), PAGE_SHARE_OF(share), -36 + row * 14, plot->height);
    html_format(html, "<text x=\"" PAGE_SHARE "\" dx=\"%d\" y=\"%d\"", PAGE_SHARE_OF(share),
                left ? -5 : 5, -27 + row * 14);
    html_raw(html, left ? " text-anchor=\"end\">" : ">");
    html_format(html, "%s</text></g>\n", text);
}

// Where the first suspect's growth began, where it was found, and where the second one followed.
static void marks_append(const struct plot *plot) {
    const struct cause *cause = plot->evaluation->cause;
    if (cause == NULL || cause->suspects.count == 0)
        return;
    const struct suspect *first = &cause->suspects.items[0];
    int began = plot_x(plot, text_aligned(plot->evaluation, first->index, first->spike.window_ns));
    mark_append(plot, "began", began, 0, "growth began");
    if (cause->kind == CAUSE_SWING || cause->suspects.count < 2 || !cause->sole_earliest)
        return;
    const struct suspect *second = &cause->suspects.items[1];
    int followed =
        plot_x(plot, text_aligned(plot->evaluation, second->index, second->spike.time_ns));
    mark_append(plot, "onset", followed, 1, "another rank followed");
}

static bool has_spike(const struct plot *plot) {
    const struct cause *cause = plot->evaluation->cause;
    return cause != NULL && cause->suspects.count > 0 &&
           plot_shows(plot, cause->suspects.items[0].index);
}

static void spike_append(const struct plot *plot) {
    const struct cause *cause = plot->evaluation->cause;
    if (!has_spike(plot))
        return;
    const struct suspect *first = &cause->suspects.items[0];
    const struct spike *spike = &first->spike;
    int share =
        plot_share(plot_x(plot, text_aligned(plot->evaluation, first->index, spike->time_ns)));
    double value = plot_value(plot, first->index, spike->base_bytes + spike->growth_bytes);
    html_format(&plot->view->html,
                "<g class=\"spike %s\"><title>rank %d had grown far enough to be found, %s</title>"
                "<circle cx=\"" PAGE_SHARE "\" cy=\"%d\" r=\"5\"/></g>\n",
                page_rank_class(plot->evaluation, 0), text_rank_at(plot->evaluation, first->index),
                page_time(&plot->view->words, spike->time_ns), PAGE_SHARE_OF(share),
                plot_y(plot, value) / PLOT_FINE);
}

// -- alerts -------------------------------------------------------------------------------------

static int32_t index_of_rank(const struct evaluation *evaluation, int32_t rank) {
    uint32_t low = 0, high = evaluation->rank_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (text_rank_at(evaluation, middle) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < evaluation->rank_count && text_rank_at(evaluation, low) == rank ? (int32_t)low
                                                                                 : -1;
}

// On the line of its rank, or at the top when that has none.
static void alert_append(const struct plot *plot, const struct page_alert *alert) {
    struct html *html = &plot->view->html;
    const struct evaluation *evaluation = plot->evaluation;
    int32_t index = index_of_rank(evaluation, alert->rank);
    __int128 aligned_ns = alert->time_ns;
    int y = 0;
    if (index >= 0) {
        aligned_ns = text_aligned(evaluation, (uint32_t)index, alert->time_ns);
        const struct sample *sample =
            series_at_or_before(evaluation->store, evaluation->ranks[index].series, alert->time_ns);
        struct series_cursor cursor = series_begin(evaluation->ranks[index].series);
        if (sample == NULL)
            sample = series_next(evaluation->store, evaluation->ranks[index].series, &cursor,
                                 evaluation->as_of_ns);
        if (sample != NULL)
            y = plot_y(plot, plot_value(plot, (uint32_t)index, sample->used_bytes)) / PLOT_FINE;
    }
    html_format(html, "<svg x=\"" PAGE_SHARE "\" y=\"%d\" overflow=\"visible\"><g><title>%s",
                PAGE_SHARE_OF(plot_share(plot_x(plot, aligned_ns))), y,
                page_alert_name((enum page_alert_kind)alert->kind));
    if (alert->rank != RANK_NONE)
        html_format(html, ", rank %d", alert->rank);
    html_format(html, ", %s", page_time(&plot->view->words, alert->time_ns));
    if (alert->text[0] != '\0')
        html_format(html, ": %s", alert->text);
    html_format(html, "</title><use href=\"#alert-%s\"/></g></svg>\n",
                page_alert_name((enum page_alert_kind)alert->kind));
}

// A rank that grows reports one peak after the other: only its last one is drawn.
static bool alert_is_drawn(const struct plot *plot, uint32_t i) {
    assert(i < plot->view->alert_count);
    const struct page_alert *alerts = plot->view->alerts;
    if (!page_alert_belongs(plot->view, &alerts[i], plot->evaluation))
        return false;
    for (uint32_t later = i + 1; alerts[i].kind == ALERT_PEAK && later < plot->view->alert_count;
         later++)
        if (alerts[later].kind == ALERT_PEAK && alerts[later].rank == alerts[i].rank &&
            page_alert_belongs(plot->view, &alerts[later], plot->evaluation))
            return false;
    return true;
}

static void alerts_append(const struct plot *plot) {
    html_raw(&plot->view->html, "<g class=\"alerts\">\n");
    for (uint32_t i = 0; i < plot->view->alert_count; i++)
        if (alert_is_drawn(plot, i))
            alert_append(plot, &plot->view->alerts[i]);
    html_raw(&plot->view->html, "</g>\n");
}

// -- names at the lines' ends -------------------------------------------------------------------

struct end_name {
    uint32_t index;
    int y;
};

static int end_compare(const void *left, const void *right) {
    const struct end_name *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(a->y, b->y), COMPARE(a->index, b->index));
}

// Moves names apart, and up again when they would leave the picture.
static void ends_spread(const struct plot *plot, struct end_name *ends, int count) {
    assert(count <= NAMED_LINES_MAX);
    for (int i = 1; i < count; i++)
        if (ends[i].y < ends[i - 1].y + NAME_HEIGHT)
            ends[i].y = ends[i - 1].y + NAME_HEIGHT;
    int floor_y = plot->height + 4;
    for (int i = count - 1; i >= 0 && ends[i].y > floor_y; i--) {
        ends[i].y = floor_y;
        floor_y -= NAME_HEIGHT;
    }
}

static void names_append(const struct plot *plot) {
    struct end_name ends[NAMED_LINES_MAX];
    int count = 0;
    bool all = plot->line_count <= NAMED_LINES_MAX;
    for (uint32_t i = 0; i < plot->line_count && count < NAMED_LINES_MAX; i++) {
        uint32_t index = plot->lines[i];
        const struct rank_figures *figures = &plot->figures[index];
        if (!all && (figures->suspect < 0 || figures->suspect >= LEGEND_SUSPECTS_MAX))
            continue;
        ends[count++] = (struct end_name){
            index, plot_y(plot, plot_value(plot, index, figures->last_bytes)) / PLOT_FINE + 4};
    }
    qsort(ends, (size_t)count, sizeof *ends, end_compare);
    ends_spread(plot, ends, count);
    for (int i = 0; i < count; i++)
        html_format(&plot->view->html,
                    "<text class=\"name %s\" x=\"100%%\" dx=\"8\" y=\"%d\">rank %d</text>\n",
                    page_rank_class(plot->evaluation, plot->figures[ends[i].index].suspect),
                    ends[i].y, text_rank_at(plot->evaluation, ends[i].index));
}

// -- the legend ---------------------------------------------------------------------------------

static void key_begin(struct html *html, const char *class, const char *shape) {
    html_format(html,
                "<li><svg class=\"key\" viewBox=\"0 0 26 12\" aria-hidden=\"true\"><g "
                "class=\"%s\"><path d=\"%s\"/></g></svg>",
                class, shape);
}

static void suspect_keys_append(const struct plot *plot) {
    struct html *html = &plot->view->html;
    const struct cause *cause = plot->evaluation->cause;
    if (cause == NULL || cause->kind != CAUSE_LEAK)
        return;
    const struct suspect *items = cause->suspects.items;
    for (uint32_t i = 0; i < cause->suspects.count && i < LEGEND_SUSPECTS_MAX; i++) {
        char class[8];
        snprintf(class, sizeof class, "l %s", page_rank_class(plot->evaluation, (int32_t)i));
        key_begin(html, class, "M1 6H25");
        html_format(html, "rank %d", text_rank_at(plot->evaluation, items[i].index));
        if (items[i].aligned_ns == items[0].aligned_ns)
            html_raw(html, cause->sole_earliest ? ", started it" : ", began at the same moment");
        else
            html_format(
                html, ", %s later",
                page_duration(&plot->view->words, items[i].aligned_ns - items[0].aligned_ns));
        html_raw(html, "</li>\n");
    }
    if (cause->suspects.count > LEGEND_SUSPECTS_MAX)
        html_format(html, "<li>and %u more suspects</li>\n",
                    cause->suspects.count - LEGEND_SUSPECTS_MAX);
}

static void spike_key_append(const struct plot *plot) {
    struct html *html = &plot->view->html;
    if (has_spike(plot))
        html_format(html,
                    "<li><svg class=\"key\" viewBox=\"-13 -6 26 12\" aria-hidden=\"true\"><g "
                    "class=\"spike %s\"><circle r=\"5\"/></g></svg>grown far enough to be found"
                    "</li>\n",
                    page_rank_class(plot->evaluation, 0));
}

static void rank_keys_append(const struct plot *plot) {
    struct html *html = &plot->view->html;
    uint32_t shown = 0, muted = 0;
    for (uint32_t i = 0; i < plot->evaluation->rank_count; i++)
        shown += plot_shows(plot, i);
    const struct cause *cause = plot->evaluation->cause;
    for (uint32_t i = 0; i < plot->line_count; i++)
        muted +=
            cause == NULL || cause->kind != CAUSE_LEAK || plot->figures[plot->lines[i]].suspect < 0;
    if (muted > 0) {
        key_begin(html, "l m", "M1 6H25");
        html_format(html, "%u %srank%s</li>\n", muted, muted < shown ? "other " : "",
                    muted == 1 ? "" : "s");
    }
    if (shown > plot->line_count) {
        key_begin(html, "band", "M1 1H25V11H1Z");
        html_format(html, "least and most of %u further rank%s</li>\n", shown - plot->line_count,
                    shown - plot->line_count == 1 ? "" : "s");
    }
}

static void alert_keys_append(const struct plot *plot) {
    struct html *html = &plot->view->html;
    uint32_t counts[PAGE_ALERT_KINDS] = {0};
    for (uint32_t i = 0; i < plot->view->alert_count; i++)
        if (alert_is_drawn(plot, i))
            counts[plot->view->alerts[i].kind]++;
    for (int i = 0; i < PAGE_ALERT_KINDS; i++) {
        if (counts[i] == 0)
            continue;
        html_format(html,
                    "<li><svg class=\"key\" viewBox=\"-13 -6 26 12\" aria-hidden=\"true\"><use "
                    "href=\"#alert-%s\"/></svg>%s: %u</li>\n",
                    page_alert_name((enum page_alert_kind)i),
                    i == ALERT_PEAK ? "last peak of a rank"
                                    : page_alert_name((enum page_alert_kind)i),
                    counts[i]);
    }
}

// -- the figure -----------------------------------------------------------------------------------

static void description_append(const struct plot *plot, const char *id) {
    struct page_view *view = plot->view;
    html_format(&view->html,
                "<title id=\"%st\">%s</title><desc id=\"%sd\">A line for each of %u ranks over %s. "
                "The tables on this page hold the same figures.</desc>\n",
                id,
                plot->kind == PLOT_MEMORY ? "Memory of each rank over time"
                                          : "Share of its device that each rank uses",
                id, plot->line_count, page_duration(&view->words, plot->span_ns));
}

static void picture_append(const struct plot *plot) {
    struct html *html = &plot->view->html;
    char id[32];
    snprintf(id, sizeof id, "j%u%s", plot->view->job_number,
             plot->kind == PLOT_MEMORY ? "memory" : "utilisation");
    int32_t last_rank = text_rank_at(plot->evaluation, plot->evaluation->rank_count - 1);
    html_format(html,
                "<div class=\"room%s\"><svg class=\"plot\" width=\"100%%\" height=\"%d\" "
                "role=\"img\" aria-labelledby=\"%st %sd\"",
                last_rank >= LONG_RANK ? " long" : "", PLOT_TOP + plot->height + PLOT_BOTTOM, id,
                id);
    // For the readout: what a place in the plot stands for, in the axis's unit.
    html_format(html,
                " data-plot=\"%d %d %d\" data-seconds=\"%.9g\" data-range=\"%.17g %.17g\" "
                "data-unit=\"%s\" data-digits=\"%d\">\n",
                PLOT_TOP, plot->height, PLOT_WIDTH * PLOT_FINE, (double)plot->span_ns / 1e9,
                plot->bottom / plot->unit, plot->top / plot->unit, plot->unit_name,
                plot_decimals(plot) + (plot->step < 10 ? 2 : 1));
    description_append(plot, id);
    html_format(html, "<g transform=\"translate(0 %d)\">\n", PLOT_TOP);
    plot_axes_append(plot);
    plot_band_append(plot);
    plot_lines_append(plot);
    marks_append(plot);
    spike_append(plot);
    if (plot->kind == PLOT_MEMORY)
        alerts_append(plot);
    names_append(plot);
    html_raw(html, "</g></svg></div>\n");
}

static void caption_append(const struct plot *plot) {
    struct html *html = &plot->view->html;
    html_raw(html, "<figcaption><ul class=\"legend\">\n");
    suspect_keys_append(plot);
    rank_keys_append(plot);
    spike_key_append(plot);
    if (plot->kind == PLOT_MEMORY)
        alert_keys_append(plot);
    html_raw(html, "</ul><p class=\"quiet\">");
    html_raw(html, plot->kind == PLOT_MEMORY ? "Memory in use on the device. "
                                             : "Memory in use, as a share of the device&#8217;s. ");
    html_raw(html,
             "Times are aligned: each rank&#8217;s clock is shifted so that all first "
             "samples fall together. ");
    if (plot->kind == PLOT_MEMORY && plot->bottom > 0)
        html_format(html, "The axis begins at %s. ", plot_value_text(plot, plot->bottom));
    html_raw(html, "</p></figcaption>\n");
}

static void figure_append(struct plot *plot, const char *name, const char *heading) {
    plot->height = heights[plot->kind];
    if (!plot_find_scale(plot))
        return;
    plot_choose_lines(plot);
    page_section_begin(plot->view, name, heading);
    html_raw(&plot->view->html, "<figure>\n");
    picture_append(plot);
    caption_append(plot);
    html_raw(&plot->view->html, "</figure>\n");
    page_section_end(plot->view);
}

void page_lines_mark(struct page_view *view, const struct evaluation *evaluation,
                     struct rank_figures *figures) {
    struct plot plot = {.view = view, .evaluation = evaluation, .figures = figures};
    plot_choose_lines(&plot);
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        figures[i].has_line = plot.has_line[i];
}

void page_charts_append(struct page_view *view, const struct evaluation *evaluation,
                        const struct rank_figures *figures) {
    __int128 start_ns = 0, end_ns = 0;
    if (!text_span(evaluation, &start_ns, &end_ns))
        return;
    struct plot plot = {
        .view = view,
        .evaluation = evaluation,
        .figures = figures,
        .start_ns = start_ns,
        .span_ns = end_ns > start_ns ? end_ns - start_ns : 1000000000,
    };
    plot.kind = PLOT_MEMORY;
    figure_append(&plot, "memory", "Memory of each rank");
    plot.kind = PLOT_UTILISATION;
    figure_append(&plot, "utilisation", "Utilisation of each device");
}
