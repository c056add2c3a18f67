// SPDX-License-Identifier: Apache-2.0
// Spans and phases in words.
#include "exporters/report/span_words.h"

#include "base/sort.h"
#include "pipeline/model/span_event.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { REFUSED_SHOWN = 5, SOURCE_MAX = 200 };

__int128 span_nanoseconds(double seconds) {
    const double most = 1e10;
    if (!(seconds > -most)) // nor a NaN
        return seconds == seconds ? -(__int128)(most * 1e9) : 0;
    return (__int128)((seconds < most ? seconds : most) * 1e9);
}

int64_t span_bytes(__int128 bytes) {
    if (bytes > INT64_MAX)
        return INT64_MAX;
    return bytes < INT64_MIN ? INT64_MIN : (int64_t)bytes;
}

const char *span_share(struct arena *arena, double part, double whole) {
    if (!(whole > 0) || !isfinite(part))
        return "-";
    return arena_format(arena, "%.1f %%", 100.0 * part / whole);
}

const char *span_states(struct arena *arena, const uint64_t states[TASK_STATE_COUNT]) {
    static const enum task_state shown[] = {TASK_PROCESSING, TASK_QUEUED, TASK_WAITING,
                                            TASK_NO_WORKER, TASK_ERRED};
    const char *text = "";
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        if (states[shown[i]] > 0)
            text = arena_format(arena, "%s%s%" PRIu64 " %s", text, text[0] == '\0' ? "" : ", ",
                                states[shown[i]], task_state_name(shown[i]));
    return text;
}

static const char *below_words(struct arena *arena, const struct span_line *line) {
    if (line->below == 0)
        return "";
    return arena_format(arena, "%" PRIu64 " span%s below", line->below,
                        line->below == 1 ? "" : "s");
}

const char *span_label(struct text_page *page, const struct span_line *line, size_t name_max) {
    if (line->kind == SPAN_LINE_REST)
        return arena_format(page->arena, "and %" PRIu64 " more spans", line->count);
    const char *name = page_shown(page, line->name, name_max);
    if (line->name.size == 0)
        name = "(no name)";
    const char *below = below_words(page->arena, line);
    if (line->kind == SPAN_LINE_ONE)
        return below[0] == '\0' ? name : arena_format(page->arena, "%s (%s)", name, below);
    if (!slice_equal(line->name, line->last_name))
        name = arena_format(page->arena, "%s to %s", name,
                            page_shown(page, line->last_name, name_max));
    return arena_format(page->arena, "%s (%" PRIu64 " spans%s%s)", name, line->count,
                        below[0] == '\0' ? "" : ", ", below);
}

bool span_tells_state(const struct span_outline *outline, uint32_t index) {
    assert(index < outline->count);
    const struct span_line *line = &outline->lines[index];
    bool running = !line->done, erred = line->states[TASK_ERRED] > 0;
    for (uint32_t i = index + 1; i < outline->count && outline->lines[i].depth > line->depth; i++) {
        const struct span_line *child = &outline->lines[i];
        if (child->depth != line->depth + 1)
            continue;
        running = running && child->done;
        erred = erred && child->states[TASK_ERRED] == 0;
    }
    return running || erred;
}

const char *span_state_words(struct text_page *page, const struct span_line *line) {
    const char *states = span_states(page->arena, line->states);
    if (line->done)
        return states;
    if (line->kind != SPAN_LINE_ONE)
        return arena_format(page->arena, "running: %s", states);
    return arena_format(page->arena, "running for %s: %s",
                        page_duration(page, span_nanoseconds(line->seconds)), states);
}

const char *span_source(struct text_page *page, const struct span_report *report) {
    bool named = report->job != STRING_NONE && report->job != STRING_REFUSED;
    if (report->source.data != NULL && !report->from_telemetry)
        return page_shown(page, report->source, SOURCE_MAX);
    if (named)
        return arena_format(page->arena, "job %s",
                            page_shown(page, intern_slice(report->job), SOURCE_MAX));
    return "a job without a name";
}

static int64_t most_threads(const struct span_report *report) {
    int64_t most = 0;
    for (uint32_t i = 0; i < report->history_count; i++)
        if (report->history[i].threads > most)
            most = report->history[i].threads;
    return most;
}

