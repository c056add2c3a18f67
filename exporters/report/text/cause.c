// SPDX-License-Identifier: Apache-2.0
// Who started it, when, how much, in which phase, how sure and why.
//
// Plain sentences from the figures that the stages left in the evaluation. What is not known is not
// mentioned.
#include "base/table/table.h"
#include "exporters/report/text/parts.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

static const char *const confidence_words[] = {"low", "medium", "high"};

// What the sentences are made from.
struct subject {
    const struct evaluation *evaluation;
    const struct cause *cause;
    const struct suspect *first;
    const struct rank_view *view;
    const struct origin *origin;
    int32_t rank;
    const char *phase; // NULL: not known
};

static struct subject subject_of(struct text_page *page, const struct evaluation *evaluation) {
    assert(evaluation->cause->suspects.count > 0);
    const struct suspect *first = &evaluation->cause->suspects.items[0];
    return (struct subject){
        .evaluation = evaluation,
        .cause = evaluation->cause,
        .first = first,
        .view = &evaluation->ranks[first->index],
        .origin = table_row(&evaluation->store->origins, first->spike.origin),
        .rank = text_rank_at(evaluation, first->index),
        .phase = text_phase(page,
                            evaluation->cause_phases == NULL ? NULL : &evaluation->cause_phases[0]),
    };
}

// The suspects that began at the very same moment as the first, by rank: "ranks 0 and 2".
static const char *tied_ranks(struct text_page *page, const struct subject *subject) {
    assert(subject->cause->suspects.count > 0);
    const struct suspect_list *suspects = &subject->cause->suspects;
    int32_t *ranks = arena_take(page->arena, suspects->count * sizeof *ranks);
    uint32_t count = 0;
    for (uint32_t i = 0; i < suspects->count; i++) {
        if (suspects->items[i].aligned_ns != subject->first->aligned_ns)
            continue;
        int32_t rank = text_rank_at(subject->evaluation, suspects->items[i].index);
        uint32_t at = count++;
        for (; at > 0 && ranks[at - 1] > rank; at--)
            ranks[at] = ranks[at - 1];
        ranks[at] = rank;
    }
    return text_ranks(page, ranks, count);
}

static const char *leak_headline(struct text_page *page, const struct subject *subject) {
    assert(subject->cause->kind == CAUSE_LEAK);
    const char *growth = page_bytes(page, subject->cause->growth_bytes);
    if (!subject->cause->sole_earliest)
        return arena_format(page->arena,
                            "A leak that began on %s at the same moment, so no single rank can be "
                            "named. Rank %d grew most at first: %s.",
                            tied_ranks(page, subject), subject->rank, growth);
    return arena_format(page->arena, "Rank %d leaked %s.", subject->rank, growth);
}

static const char *harmless_headline(struct text_page *page, const struct subject *subject) {
    assert(subject->cause->kind != CAUSE_LEAK);
    if (subject->cause->kind == CAUSE_SWING)
        return arena_format(page->arena, "Memory: rank %d rose by %s and fell back again.",
                            subject->rank, page_bytes(page, subject->first->spike.growth_bytes));
    return arena_format(
        page->arena, "Memory: all ranks grew alike, rank %d by %s and the others by %s (median).",
        subject->rank, page_bytes(page, subject->cause->growth_bytes),
        page_bytes(page, subject->cause->median_other_growth_bytes));
}

// Blamed or suspected: the same word as in every verdict.
static void who_append(struct text_page *page, const struct subject *subject) {
    bool leak = subject->cause->kind == CAUSE_LEAK;
    const char *label = !leak ? "rank" : subject->cause->sole_earliest ? "culprit" : "suspect";
    const char *pid = subject->origin->pid < 0
                          ? ""
                          : arena_format(page->arena, ", pid %" PRId64, subject->origin->pid);
    page_field(page, label, "rank %d on %s%s", subject->rank,
               page_shown(page, intern_slice(subject->origin->host), 64), pid);
}

// When growth began, when it was enough to be found, and to when what grew was still held.
static void when_append(struct text_page *page, const struct subject *subject) {
    assert(subject->first->spike.found);
    const struct spike *spike = &subject->first->spike;
    const char *text = arena_format(
        page->arena, "%s, %s after its first sample", page_time(page, spike->window_ns),
        page_duration(page, (__int128)spike->window_ns - subject->view->first_ns));
    if (subject->cause->generation > 0)
        text = arena_format(page->arena, "%s; restart %u of the job", text,
                            subject->cause->generation);
    page_field(page, "began", "%s", text);
    page_field(page, "found", "%s", text_after_begin(page, spike->time_ns, spike->window_ns));
    if (subject->cause->kind != CAUSE_SWING && subject->view->last_ns > spike->time_ns)
        page_field(page, "last seen", "%s",
                   text_after_begin(page, subject->view->last_ns, spike->window_ns));
}

