// SPDX-License-Identifier: Apache-2.0
// The figures behind the picture: who grew and when, every rank, every alert.
//
// Tables are short by being cut, and say what they leave out. Linear in the ranks.
#include "exporters/report/page/parts.h"
#include "exporters/report/text/layout.h"
#include "pipeline/model/series.h"

#include <assert.h>
#include <inttypes.h>

enum { SUSPECTS_SHOWN_MAX = 256, RANKS_OPEN_MAX = 32, ALERTS_OPEN_MAX = 16 };

static void table_begin(struct page_view *view, const char *name, const char *caption,
                        const char *columns) {
    html_format(&view->html,
                "<div class=\"wide\"><p class=\"caption\">%s</p>" PAGE_WIDE_HINT
                "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\">"
                "<table class=\"%s\"><thead><tr>",
                caption, caption, name);
    for (size_t size; *columns != '\0'; columns += size + (columns[size] == '|')) {
        size = strcspn(columns, "|");
        html_format(&view->html, "<th scope=\"col\">%.*s", (int)size, columns);
    }
    html_raw(&view->html, "</tr></thead><tbody>\n");
}

static void table_end(struct page_view *view) {
    html_raw(&view->html, "</tbody></table></div></div>\n");
}

// What is folded has an id of its own: by it a page that is open in a browser gets newer rows
// (live.js). The caller writes the summary's text, and ends it with "</summary>".
static void fold_begin(struct page_view *view, const char *id, bool open) {
    html_format(&view->html, "<details class=\"fold\" id=\"j%u-%s\"%s><summary>", view->job_number,
                id, open ? " open" : "");
}

void page_rows_begin(struct page_view *view, const struct page_rows *rows) {
    table_begin(view, rows->name, rows->caption, rows->columns);
}

void page_rows_next(struct page_view *view, struct page_rows *rows) {
    assert(rows->done < rows->count);
    if (rows->done++ != PAGE_ROWS_OPEN)
        return;
    table_end(view);
    fold_begin(view, rows->id, false);
    html_format(&view->html, "%u %s</summary>\n", rows->count - PAGE_ROWS_OPEN, rows->what);
    page_rows_begin(view, rows);
}

void page_rows_end(struct page_view *view, const struct page_rows *rows) {
    assert(rows->done == rows->count);
    table_end(view);
    if (rows->done > PAGE_ROWS_OPEN)
        html_raw(&view->html, "</details>\n");
}

// A link to its line when it has one.
static void rank_append(struct page_view *view, int32_t rank, const char *before, bool has_line) {
    if (has_line)
        html_format(&view->html, "<a href=\"#j%ur%d\" target=\"_self\">%s%d</a>", view->job_number,
                    rank, before, rank);
    else
        html_format(&view->html, "%s%d", before, rank);
}

// -- suspects -------------------------------------------------------------------------------------

// What the rank was doing, or why that is not known.
static void phase_append(struct page_view *view, const struct evaluation *evaluation,
                         uint32_t index) {
    struct html *html = &view->html;
    const struct phase_attribution *phase = text_suspect_phase(evaluation, index);
    const char *text = text_phase(&view->words, phase);
    if (phase == NULL) {
        html_raw(html, "<span class=\"quiet\">not looked at</span>");
    } else if (text == NULL) {
        html_raw(html, "<span class=\"quiet\">not known: no phase was open</span>");
    } else {
        html_format(html, "%s", text);
        if (phase->resolution == PHASE_AMBIGUOUS)
            html_raw(html, " <span class=\"tag\">ambiguous</span>");
    }
}

static void lead_append(struct page_view *view, const struct evaluation *evaluation,
                        const struct suspect *first) {
    assert(evaluation->cause->suspects.count > 0);
    const struct suspect_list *suspects = &evaluation->cause->suspects;
    if (suspects->count < 2) {
        html_raw(&view->html, "<span class=\"quiet\">nobody followed</span>");
        return;
    }
    if (!evaluation->cause->sole_earliest) {
        html_raw(&view->html, "same moment");
        return;
    }
    html_format(&view->html, "%s ahead of rank %d", page_duration(&view->words, first->lead_ns),
                text_rank_at(evaluation, suspects->items[1].index));
}

