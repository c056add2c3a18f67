// SPDX-License-Identifier: Apache-2.0
// The memory pipeline on one thread, fed with made-up lines, with a clock between its stages.
//
// Same decoder, same processors, same batches as a real pipeline; only receiver, feed and exporters
// are left out. Lines are made a block at a time, outside of the clocks, so that their number is
// not bound by memory.
#pragma once

#include "base/arena.h"
#include "bench/made_lines.h"
#include "pipeline/component.h"
#include "pipeline/plan.h"

#include <stdint.h>

enum { BENCH_BATCH = 1024, BENCH_STAGES_MAX = 16 };

struct bench_chain {
    struct plan plan;
    uint32_t stage_count;
    const struct component_type *types[BENCH_STAGES_MAX];
    void *instances[BENCH_STAGES_MAX];
    void *decoder_state;
    struct arena event_arena;
    struct arena batch_arena;
    struct event *events;
    char *text; // the lines of one block
    struct slice *lines;
    uint32_t line_count;
    bool once;
    // CPU seconds since the start:
    double decode_s;
    double consume_s[BENCH_STAGES_MAX];
    double evaluate_s[BENCH_STAGES_MAX];
    uint64_t evaluations;
    uint64_t kept; // samples of the job in the last evaluation
};

// Ends the program with a message when anything fails. `once`: all samples are kept and judged at
// the end; else `retention` ("10s") of them, as beside a running job.
void bench_chain_start(struct bench_chain *chain, bool once, const char *retention);
void bench_chain_stop(struct bench_chain *chain);
// Lines [first, first + BENCH_BATCH) of the job; not timed.
void bench_chain_make(struct bench_chain *chain, const struct made_job *job, uint64_t first,
                      uint32_t count);
// Decodes them and hands the batch to every stage. Gives the time of the last event.
uint64_t bench_chain_pass(struct bench_chain *chain);
void bench_chain_evaluate(struct bench_chain *chain, uint64_t as_of_ns, bool last);
