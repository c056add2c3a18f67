// SPDX-License-Identifier: Apache-2.0
// How many events a second does one core take of each kind that logs, launchers, counters and the
// cluster's API give, from bytes to detectors?
//
//   bench_kinds [RECORDS [KIND...]]     default: 50000, all kinds
//
// One kind at a time comes as a stream of records whose format is told by each record; all stages
// of `preset: all` that take it look at it, and judge every 10 s of event time: once with 100,000
// records a second, where a million lie between two evaluations (the cost of one is then counted
// by that share), and once with 100 a second, where the evaluations are most of the work for what
// they keep. CPU time of one thread, after a warm-up of as many records; allocations are those of
// the whole process behind the warm-up. Prints one JSON array with an object for each kind.
#include "base/intern.h"
#include "bench/bench_chain.h"
#include "bench/counted_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t EVALUATE_EVERY_NS = UINT64_C(10000000000);

struct figures {
    double decode_s, consume_s, evaluate_s;
    uint64_t events, records, bytes, evaluations;
};

static struct figures figures_of(const struct bench_chain *chain) {
    struct figures figures = {.decode_s = chain->decode_s,
                              .events = chain->event_total,
                              .records = chain->record_total,
                              .bytes = chain->byte_total,
                              .evaluations = chain->evaluations};
    for (uint32_t i = 0; i < chain->stage_count; i++) {
        figures.consume_s += chain->consume_s[i];
        figures.evaluate_s += chain->evaluate_s[i];
    }
    return figures;
}

static void run(struct bench_chain *chain, const struct bench_job *job, uint64_t first,
                uint64_t count) {
    for (uint64_t done = first; done < first + count; done += BENCH_KIND_BATCH) {
        bench_chain_make(chain, job, done, BENCH_KIND_BATCH);
        bench_chain_pass(chain);
        uint64_t before_ns = made_kind_time_ns(done, job->step_ns);
        uint64_t now_ns = made_kind_time_ns(done + BENCH_KIND_BATCH, job->step_ns);
        if (now_ns / EVALUATE_EVERY_NS > before_ns / EVALUATE_EVERY_NS)
            bench_chain_evaluate(chain, now_ns / EVALUATE_EVERY_NS * EVALUATE_EVERY_NS, false);
    }
}

// Behind a warm-up of as many records; `calls`: allocations since then.
static struct figures measure(struct bench_chain *chain, const struct bench_job *job,
                              uint64_t records, uint64_t *calls) {
    bench_chain_start(chain, BENCH_KINDS, false, "");
    run(chain, job, 0, records);
    bench_chain_evaluate(chain, chain->newest_ns, false);
    struct figures warm = figures_of(chain);
    *calls = counted_calls();
    run(chain, job, records, records);
    // At a high rate none was due so far.
    if (chain->evaluations == warm.evaluations)
        bench_chain_evaluate(chain, chain->newest_ns, false);
    *calls = counted_calls() - *calls;
    struct figures end = figures_of(chain);
    bench_chain_stop(chain);
    intern_release();
    return (struct figures){.decode_s = end.decode_s - warm.decode_s,
                            .consume_s = end.consume_s - warm.consume_s,
                            .evaluate_s = end.evaluate_s - warm.evaluate_s,
                            .events = end.events - warm.events,
                            .records = end.records - warm.records,
                            .bytes = end.bytes - warm.bytes,
                            .evaluations = end.evaluations - warm.evaluations};
}

static void report(const struct made_kind *made, uint64_t records) {
    static const uint64_t LIVE_STEP_NS = 10000, DENSE_STEP_NS = 10000000;
    struct bench_job job = {.kind = BENCH_KINDS, .made = made, .step_ns = LIVE_STEP_NS};
    struct bench_chain chain;
    uint64_t calls, dense_calls;
    struct figures live = measure(&chain, &job, records, &calls);
    uint64_t refused = chain.refused;
    job.step_ns = DENSE_STEP_NS;
    struct figures dense = measure(&chain, &job, records, &dense_calls);
    double events = (double)live.events, bytes = (double)live.bytes;
    double share = (double)records * (double)LIVE_STEP_NS / (double)EVALUATE_EVERY_NS;
    double total_s = live.decode_s + live.consume_s + live.evaluate_s * share;
    double dense_s = dense.decode_s + dense.consume_s + dense.evaluate_s;
    printf(
        "{\"kind\":\"%s\",\"entries_per_event\":%.0f,\"events_per_second\":%.0f,\"megabytes_per_"
        "second\":%.0f,"
        "\"bytes_per_event\":%.0f,\"decode_ns_per_event\":%.0f,"
        "\"detectors_ns_per_event\":%.0f,\"evaluation_ms\":%.2f,\"allocations\":%" PRIu64
        ",\"refused\":%" PRIu64
        ",\"at_100_a_second\":{\"events_per_second\":%.0f,"
        "\"evaluation_ms\":%.2f,\"allocations\":%" PRIu64 "}}",
        made->name, (double)live.records / events, events / total_s, bytes / total_s / 1e6,
        bytes / events, live.decode_s * 1e9 / events, live.consume_s * 1e9 / events,
        live.evaluate_s * 1e3, calls, refused + chain.refused, (double)dense.events / dense_s,
        dense.evaluate_s * 1e3 / (double)dense.evaluations, dense_calls);
    fflush(stdout);
}

static bool is_asked(const char *name, int argc, char **argv) {
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc <= 2;
}

int main(int argc, char **argv) {
    uint64_t records = argc > 1 ? strtoull(argv[1], NULL, 10) : 50000;
    bool any = false;
    records = (records + BENCH_KIND_BATCH - 1) / BENCH_KIND_BATCH * BENCH_KIND_BATCH;
    if (records == 0) {
        fprintf(stderr, "usage: %s [RECORDS [KIND...]]\n", argv[0]);
        return 64;
    }
    printf("[");
    for (uint32_t i = 0; i < MADE_KIND_COUNT; i++) {
        if (!is_asked(MADE_KINDS[i].name, argc, argv))
            continue;
        printf(any ? ",\n " : "");
        any = true;
        report(&MADE_KINDS[i], records);
    }
    printf("]\n");
    return 0;
}
