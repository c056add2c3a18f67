// SPDX-License-Identifier: Apache-2.0
// All that an evaluation says, as text without a string id in it: what summary, timeline and
// verdicts are made from. Equal texts, equal outputs.
#pragma once

#include "pipeline/model/batch.h"
#include "pipeline/model/verdict.h"

#include <inttypes.h>

static inline void text_of_spike(const char *name, const struct spike *spike, struct buffer *out) {
    if (spike->found)
        buffer_append_format(out, " %s %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRIu64,
                             name, spike->time_ns, spike->window_ns, spike->base_bytes,
                             spike->growth_bytes, spike->samples);
}

static inline void text_of_name(string_id id, struct buffer *out) {
    struct slice name = intern_slice(id);
    buffer_append_format(out, " <%.*s>", (int)name.size, name.data);
}

static inline void text_of_rank(const struct evaluation *evaluation, uint32_t i, bool with_rows,
                                struct buffer *out) {
    const struct rank_view *view = &evaluation->ranks[i];
    buffer_append_format(out,
                         "rank %d count %" PRIu64 " arrival %" PRIu64 " first %" PRIu64
                         " last %" PRIu64 " max %" PRId64 " in %d from %" PRIu64,
                         view->series->rank, view->sample_count, view->first_arrival,
                         view->first_ns, view->last_ns, view->max_used_bytes, view->in_generation,
                         view->generation_ns);
    buffer_append_format(out, " offsets %" PRId64 " %" PRId64,
                         (int64_t)evaluation->alignment[i].offset_ns,
                         (int64_t)evaluation->alignment[i].generation_offset_ns);
    const struct rank_spike *spikes = &evaluation->spikes[i];
    buffer_append_format(out, " threshold %" PRId64 " lows %" PRId64, spikes->threshold_bytes,
                         spikes->low_growth_bytes);
    text_of_spike("first", &spikes->first, out);
    text_of_spike("generation", &spikes->first_of_generation, out);
    text_of_spike("kept", &spikes->kept, out);
    text_of_spike("creep", &spikes->creep, out);
    buffer_append_char(out, '\n');
    struct series_cursor cursor = series_begin(view->series);
    const struct sample *row;
    while (with_rows && (row = series_next(evaluation->store, view->series, &cursor,
                                           evaluation->as_of_ns)) != NULL) {
        const struct origin *origin = series_origin(evaluation->store, row);
        buffer_append_format(out, "  %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64, row->time_ns,
                             row->used_bytes, row->change_bytes, origin->pid);
        text_of_name(origin->session, out);
        text_of_name(origin->host, out);
        buffer_append_char(out, '\n');
    }
}

static inline void text_of_suspects(const struct suspect_list *suspects,
                                    const struct phase_attribution *phases, struct buffer *out) {
    buffer_append_format(out, "suspects %u of %u onset %d %" PRId64 " sparse %d\n", suspects->count,
                         suspects->candidate_count, suspects->has_onset,
                         (int64_t)suspects->onset_ns, suspects->sparse);
    for (uint32_t i = 0; i < suspects->count; i++) {
        const struct suspect *suspect = &suspects->items[i];
        buffer_append_format(out,
                             "  index %u at %" PRId64 " lead %" PRId64 " confidence %d phase %d",
                             suspect->index, (int64_t)suspect->aligned_ns,
                             (int64_t)suspect->lead_ns, suspect->confidence, phases[i].resolution);
        for (uint32_t j = 0; j < phases[i].path_count; j++)
            buffer_append_format(out, " %.*s", (int)phases[i].paths[j].size,
                                 phases[i].paths[j].data);
        if (phases[i].resolution == PHASE_UNIQUE)
            buffer_append_format(out, " scope %.*s thread %" PRId64 " %.*s",
                                 (int)phases[i].scope_id.size, phases[i].scope_id.data,
                                 phases[i].thread_id, (int)phases[i].thread_name.size,
                                 phases[i].thread_name.data);
        buffer_append_char(out, '\n');
    }
}

static inline void text_of_evaluation(const struct evaluation *evaluation, bool with_rows,
                                      struct buffer *out) {
    buffer_append_format(out, "evaluation %" PRIu64 " job", evaluation->as_of_ns);
    text_of_name(evaluation->job, out);
    buffer_append_format(out,
                         " events %" PRIu64 " claimed %" PRId64 " world %" PRId64
                         " missing %u"
                         " generation %u median %" PRId64 "\n",
                         evaluation->event_count, evaluation->claimed_world_size,
                         evaluation->world_size, evaluation->missing_count, evaluation->generation,
                         (int64_t)evaluation->median_interval_ns);
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        text_of_rank(evaluation, i, with_rows, out);
    text_of_suspects(evaluation->suspects, evaluation->suspect_phases, out);
    const struct cause *cause = evaluation->cause;
    if (cause != NULL) {
        buffer_append_format(
            out, "cause %d growth %" PRId64 " others %" PRId64 " settled %d creeping %d\n",
            cause->kind, cause->growth_bytes, cause->median_other_growth_bytes, cause->settled,
            cause->creeping);
        text_of_suspects(&cause->suspects, evaluation->cause_phases, out);
    }
    for (uint32_t i = 0; i < evaluation->notes.count; i++)
        buffer_append_format(out, "note %.*s\n", (int)evaluation->notes.items[i].size,
                             evaluation->notes.items[i].data);
}

static inline void text_of_batch(const struct batch *batch, bool with_rows, struct buffer *out) {
    for (uint32_t i = 0; i < batch->evaluation_count; i++)
        text_of_evaluation(&batch->evaluations[i], with_rows, out);
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        verdict_encode(&batch->verdicts.items[i], out);
}
