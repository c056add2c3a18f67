// SPDX-License-Identifier: Apache-2.0
// The six memory processors in a row, driven by hand-built events.
#pragma once

#include "base/memory.h"
#include "cli/component_list.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHAIN_STAGES = 6, CHAIN_PENDING_MAX = 4096 };
static const int64_t MIB = 1 << 20;
static const uint64_t MS = 1000000;
static const uint64_t SECOND = 1000000000;

// What the option rows' defaults say, by hand; tests change what they need.
struct chain_config {
    struct {
        const char *job_id;
        int64_t max_jobs;
        struct duration idle_jobs_expire;
    } job_filter;
    struct {
        struct duration retention;
        int64_t max_ranks;
    } rank_group;
    struct {
        int64_t max_world_size;
    } align;
    struct {
        struct byte_size min_growth;
        double min_ratio;
    } spike_detect;
    struct {
        double min_excess_ratio;
    } first_cause;
    struct {
        struct duration retention;
    } phase_attribution;
};

static const struct component_type *const CHAIN_TYPES[CHAIN_STAGES] = {
    &processor_job_filter,   &processor_rank_group,  &processor_align,
    &processor_spike_detect, &processor_first_cause, &processor_phase_attribution};

struct chain {
    struct chain_config config;
    struct pipeline_timing timing;
    bool once;
    struct workers *workers; // the caller's; NULL: none
    void *instances[CHAIN_STAGES];
    struct arena events_arena;
    struct arena batch_arena;
    struct event pending[CHAIN_PENDING_MAX];
    uint32_t pending_count;
    struct batch batch; // of the last evaluation
};

static inline struct chain *chain_new(bool once) {
    struct chain *chain = memory_zero(1, sizeof *chain);
    chain->once = once;
    chain->config = (struct chain_config){
        .job_filter = {"auto", 64, {3600 * (int64_t)SECOND}},
        .rank_group = {{DURATION_SPECIAL}, 65536},
        .align = {1048576},
        .spike_detect = {{64u << 20}, 0.10},
        .first_cause = {1.25},
        .phase_attribution = {{DURATION_SPECIAL}},
    };
    arena_init(&chain->events_arena, 65536);
    arena_init(&chain->batch_arena, 65536);
    return chain;
}

static inline void chain_start(struct chain *chain) {
    const void *configs[CHAIN_STAGES] = {
        &chain->config.job_filter,   &chain->config.rank_group,  &chain->config.align,
        &chain->config.spike_detect, &chain->config.first_cause, &chain->config.phase_attribution};
    for (int i = 0; i < CHAIN_STAGES; i++) {
        const struct component_type *type = CHAIN_TYPES[i];
        struct component_context context = {.id = type->name,
                                            .site = type->name,
                                            .timing = &chain->timing,
                                            .once = chain->once,
                                            .workers = chain->workers};
        chain->instances[i] = memory_zero(1, type->instance_size);
        struct error error = {0};
        if (component_start(type, chain->instances[i], configs[i], &context, &error) != STATUS_OK)
            abort();
    }
}

static inline struct chain *chain_begin(bool once) {
    struct chain *chain = chain_new(once);
    chain_start(chain);
    return chain;
}

static inline void chain_end(struct chain *chain) {
    for (int i = 0; i < CHAIN_STAGES; i++) {
        component_stop(CHAIN_TYPES[i], chain->instances[i]);
        memory_give(chain->instances[i]);
    }
    arena_release(&chain->events_arena);
    arena_release(&chain->batch_arena);
    memory_give(chain);
}

static inline void chain_pass(struct chain *chain, struct batch *batch) {
    arena_reset(&chain->batch_arena);
    batch->arena = &chain->batch_arena;
    batch->ordered = chain->once;
    for (int i = 0; i < CHAIN_STAGES; i++)
        CHAIN_TYPES[i]->processor.consume(chain->instances[i], batch);
    batch_drop_unchanged(batch);
}

static inline void chain_flush(struct chain *chain) {
    struct batch batch = {.events = chain->pending, .event_count = chain->pending_count};
    if (batch.event_count > 0)
        chain_pass(chain, &batch);
    chain->pending_count = 0;
    arena_reset(&chain->events_arena);
}

// A sample as most tests want it; the caller changes fields before chain_add.
static inline struct telemetry chain_sample(int32_t rank, uint64_t time_ns, int64_t used_bytes) {
    char host[32];
    snprintf(host, sizeof host, "node%d", rank / 8);
    char session[32];
    snprintf(session, sizeof session, "session-%d", rank);
    return (struct telemetry){.timestamp_ns = time_ns,
                              .type = TELEMETRY_SAMPLE,
                              .schema_version = 3,
                              .rank = rank,
                              .world_size = 1,
                              .host = intern(slice_of(host)),
                              .job = intern(SLICE("job-a")),
                              .session = intern(slice_of(session)),
                              .pid = 100 + rank,
                              .sampling_interval_ms = 100,
                              .device_used_bytes = used_bytes};
}

static inline void chain_add(struct chain *chain, const struct telemetry *telemetry) {
    if (chain->pending_count == CHAIN_PENDING_MAX)
        chain_flush(chain);
    struct telemetry *copy = arena_take(&chain->events_arena, sizeof *copy);
    *copy = *telemetry;
    chain->pending[chain->pending_count++] = (struct event){.time_ns = telemetry->timestamp_ns,
                                                            .job = telemetry->job,
                                                            .node = telemetry->host,
                                                            .rank = telemetry->rank,
                                                            .kind = EVENT_TELEMETRY,
                                                            .telemetry = copy};
}

static inline void chain_add_sample(struct chain *chain, int32_t rank, uint64_t time_ns,
                                    int64_t used_bytes) {
    struct telemetry telemetry = chain_sample(rank, time_ns, used_bytes);
    chain_add(chain, &telemetry);
}

// Judges up to a moment; the result is chain->batch, valid until the next call.
static inline const struct batch *chain_evaluate(struct chain *chain, uint64_t as_of_ns,
                                                 bool last) {
    chain_flush(chain);
    chain->batch =
        (struct batch){.evaluate = true, .as_of_ns = last ? UINT64_MAX : as_of_ns, .last = last};
    chain_pass(chain, &chain->batch);
    return &chain->batch;
}
