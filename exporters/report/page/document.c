// SPDX-License-Identifier: Apache-2.0
// The document: one self-contained page of what a batch holds.
//
// The incidents, then one section a job, the gravest first, and below it the verdicts on jobs that
// no evaluation shows.
// The size is bounded whatever comes: PAGE_LINES_MAX lines with PAGE_POINTS_MAX points and
// PAGE_RANK_ROWS_MAX rows in all, shared by the jobs. Nothing but the input goes into it, so the
// same input gives the same bytes. Cost: a few walks over the samples.
#include "exporters/report/page/parts.h"

#include "base/sort.h"
#include "exporters/report/page/style.h"
#include "exporters/report/text/layout.h"
#include "pipeline/model/series.h"

#include <assert.h>
#include <stdlib.h>

enum {
    PAGE_LINES_MAX = 2000,
    PAGE_SUSPECT_LINES_MAX = 256,
    PAGE_POINTS_MAX = 160000,
    PAGE_RANK_ROWS_MAX = 10000,
    JOB_LINES_MIN = 8,
    LINE_POINTS_MIN = 16,
    CHARTS = 2,
    PAGE_BYTES_MAX = 1 << 30,
};

void page_section_begin(struct page_view *view, const char *name, const char *heading) {
    assert(view->level == 2 || view->level == 3 || view->level == 4);
    if (view->level == 2)
        page_contents_add(view, arena_format(view->html.arena, "j%u%s", view->job_number, name),
                          slice_of(heading), NULL);
    html_format(&view->html, "<section aria-labelledby=\"j%u%s\">\n<h%d id=\"j%u%s\">%s</h%d>\n",
                view->job_number, name, view->level, view->job_number, name, heading, view->level);
}

void page_section_end(struct page_view *view) {
    html_raw(&view->html, "</section>\n");
}

bool page_alert_belongs(const struct page_view *view, const struct page_alert *alert,
                        const struct evaluation *evaluation) {
    if (alert->time_ns > evaluation->as_of_ns)
        return false;
    return alert->job == evaluation->job ||
           (alert->job == STRING_NONE && view->input->batch->evaluation_count == 1);
}

const char *page_rank_class(const struct evaluation *evaluation, int32_t suspect) {
    static const char *const further[] = {"c1", "c2", "c3", "c4"};
    const struct cause *cause = evaluation->cause;
    if (suspect < 0 || cause == NULL || cause->kind != CAUSE_LEAK)
        return "m";
    if (cause->sole_earliest)
        suspect--;
    return suspect < 0 ? "c0" : further[suspect % 4];
}

// -- what is read off the samples -----------------------------------------------------------------

static void figures_read(const struct evaluation *evaluation, uint32_t index,
                         struct rank_figures *figures) {
    assert(index < evaluation->rank_count && !figures->held);
    const struct rank_series *series = evaluation->ranks[index].series;
    struct series_cursor cursor = series_begin(series);
    const struct sample *rows;
    for (uint32_t count; (count = series_next_run(evaluation->store, series, &cursor,
                                                  evaluation->as_of_ns, &rows)) > 0;) {
        if (!figures->held)
            figures->first_bytes = figures->lowest_bytes = figures->highest_bytes =
                rows[0].used_bytes;
        figures->held = true;
        for (uint32_t i = 0; i < count; i++) {
            if (rows[i].used_bytes < figures->lowest_bytes)
                figures->lowest_bytes = rows[i].used_bytes;
            if (rows[i].used_bytes > figures->highest_bytes)
                figures->highest_bytes = rows[i].used_bytes;
        }
        figures->last_bytes = rows[count - 1].used_bytes;
    }
}

// One walk over all samples; [rank_count], from the arena.
static const struct rank_figures *rank_figures(struct page_view *view,
                                               const struct evaluation *evaluation) {
    assert(evaluation->rank_count > 0);
    struct rank_figures *figures =
        arena_zero(view->html.arena, evaluation->rank_count, sizeof *figures);
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        figures_read(evaluation, i, &figures[i]);
        figures[i].suspect = -1;
        figures[i].device_bytes = page_notes_device_bytes(view->input->notes, evaluation->job,
                                                          text_rank_at(evaluation, i));
    }
    const struct cause *cause = evaluation->cause;
    for (uint32_t i = 0; cause != NULL && i < cause->suspects.count; i++)
        figures[cause->suspects.items[i].index].suspect = (int32_t)i;
    page_lines_mark(view, evaluation, figures);
    return figures;
}