static void growth_row_append(struct page_view *view, const struct evaluation *evaluation,
                              uint32_t index, const struct spike *spike, __int128 after_ns,
                              bool first, bool has_line) {
    struct html *html = &view->html;
    const struct origin *origin = table_row(&evaluation->store->origins, spike->origin);
    int32_t rank = text_rank_at(evaluation, index);
    html_raw(html, "<tr><th scope=\"row\">");
    rank_append(view, rank, "rank ", has_line);
    html_format(html, "</th><td>%.*s</td><td class=\"n\">", TEXT_OF(intern_slice(origin->host)));
    html_time(html, spike->time_ns);
    html_raw(html, "</td><td class=\"n\">");
    if (first)
        lead_append(view, evaluation, &evaluation->cause->suspects.items[0]);
    else if (after_ns == 0)
        html_raw(html, "same moment");
    else
        html_format(html, "%s after", page_duration(&view->words, after_ns));
    // Of a slow rise the lows between the swings are counted.
    html_format(html, "</td><td class=\"n\">%s in %" PRIu64 " %s%s</td><td>",
                page_bytes(&view->words, spike->growth_bytes), spike->samples,
                first && evaluation->cause->creeping ? "swing" : "sample",
                spike->samples == 1 ? "" : "s");
    phase_append(view, evaluation, index);
    html_raw(html, "</td></tr>\n");
}

void page_suspects_append(struct page_view *view, const struct evaluation *evaluation,
                          const struct rank_figures *figures) {
    const struct cause *cause = evaluation->cause;
    if (cause == NULL || cause->suspects.count == 0 || cause->kind == CAUSE_SWING ||
        evaluation->spikes == NULL)
        return;
    struct follower *followers =
        arena_take(view->html.arena, evaluation->rank_count * sizeof *followers);
    uint32_t count = text_followers_find(evaluation, followers);
    const struct suspect *first = &cause->suspects.items[0];
    uint32_t shown = count + 1 < SUSPECTS_SHOWN_MAX ? count + 1 : SUSPECTS_SHOWN_MAX;
    page_section_begin(view, "grew", "Ranks that grew");
    struct page_rows rows = {
        .id = "grew",
        .name = "grew",
        .caption = "In the order in which they grew far enough to be found",
        .columns = "Rank|Host|Found at|Lead|Growth|Phase",
        .what = "more ranks that grew",
        .count = shown,
    };
    page_rows_begin(view, &rows);
    page_rows_next(view, &rows);
    growth_row_append(view, evaluation, first->index, &first->spike, 0, true,
                      figures[first->index].has_line);
    for (uint32_t i = 0; i + 1 < shown; i++) {
        page_rows_next(view, &rows);
        growth_row_append(view, evaluation, followers[i].index, followers[i].spike,
                          followers[i].aligned_ns - first->aligned_ns, false,
                          figures[followers[i].index].has_line);
    }
    page_rows_end(view, &rows);
    if (count + 1 > SUSPECTS_SHOWN_MAX)
        html_format(&view->html, "<p class=\"quiet\">and %u more</p>\n",
                    count + 1 - SUSPECTS_SHOWN_MAX);
    page_section_end(view);
}

// -- ranks ----------------------------------------------------------------------------------------

// The rank that the answer names, whose row is bold.
static bool is_named(const struct evaluation *evaluation, int32_t suspect) {
    const struct cause *cause = evaluation->cause;
    return suspect == 0 && cause != NULL && cause->kind == CAUSE_LEAK && cause->sole_earliest;
}

static const char *finding_of(const struct evaluation *evaluation, uint32_t index,
                              int32_t suspect) {
    assert(index < evaluation->rank_count && (suspect < 0 || evaluation->cause != NULL));
    const struct cause *cause = evaluation->cause;
    if (suspect >= 0 && cause->kind == CAUSE_LEAK)
        return is_named(evaluation, suspect) ? "started it" : "suspect";
    if (evaluation->spikes != NULL && evaluation->spikes[index].kept.found)
        return "grew";
    return evaluation->spikes != NULL && evaluation->spikes[index].first.found ? "fell back" : "";
}

static void rank_host_append(struct page_view *view, const struct evaluation *evaluation,
                             uint32_t index) {
    const struct sample *sample = series_at_or_before(
        evaluation->store, evaluation->ranks[index].series, evaluation->ranks[index].last_ns);
    if (sample != NULL)
        html_text(&view->html, intern_slice(series_origin(evaluation->store, sample)->host));
}

// The columns that would be empty for all ranks are left out.
struct rank_columns {
    bool finding, device;
};

