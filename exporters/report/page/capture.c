// SPDX-License-Identifier: Apache-2.0
// An evaluation is copied array by array. Samples that a spike names its writer by are given
// origins of their own; of ranks without any spike nothing of it is copied. For the page, series
// are made from the mirror in a store of their own, one for each evaluation.
#include "exporters/report/page/capture.h"

#include "base/memory.h"
#include "exporters/report/span_outline.h"
#include "pipeline/model/series.h"

#include <assert.h>

enum { ARENA_BLOCK = 256 * 1024, ROWS_PER_CHUNK = 64, SPIKES_OF_RANK = 4 };

struct captured_spike {
    uint32_t index;
    struct rank_spike spike;
};

struct captured_evaluation {
    const struct page_rank *ranks; // [rank_count]
    struct captured_spike *spikes;
    uint32_t spike_count;
    bool has_spikes;
    struct origin *origins; // of spikes; their numbers follow those of the ranks
    uint32_t origin_count;
    struct series_store store;  // for the renderer
    struct rank_series *series; // [rank_count]
};

void page_capture_init(struct page_capture *capture) {
    *capture = (struct page_capture){0};
    arena_init(&capture->arena, ARENA_BLOCK);
}

void page_capture_release(struct page_capture *capture) {
    arena_release(&capture->arena);
}

// -- copying --------------------------------------------------------------------------------------

static void *copied(struct arena *arena, const void *items, size_t count, size_t size) {
    if (items == NULL)
        return NULL;
    void *copy = arena_take(arena, count * size);
    memcpy(copy, items, count * size);
    return copy;
}

static struct slice text_copied(struct arena *arena, struct slice text) {
    return text.data == NULL ? text : arena_copy(arena, text);
}

static struct slice *texts_copied(struct arena *arena, const struct slice *texts, uint32_t count) {
    struct slice *copy = copied(arena, texts, count, sizeof *copy);
    for (uint32_t i = 0; copy != NULL && i < count; i++)
        copy[i] = text_copied(arena, copy[i]);
    return copy;
}

// The spike then names a copy of who wrote its sample.
static void origin_copy(struct captured_evaluation *captured, const struct evaluation *evaluation,
                        struct spike *spike) {
    if (!spike->found)
        return;
    const struct origin *origin = table_row(&evaluation->store->origins, spike->origin);
    spike->origin = evaluation->rank_count + captured->origin_count;
    captured->origins[captured->origin_count] = *origin;
    captured->origins[captured->origin_count++].carried = 0;
}

static void spikes_copy(struct captured_evaluation *captured, const struct evaluation *evaluation,
                        struct arena *arena) {
    captured->has_spikes = evaluation->spikes != NULL;
    if (!captured->has_spikes)
        return;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_spike *spike = &evaluation->spikes[i];
        captured->spike_count += spike->first.found || spike->first_of_generation.found ||
                                 spike->kept.found || spike->creep.found;
    }
    captured->spikes = arena_take(arena, captured->spike_count * sizeof *captured->spikes);
    for (uint32_t i = 0, at = 0; at < captured->spike_count; i++) {
        const struct rank_spike *spike = &evaluation->spikes[i];
        if (!spike->first.found && !spike->first_of_generation.found && !spike->kept.found &&
            !spike->creep.found)
            continue;
        captured->spikes[at++] = (struct captured_spike){i, *spike};
    }
}

static void suspects_copy(struct suspect_list *list, struct arena *arena) {
    list->items = copied(arena, list->items, list->count, sizeof *list->items);
}

static struct phase_attribution *phases_copied(const struct phase_attribution *phases,
                                               uint32_t count, struct arena *arena) {
    struct phase_attribution *copy = copied(arena, phases, count, sizeof *copy);
    for (uint32_t i = 0; copy != NULL && i < count; i++) {
        copy[i].paths = texts_copied(arena, copy[i].paths, copy[i].path_count);
        copy[i].path = text_copied(arena, copy[i].path);
        copy[i].scope_id = text_copied(arena, copy[i].scope_id);
        copy[i].thread_name = text_copied(arena, copy[i].thread_name);
        copy[i].summary = text_copied(arena, copy[i].summary);
    }
    return copy;
}