// -- a job ----------------------------------------------------------------------------------------

static void silent_append(struct page_view *view, const struct evaluation *evaluation) {
    __int128 start_ns = 0, end_ns = 0;
    if (!text_span(evaluation, &start_ns, &end_ns))
        return;
    view->told.count = 0;
    text_silent_append(&view->words, evaluation, end_ns);
    struct html *html = &view->html;
    for (uint32_t i = 0; i < view->told.count; i++) {
        const struct told *told = &view->told.items[i];
        if (told->kind == TOLD_HEADING) {
            page_section_begin(view, "silent", told->text);
            continue;
        }
        html_raw(html, told->color == COLOR_DIM ? "<p class=\"quiet\">" : "<p>");
        html_format(html, "%s</p>\n", told->text);
    }
    if (view->told.count > 0)
        page_section_end(view);
}

// A section of texts, each followed by `end`; nothing without any.
static void list_append(struct page_view *view, const char *name, const char *heading,
                        const struct slice *texts, uint32_t count, const char *end) {
    if (count == 0)
        return;
    page_section_begin(view, name, heading);
    html_raw(&view->html, "<ul>\n");
    for (uint32_t i = 0; i < count; i++)
        html_format(&view->html, "<li>%.*s%s</li>\n", TEXT_OF(texts[i]), end);
    html_raw(&view->html, "</ul>\n");
    page_section_end(view);
}

static void notes_append(struct page_view *view, const struct evaluation *evaluation) {
    uint32_t count = 0;
    struct slice *telling =
        arena_zero(view->html.arena, evaluation->notes.count + 1, sizeof *telling);
    for (uint32_t i = 0; i < evaluation->notes.count; i++)
        if (!text_note_is_routine(evaluation->notes.items[i]))
            telling[count++] = evaluation->notes.items[i];
    list_append(view, "notes", "Notes", telling, count, "");
}

static void evaluation_append(struct page_view *view, const struct evaluation *evaluation) {
    page_answer_append(view, evaluation);
    page_more_verdicts_append(view, evaluation);
    if (evaluation->rank_count > 0) {
        const struct rank_figures *figures = rank_figures(view, evaluation);
        page_charts_append(view, evaluation, figures);
        page_suspects_append(view, evaluation, figures);
        silent_append(view, evaluation);
        page_ranks_append(view, evaluation, figures);
        page_alerts_append(view, evaluation);
    }
    page_job_spans_append(view, evaluation);
    notes_append(view, evaluation);
}

// -- several jobs ---------------------------------------------------------------------------------

struct job_place {
    const struct evaluation *evaluation;
    int gravity; // enum severity; -1: nothing found
};

static int place_compare(const void *left, const void *right) {
    const struct job_place *a = left, *b = right;
    string_id a_job = a->evaluation->job, b_job = b->evaluation->job;
    return COMPARE_KEYS(COMPARE(b->gravity, a->gravity),
                        COMPARE(a_job != STRING_NONE, b_job != STRING_NONE),
                        slice_compare(intern_slice(a_job), intern_slice(b_job)));
}

int page_gravity(const struct page_view *view, string_id job) {
    int gravity = -1;
    for (uint32_t i = 0; i < view->verdict_count; i++)
        if (view->verdicts[i]->job == job && view->verdicts[i]->state != VERDICT_RESOLVED &&
            (int)view->verdicts[i]->severity > gravity)
            gravity = (int)view->verdicts[i]->severity;
    return gravity;
}

static const struct job_place *jobs_sorted(const struct page_view *view) {
    const struct batch *batch = view->input->batch;
    struct job_place *places = arena_take(batch->arena, batch->evaluation_count * sizeof *places);
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        places[i] = (struct job_place){&batch->evaluations[i],
                                       page_gravity(view, batch->evaluations[i].job)};
    if (batch->evaluation_count > 1)
        qsort(places, batch->evaluation_count, sizeof *places, place_compare);
    return places;
}

