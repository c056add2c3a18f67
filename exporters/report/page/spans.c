// SPDX-License-Identifier: Apache-2.0
// Thread time as tables with bars.
//
// A stream's tree in the outline of the terminal's report, with more rows; a job's phases with the
// ranks that lag. Bars are pictures without text of their own: what they show stands beside them.
#include "exporters/report/page/parts.h"
#include "exporters/report/span_outline.h"
#include "exporters/report/span_words.h"
#include "exporters/report/text/layout.h"

#include "base/hash/hash.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

enum {
    OUTLINE_LINES = 250,
    OUTLINE_CHILDREN = 30,
    OUTLINE_DEPTH = 8, // as many as there are indents
    REPORTS_SHOWN = 50,
    PHASES_SHOWN = 100,
    LAGGARDS_SHOWN = 5,
    NAME_BYTES = 200,
};

static double clamped(double value, double most) {
    return !(value > 0) ? 0 : value > most ? most : value;
}

// Parts of a whole of 100, one behind the other; the rest stays empty.
static void bar_append(struct page_view *view, const char *first, double first_part,
                       const char *second, double second_part) {
    double begin = clamped(first_part, 100);
    double rest = clamped(second_part, 100 - begin);
    html_raw(&view->html,
             "<svg class=\"bar\" viewBox=\"0 0 100 8\" preserveAspectRatio=\"none\" "
             "aria-hidden=\"true\">");
    html_format(&view->html, "<rect class=\"%s\" width=\"%.2f\" height=\"8\"/>", first, begin);
    if (rest > 0)
        html_format(&view->html, "<rect class=\"%s\" x=\"%.2f\" width=\"%.2f\" height=\"8\"/>",
                    second, begin, rest);
    html_raw(&view->html, "</svg>");
}

static const char *seconds(struct page_view *view, double seconds) {
    return page_duration(&view->words, span_nanoseconds(seconds));
}

static double percent(double part, double whole) {
    return whole > 0 && isfinite(part) ? 100 * part / whole : 0;
}

// -- the tree of a stream -------------------------------------------------------------------------

static void span_state_append(struct page_view *view, const struct span_outline *outline,
                              uint32_t index) {
    const struct span_line *line = &outline->lines[index];
    html_raw(&view->html, line->done ? "<td>done" : "<td><span class=\"tag\">running</span>");
    if (!span_tells_state(outline, index))
        return;
    html_format(&view->html, "<br><span class=\"quiet\">%s</span>",
                span_state_words(&view->words, line));
}

static void span_row_append(struct page_view *view, const struct span_outline *outline,
                            uint32_t index) {
    assert(index < outline->count && outline->lines[index].depth < OUTLINE_DEPTH);
    struct html *html = &view->html;
    const struct span_line *line = &outline->lines[index];
    html_format(html, "<tr><th scope=\"row\" class=\"d%u%s\">%s", line->depth,
                line->kind == SPAN_LINE_MANY ? " many" : "",
                span_label(&view->words, line, NAME_BYTES));
    if (line->kind == SPAN_LINE_MANY && !slice_equal(line->name, line->last_name))
        html_format(html, "<br><span class=\"quiet\">longest: %s, %s</span>",
                    page_shown(&view->words, line->longest, NAME_BYTES),
                    seconds(view, line->longest_s));
    html_format(html, "<td class=\"n\">%s<td class=\"n\">", seconds(view, line->seconds));
    double share = percent(line->thread_s, outline->thread_s);
    double idle = line->measured ? percent(line->idle_s, outline->thread_s) : 0;
    bar_append(view, "busy", share - idle, "idle", idle);
    html_format(html, "%s, %s<td class=\"n\">%s<td class=\"n\">%s", seconds(view, line->thread_s),
                span_share(html->arena, line->thread_s, outline->thread_s),
                line->measured ? span_share(html->arena, line->idle_s, line->thread_s) : "-",
                page_bytes(&view->words, span_bytes(line->nbytes)));
    span_state_append(view, outline, index);
    html_raw(html, "\n");
}

static void outline_make(const struct span_report *report, uint32_t max_lines, struct arena *arena,
                         struct span_outline *outline) {
    assert(max_lines > 0);
    struct span_outline_limits limits = {
        .lines = max_lines, .children = OUTLINE_CHILDREN, .depth = OUTLINE_DEPTH};
    span_outline_make(report, &limits, arena, outline);
}

