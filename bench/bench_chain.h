// SPDX-License-Identifier: Apache-2.0
// A pipeline on one thread, fed with made-up lines, with a clock between its stages: that of
// memory, also with every job by itself, of spans, or slow_rank alone.
//
// Same decoder, same processors, same batches as a real pipeline; only receiver, feed and exporters
// are left out. Lines are made a block at a time, outside of the clocks, so that their number is
// not bound by memory.
#pragma once

#include "base/arena.h"
#include "bench/made_kinds.h"
#include "bench/made_lines.h"
#include "bench/made_phases.h"
#include "bench/made_spans.h"
#include "pipeline/component/component.h"
#include "pipeline/plan/plan.h"

#include <stdint.h>

// Of kinds a block has fewer numbers, since each is several lines or events.
enum { BENCH_BATCH = 1024, BENCH_KIND_BATCH = 128, BENCH_STAGES_MAX = 32 };

enum bench_kind { BENCH_MEMORY, BENCH_SPANS, BENCH_SLOW, BENCH_KINDS, BENCH_JOBS };

struct bench_job {
    enum bench_kind kind;
    struct made_job memory;
    struct made_spans spans;
    struct made_phases phases;
    const struct made_kind *made;
    uint64_t step_ns; // of kinds
};

// The two parts of the work on a block, for whoever counts it.
enum bench_part { BENCH_DECODE_PART, BENCH_STAGES_PART };

struct bench_chain {
    enum bench_kind kind;
    void (*part)(enum bench_part part, bool begins); // called around each; NULL: nobody counts
    bool counts_bytes;
    struct plan plan;
    uint32_t stage_count;
    const struct component_type *types[BENCH_STAGES_MAX];
    void *instances[BENCH_STAGES_MAX];
    struct workers *workers;
    void *decoder_state;
    struct arena event_arena;
    struct arena batch_arena;
    struct event *events;
    char *text; // the lines of one block
    struct slice *lines;
    uint32_t line_count;
    uint32_t event_count; // of that block
    uint64_t newest_ns;
    bool once;
    // CPU seconds since the start:
    double decode_s;
    double consume_s[BENCH_STAGES_MAX];
    double evaluate_s[BENCH_STAGES_MAX];
    uint64_t evaluations;
    double asked_s;
    uint64_t kept;  // samples of the job in the last evaluation
    uint64_t spans; // in the last evaluation
    // Since the start:
    uint64_t event_total, byte_total;
    uint64_t record_total; // each entry of a dump is one, and each other event
    uint64_t refused;      // lines; of kinds only, else the program ends
    // With counts_bytes, since the start: what is held more than before.
    int64_t decode_bytes;
    int64_t stage_bytes[BENCH_STAGES_MAX];
};

// Threads of the chains that are started from now on; default 1. With more, times are wall times.
extern uint32_t bench_threads;

// Takes much memory and gives it back at once: see bench/memory.py. Right before what is timed.
void bench_provide_memory(void);

// Ends the program with a message when anything fails. `once`: all samples are kept and judged at
// the end; else `setting` ("10s") of them, as beside a running job. Of spans `setting` has their
// options ("max_spans: 1000"). Of kinds all detectors run, and `setting` is not used.
void bench_chain_start(struct bench_chain *chain, enum bench_kind kind, bool once,
                       const char *setting);
void bench_chain_stop(struct bench_chain *chain);
// Lines [first, first + count) of the job, at most BENCH_BATCH
// (of kinds BENCH_KIND_BATCH); not timed.
void bench_chain_make(struct bench_chain *chain, const struct bench_job *job, uint64_t first,
                      uint32_t count);
// Decodes them and hands the batch to every stage. Gives the time of the last event.
uint64_t bench_chain_pass(struct bench_chain *chain);
// Hands the batch of `events` that the caller made to every stage.
void bench_chain_pass_events(struct bench_chain *chain);
// Each report of spans is asked for all its roots merged, `asked_s` in all.
void bench_chain_evaluate(struct bench_chain *chain, uint64_t as_of_ns, bool last);
