// SPDX-License-Identifier: Apache-2.0
// Does a warmed-up pipeline take memory, and how much does it hold for a sample?
//
//   bench_allocations [--check]     with --check: exit code 1 when a figure is over its ceiling
//
// Four pipelines are looked at:
//   live   keeps 10 s of samples and judges every 10 s of event time: once warm, no allocation
//   all    keeps everything: at most one allocation a chunk of samples
//   spans  a stream whose spans are opened again and again: once its bounds are reached, no
//          allocation
//   slow   slow_rank over boundaries of phases, judged every 10 s: once warm, no allocation
// Prints one JSON document.
#include "base/intern.h"
#include "base/memory.h"
#include "bench/bench_chain.h"
#include "bench/counted_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t EVALUATE_EVERY_NS = UINT64_C(10000000000);
static const uint64_t WARM_UP_EVENTS = 400 * BENCH_BATCH;
static const uint64_t WARM_UP_EVALUATIONS = 20;
static const uint64_t MEASURED_EVENTS = 1000 * BENCH_BATCH;
enum { BYTES_PER_SAMPLE_MAX = 64, BYTES_BESIDE_MAX = 8 << 20, SPAN_RANKS = 8 };

struct run {
    struct bench_chain chain;
    struct bench_job job;
    uint64_t done;
    uint64_t due_ns; // live: the next evaluation
};

static void run_batches(struct run *run, uint64_t events) {
    for (uint64_t end = run->done + events; run->done < end; run->done += BENCH_BATCH) {
        bench_chain_make(&run->chain, &run->job, run->done, BENCH_BATCH);
        uint64_t time_ns = bench_chain_pass(&run->chain);
        if (run->chain.once)
            continue;
        if (run->due_ns == 0)
            run->due_ns = time_ns + EVALUATE_EVERY_NS;
        if (time_ns >= run->due_ns) {
            bench_chain_evaluate(&run->chain, run->due_ns, false);
            run->due_ns += EVALUATE_EVERY_NS;
        }
    }
}

static bool within(const char *what, uint32_t ranks, double figure, double ceiling) {
    if (figure <= ceiling)
        return true;
    fprintf(stderr, "%s at %" PRIu32 " ranks: %.0f, and at most %.0f is allowed\n", what, ranks,
            figure, ceiling);
    return false;
}

static bool measure_live(uint32_t ranks) {
    struct run run = {.job.memory = {.ranks = ranks, .schema_version = 3}};
    bench_chain_start(&run.chain, BENCH_MEMORY, false, "10s");
    // Samples come and go in the rhythm of evaluations, so warm is told by their number.
    while (run.done < WARM_UP_EVENTS || run.chain.evaluations < WARM_UP_EVALUATIONS)
        run_batches(&run, BENCH_BATCH);
    uint64_t before = counted_calls();
    uint64_t evaluations = run.chain.evaluations;
    run_batches(&run, MEASURED_EVENTS);
    uint64_t taken = counted_calls() - before;
    printf("{\"pipeline\":\"live\",\"ranks\":%" PRIu32 ",\"events\":%" PRIu64
           ",\"evaluations\":%" PRIu64 ",\"allocations\":%" PRIu64
           ",\"allocations_per_event\":%.9f}",
           ranks, MEASURED_EVENTS, run.chain.evaluations - evaluations, taken,
           (double)taken / (double)MEASURED_EVENTS);
    bench_chain_stop(&run.chain);
    intern_release();
    return within("live: allocations after warm-up", ranks, (double)taken, 0);
}