// How many lines each of so many trees may have.
static uint32_t outline_lines(uint32_t rows, uint32_t trees) {
    assert(trees > 0);
    uint32_t lines = rows / (trees < REPORTS_SHOWN ? trees : REPORTS_SHOWN);
    return lines > OUTLINE_LINES ? OUTLINE_LINES : lines > 0 ? lines : 1;
}

void page_outline_make(const struct batch *batch, uint32_t index, struct arena *arena,
                       struct span_outline *outline) {
    assert(index < batch->spans.count);
    *outline = (struct span_outline){0};
    uint32_t trees = 0, before = 0;
    for (uint32_t i = 0; i < batch->spans.count; i++) {
        trees += !batch->spans.items[i].from_telemetry;
        before += i < index && !batch->spans.items[i].from_telemetry;
    }
    if (!batch->spans.items[index].from_telemetry && before < REPORTS_SHOWN)
        outline_make(&batch->spans.items[index], outline_lines(PAGE_SPAN_ROWS_MAX, trees), arena,
                     outline);
}

static void tree_append(struct page_view *view, const struct span_report *report, const char *id,
                        uint32_t max_lines) {
    const struct page_input *input = view->input;
    struct span_outline outline;
    if (input->outlines != NULL)
        outline = input->outlines[report - input->batch->spans.items];
    else
        outline_make(report, max_lines, view->html.arena, &outline);
    html_format(&view->html, "<p>%s</p>\n", span_summary(&view->words, report, &outline));
    if (outline.count == 0)
        return;
    struct page_rows rows = {
        .id = id,
        .name = "spans",
        .caption =
            "Spans below one another; those with the most thread time have rows. The bar is "
            "their share of all thread time, its pale end what of it was idle",
        .columns = "Span|Open|Thread time|Idle|Bytes|State",
        .what = "more rows",
        .count = outline.count,
    };
    page_rows_begin(view, &rows);
    for (uint32_t i = 0; i < outline.count; i++) {
        page_rows_next(view, &rows);
        span_row_append(view, &outline, i);
    }
    page_rows_end(view, &rows);
    view->span_rows -= outline.count < view->span_rows ? outline.count : view->span_rows;
}

// -- the phases of a job --------------------------------------------------------------------------

// All bars of the column have one scale, `most_lag` seconds.
static void laggards_append(struct page_view *view, const struct span_phase *phase,
                            double most_lag) {
    struct html *html = &view->html;
    uint32_t count = span_laggards(phase, LAGGARDS_SHOWN);
    for (uint32_t i = 0; i < count; i++) {
        const struct span_phase_rank *rank = &phase->ranks[i];
        html_format(html, "<div>rank %" PRId32 " by %s <span class=\"quiet\">%s</span>", rank->rank,
                    seconds(view, rank->lag_s), span_slowest(html->arena, rank));
        bar_append(view, "lags", percent(rank->lag_s, most_lag), "", 0);
        html_raw(html, "</div>");
    }
    int32_t *ranks;
    uint32_t inside = span_inside(phase, html->arena, &ranks);
    if (inside > 0)
        html_format(html, "<span class=\"tag\">still inside</span> %s",
                    text_ranks(&view->words, ranks, inside));
}

// The scales of the bars in a table of phases, in seconds.
struct phase_scale {
    double most_thread, most_lag;
};

static void phase_row_append(struct page_view *view, const struct span_phase *phase,
                             const struct phase_scale *scale) {
    struct html *html = &view->html;
    html_format(html, "<tr><th scope=\"row\">%s<td class=\"n\">%" PRIu64 "<td class=\"n\">",
                page_shown(&view->words, phase->label, NAME_BYTES), phase->openings);
    bar_append(view, "busy", percent(phase->busy_s, scale->most_thread), "idle",
               percent(phase->idle_s, scale->most_thread));
    html_format(html, "%s<td class=\"n\">%s<td class=\"n\">%s<td>", seconds(view, phase->thread_s),
                seconds(view, phase->busy_s),
                span_share(html->arena, phase->idle_s, phase->thread_s));
    laggards_append(view, phase, scale->most_lag);
    html_raw(html, "\n");
}