static void origins_copy(struct captured_evaluation *captured, const struct evaluation *evaluation,
                         struct suspect_list *suspects, struct cause *cause, struct arena *arena) {
    size_t room = (size_t)captured->spike_count * SPIKES_OF_RANK +
                  (suspects == NULL ? 0 : suspects->count) +
                  (cause == NULL ? 0 : cause->suspects.count);
    captured->origins = arena_take(arena, room * sizeof *captured->origins);
    for (uint32_t i = 0; i < captured->spike_count; i++) {
        struct rank_spike *spike = &captured->spikes[i].spike;
        origin_copy(captured, evaluation, &spike->first);
        origin_copy(captured, evaluation, &spike->first_of_generation);
        origin_copy(captured, evaluation, &spike->kept);
        origin_copy(captured, evaluation, &spike->creep);
    }
    for (uint32_t i = 0; suspects != NULL && i < suspects->count; i++)
        origin_copy(captured, evaluation, &suspects->items[i].spike);
    for (uint32_t i = 0; cause != NULL && i < cause->suspects.count; i++)
        origin_copy(captured, evaluation, &cause->suspects.items[i].spike);
    assert(captured->origin_count <= room);
}

static void evaluation_copy(struct evaluation *copy, struct captured_evaluation *captured,
                            const struct evaluation *evaluation, struct arena *arena) {
    uint32_t ranks = evaluation->rank_count;
    *copy = *evaluation;
    copy->store = NULL;
    copy->ranks = copied(arena, evaluation->ranks, ranks, sizeof *copy->ranks);
    copy->alignment = copied(arena, evaluation->alignment, ranks, sizeof *copy->alignment);
    copy->notes.items = texts_copied(arena, copy->notes.items, copy->notes.count);
    copy->notes.capacity = copy->notes.count;
    copy->missing_ranks =
        copied(arena, copy->missing_ranks, copy->missing_count, sizeof *copy->missing_ranks);
    copy->spikes = NULL;
    copy->found = NULL;
    struct suspect_list *suspects = copied(arena, copy->suspects, 1, sizeof *suspects);
    struct cause *cause = copied(arena, copy->cause, 1, sizeof *cause);
    if (suspects != NULL) {
        suspects_copy(suspects, arena);
        copy->suspect_phases = phases_copied(copy->suspect_phases, suspects->count, arena);
    }
    if (cause != NULL) {
        suspects_copy(&cause->suspects, arena);
        copy->cause_phases = phases_copied(copy->cause_phases, cause->suspects.count, arena);
    }
    copy->suspects = suspects;
    copy->cause = cause;
    spikes_copy(captured, evaluation, arena);
    origins_copy(captured, evaluation, suspects, cause, arena);
}

// Of the history only what the page says of it: the most threads at a time.
static void history_copy(struct span_report *copy, struct arena *arena) {
    const struct span_thread_point *most = copy->history;
    for (uint32_t i = 1; i < copy->history_count; i++)
        if (copy->history[i].threads > most->threads)
            most = &copy->history[i];
    copy->history_count = copy->history_count > 0;
    copy->history = copied(arena, most, copy->history_count, sizeof *most);
}

static void report_copy(struct span_report *copy, struct arena *arena) {
    copy->source = text_copied(arena, copy->source);
    copy->refused = copied(arena, copy->refused, copy->refused_count, sizeof *copy->refused);
    history_copy(copy, arena);
    for (uint32_t i = 0; i < copy->note_count; i++)
        copy->notes[i] = text_copied(arena, copy->notes[i]);
    struct span_phase *phases = copied(arena, copy->phases, copy->phase_count, sizeof *phases);
    for (uint32_t i = 0; i < copy->phase_count; i++) {
        phases[i].label = text_copied(arena, phases[i].label);
        phases[i].ranks =
            copied(arena, phases[i].ranks, phases[i].rank_count, sizeof *phases[i].ranks);
    }
    copy->phases = phases;
    copy->queries = NULL;
    copy->query_count = 0;
    copy->tree = NULL;
    copy->ask = NULL;
}

static void spans_copy(struct page_capture *capture, const struct batch *batch) {
    struct arena *arena = &capture->arena;
    uint32_t count = batch->spans.count;
    struct span_report *reports = copied(arena, batch->spans.items, count, sizeof *reports);
    capture->outlines = arena_take(arena, count * sizeof *capture->outlines);
    for (uint32_t i = 0; i < count; i++) {
        page_outline_make(batch, i, arena, &capture->outlines[i]);
        report_copy(&reports[i], arena);
    }
    capture->batch.spans = (struct span_report_list){reports, count};
}