static bool measure_all(uint32_t ranks) {
    struct run run = {.job.memory = {.ranks = ranks, .schema_version = 3}};
    uint64_t before_start = memory_figures().live_bytes;
    memory_reset_peak();
    bench_chain_start(&run.chain, BENCH_MEMORY, true, "all");
    run_batches(&run, WARM_UP_EVENTS);
    uint64_t before = counted_calls();
    run_batches(&run, MEASURED_EVENTS);
    uint64_t taken = counted_calls() - before;
    bench_chain_evaluate(&run.chain, UINT64_MAX, true);
    double peak = (double)(memory_figures().peak_bytes - before_start);
    // The samples of all jobs are kept; the evaluation speaks of one of them.
    double kept = (double)run.done;
    // Each rank of the two jobs has a chunk that is not full.
    double chunks = (double)MEASURED_EVENTS / SAMPLES_PER_CHUNK + 2.0 * ranks;
    double ceiling = kept * BYTES_PER_SAMPLE_MAX + BYTES_BESIDE_MAX;
    printf("{\"pipeline\":\"all\",\"ranks\":%" PRIu32 ",\"events\":%" PRIu64
           ",\"allocations\":%" PRIu64
           ",\"allocations_per_event\":%.9f,\"chunks_at_most\":%.0f,"
           "\"kept_samples\":%.0f,\"judged_samples\":%" PRIu64
           ",\"peak_bytes\":%.0f,"
           "\"peak_bytes_per_kept_sample\":%.1f,\"peak_bytes_allowed\":%.0f}",
           ranks, MEASURED_EVENTS, taken, (double)taken / (double)MEASURED_EVENTS, chunks, kept,
           run.chain.kept, peak, peak / kept, ceiling);
    bench_chain_stop(&run.chain);
    intern_release();
    bool good = within("all: allocations after warm-up", ranks, (double)taken, chunks);
    return within("all: peak bytes", ranks, peak, ceiling) && good;
}

static void run_and_ask(struct run *run, uint64_t events) {
    for (uint64_t end = run->done + events; run->done < end;) {
        run_batches(run, 20 * BENCH_BATCH);
        bench_chain_evaluate(&run->chain, UINT64_MAX, false);
    }
}

static bool measure_spans(uint32_t spans) {
    struct run run = {.job = {BENCH_SPANS, .spans = made_spans_of(SPAN_RANKS, spans)}};
    bench_chain_start(&run.chain, BENCH_SPANS, true, "max_spans: 2000, max_tasks: 2000");
    run_and_ask(&run, 2 * WARM_UP_EVENTS);
    uint64_t before = counted_calls();
    run_and_ask(&run, MEASURED_EVENTS);
    uint64_t taken = counted_calls() - before;
    printf("{\"pipeline\":\"spans\",\"spans\":%" PRIu64 ",\"events\":%" PRIu64
           ",\"allocations\":%" PRIu64 ",\"allocations_per_event\":%.9f}",
           run.chain.spans, MEASURED_EVENTS, taken, (double)taken / (double)MEASURED_EVENTS);
    bench_chain_stop(&run.chain);
    intern_release();
    return within("spans: allocations after warm-up", SPAN_RANKS, (double)taken, 0);
}

static bool measure_slow(uint32_t ranks) {
    struct run run = {.job = {BENCH_SLOW, .phases = {ranks}}};
    bench_chain_start(&run.chain, BENCH_SLOW, false, "");
    while (run.done < 2 * WARM_UP_EVENTS || run.chain.evaluations < WARM_UP_EVALUATIONS)
        run_batches(&run, BENCH_BATCH);
    uint64_t before = counted_calls();
    uint64_t evaluations = run.chain.evaluations;
    run_batches(&run, MEASURED_EVENTS);
    uint64_t taken = counted_calls() - before;
    printf("{\"pipeline\":\"slow\",\"ranks\":%" PRIu32 ",\"events\":%" PRIu64
           ",\"evaluations\":%" PRIu64 ",\"allocations\":%" PRIu64
           ",\"allocations_per_event\":%.9f,\"cpu_ns_per_event\":%.0f}",
           ranks, MEASURED_EVENTS, run.chain.evaluations - evaluations, taken,
           (double)taken / (double)MEASURED_EVENTS,
           (run.chain.consume_s[0] + run.chain.evaluate_s[0]) * 1e9 / (double)run.done);
    bench_chain_stop(&run.chain);
    intern_release();
    return within("slow: allocations after warm-up", ranks, (double)taken, 0);
}

int main(int argc, char **argv) {
    bool check = argc == 2 && strcmp(argv[1], "--check") == 0;
    if (argc > 1 && !check) {
        fprintf(stderr, "usage: %s [--check]\n", argv[0]);
        return 64;
    }
    bool good = true;
    printf("[");
    good &= measure_live(64);
    printf(",\n ");
    good &= measure_live(1024);
    printf(",\n ");
    good &= measure_all(64);
    printf(",\n ");
    good &= measure_all(1024);
    printf(",\n ");
    good &= measure_spans(1000);
    printf(",\n ");
    good &= measure_slow(64);
    printf(",\n ");
    good &= measure_slow(1024);
    printf("]\n");
    return check && !good ? 1 : 0;
}