static void rank_use_append(struct page_view *view, const struct rank_view *rank,
                            const struct rank_figures *figures,
                            const struct rank_columns *columns) {
    struct html *html = &view->html;
    if (!figures->held) {
        html_raw(html, columns->device ? "<td><td><td><td><td>" : "<td><td><td><td>");
        return;
    }
    int64_t peak = rank->max_used_bytes > figures->highest_bytes ? rank->max_used_bytes
                                                                 : figures->highest_bytes;
    html_format(html, "<td>%s<td>%s<td>%s", page_bytes(&view->words, figures->first_bytes),
                page_bytes(&view->words, peak), page_bytes(&view->words, figures->last_bytes));
    int64_t change;
    bool fits = !__builtin_sub_overflow(figures->last_bytes, figures->first_bytes, &change);
    html_raw(html, fits && change > 0 ? "<td>+" : "<td>");
    if (fits)
        html_raw(html, page_bytes(&view->words, change));
    if (columns->device)
        html_raw(html, "<td>");
    if (figures->device_bytes > 0)
        html_format(html, "%.1f %%", 100.0 * (double)peak / (double)figures->device_bytes);
}

// End tags that HTML does not ask for are left out: there may be ten thousand of these.
static void rank_row_append(struct page_view *view, const struct evaluation *evaluation,
                            const struct rank_figures *figures, uint32_t index, __int128 start_ns,
                            const struct rank_columns *columns) {
    struct html *html = &view->html;
    const struct rank_view *rank = &evaluation->ranks[index];
    int32_t number = rank->series->rank;
    const char *finding = finding_of(evaluation, index, figures->suspect);
    bool named = is_named(evaluation, figures->suspect);
    html_raw(html, named ? "<tr class=f><th scope=row>" : "<tr><th scope=row>");
    rank_append(view, number, "", figures->has_line);
    html_raw(html, columns->finding ? "<td>" : "");
    html_raw(html, finding);
    html_raw(html, "<td class=h>");
    rank_host_append(view, evaluation, index);
    html_format(
        html, "<td>%" PRIu64 "<td>%s<td>%s", rank->sample_count,
        page_duration(&view->words, text_aligned(evaluation, index, rank->first_ns) - start_ns),
        page_duration(&view->words, text_aligned(evaluation, index, rank->last_ns) - start_ns));
    rank_use_append(view, rank, figures, columns);
    html_raw(html, "\n");
}

static struct rank_columns columns_of(const struct evaluation *evaluation,
                                      const struct rank_figures *figures) {
    struct rank_columns columns = {0};
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        columns.finding |= finding_of(evaluation, i, figures[i].suspect)[0] != '\0';
        columns.device |= figures[i].held && figures[i].device_bytes > 0;
    }
    return columns;
}

// With too many ranks for the table those without a finding are left out, the last ones first.
static void rank_rows_append(struct page_view *view, const struct evaluation *evaluation,
                             const struct rank_figures *figures, __int128 start_ns,
                             const struct rank_columns *columns) {
    uint32_t plain_left = view->rank_rows;
    uint32_t found = 0, left_out = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        found += finding_of(evaluation, i, figures[i].suspect)[0] != '\0';
    if (found > view->rank_rows)
        found = view->rank_rows;
    plain_left -= found;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        bool has_finding = finding_of(evaluation, i, figures[i].suspect)[0] != '\0';
        uint32_t *left = has_finding ? &found : &plain_left;
        if (*left == 0) {
            left_out++;
            continue;
        }
        --*left;
        view->rank_rows--;
        rank_row_append(view, evaluation, &figures[i], i, start_ns, columns);
    }
    table_end(view);
    if (left_out > 0)
        html_format(&view->html, "<p class=\"quiet\">and %u more rank%s</p>\n", left_out,
                    left_out == 1 ? "" : "s");
}

void page_ranks_append(struct page_view *view, const struct evaluation *evaluation,
                       const struct rank_figures *figures) {
    __int128 start_ns = 0, end_ns = 0;
    if (!text_span(evaluation, &start_ns, &end_ns))
        start_ns = text_aligned(evaluation, 0, evaluation->ranks[0].first_ns);
    page_section_begin(view, "ranks", "All ranks");
    fold_begin(view, "ranks", evaluation->rank_count <= RANKS_OPEN_MAX);
    html_format(&view->html, "%u rank%s", evaluation->rank_count,
                evaluation->rank_count == 1 ? "" : "s");
    if (evaluation->missing_count > 0)
        html_format(&view->html, "; missing: %s",
                    text_ranks(&view->words, evaluation->missing_ranks, evaluation->missing_count));
    html_raw(&view->html, "</summary>\n");
    struct rank_columns columns = columns_of(evaluation, figures);
    bool named = evaluation->cause != NULL && evaluation->cause->suspects.count > 0 &&
                 is_named(evaluation, 0);
    table_begin(
        view, "ranks",
        named ? "Memory of each rank, in bold of the one that started it; times are aligned, from "
                "the first sample of all"
              : "Memory of each rank; times are aligned, from the first sample of all",
        arena_format(view->html.arena,
                     "Rank%s|Host|Samples|First at|Last at|First|Peak|Last|Change%s",
                     columns.finding ? "|Finding" : "", columns.device ? "|Peak of device" : ""));
    rank_rows_append(view, evaluation, figures, start_ns, &columns);
    html_raw(&view->html, "</details>\n");
    page_section_end(view);
}

