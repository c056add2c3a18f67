// SPDX-License-Identifier: Apache-2.0
// What does a span stream cost a line, and how does it grow with the spans?
//
//   bench_spans [EVENTS [SPANS...]]     default: 300000 10 1000 100000
//
// A stream of 8 ranks. The lines that make the spans are not timed; then EVENTS lines are, with the
// calls of malloc that they take, and last one question: all roots merged. CPU time of one thread.
// Prints one JSON array with an object for each number of spans.
#include "base/intern.h"
#include "bench/bench_chain.h"
#include "bench/counted_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 8 };

static uint64_t pass(struct bench_chain *chain, const struct bench_job *job, uint64_t from,
                     uint64_t to) {
    while (from < to) {
        uint32_t count = to - from < BENCH_BATCH ? (uint32_t)(to - from) : BENCH_BATCH;
        bench_chain_make(chain, job, from, count);
        bench_chain_pass(chain);
        from += count;
    }
    return from;
}

static void measure(uint64_t events, uint32_t spans) {
    struct bench_job job = {BENCH_SPANS, .spans = made_spans_of(RANKS, spans)};
    struct bench_chain chain;
    bench_provide_memory();
    bench_chain_start(&chain, BENCH_SPANS, true, "max_spans: 1100000, max_tasks: 10000");
    uint64_t done = pass(&chain, &job, 0, made_spans_first(&job.spans));
    uint64_t warm = made_spans_opening(&job.spans) * (MADE_SPANS_KEPT + 1);
    done = pass(&chain, &job, done, done + warm);
    double decode_s = chain.decode_s, apply_s = chain.consume_s[0];
    bench_provide_memory();
    uint64_t before = counted_calls();
    pass(&chain, &job, done, done + events);
    uint64_t calls = counted_calls() - before;
    decode_s = chain.decode_s - decode_s;
    apply_s = chain.consume_s[0] - apply_s;
    bench_chain_evaluate(&chain, UINT64_MAX, true);
    printf("{\"spans\":%" PRIu64 ",\"first_lines\":%" PRIu64 ",\"events\":%" PRIu64
           ",\"decode_ns_per_event\":%.1f,\"apply_ns_per_event\":%.1f,\"allocations\":%" PRIu64
           ",\"merge_all_us\":%.1f}",
           chain.spans, made_spans_first(&job.spans) + warm, events,
           decode_s * 1e9 / (double)events, apply_s * 1e9 / (double)events, calls,
           chain.asked_s * 1e6);
    bench_chain_stop(&chain);
    intern_release();
}

int main(int argc, char **argv) {
    static const uint32_t usual[] = {10, 1000, 100000};
    uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 300000;
    int count = argc > 2 ? argc - 2 : (int)(sizeof usual / sizeof usual[0]);
    printf("[");
    for (int i = 0; i < count; i++) {
        uint32_t spans = argc > 2 ? (uint32_t)strtoul(argv[i + 2], NULL, 10) : usual[i];
        if (spans < MADE_SPANS_MIN || spans > MADE_SPANS_MAX || events == 0) {
            fprintf(stderr, "usage: %s [EVENTS [SPANS...]], spans: %d to %d\n", argv[0],
                    MADE_SPANS_MIN, MADE_SPANS_MAX);
            return 64;
        }
        printf("%s", i > 0 ? ",\n " : "");
        measure(events, spans);
        fflush(stdout);
    }
    printf("]\n");
    return 0;
}
