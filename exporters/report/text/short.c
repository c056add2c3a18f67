// SPDX-License-Identifier: Apache-2.0
// The short report of a run in which nothing was found: what was looked at, and what could not be
// checked for want of evidence. Linear in ranks and verdicts.
#include "exporters/report/text/parts.h"

#include "base/text/cut.h"

#include <assert.h>
#include <inttypes.h>

// Swings are no finding: what rises falls back.
static bool is_quiet(const struct evaluation *evaluation) {
    const struct cause *cause = evaluation->cause;
    bool nobody = cause == NULL || cause->suspects.count == 0 || cause->kind == CAUSE_SWING;
    return nobody && !text_any_silent(evaluation);
}

bool text_is_healthy(const struct batch *batch, const struct seen *seen) {
    assert(batch != NULL && seen != NULL);
    bool any = seen_nodes(seen);
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

// What was looked at in all jobs together.
struct coverage {
    uint32_t job_count;
    uint64_t ranks, expected;
    const struct evaluation *lone;    // a job with a single rank
    const struct evaluation *lacking; // a job with missing ranks
};

static struct coverage coverage_of(const struct batch *batch) {
    struct coverage coverage = {0};
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        const struct evaluation *evaluation = &batch->evaluations[i];
        if (evaluation->rank_count == 0)
            continue;
        coverage.job_count++;
        coverage.ranks += evaluation->rank_count;
        coverage.expected += (uint64_t)evaluation->world_size;
        if (evaluation->rank_count == 1)
            coverage.lone = evaluation;
        if (evaluation->missing_count > 0)
            coverage.lacking = evaluation;
    }
    return coverage;
}

// "job exp-7, 4 of 4 ranks, 250 events over 9.60 s"; of the ranks nothing when none was read.
static const char *looked_at(struct text_page *page, const struct batch *batch,
                             const struct coverage *coverage, const struct seen *seen) {
    struct arena *arena = page->arena;
    const char *text = "";
    if (coverage->job_count > 0) {
        string_id job = batch->evaluations[0].job;
        const char *name =
            coverage->job_count == 1 && job != STRING_NONE
                ? arena_format(arena, "job %s", page_shown(page, intern_slice(job), 256))
                : arena_format(arena, "%u job%s", coverage->job_count,
                               coverage->job_count == 1 ? "" : "s");
        text = arena_format(arena, "%s, %" PRIu64 " of %" PRIu64 " rank%s, ", name, coverage->ranks,
                            coverage->expected, coverage->expected == 1 ? "" : "s");
    }
    return arena_format(arena, "%s%" PRIu64 " event%s over %s", text, seen->event_count,
                        seen->event_count == 1 ? "" : "s",
                        page_duration(page, (__int128)seen->last_ns - seen->first_ns));
}

static const char *answer(struct text_page *page, const struct batch *batch,
                          const struct coverage *coverage, const struct seen *seen) {
    const char *where = looked_at(page, batch, coverage, seen);
    const struct evaluation *lacking = coverage->lacking;
    if (lacking != NULL)
        return arena_format(page->arena, "Nothing was found in %s, but %s %s missing.", where,
                            text_ranks(page, lacking->missing_ranks, lacking->missing_count),
                            lacking->missing_count == 1 ? "is" : "are");
    if (coverage->lone != NULL)
        return arena_format(page->arena,
                            "Nothing was found in %s, but rank %d has no other to compare with.",
                            where, text_rank_at(coverage->lone, 0));
    if (seen->failed)
        return arena_format(page->arena,
                            "Nothing was found in %s, but logs tell of ranks that failed, and not "
                            "why: --stats counts what they tell.",
                            where);
    if (seen->unread)
        return arena_format(page->arena,
                            "Nothing was found in %s, but logs report failures that no detector "
                            "looks at: --stats counts them.",
                            where);
    return arena_format(page->arena, "Healthy: nothing was found in %s.", where);
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

void text_healthy_append(struct text_page *page, const struct batch *batch,
                         const struct seen *seen) {
    assert(text_is_healthy(batch, seen));
    struct coverage coverage = coverage_of(batch);
    bool whole = coverage.lone == NULL && coverage.lacking == NULL;
    page_paragraph(page, whole ? COLOR_GOOD : COLOR_NONE, 0, "%s",
                   answer(page, batch, &coverage, seen));
    swings_append(page, batch);
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
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
