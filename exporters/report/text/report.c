// SPDX-License-Identifier: Apache-2.0
// The report that a person reads at the end.
//
// Incidents first, of several a list, then each from its root on; without any the answer
// (answer.c). Then for each job the answer on its memory, who followed, the memory of each rank
// over time, and the notes; what else was found; where the thread time went; what evidence was
// absent. Linear in the ranks and in the samples of those drawn.
#include "exporters/report/text/report.h"

#include "base/text/cut.h"
#include "exporters/report/text/parts.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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

// The verdict that says what the cause of this evaluation says; NULL: there is none.
static const struct verdict *verdict_of(const struct batch *batch,
                                        const struct evaluation *evaluation) {
    const struct verdict *told = NULL;
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        if (!text_verdict_is_told(verdict, evaluation))
            continue;
        if (text_verdict_is_about(verdict, evaluation))
            return verdict;
        told = told == NULL && verdict->attribute_count == 0 ? verdict : told;
    }
    return told;
}

bool text_note_is_routine(struct slice note) {
    return text_begins(note, SLICE("Ignored non-sample"));
}

static void notes_append_all(struct text_page *page, const struct evaluation *evaluation) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < evaluation->notes.count; i++) {
        struct slice note = evaluation->notes.items[i];
        if (!page->style->verbose && text_note_is_routine(note))
            continue;
        if (count++ == 0)
            page_heading(page, "Notes");
        page_line(page, COLOR_DIM, "  %s", page_shown(page, note, 0));
    }
}

static void evaluation_append(struct text_page *page, const struct batch *batch,
                              const struct evaluation *evaluation, bool alone) {
    if (evaluation->rank_count > 0) {
        text_cause_append(page, evaluation, verdict_of(batch, evaluation), alone);
        text_followers_append(page, evaluation);
        text_timeline_append(page, evaluation);
    }
    notes_append_all(page, evaluation);
}

static bool any_ranks(const struct batch *batch) {
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        if (batch->evaluations[i].rank_count > 0)
            return true;
    return false;
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

// An evaluation without ranks says nothing but that it has none.
static bool says_something(const struct text_page *page, const struct evaluation *evaluation) {
    return evaluation->rank_count > 0 || (page->style->verbose && evaluation->notes.count > 0);
}

void text_report_append(const struct batch *batch, const struct text_style *style,
                        const struct seen *seen, struct buffer *out) {
    assert(batch->last && seen != NULL && batch->arena != NULL);
    struct text_page page = {.style = style, .arena = batch->arena, .out = out};
    bool streams = text_streams_any(batch);
    const struct incident_list *incidents =
        text_incidents(batch->verdicts.items, batch->verdicts.count, batch);
    struct answer answer =
        text_answer(&page, incidents, batch->verdicts.items, batch->verdicts.count, batch, seen);
    if (answer.root == NULL && !style->verbose && text_is_short(batch, seen)) {
        text_short_append(&page, &answer, batch, seen);
        return;
    }
    text_incidents_append(&page, incidents);
    uint32_t told = incidents->full;
    // What ran is the answer where nothing but spans was read.
    bool only_streams = streams && batch->verdicts.count == 0 && !seen_nodes(seen);
    if (answer.root == NULL && answer.headline != NULL && !(only_streams && !any_ranks(batch))) {
        page_paragraph(&page, answer.kind == ANSWER_HEALTHY ? COLOR_GOOD : COLOR_NONE, 0, "%s",
                       answer.headline);
        told++;
    }
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        if (!says_something(&page, &batch->evaluations[i]))
            continue;
        if (told++ > 0 && batch->evaluations[i].rank_count > 0)
            buffer_append(out, SLICE("\n\n"));
        for (uint32_t k = incidents->full; k < incidents->count; k++)
            if (incidents->items[k].job == i)
                text_incident_number(&page, incidents, k);
        evaluation_append(&page, batch, &batch->evaluations[i], answer.root == NULL);
    }
    others_append(&page, batch);
    bool found = incidents->full > 0 || any_ranks(batch) || batch->verdicts.count > 0;
    text_spans_append(&page, batch, found, told == 0 && streams);
    text_absent_append(&page, seen);
    text_missing_append(&page, batch);
}
