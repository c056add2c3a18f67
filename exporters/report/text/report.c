// SPDX-License-Identifier: Apache-2.0
// The report that a person reads at the end.
//
// Incidents first, of several a list, then each from its root on. Then for each job the answer on
// its memory, who followed, the memory of each rank over time, and the notes; what else was found;
// where the thread time went; what evidence was absent. Linear in the ranks and in the samples of
// those drawn.
#include "exporters/report/text/report.h"

#include "exporters/report/text/parts.h"

#include <assert.h>
#include <stdio.h>

bool text_is_memory_verdict(const struct verdict *verdict) {
    return strcmp(verdict->pattern, "memory_first_cause") == 0;
}

// The verdict on this evaluation says the same in other words; it is not said twice.
bool text_verdict_is_told(const struct verdict *verdict, const struct evaluation *evaluation) {
    static const char *const kinds[] = {"leak", "common_growth", "swing"};
    return evaluation->cause != NULL && text_is_memory_verdict(verdict) &&
           verdict->job == evaluation->job &&
           (verdict->state == VERDICT_RESOLVED) == (evaluation->cause->kind == CAUSE_SWING) &&
           strcmp(verdict->kind, kinds[evaluation->cause->kind]) == 0;
}

static bool attribute_is(const struct verdict *verdict, const char *key, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    for (uint32_t i = 0; i < verdict->attribute_count; i++)
        if (strcmp(verdict->attributes[i].key, key) == 0)
            return slice_equal(verdict->attributes[i].value, slice_of(text));
    return false;
}

bool text_verdict_is_about(const struct verdict *verdict, const struct evaluation *evaluation) {
    const struct cause *cause = evaluation->cause;
    return cause != NULL && cause->suspects.count > 0 &&
           attribute_is(verdict, "culprit.rank",
                        text_rank_at(evaluation, cause->suspects.items[0].index)) &&
           attribute_is(verdict, "culprit.generation", cause->generation);
}

bool text_verdict_is_told_in(const struct verdict *verdict, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        if (text_verdict_is_told(verdict, &batch->evaluations[i]))
            return true;
    return false;
}

static const char *advice_for(struct text_page *page, const struct batch *batch,
                              const struct evaluation *evaluation) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (text_verdict_is_told(&batch->verdicts.items[i], evaluation))
            return page_shown(page, batch->verdicts.items[i].remediation, 0);
    return NULL;
}

static void notes_append_all(struct text_page *page, const struct evaluation *evaluation) {
    if (evaluation->notes.count == 0)
        return;
    page_heading(page, "Notes");
    for (uint32_t i = 0; i < evaluation->notes.count; i++)
        page_line(page, COLOR_DIM, "  %s", page_shown(page, evaluation->notes.items[i], 0));
}

static void evaluation_append(struct text_page *page, const struct batch *batch,
                              const struct evaluation *evaluation) {
    if (evaluation->rank_count == 0) {
        page_paragraph(page, COLOR_NONE, 0,
                       "No samples were read, so there is nothing to analyze.");
    } else {
        text_cause_append(page, evaluation, advice_for(page, batch, evaluation));
        text_followers_append(page, evaluation);
        text_timeline_append(page, evaluation);
    }
    notes_append_all(page, evaluation);
}

static void others_append(struct text_page *page, const struct batch *batch) {
    bool any = false;
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        if (text_verdict_is_told_in(verdict, batch) || text_incident_tells(verdict))
            continue;
        if (!any)
            page_heading(page, "Also found");
        any = true;
        bool bad = verdict->severity >= SEVERITY_ERROR && verdict->state != VERDICT_RESOLVED;
        page_paragraph(page, bad ? COLOR_CULPRIT : COLOR_NONE, 2, "%s%s: %s",
                       severity_name(verdict->severity),
                       verdict->state == VERDICT_RESOLVED ? ", resolved" : "",
                       page_shown(page, verdict->headline, 0));
    }
}

void text_missing_append(struct text_page *page, const struct batch *batch) {
    enum { SHOWN_MAX = 20 };
    if (batch->missing_count == 0)
        return;
    page_heading(page, "Missing input");
    uint32_t shown = batch->missing_count < SHOWN_MAX ? batch->missing_count : SHOWN_MAX;
    for (uint32_t i = 0; i < shown; i++)
        page_paragraph(page, COLOR_NONE, 2, "%s: does not exist or cannot be read",
                       page_shown(page, batch->missing_inputs[i], 0));
    if (shown < batch->missing_count)
        page_paragraph(page, COLOR_NONE, 2, "and %u more", batch->missing_count - shown);
}

// An evaluation without ranks says nothing where something else than samples was read.
static bool says_something(const struct evaluation *evaluation, const struct seen *seen,
                           bool streams) {
    return evaluation->rank_count > 0 || (!seen_nodes(seen) && !streams);
}

void text_report_append(const struct batch *batch, const struct text_style *style,
                        const struct seen *seen, struct buffer *out) {
    assert(batch->last && seen != NULL && batch->arena != NULL);
    struct text_page page = {.style = style, .arena = batch->arena, .out = out};
    bool streams = text_streams_any(batch);
    if (!style->verbose && text_is_healthy(batch, seen)) {
        text_healthy_append(&page, batch, seen);
        return;
    }
    const struct incident_list *incidents =
        text_incidents(batch->verdicts.items, batch->verdicts.count, batch);
    text_incidents_append(&page, incidents);
    uint32_t told = incidents->full;
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        if (!says_something(&batch->evaluations[i], seen, streams))
            continue;
        if (told++ > 0)
            buffer_append(out, SLICE("\n\n"));
        for (uint32_t k = incidents->full; k < incidents->count; k++)
            if (incidents->items[k].job == i)
                text_incident_number(&page, incidents, k);
        evaluation_append(&page, batch, &batch->evaluations[i]);
    }
    bool found = told > 0 || batch->verdicts.count > 0;
    if (!found && seen_nodes(seen))
        page_paragraph(&page, COLOR_NONE, 0,
                       "Nothing was found: no detector has a verdict on what was read.");
    else if (!found && !streams)
        page_paragraph(&page, COLOR_NONE, 0,
                       "No samples were read, so there is nothing to analyze.");
    others_append(&page, batch);
    text_spans_append(&page, batch, found, !found && !seen_nodes(seen) && streams);
    text_absent_append(&page, seen);
    text_missing_append(&page, batch);
}