// -- alerts ---------------------------------------------------------------------------------------

static void alert_row_append(struct page_view *view, const struct page_alert *alert, bool texts) {
    struct html *html = &view->html;
    const char *name = page_alert_name((enum page_alert_kind)alert->kind);
    html_format(html,
                "<tr><td><span class=\"alert\"><svg class=\"key\" viewBox=\"-7 -7 14 14\" "
                "aria-hidden=\"true\"><use href=\"#alert-%s\"/></svg>%s</span><td class=\"n\">",
                name, name);
    html_time(html, alert->time_ns);
    html_raw(html, "<td class=\"n\">");
    if (alert->rank != RANK_NONE)
        html_format(html, "%d", alert->rank);
    html_format(html, "<td>%.*s", TEXT_OF(intern_slice(alert->host)));
    html_raw(html, texts ? "<td>" : "");
    html_format(html, "%s\n", alert->text);
}

static bool alert_is_listed(const struct page_view *view, uint32_t i,
                            const struct evaluation *evaluation, bool peaks) {
    assert(i < view->alert_count);
    return (view->alerts[i].kind == ALERT_PEAK) == peaks &&
           page_alert_belongs(view, &view->alerts[i], evaluation);
}

// How many alerts of this job there are, peaks or others.
static uint32_t alerts_count(const struct page_view *view, const struct evaluation *evaluation,
                             bool peaks) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < view->alert_count; i++)
        count += alert_is_listed(view, i, evaluation, peaks);
    return count;
}

static void alert_table_append(struct page_view *view, const struct evaluation *evaluation,
                               bool peaks) {
    uint32_t count = alerts_count(view, evaluation, peaks);
    bool texts = false;
    for (uint32_t i = 0; i < view->alert_count; i++)
        texts |= alert_is_listed(view, i, evaluation, peaks) && view->alerts[i].text[0] != '\0';
    fold_begin(view, peaks ? "peaks" : "alerts", !peaks && count <= ALERTS_OPEN_MAX);
    html_format(&view->html, "%u %s%s</summary>\n", count, peaks ? "new peak" : "alert",
                count == 1 ? "" : "s");
    table_begin(view, "alerts",
                peaks ? "New peaks that the ranks reported, by time"
                      : "What the ranks themselves reported, by time",
                texts ? "Kind|Time|Rank|Host|What it says" : "Kind|Time|Rank|Host");
    for (uint32_t i = 0; i < view->alert_count; i++)
        if (alert_is_listed(view, i, evaluation, peaks))
            alert_row_append(view, &view->alerts[i], texts);
    table_end(view);
    html_raw(&view->html, "</details>\n");
}

static void kept_note_append(struct page_view *view) {
    uint64_t total = page_notes_alert_total(view->input->notes);
    if (total > view->alert_count)
        html_format(
            &view->html,
            "<p class=\"quiet\">Of %" PRIu64
            " alerts and new peaks the newest %u are kept, peaks giving way to alerts.</p>\n",
            total, view->alert_count);
}

void page_alerts_append(struct page_view *view, const struct evaluation *evaluation) {
    bool alerts = alerts_count(view, evaluation, false) > 0;
    bool peaks = alerts_count(view, evaluation, true) > 0;
    if (alerts) {
        page_section_begin(view, "alerts", "Alerts");
        alert_table_append(view, evaluation, false);
        if (!peaks)
            kept_note_append(view);
        page_section_end(view);
    }
    if (!peaks)
        return;
    page_section_begin(view, "peaks", "New peaks");
    html_raw(&view->html,
             "<p class=\"quiet\">A rank reports one whenever it uses more than ever before, as "
             "all do while a job warms up. They are no alerts.</p>\n");
    alert_table_append(view, evaluation, true);
    kept_note_append(view);
    page_section_end(view);
}
