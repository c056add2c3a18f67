// SPDX-License-Identifier: Apache-2.0
// What does one evaluation of a live memory pipeline cost, stage by stage, when few ranks changed?
//
//   bench_evaluations [RANKS [CHANGED [SECONDS [THREADS [RETENTION [JOBS]]]]]]
//                                                        default: 10000 10 200 1 10m 1
//
// RANKS ranks, of as many JOBS as are said, have had 30 samples each, a second apart. Then CHANGED
// of them have one more before each evaluation, a second of event time after the other. With a
// short RETENTION a chunk of each rank expires in one evaluation of 21. CPU time of the calling
// thread (with more than one: wall time), and wall time of the whole. One JSON object: p50 and p99
// of the evaluations in microseconds, the longest, and p50 and p99 of each stage.
#include "base/clock.h"
#include "base/intern.h"
#include "base/workers.h"
#include "bench/bench_chain.h"
#include "pipeline/model/telemetry_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM = 30, SECONDS_MAX = 100000 };

static const uint64_t START_NS = UINT64_C(1760000000000000000);
static const uint64_t SECOND_NS = 1000000000;

static int compare_doubles(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double at_share(double *values, uint32_t count, double share) {
    qsort(values, count, sizeof *values, compare_doubles);
    return values[(uint32_t)((count - 1) * share)];
}

// One sample a rank, from `first` on; the last rank leaks in steps.
static void pass_samples(struct bench_chain *chain, uint32_t ranks, uint32_t jobs, uint32_t first,
                         uint32_t count, uint32_t second) {
    static struct telemetry samples[BENCH_BATCH];
    for (uint32_t done = 0; done < count;) {
        uint32_t left = count - done, size = left < BENCH_BATCH ? left : BENCH_BATCH;
        for (uint32_t i = 0; i < size; i++) {
            uint32_t rank = (first + done + i) % ranks;
            char name[32], job[32];
            snprintf(name, sizeof name, "session-%" PRIu32, rank);
            snprintf(job, sizeof job, "bench-%" PRIu32, rank % jobs);
            uint64_t noise = (rank * 2654435761u + second * 40503u) % 1000;
            uint64_t time_ns = START_NS + second * SECOND_NS + rank * 1000 + noise;
            int64_t used = (INT64_C(40) << 30) + (int64_t)(noise << 14);
            if (rank == ranks - 1)
                used += (int64_t)second << 28;
            samples[i] = (struct telemetry){.timestamp_ns = time_ns,
                                            .type = TELEMETRY_SAMPLE,
                                            .schema_version = 3,
                                            .rank = (int32_t)(rank / jobs),
                                            .world_size = (int32_t)(ranks / jobs),
                                            .host = intern(SLICE("node")),
                                            .job = intern(slice_of(job)),
                                            .session = intern(slice_of(name)),
                                            .pid = 100 + rank,
                                            .sampling_interval_ms = 1000,
                                            .device_used_bytes = used};
            chain->events[i] = (struct event){.time_ns = time_ns,
                                              .job = samples[i].job,
                                              .node = samples[i].host,
                                              .rank = samples[i].rank,
                                              .kind = EVENT_TELEMETRY,
                                              .telemetry = &samples[i]};
        }
        chain->event_count = size;
        bench_chain_pass_events(chain);
        done += size;
    }
}

int main(int argc, char **argv) {
    uint32_t ranks = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
    uint32_t changed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10;
    uint32_t seconds = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 200;
    uint32_t threads = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 1;
    const char *retention = argc > 5 ? argv[5] : "10m";
    uint32_t jobs = argc > 6 ? (uint32_t)strtoul(argv[6], NULL, 10) : 1;
    if (ranks == 0 || changed > ranks || seconds == 0 || seconds > SECONDS_MAX || threads == 0 ||
        threads > WORKERS_MAX || jobs == 0 || jobs > ranks) {
        fprintf(stderr, "usage: %s [RANKS [CHANGED [SECONDS [THREADS [RETENTION [JOBS]]]]]]\n",
                argv[0]);
        return 64;
    }
    bench_threads = threads;
    struct bench_chain chain;
    bench_provide_memory();
    bench_chain_start(&chain, jobs > 1 ? BENCH_JOBS : BENCH_MEMORY, false, retention);
    uint32_t second = 0;
    for (; second < WARM; second++) {
        pass_samples(&chain, ranks, jobs, 0, ranks, second);
        bench_chain_evaluate(&chain, START_NS + (second + 1) * SECOND_NS, false);
    }
    double *all = calloc(seconds, sizeof *all), *wall = calloc(seconds, sizeof *wall);
    double *stages[BENCH_STAGES_MAX];
    for (uint32_t j = 0; j < chain.stage_count; j++)
        stages[j] = calloc(seconds, sizeof **stages);
    for (uint32_t i = 0; i < seconds; i++, second++) {
        pass_samples(&chain, ranks, jobs, i * changed + (i * changed) % 7 * 1000, changed, second);
        double before[BENCH_STAGES_MAX];
        for (uint32_t j = 0; j < chain.stage_count; j++)
            before[j] = chain.evaluate_s[j];
        uint64_t begun_ns = clock_monotonic_ns();
        bench_chain_evaluate(&chain, START_NS + (second + 1) * SECOND_NS, false);
        wall[i] = (double)(clock_monotonic_ns() - begun_ns) * 1e-3;
        for (uint32_t j = 0; j < chain.stage_count; j++) {
            stages[j][i] = (chain.evaluate_s[j] - before[j]) * 1e6;
            all[i] += stages[j][i];
        }
    }
    printf("{\"ranks\":%" PRIu32 ",\"jobs\":%" PRIu32 ",\"changed\":%" PRIu32
           ",\"cpu_p50_us\":%.1f,\"cpu_p99_us\":%.1f,",
           ranks, jobs, changed, at_share(all, seconds, 0.5), at_share(all, seconds, 0.99));
    printf("\"wall_p50_us\":%.1f,\"wall_p99_us\":%.1f,\"wall_max_us\":%.1f,\"stages_p50_us\":{",
           at_share(wall, seconds, 0.5), at_share(wall, seconds, 0.99), at_share(wall, seconds, 1));
    for (uint32_t j = 0; j < chain.stage_count; j++) {
        printf("%s\"%s\":%.1f", j == 0 ? "" : ",", chain.types[j]->name,
               at_share(stages[j], seconds, 0.5));
    }
    printf("},\"stages_p99_us\":{");
    for (uint32_t j = 0; j < chain.stage_count; j++) {
        printf("%s\"%s\":%.1f", j == 0 ? "" : ",", chain.types[j]->name,
               at_share(stages[j], seconds, 0.99));
        free(stages[j]);
    }
    printf("}}\n");
    free(all);
    free(wall);
    bench_chain_stop(&chain);
    intern_release();
    return 0;
}