const char *span_summary(struct text_page *page, const struct span_report *report,
                         const struct span_outline *outline) {
    if (!report->started)
        return "No events were accepted: no line starts the stream.";
    if (outline->count == 0)
        return arena_format(page->arena, "No spans; %" PRIu64 " line%s accepted.", report->accepted,
                            report->accepted == 1 ? " was" : "s were");
    int64_t threads = most_threads(report);
    return arena_format(page->arena,
                        "%s of thread time in %s, at most %" PRId64 " thread%s; %" PRIu64
                        " span%s, %" PRIu64 " task%s not forgotten.",
                        page_duration(page, span_nanoseconds(outline->thread_s)),
                        page_duration(page, span_nanoseconds(outline->end_s - outline->begin_s)),
                        threads, threads == 1 ? "" : "s", report->span_count,
                        report->span_count == 1 ? "" : "s", report->task_count,
                        report->task_count == 1 ? "" : "s");
}

const char *span_refusals(struct text_page *page, const struct span_report *report) {
    uint64_t count = report->refused_count + report->refused_not_listed;
    if (count == 0)
        return NULL;
    struct arena *arena = page->arena;
    const char *text = arena_format(arena, "%" PRIu64 " %s refused: ", count,
                                    count == 1 ? "line or entry was" : "lines or entries were");
    uint32_t shown = report->refused_count < REFUSED_SHOWN ? report->refused_count : REFUSED_SHOWN;
    for (uint32_t i = 0; i < shown; i++) {
        const struct span_refused *refused = &report->refused[i];
        const char *entry =
            refused->entry < 0 ? "" : arena_format(arena, ", entry %" PRId64, refused->entry);
        text = arena_format(arena, "%s%sline %" PRIu64 "%s (%s)", text, i == 0 ? "" : ", ",
                            refused->line, entry, span_refusal_name(refused->refusal));
    }
    if (count > shown)
        text = arena_format(arena, "%s%s%" PRIu64 " more", text, shown > 0 ? " and " : "",
                            count - shown);
    return text;
}

// -- phases ---------------------------------------------------------------------------------------

static int phase_time_compare(const void *left, const void *right) {
    const struct span_phase *a = *(const struct span_phase *const *)left;
    const struct span_phase *b = *(const struct span_phase *const *)right;
    return COMPARE_KEYS(COMPARE(b->thread_s, a->thread_s), COMPARE(a, b));
}

static int phase_place_compare(const void *left, const void *right) {
    return COMPARE(*(const struct span_phase *const *)left,
                   *(const struct span_phase *const *)right);
}

uint32_t span_phases_choose(const struct span_report *report, uint32_t max, struct arena *arena,
                            const struct span_phase ***chosen) {
    const struct span_phase **all = arena_take(arena, (report->phase_count + 1) * sizeof *all);
    uint32_t count = report->phase_count;
    for (uint32_t i = 0; i < count; i++)
        all[i] = &report->phases[i];
    *chosen = all;
    if (count > max) {
        assert(report->phases != NULL);
        qsort(all, count, sizeof *all, phase_time_compare);
        qsort(all, max, sizeof *all, phase_place_compare);
    }
    return count < max ? count : max;
}

// Less than a hundredth of what a rank is in the phase on average is noise, and so is less than a
// tenth of what the worst lags.
uint32_t span_laggards(const struct span_phase *phase, uint32_t max) {
    double noise = phase->rank_count == 0 ? 0 : phase->busy_s / phase->rank_count / 100;
    uint32_t count = 0;
    while (count < phase->rank_count && count < max && phase->ranks[count].lag_s > 0 &&
           phase->ranks[count].lag_s >= noise &&
           phase->ranks[count].lag_s >= phase->ranks[0].lag_s / 10)
        count++;
    return count;
}

const char *span_slowest(struct arena *arena, const struct span_phase_rank *rank) {
    if (rank->slowest == 0)
        return "";
    return arena_format(arena, "slowest in %" PRIu64 " of %" PRIu64, rank->slowest, rank->openings);
}

uint32_t span_inside(const struct span_phase *phase, struct arena *arena, int32_t **ranks) {
    *ranks = arena_take(arena, (phase->rank_count + 1) * sizeof **ranks);
    uint32_t count = 0;
    for (uint32_t i = 0; i < phase->rank_count; i++)
        if (phase->ranks[i].inside)
            (*ranks)[count++] = phase->ranks[i].rank;
    if (count > 1)
        qsort(*ranks, count, sizeof **ranks, compare_by_i32);
    return count;
}
