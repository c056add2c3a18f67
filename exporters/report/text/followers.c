// SPDX-License-Identifier: Apache-2.0
// The ranks that followed the first one.
//
// All ranks with growth of the kind that is judged, by aligned time: the suspects and those after
// the onset. Memory: one row a rank, from the arena; O(ranks · log).
#include "exporters/report/text/parts.h"

#include "base/sort.h"
#include "base/table/table.h"
#include "base/text/display.h"

#include <assert.h>
#include <stdlib.h>

enum { FOLLOWERS_SHOWN_MAX = 16, FOLLOWER_FIGURES_WIDTH = 38 };

static int follower_compare(const void *left, const void *right) {
    const struct follower *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(a->aligned_ns, b->aligned_ns),
                        COMPARE(b->spike->growth_bytes, a->spike->growth_bytes),
                        COMPARE(a->rank, b->rank));
}

uint32_t text_followers_find(const struct evaluation *evaluation, struct follower *followers) {
    assert(evaluation->cause->suspects.count > 0 && evaluation->spikes != NULL);
    uint32_t first = evaluation->cause->suspects.items[0].index, count = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct spike *spike = &evaluation->spikes[i].kept;
        if (i == first || !spike->found)
            continue;
        followers[count++] = (struct follower){
            .index = i,
            .rank = text_rank_at(evaluation, i),
            .aligned_ns = (__int128)spike->time_ns - evaluation->alignment[i].generation_offset_ns,
            .spike = spike,
        };
    }
    if (count > 1)
        qsort(followers, count, sizeof *followers, follower_compare);
    return count;
}

const struct phase_attribution *text_suspect_phase(const struct evaluation *evaluation,
                                                   uint32_t index) {
    const struct suspect_list *suspects = &evaluation->cause->suspects;
    for (uint32_t i = 0; i < suspects->count && evaluation->cause_phases != NULL; i++)
        if (suspects->items[i].index == index)
            return &evaluation->cause_phases[i];
    return NULL;
}

static void follower_append(struct text_page *page, const struct evaluation *evaluation,
                            const struct follower *follower) {
    __int128 after_ns = follower->aligned_ns - evaluation->cause->suspects.items[0].aligned_ns;
    const struct origin *origin = table_row(&evaluation->store->origins, follower->spike->origin);
    const char *phase = text_phase(page, text_suspect_phase(evaluation, follower->index));
    size_t room = page->style->width > FOLLOWER_FIGURES_WIDTH + 16
                      ? page->style->width - FOLLOWER_FIGURES_WIDTH
                      : 16;
    size_t host_max = phase == NULL ? room : room / 3 < 6 ? 6 : room / 3;
    const char *host = page_shown(page, intern_slice(origin->host), host_max);
    const char *line = arena_format(page->arena, "  %8d  %11s  %11s  %s", follower->rank,
                                    after_ns == 0 ? "same moment" : page_duration(page, after_ns),
                                    page_bytes(page, follower->spike->growth_bytes), host);
    if (phase != NULL) {
        size_t used = display_columns(slice_of(host));
        size_t left = room > used + 6 ? room - used - 2 : 4; // two spaces between
        line = arena_format(page->arena, "%s  %s", line, page_shown(page, slice_of(phase), left));
    }
    bool suspected = follower->aligned_ns <= evaluation->cause->suspects.onset_ns &&
                     evaluation->cause->suspects.has_onset;
    page_line(page, suspected ? COLOR_SUSPECT : COLOR_NONE, "%s", line);
}

void text_followers_append(struct text_page *page, const struct evaluation *evaluation) {
    const struct cause *cause = evaluation->cause;
    if (cause == NULL || cause->kind == CAUSE_SWING || evaluation->spikes == NULL)
        return;
    struct follower *followers =
        arena_take(page->arena, evaluation->rank_count * sizeof *followers);
    uint32_t count = text_followers_find(evaluation, followers);
    if (count == 0)
        return;
    page_heading(page, "Other ranks that grew, and how long after rank %d",
                 text_rank_at(evaluation, cause->suspects.items[0].index));
    page_line(page, COLOR_DIM, "      rank        after       growth  host, phase");
    for (uint32_t i = 0; i < count && i < FOLLOWERS_SHOWN_MAX; i++)
        follower_append(page, evaluation, &followers[i]);
    if (count > FOLLOWERS_SHOWN_MAX)
        page_line(page, COLOR_DIM, "  and %u more", count - FOLLOWERS_SHOWN_MAX);
}
