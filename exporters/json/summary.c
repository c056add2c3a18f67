// SPDX-License-Identifier: Apache-2.0
// The cross-rank summary of one job as JSON.
//
// Stormlog's keys in stormlog's order, laid out as Python does with indent=2. Linear in ranks, but
// for the order of first appearance, which is a sort.
#include "exporters/json/json.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const confidence_names[] = {"low", "medium", "high"};

static int32_t rank_at(const struct evaluation *evaluation, uint32_t index) {
    assert(index < evaluation->rank_count);
    return evaluation->ranks[index].series->rank;
}

// A rank as an object's key.
static void key_rank(struct json_writer *json, int32_t rank) {
    char text[16];
    int size = snprintf(text, sizeof text, "%d", rank);
    json_key_slice(json, (struct slice){text, (size_t)size});
}

static void ranks_encode(struct json_writer *json, const struct evaluation *evaluation) {
    json_field_array_open(json, "participating_ranks");
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        json_int(json, rank_at(evaluation, i));
    json_array_close(json);
    json_field_array_open(json, "missing_ranks");
    for (uint32_t i = 0; i < evaluation->missing_count; i++)
        json_int(json, evaluation->missing_ranks[i]);
    json_array_close(json);
}

static int arrival_compare(const void *left, const void *right) {
    const struct rank_view *a = *(const struct rank_view *const *)left;
    const struct rank_view *b = *(const struct rank_view *const *)right;
    return COMPARE_KEYS(COMPARE(a->first_arrival, b->first_arrival),
                        COMPARE(a->series->rank, b->series->rank));
}

static void counts_encode(struct json_writer *json, const struct evaluation *evaluation) {
    uint32_t count = evaluation->rank_count;
    const struct rank_view **views = memory_take(count * sizeof *views);
    for (uint32_t i = 0; i < count; i++)
        views[i] = &evaluation->ranks[i];
    qsort(views, count, sizeof *views, arrival_compare);
    json_field_object_open(json, "rank_sample_counts");
    for (uint32_t i = 0; i < count; i++) {
        key_rank(json, views[i]->series->rank);
        json_uint(json, views[i]->sample_count);
    }
    json_object_close(json);
    memory_give(views);
}

static void offsets_encode(struct json_writer *json, const struct evaluation *evaluation) {
    json_field_object_open(json, "alignment_offsets_ns");
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        key_rank(json, rank_at(evaluation, i));
        json_int128(json, evaluation->alignment[i].offset_ns);
    }
    json_object_close(json);
}

static void unique_encode(struct json_writer *json, const struct phase_attribution *phase) {
    json_field_text(json, "phase_source", "heuristic");
    json_field_slice(json, "phase_path", phase->path);
    json_field_slice(json, "scope_id", phase->scope_id);
    json_key(json, "thread_id");
    if (phase->thread_id_is_bool)
        json_bool(json, phase->thread_id != 0);
    else
        json_int(json, phase->thread_id);
    json_field_slice(json, "thread_name", phase->thread_name);
}

static void phase_encode(struct json_writer *json, const struct phase_attribution *phase) {
    json_key(json, "phase_attribution");
    if (phase == NULL || phase->resolution == PHASE_NONE) {
        json_put_null(json);
        return;
    }
    bool unique = phase->resolution == PHASE_UNIQUE;
    json_object_open(json);
    json_field_text(json, "phase_resolution", unique ? "unique" : "ambiguous");
    json_field_array_open(json, "phase_paths");
    for (uint32_t i = 0; i < phase->path_count; i++)
        json_slice(json, phase->paths[i]);
    if (unique && phase->path_count == 0)
        json_slice(json, phase->path);
    json_array_close(json);
    if (unique)
        unique_encode(json, phase);
    if (!unique && phase->summary.data != NULL) {
        json_field_object_open(json, "phase_summary");
        json_field_slice(json, "phase_path", phase->summary);
        json_field_text(json, "source", "heuristic");
        json_object_close(json);
    }
    json_object_close(json);
}

static void suspect_encode(struct json_writer *json, const struct evaluation *evaluation,
                           uint32_t index) {
    assert(index < evaluation->suspects->count);
    const struct suspect *suspect = &evaluation->suspects->items[index];
    json_object_open(json);
    json_field_int(json, "rank", rank_at(evaluation, suspect->index));
    json_field_uint(json, "first_spike_timestamp_ns", suspect->spike.time_ns);
    json_field_int128(json, "aligned_first_spike_timestamp_ns", suspect->aligned_ns);
    json_field_int(json, "peak_delta_bytes", suspect->spike.growth_bytes);
    json_field_uint(json, "spike_window_samples", suspect->spike.samples);
    json_field_int128(json, "lead_over_cluster_onset_ns", suspect->lead_ns);
    json_field_text(json, "confidence", confidence_names[suspect->confidence]);
    json_field_object_open(json, "evidence");
    json_field_int(json, "device_used_delta_bytes", suspect->spike.growth_bytes);
    json_field_uint(json, "supporting_ranks_at_or_before_onset", evaluation->suspects->count);
    json_object_close(json);
    phase_encode(json,
                 evaluation->suspect_phases == NULL ? NULL : &evaluation->suspect_phases[index]);
    json_object_close(json);
}

static void suspects_encode(struct json_writer *json, const struct evaluation *evaluation) {
    const struct suspect_list *suspects = evaluation->suspects;
    json_key(json, "cluster_onset_timestamp_ns");
    if (suspects != NULL && suspects->has_onset)
        json_int128(json, suspects->onset_ns);
    else
        json_put_null(json);
    json_field_array_open(json, "first_cause_suspects");
    for (uint32_t i = 0; suspects != NULL && i < suspects->count; i++)
        suspect_encode(json, evaluation, i);
    json_array_close(json);
}

void summary_encode(const struct evaluation *evaluation, struct buffer *out) {
    struct json_writer writer;
    struct json_writer *json = &writer;
    json_begin(json, out, 2);
    json_object_open(json);
    json_key(json, "job_id");
    if (evaluation->job == STRING_NONE)
        json_put_null(json);
    else
        json_slice(json, intern_slice(evaluation->job));
    json_field_int(json, "world_size", evaluation->world_size);
    ranks_encode(json, evaluation);
    counts_encode(json, evaluation);
    offsets_encode(json, evaluation);
    suspects_encode(json, evaluation);
    json_field_array_open(json, "notes");
    for (uint32_t i = 0; i < evaluation->notes.count; i++)
        json_slice(json, evaluation->notes.items[i]);
    json_array_close(json);
    json_object_close(json);
    buffer_append_char(out, '\n');
}