static void job_append(struct page_view *view, const struct job_place *place) {
    size_t from = view->html.out->size;
    struct slice name = page_job_name(place->evaluation);
    page_contents_add(view, arena_format(view->html.arena, "job%u", view->job_number), name,
                      place->gravity < 0 ? page_answer_word(view, place->evaluation)
                                         : severity_name((enum severity)place->gravity));
    html_raw(&view->html, "<section class=\"job\"");
    if (view->input->live != NULL)
        html_format(&view->html, " data-key=\"%.*s\"", TEXT_OF(name));
    html_format(&view->html, " aria-labelledby=\"job%u\">\n<h2 id=\"job%u\">Job %.*s</h2>\n",
                view->job_number, view->job_number,
                TEXT_OF(place->evaluation->job == STRING_NONE ? SLICE("without a name") : name));
    view->level = 3;
    evaluation_append(view, place->evaluation);
    html_raw(&view->html, "</section>\n");
    view->level = 2;
    struct slice body = buffer_slice(view->html.out);
    page_live_keep(view, place->evaluation->job,
                   (struct slice){body.data + from, body.size - from});
}

static void jobs_append(struct page_view *view) {
    uint32_t count = view->input->batch->evaluation_count;
    const struct job_place *places = jobs_sorted(view);
    for (uint32_t i = 0; i < count; i++) {
        view->job_number =
            page_live_number(view, places[i].evaluation->job,
                             view->input->live == NULL ? i : PAGE_LIVE_JOBS_MAX + 1 + i);
        view->level = 2;
        // One that is served keeps its sections apart, as there may be more jobs on the next page.
        if (count > 1 || (view->input->live != NULL && places[i].evaluation->rank_count > 0))
            job_append(view, &places[i]);
        else if (view->input->live == NULL || places[i].evaluation->rank_count > 0)
            evaluation_append(view, places[i].evaluation);
    }
    page_live_kept_append(view);
}

static void loose_append(struct page_view *view) {
    uint32_t loose = page_loose_verdicts(view, false);
    view->level = 2;
    view->job_number =
        view->input->live != NULL ? PAGE_LIVE_JOBS_MAX : view->input->batch->evaluation_count;
    if (loose > 0) {
        const struct batch *batch = view->input->batch;
        bool nameless = batch->evaluation_count == 1 && batch->evaluations[0].job == STRING_NONE;
        page_section_begin(view, "loose", nameless ? "Also found" : "Other jobs");
        view->level = 3;
        page_loose_verdicts(view, true);
        page_section_end(view);
    }
}

// Neither charts nor words on memory when nobody sampled any.
static void others_append(struct page_view *view) {
    page_untold_verdicts_append(view);
    for (uint32_t i = 0; i < view->input->batch->evaluation_count; i++) {
        view->job_number = i;
        page_job_spans_append(view, &view->input->batch->evaluations[i]);
    }
}

static bool lacks_memory(const struct page_input *input) {
    if (page_live_keeps_any(input->live))
        return false;
    for (uint32_t i = 0; i < input->batch->evaluation_count; i++)
        if (input->batch->evaluations[i].rank_count > 0)
            return false;
    return input->live == NULL || input->verdict_count > 0 || text_streams_any(input->batch);
}

// -- the document ---------------------------------------------------------------------------------

static void foot_append(struct page_view *view) {
    struct html *html = &view->html;
    html_raw(html,
             "</main>\n<footer><p>Made by culprit. Nothing on this page is loaded from "
             "elsewhere; times of day are UTC.</p></footer>\n<script>");
    html_raw(html, page_script);
    html_raw(html, "</script>\n");
    if (view->input->live != NULL) {
        html_raw(html, "<script>");
        html_raw(html, live_script);
        html_raw(html, "</script>\n");
    }
    html_raw(html, "</body>\n</html>\n");
}

static int verdict_compare(const void *left, const void *right) {
    const struct verdict *a = *(const struct verdict *const *)left;
    const struct verdict *b = *(const struct verdict *const *)right;
    return COMPARE_KEYS(COMPARE(a->state == VERDICT_RESOLVED, b->state == VERDICT_RESOLVED),
                        COMPARE(b->severity, a->severity), COMPARE(b->confidence, a->confidence),
                        COMPARE(a->start_ns, b->start_ns), strcmp(a->id, b->id));
}