void page_capture_take(struct page_capture *capture, const struct page_follower *follower,
                       const struct batch *batch, const struct kept_verdicts *verdicts,
                       const struct page_notes *notes, const struct page_notes_versions *known) {
    assert(batch->evaluate && !batch->last);
    struct arena *arena = &capture->arena;
    arena_reset(arena);
    uint32_t count = batch->evaluation_count;
    capture->batch = (struct batch){
        .arena = arena, .evaluate = true, .as_of_ns = batch->as_of_ns, .evaluation_count = count};
    capture->batch.evaluations = arena_take(arena, count * sizeof(struct evaluation));
    capture->evaluations = arena_zero(arena, count, sizeof *capture->evaluations);
    for (uint32_t i = 0; i < count; i++) {
        evaluation_copy(&capture->batch.evaluations[i], &capture->evaluations[i],
                        &batch->evaluations[i], arena);
        capture->evaluations[i].ranks =
            page_follower_ranks(follower, batch, &batch->evaluations[i], arena);
    }
    spans_copy(capture, batch);
    capture->verdicts = kept_verdicts_copy(verdicts, arena);
    page_notes_copy(notes, known, arena, &capture->notes);
}

// -- rendering ------------------------------------------------------------------------------------

static void store_init(struct series_store *store) {
    table_init(&store->chunks, "page.chunks", sizeof(struct sample_chunk), ROWS_PER_CHUNK);
    table_init(&store->origins, "page.origins", sizeof(struct origin), ROWS_PER_CHUNK);
}

// All that the page reads of the samples; given back by evaluation_release.
static void evaluation_fill(struct captured_evaluation *captured, struct evaluation *evaluation,
                            const struct page_mirror *mirror, struct arena *arena) {
    uint32_t count = evaluation->rank_count;
    struct rank_view *views = copied(arena, evaluation->ranks, count, sizeof *views);
    store_init(&captured->store);
    captured->series = arena_zero(arena, count, sizeof *captured->series);
    for (uint32_t i = 0; i < count; i++) {
        const struct page_rank *rank = &captured->ranks[i];
        struct rank_series *series = &captured->series[i];
        uint32_t origin = table_add(&captured->store.origins);
        assert(origin == i);
        *(struct origin *)table_row(&captured->store.origins, origin) =
            (struct origin){.host = rank->host};
        series->rank = rank->rank;
        page_mirror_read(mirror, rank->row, origin, &captured->store, series);
        views[i].series = series;
    }
    for (uint32_t i = 0; i < captured->origin_count; i++)
        *(struct origin *)table_row(&captured->store.origins, table_add(&captured->store.origins)) =
            captured->origins[i];
    evaluation->ranks = views;
    evaluation->store = &captured->store;
    if (!captured->has_spikes)
        return;
    struct rank_spike *spikes = arena_zero(arena, count, sizeof *spikes);
    for (uint32_t i = 0; i < captured->spike_count; i++)
        spikes[captured->spikes[i].index] = captured->spikes[i].spike;
    evaluation->spikes = spikes;
}

static void evaluation_release(struct captured_evaluation *captured, uint32_t rank_count) {
    for (uint32_t i = 0; i < rank_count; i++)
        memory_give(captured->series[i].chunks);
    table_release(&captured->store.chunks);
    table_release(&captured->store.origins);
}

void page_capture_open(struct page_capture *capture, const struct page_mirror *mirror,
                       struct page_notes *shown, const struct page_input *style,
                       struct page_input *input) {
    struct batch *batch = &capture->batch;
    struct arena *arena = &capture->arena;
    assert(batch->evaluation_count == 0 || batch->evaluations[0].store == NULL);
    page_notes_show(shown, &capture->notes);
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        evaluation_fill(&capture->evaluations[i], &batch->evaluations[i], mirror, arena);
    uint32_t verdict_count;
    const struct verdict *verdicts = kept_copy_read(&capture->verdicts, arena, &verdict_count);
    *input = (struct page_input){
        .title = style->title,
        .batch = batch,
        .verdicts = verdicts,
        .verdict_count = verdict_count,
        .notes = shown,
        .max_points = style->max_points,
        .max_ranks = style->max_ranks,
        .near_ns = 2 * page_mirror_stretch_ns(mirror),
        .outlines = capture->outlines,
    };
}

void page_capture_close(struct page_capture *capture) {
    struct batch *batch = &capture->batch;
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        evaluation_release(&capture->evaluations[i], batch->evaluations[i].rank_count);
}
