// SPDX-License-Identifier: Apache-2.0
// What does the cross-rank summary of one job look like on paper?
//
// Stormlog's keys in stormlog's order, laid out as Python does with indent=2. Linear in ranks, but
// for the order of first appearance, which is a sort.
#include "exporters/json/json.h"

#include "base/memory.h"
#include "base/text/json_write.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const confidence_names[] = {"low", "medium", "high"};

static void field_text(struct json_writer *json, const char *key, const char *value) {
    json_key(json, key);
    json_text(json, value);
}

static void field_slice(struct json_writer *json, const char *key, struct slice value) {
    json_key(json, key);
    json_slice(json, value);
}

static void field_int128(struct json_writer *json, const char *key, __int128 value) {
    json_key(json, key);
    json_int128(json, value);
}

static int32_t rank_at(const struct evaluation *evaluation, uint32_t index) {
    return evaluation->ranks[index].series->rank;
}

// A rank as an object's key.
static void key_rank(struct json_writer *json, int32_t rank) {
    char text[16];
    int size = snprintf(text, sizeof text, "%d", rank);
    json_key_slice(json, (struct slice){text, (size_t)size});
}

static void ranks_encode(struct json_writer *json, const struct evaluation *evaluation) {
    json_key(json, "participating_ranks");
    json_array_open(json);
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        json_int(json, rank_at(evaluation, i));
    json_array_close(json);
    json_key(json, "missing_ranks");
    json_array_open(json);
    for (uint32_t i = 0; i < evaluation->missing_count; i++)
        json_int(json, evaluation->missing_ranks[i]);
    json_array_close(json);
}

static int arrival_compare(const void *left, const void *right) {
    const struct rank_view *a = *(const struct rank_view *const *)left;
    const struct rank_view *b = *(const struct rank_view *const *)right;
    if (a->first_arrival != b->first_arrival)
        return a->first_arrival < b->first_arrival ? -1 : 1;
    return (a->series->rank > b->series->rank) - (a->series->rank < b->series->rank);
}

static void counts_encode(struct json_writer *json, const struct evaluation *evaluation) {
    uint32_t count = evaluation->rank_count;
    const struct rank_view **views = memory_take(count * sizeof *views);
    for (uint32_t i = 0; i < count; i++)
        views[i] = &evaluation->ranks[i];
    qsort(views, count, sizeof *views, arrival_compare);
    json_key(json, "rank_sample_counts");
    json_object_open(json);
    for (uint32_t i = 0; i < count; i++) {
        key_rank(json, views[i]->series->rank);
        json_uint(json, views[i]->sample_count);
    }
    json_object_close(json);
    memory_give(views);
}

static void offsets_encode(struct json_writer *json, const struct evaluation *evaluation) {
    json_key(json, "alignment_offsets_ns");
    json_object_open(json);
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        key_rank(json, rank_at(evaluation, i));
        json_int128(json, evaluation->alignment[i].offset_ns);
    }
    json_object_close(json);
}

static void unique_encode(struct json_writer *json, const struct phase_attribution *phase) {
    field_text(json, "phase_source", "heuristic");
    field_slice(json, "phase_path", phase->path);
    field_slice(json, "scope_id", phase->scope_id);
    json_key(json, "thread_id");
    if (phase->thread_id_is_bool)
        json_bool(json, phase->thread_id != 0);
    else
        json_int(json, phase->thread_id);
    field_slice(json, "thread_name", phase->thread_name);
}

static void phase_encode(struct json_writer *json, const struct phase_attribution *phase) {
    json_key(json, "phase_attribution");
    if (phase == NULL || phase->resolution == PHASE_NONE) {
        json_put_null(json);
        return;
    }
    bool unique = phase->resolution == PHASE_UNIQUE;
    json_object_open(json);
    field_text(json, "phase_resolution", unique ? "unique" : "ambiguous");
    json_key(json, "phase_paths");
    json_array_open(json);
    for (uint32_t i = 0; i < phase->path_count; i++)
        json_slice(json, phase->paths[i]);
    if (unique && phase->path_count == 0)
        json_slice(json, phase->path);
    json_array_close(json);
    if (unique)
        unique_encode(json, phase);
    if (!unique && phase->summary.data != NULL) {
        json_key(json, "phase_summary");
        json_object_open(json);
        field_slice(json, "phase_path", phase->summary);
        field_text(json, "source", "heuristic");
        json_object_close(json);
    }
    json_object_close(json);
}

static void suspect_encode(struct json_writer *json, const struct evaluation *evaluation,
                           uint32_t index) {
    const struct suspect *suspect = &evaluation->suspects->items[index];
    json_object_open(json);
    json_key(json, "rank");
    json_int(json, rank_at(evaluation, suspect->index));
    json_key(json, "first_spike_timestamp_ns");
    json_uint(json, suspect->spike.time_ns);
    field_int128(json, "aligned_first_spike_timestamp_ns", suspect->aligned_ns);
    json_key(json, "peak_delta_bytes");
    json_int(json, suspect->spike.growth_bytes);
    json_key(json, "spike_window_samples");
    json_uint(json, suspect->spike.samples);
    field_int128(json, "lead_over_cluster_onset_ns", suspect->lead_ns);
    field_text(json, "confidence", confidence_names[suspect->confidence]);
    json_key(json, "evidence");
    json_object_open(json);
    json_key(json, "device_used_delta_bytes");
    json_int(json, suspect->spike.growth_bytes);
    json_key(json, "supporting_ranks_at_or_before_onset");
    json_uint(json, evaluation->suspects->count);
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
    json_key(json, "first_cause_suspects");
    json_array_open(json);
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
    json_key(json, "world_size");
    json_int(json, evaluation->world_size);
    ranks_encode(json, evaluation);
    counts_encode(json, evaluation);
    offsets_encode(json, evaluation);
    suspects_encode(json, evaluation);
    json_key(json, "notes");
    json_array_open(json);
    for (uint32_t i = 0; i < evaluation->notes.count; i++)
        json_slice(json, evaluation->notes.items[i]);
    json_array_close(json);
    json_object_close(json);
    buffer_append_char(out, '\n');
}