static void how_much_append(struct text_page *page, const struct subject *subject) {
    const struct spike *spike = &subject->first->spike;
    const char *unit = subject->cause->creeping ? "swing" : "sample";
    const char *text =
        arena_format(page->arena, "from %s, +%s in %" PRIu64 " %s%s",
                     page_bytes(page, spike->base_bytes), page_bytes(page, spike->growth_bytes),
                     spike->samples, unit, spike->samples == 1 ? "" : "s");
    if (subject->cause->kind != CAUSE_SWING)
        text = arena_format(page->arena, "%s, then up to %s (+%s in all)", text,
                            page_bytes(page, spike->base_bytes + subject->cause->growth_bytes),
                            page_bytes(page, subject->cause->growth_bytes));
    page_field(page, "how much", "%s", text);
}

static void phase_append(struct text_page *page, const struct subject *subject) {
    if (subject->phase == NULL) {
        page_field(page, "phase", "unknown: no phase of that rank was open at that time");
        return;
    }
    const struct phase_attribution *phase = &subject->evaluation->cause_phases[0];
    const char *text = subject->phase;
    if (phase->resolution == PHASE_UNIQUE && phase->thread_name.size > 0)
        text = arena_format(page->arena, "%s, thread %s", text,
                            page_shown(page, phase->thread_name, 64));
    page_field(page, "phase", "%s", text);
}

static const char *lead_in_intervals(struct text_page *page, const struct subject *subject) {
    __int128 median_ns = subject->evaluation->median_interval_ns;
    if (median_ns <= 0)
        return "";
    double intervals = (double)subject->first->lead_ns / (double)median_ns;
    return arena_format(page->arena, ", which is %.1f times the usual time between samples (%s)",
                        intervals, page_duration(page, median_ns));
}

static const char *low_reason(struct text_page *page, const struct subject *subject) {
    const struct evaluation *evaluation = subject->evaluation;
    if (subject->cause->suspects.candidate_count < 2)
        return subject->cause->creeping
                   ? "a slow rise under swings, which has no sharp beginning"
                   : "no other rank grew for good, so there is no order to compare";
    if (evaluation->missing_count > 0)
        return arena_format(page->arena, "%u of %" PRId64 " ranks sent nothing",
                            evaluation->missing_count, evaluation->world_size);
    return subject->cause->suspects.sparse ? "some ranks have fewer than two samples" : NULL;
}

static const char *lead_reason(struct text_page *page, const struct subject *subject) {
    const struct suspect_list *suspects = &subject->cause->suspects;
    if (suspects->candidate_count < 2)
        return NULL;
    if (!subject->cause->sole_earliest)
        return arena_format(page->arena, "%s began at the same moment", tied_ranks(page, subject));
    int32_t next = suspects->count < 2
                       ? subject->rank
                       : text_rank_at(subject->evaluation, suspects->items[1].index);
    return arena_format(page->arena, "%s ahead of rank %d%s",
                        page_duration(page, subject->first->lead_ns), next,
                        lead_in_intervals(page, subject));
}

// As every verdict says it, and why.
static const char *confidence_text(struct text_page *page, const struct subject *subject,
                                   const struct verdict *verdict) {
    const char *word = confidence_words[subject->first->confidence];
    return verdict == NULL ? word
                           : arena_format(page->arena, "%d of 100 (%s)", verdict->confidence, word);
}

static void how_sure_append(struct text_page *page, const struct subject *subject,
                            const struct verdict *verdict) {
    assert((size_t)subject->first->confidence < 3);
    enum confidence confidence = subject->first->confidence;
    const char *lead = lead_reason(page, subject);
    const char *low = confidence == CONFIDENCE_LOW ? low_reason(page, subject) : NULL;
    const char *text =
        arena_format(page->arena, "%s: %s%s%s", confidence_text(page, subject, verdict),
                     lead == NULL ? "" : lead, lead != NULL && low != NULL ? "; but " : "",
                     low == NULL ? "" : low);
    if (confidence == CONFIDENCE_MEDIUM && subject->cause->sole_earliest)
        text = arena_format(page->arena, "%s: less than one, so the order is not certain", text);
    page_field(page, "how sure", "%s", text);
}