static void phases_append(struct page_view *view, const struct span_report *report,
                          const char *id) {
    const struct span_phase **phases;
    uint32_t most_rows = view->span_rows < PHASES_SHOWN ? view->span_rows : PHASES_SHOWN;
    uint32_t count = span_phases_choose(report, most_rows, view->html.arena, &phases);
    struct phase_scale scale = {0};
    for (uint32_t i = 0; i < count; i++) {
        scale.most_thread = fmax(scale.most_thread, phases[i]->thread_s);
        if (span_laggards(phases[i], 1) > 0)
            scale.most_lag = fmax(scale.most_lag, phases[i]->ranks[0].lag_s);
    }
    struct page_rows rows = {
        .id = id,
        .name = "spans",
        .caption =
            "Phases of all ranks together; a thread is a rank. The pale end of a bar is "
            "idle: ranks that waited, or were elsewhere. All bars of a column have one scale",
        .columns = "Phase|Openings|Thread time|Busy|Idle|Ranks that lag",
        .what = "more phases",
        .count = count,
    };
    page_rows_begin(view, &rows);
    for (uint32_t i = 0; i < count; i++) {
        page_rows_next(view, &rows);
        phase_row_append(view, phases[i], &scale);
    }
    page_rows_end(view, &rows);
    view->span_rows -= count;
    if (report->phase_count > count)
        html_format(&view->html,
                    "<p class=\"quiet\">and %u more phases with less thread time</p>\n",
                    report->phase_count - count);
}

// -- where they stand -----------------------------------------------------------------------------

static void remarks_append(struct page_view *view, const struct span_report *report) {
    const char *refused = span_refusals(&view->words, report);
    if (refused != NULL)
        html_format(&view->html, "<p class=\"quiet\">%s</p>\n", refused);
    for (uint32_t i = 0; i < report->note_count; i++)
        html_format(&view->html, "<p class=\"quiet\">%.*s</p>\n", TEXT_OF(report->notes[i]));
}

static bool is_of_evaluation(const struct page_view *view, const struct span_report *report) {
    const struct batch *batch = view->input->batch;
    for (uint32_t i = 0; report->from_telemetry && i < batch->evaluation_count; i++)
        if (batch->evaluations[i].job == report->job)
            return true;
    return false;
}

void page_job_spans_append(struct page_view *view, const struct evaluation *evaluation) {
    const struct span_report_list *spans = &view->input->batch->spans;
    uint32_t shown = 0; // of this job, so that its ids do not change with other jobs
    for (uint32_t i = 0; i < spans->count; i++) {
        const struct span_report *report = &spans->items[i];
        if (!report->from_telemetry || report->job != evaluation->job || report->phase_count == 0)
            continue;
        const char *id = arena_format(view->html.arena, "phases%u", shown++);
        page_section_begin(view, id, "Thread time");
        phases_append(view, report, id);
        remarks_append(view, report);
        page_section_end(view);
    }
}

static bool is_other(const struct page_view *view, const struct span_report *report) {
    return !is_of_evaluation(view, report) && (!report->from_telemetry || report->phase_count > 0);
}

// Of one that is served it must not change when others come.
static const char *other_id(struct page_view *view, uint32_t index) {
    const struct span_report *report = &view->input->batch->spans.items[index];
    if (view->input->live == NULL)
        return arena_format(view->html.arena, "spans%u", index);
    struct slice name = report->from_telemetry ? intern_slice(report->job) : report->source;
    return arena_format(view->html.arena, report->from_telemetry ? "phases%016lx" : "spans%016lx",
                        (unsigned long)hash_slice(name));
}

void page_other_spans_append(struct page_view *view) {
    const struct span_report_list *spans = &view->input->batch->spans;
    uint32_t others = 0, shown = 0;
    for (uint32_t i = 0; i < spans->count; i++)
        others += is_other(view, &spans->items[i]);
    if (others == 0)
        return;
    uint32_t lines = outline_lines(view->span_rows, others);
    view->level = 2;
    view->job_number = view->input->batch->evaluation_count + 1;
    for (uint32_t i = 0; i < spans->count && shown < REPORTS_SHOWN; i++) {
        const struct span_report *report = &spans->items[i];
        if (!is_other(view, report))
            continue;
        shown++;
        const char *id = other_id(view, i);
        page_section_begin(
            view, id,
            arena_format(view->html.arena, "Thread time in %s", span_source(&view->words, report)));
        if (report->from_telemetry)
            phases_append(view, report, id);
        else
            tree_append(view, report, id, lines);
        remarks_append(view, report);
        page_section_end(view);
    }
    if (others > shown)
        html_format(&view->html, "<p class=\"quiet\">and %u more trees of spans</p>\n",
                    others - shown);
}
