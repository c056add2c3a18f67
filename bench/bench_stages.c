// SPDX-License-Identifier: Apache-2.0
// What does each stage of the memory pipeline cost an event, and how does it grow with the ranks?
//
//   bench_stages [--threads N] [EVENTS [RANKS...]]     default: 1, 1000000 64
//
// All samples are kept and judged once, at the end, as culprit analyze does. CPU time of one
// thread; with several the last evaluation has their help, and it is wall time. Prints one JSON
// array with an object for each number of ranks.
#include "base/intern.h"
#include "base/workers.h"
#include "bench/bench_chain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_stages(const struct bench_chain *chain, const double *seconds, double scale) {
    for (uint32_t i = 0; i < chain->stage_count; i++)
        printf("%s\"%s\":%.2f", i == 0 ? "" : ",", chain->types[i]->name, seconds[i] * scale);
}

static void measure(uint64_t events, uint32_t ranks) {
    struct bench_job job = {.memory = {.ranks = ranks, .schema_version = 3}};
    struct bench_chain chain;
    bench_provide_memory();
    bench_chain_start(&chain, BENCH_MEMORY, true, "all");
    for (uint64_t done = 0; done < events;) {
        uint64_t left = events - done;
        uint32_t count = left < BENCH_BATCH ? (uint32_t)left : BENCH_BATCH;
        bench_chain_make(&chain, &job, done, count);
        bench_chain_pass(&chain);
        done += count;
    }
    bench_chain_evaluate(&chain, UINT64_MAX, true);
    double total = chain.decode_s;
    for (uint32_t i = 0; i < chain.stage_count; i++)
        total += chain.consume_s[i] + chain.evaluate_s[i];
    printf("{\"ranks\":%" PRIu32 ",\"events\":%" PRIu64
           ",\"ns_per_event\":%.1f,"
           "\"decode_ns_per_event\":%.1f,\"stage_ns_per_event\":{",
           ranks, events, total * 1e9 / (double)events, chain.decode_s * 1e9 / (double)events);
    print_stages(&chain, chain.consume_s, 1e9 / (double)events);
    printf("},\"last_evaluation_ms\":{");
    print_stages(&chain, chain.evaluate_s, 1e3);
    printf("}}");
    bench_chain_stop(&chain);
    intern_release();
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--threads") == 0) {
        bench_threads = (uint32_t)strtoul(argv[2], NULL, 10);
        argc -= 2;
        argv += 2;
    }
    uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    printf("[");
    for (int i = 2; i < argc || i == 2; i++) {
        uint32_t ranks = i < argc ? (uint32_t)strtoul(argv[i], NULL, 10) : 64;
        if (ranks == 0 || events == 0 || bench_threads == 0 || bench_threads > WORKERS_MAX) {
            fprintf(stderr, "usage: %s [--threads N] [EVENTS [RANKS...]]\n", argv[0]);
            return 64;
        }
        if (i > 2)
            printf(",\n ");
        measure(events, ranks);
        fflush(stdout);
    }
    printf("]\n");
    return 0;
}
