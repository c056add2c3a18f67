// SPDX-License-Identifier: Apache-2.0
// Ranks, phases and times in words, the same way in all parts of the report.
#include "exporters/report/text/parts.h"

#include <assert.h>

enum { RANK_RANGES_MAX = 12, PHASES_MAX = 4 };

int32_t text_rank_at(const struct evaluation *evaluation, uint32_t index) {
    assert(index < evaluation->rank_count);
    return evaluation->ranks[index].series->rank;
}

__int128 text_aligned(const struct evaluation *evaluation, uint32_t index, uint64_t time_ns) {
    assert(index < evaluation->rank_count);
    return (__int128)time_ns - evaluation->alignment[index].offset_ns;
}

const char *text_after_begin(struct text_page *page, uint64_t time_ns, uint64_t began_ns) {
    return arena_format(page->arena, "%s, %s after it began", page_time(page, time_ns),
                        page_duration(page, (__int128)time_ns - began_ns));
}

static const char *ambiguous_phase(struct text_page *page, const struct phase_attribution *phase) {
    if (phase->summary.data != NULL)
        return arena_format(page->arena, "probably %s", page_shown(page, phase->summary, 0));
    const char *text = "";
    for (uint32_t i = 0; i < phase->path_count && i < PHASES_MAX; i++)
        text = arena_format(page->arena, "%s%s%s", text, i == 0 ? "" : " or ",
                            page_shown(page, phase->paths[i], 0));
    return arena_format(page->arena, "%s (several threads)", text);
}

const char *text_phase(struct text_page *page, const struct phase_attribution *phase) {
    if (phase == NULL || phase->resolution == PHASE_NONE)
        return NULL;
    if (phase->resolution == PHASE_UNIQUE)
        return page_shown(page, phase->path, 0);
    return ambiguous_phase(page, phase);
}

// The end of the run of consecutive ranks that begins at `begin`; two in a row are no run.
static uint32_t run_end(const int32_t *ranks, uint32_t count, uint32_t begin) {
    assert(begin < count);
    uint32_t end = begin + 1;
    while (end < count && ranks[end] == ranks[end - 1] + 1)
        end++;
    return end - begin > 2 ? end : begin + 1;
}

const char *text_ranks(struct text_page *page, const int32_t *ranks, uint32_t count) {
    assert(count == 0 || ranks != NULL);
    const char *text = count == 1 ? "rank " : "ranks ";
    uint32_t ranges = 0;
    for (uint32_t begin = 0, end; begin < count; begin = end, ranges++) {
        if (ranges == RANK_RANGES_MAX)
            return arena_format(page->arena, "%s and %u more", text, count - begin);
        end = run_end(ranks, count, begin);
        const char *between = ranges == 0 ? "" : end == count ? " and " : ", ";
        text = end - begin == 1 ? arena_format(page->arena, "%s%s%d", text, between, ranks[begin])
                                : arena_format(page->arena, "%s%s%d to %d", text, between,
                                               ranks[begin], ranks[end - 1]);
    }
    return text;
}