static void verdicts_sort(struct page_view *view) {
    const struct page_input *input = view->input;
    const struct verdict **sorted =
        arena_take(input->batch->arena, input->verdict_count * sizeof *sorted);
    for (uint32_t i = 0; i < input->verdict_count; i++)
        sorted[i] = &input->verdicts[i];
    if (input->verdict_count > 1)
        qsort(sorted, input->verdict_count, sizeof *sorted, verdict_compare);
    view->verdicts = sorted;
    view->verdict_count = input->verdict_count;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

// How many lines a job may have, and how many points a line, so that the page stays small.
static void limits_set(struct page_view *view) {
    const struct batch *batch = view->input->batch;
    uint32_t jobs = batch->evaluation_count == 0 ? 1 : batch->evaluation_count;
    uint32_t share = PAGE_LINES_MAX / jobs;
    if (share < JOB_LINES_MIN)
        share = JOB_LINES_MIN;
    view->max_lines = least(view->input->max_ranks, share);
    view->max_suspect_lines = least(PAGE_SUSPECT_LINES_MAX, share);
    uint32_t lines = 1;
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        lines += CHARTS *
                 least(batch->evaluations[i].rank_count, view->max_lines + view->max_suspect_lines);
    view->points = least(view->input->max_points, PAGE_POINTS_MAX / lines);
    if (view->points < LINE_POINTS_MIN)
        view->points = least(view->input->max_points, LINE_POINTS_MIN);
    if (view->points < 2)
        view->points = 2;
    view->rank_rows = PAGE_RANK_ROWS_MAX;
    view->span_rows = PAGE_SPAN_ROWS_MAX;
}

static void body_append(struct page_view *view) {
    page_live_jobs_append(view);
    page_stories_append(view);
    // What is served says at the top how far it is, and of each job what was found.
    if (view->input->live == NULL &&
        !(view->without_memory && text_streams_any(view->input->batch)))
        page_whole_answer_append(view);
    if (view->without_memory) {
        others_append(view);
    } else {
        jobs_append(view);
        loose_append(view);
    }
    page_other_spans_append(view);
    page_absent_append(view);
}

// What no stage looked at is also known of what came before a restart.
static struct answer answer_of(struct page_view *view) {
    const struct page_input *input = view->input;
    const struct seen *known = page_seen(input);
    struct seen seen = known == NULL ? (struct seen){0} : *known;
    seen.unread |= page_notes_unread(input->notes) > 0;
    return text_answer(&view->words, view->incidents, input->verdicts, input->verdict_count,
                       input->batch, &seen);
}

void page_encode(const struct page_input *input, struct buffer *out) {
    assert(input->batch != NULL && input->batch->arena != NULL);
    assert(input->verdict_count == 0 || input->verdicts != NULL);
    struct page_view view = {.input = input, .style = {.utf8 = true, .width = 80}, .level = 2};
    html_init(&view.html, out, input->batch->arena);
    view.words =
        (struct text_page){.style = &view.style, .arena = input->batch->arena, .told = &view.told};
    view.alert_count = page_notes_alert_count(input->notes);
    if (view.alert_count > 0)
        view.alerts = page_notes_alerts(input->notes, input->batch->arena);
    verdicts_sort(&view);
    page_stories_find(&view);
    view.answer = answer_of(&view);
    limits_set(&view);
    page_live_update(&view);
    view.without_memory = lacks_memory(input);
    page_head_append(&view);
    // The list of contents stands before what it lists.
    struct buffer body;
    buffer_init(&body, PAGE_BYTES_MAX);
    view.html.out = &body;
    body_append(&view);
    view.html.out = out;
    page_contents_append(&view);
    html_raw(&view.html, "<main id=\"main\">\n");
    buffer_append(out, buffer_slice(&body));
    out->failed |= body.failed;
    buffer_release(&body);
    list_append(&view, "missing", "Missing input", input->batch->missing_inputs,
                input->batch->missing_count, ": does not exist or cannot be read");
    foot_append(&view);
    html_release(&view.html);
}
