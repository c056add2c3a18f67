// SPDX-License-Identifier: Apache-2.0
// The short report of a run in which nothing was found: the answer, and what could not be checked
// for want of evidence. Linear in ranks and verdicts.
#include "exporters/report/text/parts.h"

#include "base/text/cut.h"

#include <assert.h>

// Swings are no finding: what rises falls back.
static bool is_quiet(const struct evaluation *evaluation) {
    const struct cause *cause = evaluation->cause;
    bool nobody = cause == NULL || cause->suspects.count == 0 || cause->kind == CAUSE_SWING;
    return nobody && !text_any_silent(evaluation);
}

bool text_is_short(const struct batch *batch, const struct seen *seen) {
    assert(batch != NULL && seen != NULL);
    bool any = seen_nodes(seen) || batch->spans.count == 0;
    if (batch->missing_count > 0 || text_streams_any(batch))
        return false;
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        if (!is_quiet(&batch->evaluations[i]))
            return false;
        any |= batch->evaluations[i].rank_count > 0;
    }
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (!text_verdict_is_told_in(&batch->verdicts.items[i], batch))
            return false;
    return any;
}

static void swings_append(struct text_page *page, const struct batch *batch) {
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        const struct cause *cause = batch->evaluations[i].cause;
        if (cause == NULL || cause->suspects.count == 0)
            continue;
        const struct suspect *first = &cause->suspects.items[0];
        page_paragraph(page, COLOR_NONE, 0, "Rank %d rose by %s and fell back: no leak.",
                       text_rank_at(&batch->evaluations[i], first->index),
                       page_bytes(page, first->spike.growth_bytes));
    }
}

// Not those that follow from what was looked at, or that the answer gives in other words.
static void notes_append_telling(struct text_page *page, const struct evaluation *evaluation) {
    static const char *const routine[] = {"Ignored non-sample", "No qualifying",
                                          "Only one rank",      "At least two ranks",
                                          "Missing rank data",  "Rank "};
    for (uint32_t i = 0; i < evaluation->notes.count; i++) {
        struct slice note = evaluation->notes.items[i];
        bool telling = true;
        for (size_t k = 0; telling && k < sizeof routine / sizeof routine[0]; k++)
            telling = !text_begins(note, slice_of(routine[k]));
        if (telling)
            page_paragraph(page, COLOR_NONE, 0, "%s", page_shown(page, note, 0));
    }
}

// "Not checked: hangs (no Flight Recorder dumps), …."; NULL: all was.
static const char *absent_words(struct text_page *page, const struct seen *seen) {
    const struct absence *absent[SEEN_ABSENT_MAX];
    uint32_t count = seen_absent(seen, absent);
    const char *text = "Not checked:";
    for (uint32_t i = 0; i < count; i++)
        text = arena_format(page->arena, "%s%s %s", text, i == 0 ? "" : ",", absent[i]->what);
    return count == 0 ? NULL : arena_format(page->arena, "%s.", text);
}

void text_short_append(struct text_page *page, const struct answer *answer,
                       const struct batch *batch, const struct seen *seen) {
    assert(answer->root == NULL);
    page_paragraph(page, answer->kind == ANSWER_HEALTHY ? COLOR_GOOD : COLOR_NONE, 0, "%s",
                   answer->headline);
    swings_append(page, batch);
    // Those of a job without samples say that it has none.
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        if (batch->evaluations[i].rank_count > 0)
            notes_append_telling(page, &batch->evaluations[i]);
    const char *absent = absent_words(page, seen);
    page_paragraph(page, COLOR_DIM, 0, "%s",
                   absent == NULL ? "More with --verbose."
                                  : arena_format(page->arena, "%s More with --verbose.", absent));
}

void text_absent_append(struct text_page *page, const struct seen *seen) {
    const struct absence *absent[SEEN_ABSENT_MAX];
    uint32_t count = seen_absent(seen, absent);
    if (count > 0 && page->style->verbose) {
        page_heading(page, "Missing evidence");
        for (uint32_t i = 0; i < count; i++)
            page_paragraph(page, COLOR_NONE, 2, "%s", absent[i]->advice);
    } else if (count > 0 && seen_nodes(seen)) {
        page_blank(page);
        page_paragraph(page, COLOR_DIM, 0, "%s --verbose says how to add that evidence.",
                       absent_words(page, seen));
    }
}
