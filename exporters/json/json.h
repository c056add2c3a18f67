// SPDX-License-Identifier: Apache-2.0
// The exporter that writes JSON: verdicts as lines, summary and timeline as documents. See
// README.md.
#pragma once

#include "pipeline/component/component.h"

extern const struct component_type exporter_json;

// The parts of it, each in a file of its own.

// One evaluation as stormlog's cross-rank summary, byte for byte, with its newline.
void summary_encode(const struct evaluation *evaluation, struct buffer *out);
// One evaluation's samples of all ranks, merged by aligned time, with its newline. Working memory
// comes from `arena`: 48 bytes a rank.
void timeline_encode(const struct evaluation *evaluation, struct arena *arena, struct buffer *out);

// The newest summary of each job, for the jobs that an evaluation does not touch again.
struct summary_cache {
    struct cached_summary *items; // by the bytes of the job's name
    uint32_t count;
    uint32_t capacity;
    uint64_t updates;
};

// Encodes the evaluation and keeps the text in place of the job's older one. At most `max_jobs`
// are kept; the one that has not changed for longest goes first.
void summary_cache_update(struct summary_cache *cache, const struct evaluation *evaluation,
                          uint32_t max_jobs);
// All of them, one after the other.
void summary_cache_encode(const struct summary_cache *cache, struct buffer *out);
void summary_cache_release(struct summary_cache *cache);
