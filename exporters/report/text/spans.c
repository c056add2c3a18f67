// SPDX-License-Identifier: Apache-2.0
// Where the thread time went.
//
// For a stream of tasks its tree, drawn with indents; for the telemetry of a job its phases and the
// ranks that lag in them. Below verdicts both are shorter. Bounded by the limits below.
#include "exporters/report/text/parts.h"

#include "base/text/display.h"
#include "exporters/report/span_outline.h"
#include "exporters/report/span_words.h"

#include <assert.h>
#include <inttypes.h>

enum {
    REPORTS_SHOWN = 16,
    NAME_MAX_BYTES = 120,
    NAME_COLUMNS_MIN = 12,
    // Of all figures, and of those on a narrow page.
    FIGURE_COLUMNS = 38,
    SHORT_FIGURE_COLUMNS = 20,
    PHASE_COLUMNS = 43,
    SHORT_PHASE_COLUMNS = 30,
    STATE_COLUMNS = 9,
    WIDE = 64,
    PHASES_SHOWN = 12,
    PHASES_SHOWN_SHORT = 6,
    LAGGARDS_SHOWN = 3,
};

static const struct span_outline_limits LONG = {.lines = 40, .children = 8, .depth = 6};
static const struct span_outline_limits SHORT = {.lines = 15, .children = 5, .depth = 4};

// Shortened to so many columns. Characters of several bytes may be left out earlier.
static const char *fitted(struct text_page *page, const char *text, uint32_t columns) {
    return display_columns(slice_of(text)) <= columns ? text
                                                      : page_shown(page, slice_of(text), columns);
}

// A name padded to the column where figures begin.
static const char *first_column(struct text_page *page, const char *text, uint32_t indent,
                                uint32_t columns) {
    assert(columns >= NAME_COLUMNS_MIN);
    uint32_t room = columns > indent + NAME_COLUMNS_MIN ? columns - indent : NAME_COLUMNS_MIN;
    text = fitted(page, text, room);
    uint32_t taken = indent + (uint32_t)display_columns(slice_of(text));
    return arena_format(page->arena, "  %*s%s%*s", (int)indent, "", text,
                        taken < columns ? (int)(columns - taken) : 0, "");
}

static uint32_t name_columns(const struct text_page *page, uint32_t others) {
    uint32_t left = page->style->width > others + 2 ? page->style->width - others - 2 : 0;
    return left < NAME_COLUMNS_MIN ? NAME_COLUMNS_MIN : left > 60 ? 60 : left;
}

// -- the tree of a stream -------------------------------------------------------------------------

static bool any_running(const struct span_outline *outline) {
    for (uint32_t i = 0; i < outline->count; i++)
        if (!outline->lines[i].done)
            return true;
    return false;
}

static void span_line_append(struct text_page *page, const struct span_outline *outline,
                             uint32_t index, uint32_t columns) {
    assert(index < outline->count);
    const struct span_line *line = &outline->lines[index];
    struct arena *arena = page->arena;
    const char *name =
        first_column(page, span_label(page, line, NAME_MAX_BYTES), line->depth * 2, columns);
    const char *text = arena_format(arena, "%s %10s %8s", name,
                                    page_duration(page, span_nanoseconds(line->seconds)),
                                    span_share(arena, line->thread_s, outline->thread_s));
    if (page->style->width >= WIDE)
        text = arena_format(arena, "%s %7s %9s", text,
                            line->measured ? span_share(arena, line->idle_s, line->thread_s) : "-",
                            page_bytes(page, span_bytes(line->nbytes)));
    if (!line->done)
        text = arena_format(arena, "%s  running", text);
    page_line(page, line->kind == SPAN_LINE_REST ? COLOR_DIM : COLOR_NONE, "%s", text);
    if (span_tells_state(outline, index))
        page_paragraph(page, COLOR_SUSPECT, line->depth * 2 + 4, "%s",
                       span_state_words(page, line));
    if (line->kind == SPAN_LINE_MANY && !slice_equal(line->name, line->last_name))
        page_paragraph(page, COLOR_DIM, line->depth * 2 + 4, "longest: %s, %s",
                       page_shown(page, line->longest, NAME_MAX_BYTES),
                       page_duration(page, span_nanoseconds(line->longest_s)));
}

static void tree_append(struct text_page *page, const struct span_outline *outline) {
    bool wide = page->style->width >= WIDE;
    int others =
        (wide ? FIGURE_COLUMNS : SHORT_FIGURE_COLUMNS) + (any_running(outline) ? STATE_COLUMNS : 0);
    uint32_t columns = name_columns(page, (uint32_t)others);
    page_blank(page);
    page_line(page, COLOR_DIM, "%s %10s %8s%s", first_column(page, "span", 0, columns), "open",
              "share", wide ? "    idle     bytes" : "");
    for (uint32_t i = 0; i < outline->count; i++)
        span_line_append(page, outline, i, columns);
}

// A heading, apart from what stands before it.
static void heading_append(struct text_page *page, bool first, const char *text) {
    if (first)
        page_line(page, COLOR_STRONG, "%s", text);
    else
        page_heading(page, "%s", text);
}