static const char *leak_reason(struct text_page *page, const struct subject *subject) {
    const struct cause *cause = subject->cause;
    const char *grew = cause->creeping ? "its lows between the swings rose and stayed up"
                                       : "it grew and did not fall back";
    if (subject->evaluation->rank_count < 2)
        return grew;
    if (isinf(cause->excess_ratio))
        return arena_format(page->arena, "%s, while most other ranks did not grow", grew);
    return arena_format(page->arena, "%s, %.2f times what the others grew meanwhile (%s, median)",
                        grew, cause->excess_ratio,
                        page_bytes(page, cause->median_other_growth_bytes));
}

static void kind_append(struct text_page *page, const struct subject *subject) {
    const struct cause *cause = subject->cause;
    if (cause->kind == CAUSE_LEAK)
        page_field(page, "why a leak", "%s", leak_reason(page, subject));
    else if (cause->kind == CAUSE_SWING)
        page_field(page, "why",
                   "no rank grew and stayed; memory that rises and falls back is not a leak");
    else
        page_field(page, "why",
                   "it grew %.2f times as much as the others, too little to single it "
                   "out: warm-up or larger batches do this",
                   cause->excess_ratio);
}

static void headline_append(struct text_page *page, const struct subject *subject,
                            const struct verdict *verdict, bool alone) {
    bool leak = subject->cause->kind == CAUSE_LEAK;
    enum text_color color = !leak                           ? alone ? COLOR_GOOD : COLOR_NONE
                            : subject->cause->sole_earliest ? COLOR_CULPRIT
                                                            : COLOR_SUSPECT;
    const char *own = leak ? leak_headline(page, subject) : harmless_headline(page, subject);
    page_paragraph(page, color, 0, "%s",
                   verdict == NULL || subject->cause->kind == CAUSE_SWING
                       ? own
                       : page_shown(page, verdict->headline, 0));
    page_blank(page);
}

static void subject_append(struct text_page *page, const struct subject *subject,
                           const struct verdict *verdict, bool alone) {
    headline_append(page, subject, verdict, alone);
    who_append(page, subject);
    if (verdict != NULL && verdict->remediation.size > 0)
        page_field(page, "what next", "%s", page_shown(page, verdict->remediation, 0));
    when_append(page, subject);
    if (verdict != NULL)
        page_field(page, "severity", "%s", severity_name(verdict->severity));
    if (subject->cause->kind == CAUSE_LEAK)
        how_sure_append(page, subject, verdict);
    how_much_append(page, subject);
    phase_append(page, subject);
    kind_append(page, subject);
    if (verdict != NULL)
        page_field(page, "id", "%s", verdict->id);
}

// Nothing grew: says so, and over what it looked.
static void nothing_append(struct text_page *page, const struct evaluation *evaluation,
                           bool alone) {
    assert(evaluation->rank_count > 0);
    if (evaluation->rank_count == 1)
        page_paragraph(page, COLOR_NONE, 0,
                       "Memory: only rank %d was seen, and there is none to compare it with.",
                       text_rank_at(evaluation, 0));
    else
        page_paragraph(page, alone ? COLOR_GOOD : COLOR_NONE, 0,
                       "Memory: no rank grew far enough without falling back.");
    page_blank(page);
}

static void ranks_append(struct text_page *page, const struct evaluation *evaluation) {
    uint64_t samples = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        samples += evaluation->ranks[i].sample_count - evaluation->ranks[i].repeated_count;
    page_field(page, "looked at", "%u of %" PRId64 " rank%s, %" PRIu64 " sample%s",
               evaluation->rank_count, evaluation->world_size,
               evaluation->world_size == 1 ? "" : "s", samples, samples == 1 ? "" : "s");
    if (evaluation->missing_count > 0)
        page_field(page, "missing", "%s",
                   text_ranks(page, evaluation->missing_ranks, evaluation->missing_count));
}

static void job_append(struct text_page *page, const struct evaluation *evaluation) {
    if (evaluation->job == STRING_NONE) {
        page_field(page, "job", "not named in its samples");
        return;
    }
    struct slice job = intern_slice(evaluation->job);
    page_field(page, "job", "%s", page_shown(page, job, 256));
    if (slice_equal(job, SLICE("none")))
        page_field(page, "",
                   "torchrun writes \"none\" when it is started without --rdzv-id: different jobs "
                   "may share this id");
}

void text_cause_append(struct text_page *page, const struct evaluation *evaluation,
                       const struct verdict *verdict, bool alone) {
    assert(evaluation->rank_count > 0);
    if (evaluation->cause == NULL || evaluation->cause->suspects.count == 0) {
        nothing_append(page, evaluation, alone);
    } else {
        struct subject subject = subject_of(page, evaluation);
        subject_append(page, &subject, verdict, alone);
    }
    ranks_append(page, evaluation);
    job_append(page, evaluation);
}
