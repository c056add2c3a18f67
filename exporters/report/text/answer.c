// SPDX-License-Identifier: Apache-2.0
// What the whole report comes to, composed once for every view.
//
// The headline of the first incident. Where there is none, what was looked at, and whether that is
// enough to say that all is well: of each job all ranks were read, none fell silent, and nothing
// that tells of a failure is left over. Linear in ranks and verdicts.
#include "exporters/report/text/parts.h"

#include <assert.h>
#include <inttypes.h>

// What was looked at in all jobs together.
struct coverage {
    uint32_t job_count;
    uint64_t ranks, expected;
    const struct evaluation *lone;    // a job with a single rank
    const struct evaluation *lacking; // a job with missing ranks
    const struct evaluation *silent;  // a job with ranks that fell silent
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
        if (text_any_silent(evaluation))
            coverage.silent = evaluation;
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
        text = arena_format(arena, "%s, %" PRIu64 " of %" PRIu64 " rank%s", name, coverage->ranks,
                            coverage->expected, coverage->expected == 1 ? "" : "s");
    }
    if (seen->event_count == 0) // it is not known
        return text;
    text = arena_format(arena, "%s%s%" PRIu64 " event%s", text, text[0] == '\0' ? "" : ", ",
                        seen->event_count, seen->event_count == 1 ? "" : "s");
    if (seen->last_ns == seen->first_ns)
        return text;
    return arena_format(arena, "%s over %s", text,
                        page_duration(page, (__int128)seen->last_ns - seen->first_ns));
}

// What speaks against calling it healthy; NULL: nothing does.
static const char *doubt(struct text_page *page, const struct coverage *coverage,
                         const struct verdict *verdicts, uint32_t count, const struct batch *batch,
                         const struct seen *seen) {
    const struct evaluation *lacking = coverage->lacking;
    if (seen->failed)
        return "but logs tell of ranks that failed, and no processor of this pipeline says why";
    if (seen->unread)
        return "but logs report failures that no processor of this pipeline looks at: --stats "
               "counts them";
    if (coverage->silent != NULL)
        return "but ranks fell silent before the end";
    if (lacking != NULL)
        return arena_format(page->arena, "but %s %s missing",
                            text_ranks(page, lacking->missing_ranks, lacking->missing_count),
                            lacking->missing_count == 1 ? "is" : "are");
    if (coverage->lone != NULL)
        return arena_format(page->arena, "but rank %d has no other to compare with",
                            text_rank_at(coverage->lone, 0));
    if (batch->missing_count > 0)
        return "but not all input could be read";
    for (uint32_t i = 0; i < count; i++)
        if (!text_verdict_is_told_in(&verdicts[i], batch))
            return "but see what else was found";
    return coverage->job_count > 0 ? NULL : "but nothing that was read says how a job went";
}

// "a.log and b.log are empty"; of many the first.
static const char *empty_words(struct text_page *page, const struct batch *batch) {
    enum { SHOWN_MAX = 3 };
    struct arena *arena = page->arena;
    const char *text = "";
    uint32_t count = batch->empty_count, shown = count <= SHOWN_MAX ? count : SHOWN_MAX - 1;
    for (uint32_t i = 0; i < shown; i++) {
        struct slice path = batch->empty_inputs[i];
        const char *name =
            slice_equal(path, SLICE("-")) ? "standard input" : page_shown(page, path, 0);
        const char *before = i == 0 ? "" : i + 1 == count ? " and " : ", ";
        text = arena_format(arena, "%s%s%s", text, before, name);
    }
    if (shown < count)
        text = arena_format(arena, "%s and %u more inputs", text, count - shown);
    return arena_format(arena, "%s %s empty", text, count == 1 ? "is" : "are");
}

// Why nothing is known. What was refused may have been what tells.
static const char *unknown_words(struct text_page *page, const struct batch *batch) {
    if (batch->empty_count > 0)
        return empty_words(page, batch);
    if (batch->refused_count > 0)
        return arena_format(page->arena,
                            "%" PRIu64
                            " record%s refused, and nothing else that was read is of a "
                            "kind that culprit knows",
                            batch->refused_count, batch->refused_count == 1 ? " was" : "s were");
    return "none of what was read is of a kind that culprit knows";
}

// Nothing was found.
static struct answer nothing(struct text_page *page, const struct verdict *verdicts, uint32_t count,
                             const struct batch *batch, const struct seen *seen) {
    struct coverage coverage = coverage_of(batch);
    const char *but = doubt(page, &coverage, verdicts, count, batch, seen);
    if (seen->event_count == 0 && coverage.job_count == 0)
        return (struct answer){ANSWER_NOTHING,
                               arena_format(page->arena,
                                            "Nothing was found, and nothing is known: %s.",
                                            unknown_words(page, batch)),
                               NULL};
    const char *where = looked_at(page, batch, &coverage, seen);
    if (but == NULL)
        return (struct answer){
            ANSWER_HEALTHY, arena_format(page->arena, "Healthy: nothing was found in %s.", where),
            NULL};
    return (struct answer){ANSWER_NOTHING,
                           arena_format(page->arena, "Nothing was found in %s, %s.", where, but),
                           NULL};
}

// Whether the section of some job tells what its memory did; what rose and fell back is no finding.
static bool any_job_tells(const struct batch *batch) {
    for (uint32_t i = 0; i < batch->evaluation_count; i++) {
        const struct cause *cause = batch->evaluations[i].cause;
        if (cause != NULL && cause->suspects.count > 0 && cause->kind != CAUSE_SWING)
            return true;
    }
    return false;
}

static struct answer of_root(struct text_page *page, const struct verdict *root) {
    return (struct answer){story_is_unexplained(root) ? ANSWER_UNEXPLAINED : ANSWER_FOUND,
                           page_shown(page, root->headline, 0), root};
}

struct answer text_answer(struct text_page *page, const struct incident_list *incidents,
                          const struct verdict *verdicts, uint32_t count, const struct batch *batch,
                          const struct seen *seen) {
    assert(incidents != NULL && seen != NULL);
    if (incidents->count > 0)
        return of_root(page, incidents->items[0].story.steps[0]);
    for (uint32_t i = 0; i < count; i++) {
        const struct verdict *verdict = &verdicts[i];
        if (verdict->state != VERDICT_RESOLVED && text_verdict_is_told_in(verdict, batch))
            return of_root(page, verdict);
    }
    if (any_job_tells(batch)) // not settled yet, or no verdict is wanted
        return (struct answer){ANSWER_FOUND, NULL, NULL};
    return nothing(page, verdicts, count, batch, seen);
}