static void stream_append(struct text_page *page, const struct span_report *report, bool brief,
                          bool first) {
    struct span_outline outline;
    span_outline_make(report, brief ? &SHORT : &LONG, page->arena, &outline);
    heading_append(page, first,
                   arena_format(page->arena, "Thread time in %s", span_source(page, report)));
    page_paragraph(page, COLOR_NONE, 2, "%s", span_summary(page, report, &outline));
    if (outline.count > 0)
        tree_append(page, &outline);
}

// -- the phases of a job --------------------------------------------------------------------------

static void laggards_append(struct text_page *page, const struct span_phase *phase) {
    uint32_t count = span_laggards(phase, LAGGARDS_SHOWN);
    const char *text = "lags:";
    for (uint32_t i = 0; i < count; i++) {
        const struct span_phase_rank *rank = &phase->ranks[i];
        const char *slowest = span_slowest(page->arena, rank);
        text = arena_format(page->arena, "%s%s rank %" PRId32 " by %s%s%s", text, i == 0 ? "" : ";",
                            rank->rank, page_duration(page, span_nanoseconds(rank->lag_s)),
                            slowest[0] == '\0' ? "" : ", ", slowest);
    }
    if (count > 0)
        page_paragraph(page, COLOR_SUSPECT, 4, "%s", text);
    int32_t *ranks;
    uint32_t inside = span_inside(phase, page->arena, &ranks);
    if (inside > 0)
        page_paragraph(page, COLOR_SUSPECT, 4, "still inside at the end: %s",
                       text_ranks(page, ranks, inside));
}

static void phase_append(struct text_page *page, const struct span_phase *phase, uint32_t columns) {
    struct arena *arena = page->arena;
    const char *text =
        arena_format(arena, "%s %8" PRIu64 " %12s",
                     first_column(page, page_shown(page, phase->label, NAME_MAX_BYTES), 0, columns),
                     phase->openings, page_duration(page, span_nanoseconds(phase->thread_s)));
    if (page->style->width >= WIDE)
        text = arena_format(arena, "%s %12s", text,
                            page_duration(page, span_nanoseconds(phase->busy_s)));
    page_line(page, COLOR_NONE, "%s %7s", text, span_share(arena, phase->idle_s, phase->thread_s));
    laggards_append(page, phase);
}

static void phases_append(struct text_page *page, const struct span_report *report, bool brief,
                          bool first) {
    const struct span_phase **phases;
    uint32_t count =
        span_phases_choose(report, brief ? PHASES_SHOWN_SHORT : PHASES_SHOWN, page->arena, &phases);
    bool wide = page->style->width >= WIDE;
    uint32_t columns = name_columns(page, wide ? PHASE_COLUMNS : SHORT_PHASE_COLUMNS);
    heading_append(
        page, first,
        arena_format(page->arena, "Thread time by phase, %s", span_source(page, report)));
    page_line(page, COLOR_DIM, "%s %8s %12s%s %7s", first_column(page, "phase", 0, columns),
              "openings", "thread time", wide ? "         busy" : "", "idle");
    for (uint32_t i = 0; i < count; i++)
        phase_append(page, phases[i], columns);
    if (report->phase_count > count)
        page_paragraph(page, COLOR_DIM, 2, "and %u more phases with less thread time",
                       report->phase_count - count);
}

// -- all ------------------------------------------------------------------------------------------

static void remarks_append(struct text_page *page, const struct span_report *report) {
    const char *refused = span_refusals(page, report);
    if (refused != NULL)
        page_paragraph(page, COLOR_SUSPECT, 2, "%s", refused);
    for (uint32_t i = 0; i < report->note_count; i++)
        page_paragraph(page, COLOR_DIM, 2, "%s", page_shown(page, report->notes[i], 0));
}

// The spans of a job's telemetry say nothing when it had no phases.
static bool says_something(const struct span_report *report) {
    return !report->from_telemetry || report->phase_count > 0;
}

bool text_streams_any(const struct batch *batch) {
    for (uint32_t i = 0; i < batch->spans.count; i++)
        if (!batch->spans.items[i].from_telemetry)
            return true;
    return false;
}

void text_spans_append(struct text_page *page, const struct batch *batch, bool brief, bool alone) {
    uint32_t told = 0, left_out = 0;
    for (uint32_t i = 0; i < batch->spans.count; i++) {
        const struct span_report *report = &batch->spans.items[i];
        if (!says_something(report))
            continue;
        if (told == REPORTS_SHOWN) {
            left_out++;
            continue;
        }
        bool first = alone && told == 0;
        told++;
        if (report->from_telemetry)
            phases_append(page, report, brief, first);
        else
            stream_append(page, report, brief, first);
        remarks_append(page, report);
    }
    if (left_out > 0)
        page_paragraph(page, COLOR_DIM, 0,
                       "And %u more trees of spans; culprit analyze "
                       "--output spans prints them all.",
                       left_out);
}
