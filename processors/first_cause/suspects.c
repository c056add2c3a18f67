// SPDX-License-Identifier: Apache-2.0
// Ranks the suspects and says how sure the first name is: sure (high) when its rank alone was
// earliest by at least the median sampling interval and all ranks were heard; medium when the lead
// is shorter.
#include "processors/first_cause/suspects.h"

#include "base/sort.h"

#include <assert.h>

static const struct spike *spike_from(const struct rank_spike *spikes, enum suspect_source source) {
    if (source == SUSPECTS_OF_ALL)
        return &spikes->first;
    return source == SUSPECTS_OF_GENERATION ? &spikes->first_of_generation : &spikes->kept;
}

static enum spike_found found_from(enum suspect_source source) {
    if (source == SUSPECTS_OF_ALL)
        return FOUND_FIRST;
    return source == SUSPECTS_OF_GENERATION ? FOUND_FIRST_OF_GENERATION : FOUND_KEPT;
}

static int compare_suspects(const void *left, const void *right) {
    const struct suspect *a = left;
    const struct suspect *b = right;
    return COMPARE_KEYS(COMPARE(a->aligned_ns, b->aligned_ns),
                        COMPARE(b->spike.growth_bytes, a->spike.growth_bytes),
                        COMPARE(a->index, b->index));
}

static bool is_sparse(const struct evaluation *evaluation, enum suspect_source source) {
    if (evaluation->world_size > evaluation->rank_count)
        return true;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_view *view = &evaluation->ranks[i];
        uint64_t repeated = source == SUSPECTS_OF_ALL ? 0 : view->repeated_count;
        if (view->sample_count - repeated < 2 ||
            (source != SUSPECTS_OF_ALL && !view->in_generation))
            return true;
    }
    return false;
}

static void collect(const struct evaluation *evaluation, enum suspect_source source,
                    struct arena *arena, struct suspect_list *out) {
    assert(evaluation->found != NULL && evaluation->alignment != NULL);
    enum spike_found wanted = found_from(source);
    uint32_t found = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        found += (evaluation->found[i] & wanted) != 0;
    out->items = arena_take(arena, found * sizeof *out->items);
    for (uint32_t i = 0; i < evaluation->rank_count && out->candidate_count < found; i++) {
        if ((evaluation->found[i] & wanted) == 0)
            continue;
        const struct spike *spike = spike_from(&evaluation->spikes[i], source);
        assert(spike->found);
        const struct rank_alignment *alignment = &evaluation->alignment[i];
        __int128 offset =
            source == SUSPECTS_OF_ALL ? alignment->offset_ns : alignment->generation_offset_ns;
        out->items[out->candidate_count++] =
            (struct suspect){.index = i, .spike = *spike, .aligned_ns = spike->time_ns - offset};
    }
}

static enum confidence confidence_of(const struct suspect_list *list, const struct suspect *suspect,
                                     __int128 median_interval_ns) {
    __int128 earliest = list->items[0].aligned_ns;
    if (list->candidate_count < 2 || list->sparse || suspect->aligned_ns != earliest)
        return CONFIDENCE_LOW;
    bool alone = list->count < 2 || list->items[1].aligned_ns != earliest;
    if (alone && (median_interval_ns <= 0 || suspect->lead_ns >= median_interval_ns))
        return CONFIDENCE_HIGH;
    return CONFIDENCE_MEDIUM;
}

void suspects_rank(const struct evaluation *evaluation, enum suspect_source source,
                   struct arena *arena, struct suspect_list *out) {
    *out = (struct suspect_list){0};
    collect(evaluation, source, arena, out);
    out->sparse = is_sparse(evaluation, source);
    if (out->candidate_count == 0)
        return;
    sort_stable(out->items, out->candidate_count, sizeof *out->items, arena, compare_suspects);
    out->has_onset = out->candidate_count >= 2;
    out->onset_ns = out->items[out->has_onset ? 1 : 0].aligned_ns;
    while (out->count < out->candidate_count && out->items[out->count].aligned_ns <= out->onset_ns)
        out->count++;
    assert(out->count > 0);
    for (uint32_t i = 0; i < out->count; i++) {
        struct suspect *suspect = &out->items[i];
        suspect->lead_ns = out->has_onset ? out->onset_ns - suspect->aligned_ns : 0;
        suspect->confidence = confidence_of(out, suspect, evaluation->median_interval_ns);
    }
}
