// SPDX-License-Identifier: Apache-2.0
// What an event costs, in figures that do not move with the machine's load: for tools/gate_cost.
//
//   bench_cost instructions [--slow N] [--in decode] [NAME...]   under valgrind --tool=callgrind
//   bench_cost bytes [--leak N] [--in decode] [NAME...]
//   bench_cost files FOLDER
//
// Inputs are the made-up streams of the other programs: memory, spans, phases, a thousand jobs at a
// time, and each kind of made_kinds.c. A live pipeline is warmed up, then as many records are
// passed twice: callgrind counts the decoder's instructions of the first, the stages' (with
// evaluations) of the second, and writes each down under "NAME PART EVENTS". `bytes` says how many
// bytes more are held after the measured records than before, by each stage and the decoder where
// nothing is forgotten (inputs that end), and in all in a live pipeline; one JSON array.
//
// `files` writes the same kinds as small files, a few records each, and dumps of the Flight
// Recorder, into a folder that is there, and prints how many records they are (each entry of a raw
// dump is one): for culprit itself, which finds them and has to tell what is in each.
//
// --slow N spins N times an event in the first stage, --leak N loses N bytes an event there; with
// --in decode, both before the decoder, for each line. So a test can see that both are noticed.
#include "base/intern.h"
#include "base/memory.h"
#include "bench/bench_chain.h"
#include "bench/made_dumps.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT      (void)0
#define CALLGRIND_ZERO_STATS          (void)0
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#define RUNNING_ON_VALGRIND           0
#endif

enum {
    MEMORY_RECORDS = 8 * BENCH_BATCH,
    KIND_RECORDS = 8 * BENCH_KIND_BATCH,
    RANKS = 64,
    JOBS = 1000,
    JOB_RANKS = 2 * JOBS,
    SPAN_RANKS = 8,
    SPANS = 1000,
    LABEL_MAX = 128,
    FILES = 64,
    FILE_RECORDS = 16,
    DUMPS = 16, // 2 groups of ranks
    DUMP_ENTRIES = 100,
    LONG_DUMPS = 2,           // the first of them are longer than what a format is told by
    LONG_DUMP_ENTRIES = 2000, // 1.1 MB
    MADE_STREAMS = 4,         // before those of kinds
};
static const uint64_t EVALUATE_EVERY_NS = UINT64_C(10000000000);
static const uint64_t JOBS_EVERY_NS = 200000000; // 4,000 samples
static const uint64_t KIND_STEP_NS = 10000000;

// -- what is put in on purpose ------------------------------------------------------------------

static uint32_t slow_by, leak_by;
static enum bench_part burdened_part = BENCH_STAGES_PART;
static const struct component_type *burdened_type;
static const struct bench_chain *burdened_chain;

static void be_a_burden(uint32_t times) {
    for (uint32_t i = 0; i < times; i++) {
        for (volatile uint32_t spin = 0; spin < slow_by; spin++)
            ;
        if (leak_by > 0)
            (void)memory_take(leak_by);
    }
}

static void burdened_consume(void *instance, struct batch *batch) {
    burdened_type->processor.consume(instance, batch);
    be_a_burden(batch->event_count);
}

// What is done for a part of a block when it begins is counted as that part's.
static void burden_part(enum bench_part part, bool begins) {
    if (begins && part == BENCH_DECODE_PART && burdened_part == part)
        be_a_burden(burdened_chain->line_count);
}

static void burden(struct bench_chain *chain) {
    static struct component_type type;
    burdened_chain = chain;
    chain->part = burden_part;
    if ((slow_by == 0 && leak_by == 0) || burdened_part != BENCH_STAGES_PART)
        return;
    burdened_type = chain->types[0];
    type = *burdened_type;
    type.processor.consume = burdened_consume;
    chain->types[0] = &type;
}

// -- one stream ---------------------------------------------------------------------------------

struct stream {
    const char *name;
    struct bench_job job;
    const char *live, *all; // setting of a live pipeline, and of one that keeps everything
    uint32_t records, batch;
    uint64_t every_ns; // of evaluations of a live pipeline
    bool is_wide;      // so many jobs that each has a few samples: what the first ones hold counts
};

static uint64_t stream_time_ns(const struct stream *stream, const struct bench_chain *chain,
                               uint64_t done) {
    return stream->job.kind == BENCH_KINDS ? made_kind_time_ns(done, stream->job.step_ns)
                                           : chain->newest_ns;
}

static void pass(struct bench_chain *chain, const struct stream *stream, uint64_t *done) {
    for (uint64_t end = *done + stream->records; *done < end; *done += stream->batch) {
        uint64_t before_ns = stream_time_ns(stream, chain, *done);
        bench_chain_make(chain, &stream->job, *done, stream->batch);
        bench_chain_pass(chain);
        uint64_t due = stream_time_ns(stream, chain, *done + stream->batch) / stream->every_ns;
        if (!chain->once && due > before_ns / stream->every_ns)
            bench_chain_evaluate(chain, due * stream->every_ns, false);
    }
    if (chain->once && stream->job.kind == BENCH_SPANS)
        bench_chain_evaluate(chain, UINT64_MAX, false);
}

static void start(struct bench_chain *chain, const struct stream *stream, bool once) {
    bench_chain_start(chain, stream->job.kind, once, once ? stream->all : stream->live);
    burden(chain);
}

static void stop(struct bench_chain *chain) {
    bench_chain_stop(chain);
    intern_release();
}

// -- instructions -------------------------------------------------------------------------------

static enum bench_part counted_part;

static void count_part(enum bench_part part, bool begins) {
    if (part == counted_part)
        CALLGRIND_TOGGLE_COLLECT;
    burden_part(part, begins);
}

static void count_instructions(const struct stream *stream) {
    static const char *const PARTS[] = {"decode", "stages"};
    struct bench_chain chain;
    uint64_t done = 0;
    start(&chain, stream, false);
    pass(&chain, stream, &done);
    chain.part = count_part;
    for (int part = BENCH_DECODE_PART; part <= BENCH_STAGES_PART; part++) {
        uint64_t events = chain.event_total;
        char label[LABEL_MAX];
        counted_part = (enum bench_part)part;
        CALLGRIND_ZERO_STATS;
        pass(&chain, stream, &done);
        snprintf(label, sizeof label, "%s %s %" PRIu64, stream->name, PARTS[part],
                 chain.event_total - events);
        CALLGRIND_DUMP_STATS_AT(label);
    }
    stop(&chain);
}

// -- bytes --------------------------------------------------------------------------------------

static uint64_t live_bytes_of(const struct stream *stream, uint64_t *events) {
    struct bench_chain chain;
    uint64_t done = 0;
    start(&chain, stream, false);
    pass(&chain, stream, &done);
    pass(&chain, stream, &done);
    uint64_t before = memory_figures().live_bytes;
    *events = chain.event_total;
    pass(&chain, stream, &done);
    *events = chain.event_total - *events;
    uint64_t after = memory_figures().live_bytes;
    stop(&chain);
    return after > before ? after - before : 0;
}

static void count_bytes(const struct stream *stream) {
    struct bench_chain chain;
    uint64_t done = 0, live_events;
    start(&chain, stream, true);
    if (!stream->is_wide)
        pass(&chain, stream, &done);
    uint64_t events = chain.event_total;
    chain.counts_bytes = true;
    pass(&chain, stream, &done);
    double count = (double)(chain.event_total - events);
    printf("{\"name\":\"%s\",\"held\":{\"decoder\":%.3f", stream->name,
           (double)chain.decode_bytes / count);
    for (uint32_t i = 0; i < chain.stage_count; i++)
        if (chain.stage_bytes[i] > 0)
            printf(",\"%s\":%.3f", chain.types[i]->name, (double)chain.stage_bytes[i] / count);
    stop(&chain);
    uint64_t live = live_bytes_of(stream, &live_events);
    printf(",\"live\":%.3f}}", (double)live / (double)live_events);
    fflush(stdout);
}

// -- files --------------------------------------------------------------------------------------

static FILE *open_file(const char *folder, uint32_t number, const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%02u_%s", folder, number, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    return file;
}

static void close_file(FILE *file) {
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        perror("bench_cost");
        exit(EXIT_FAILURE);
    }
}

static void write_kind(const char *folder, uint32_t number, const struct made_kind *made) {
    char name[LABEL_MAX], text[MADE_KIND_MAX];
    bool is_json = made->text[0] == '{';
    snprintf(name, sizeof name, "%s.%s", made->name, is_json ? "jsonl" : "log");
    FILE *file = open_file(folder, number, name);
    // The clock is that of all files: ranks of one job.
    for (uint32_t i = 0; i < FILE_RECORDS; i++) {
        uint64_t record = number * FILE_RECORDS + i;
        fwrite(text, 1, made_kind_write(made, record, KIND_STEP_NS, text), file);
    }
    close_file(file);
}

static void write_files(const char *folder) {
    struct made_dump dump = {.data = malloc(made_dump_size_max(DUMPS, LONG_DUMP_ENTRIES))};
    if (dump.data == NULL) {
        fprintf(stderr, "bench_cost: out of memory\n");
        exit(EXIT_FAILURE);
    }
    for (uint32_t i = 0; i < FILES; i++)
        write_kind(folder, i, &MADE_KINDS[i % MADE_KIND_COUNT]);
    int records = FILES * FILE_RECORDS;
    for (uint32_t rank = 0; rank < DUMPS; rank++) {
        int entries = rank < LONG_DUMPS ? LONG_DUMP_ENTRIES : DUMP_ENTRIES;
        char name[LABEL_MAX];
        snprintf(name, sizeof name, "trace_rank_%u", rank);
        FILE *file = open_file(folder, FILES + rank, name);
        made_dump_write(&dump, (int)rank, DUMPS, entries);
        fwrite(dump.data, 1, dump.size, file);
        close_file(file);
        records += entries;
    }
    free(dump.data);
    printf("%d\n", records);
}

// -- the program --------------------------------------------------------------------------------

static bool is_asked(const char *name, int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 0;
}

static struct stream stream_of(uint32_t number) {
    struct stream memory = {"memory",    {.memory = {RANKS, 3, 0}}, "10s", "all", MEMORY_RECORDS,
                            BENCH_BATCH, EVALUATE_EVERY_NS,         false};
    struct stream stream = memory;
    switch (number) {
    case 0:
        return memory;
    case 1:
        stream.name = "spans";
        stream.job = (struct bench_job){BENCH_SPANS, .spans = made_spans_of(SPAN_RANKS, SPANS)};
        stream.live = stream.all = "max_spans: 2000, max_tasks: 2000";
        return stream;
    case 2:
        stream.name = "phases";
        stream.job = (struct bench_job){BENCH_SLOW, .phases = {RANKS}};
        stream.live = stream.all = "";
        return stream;
    case 3:
        stream.name = "jobs";
        stream.job = (struct bench_job){BENCH_JOBS, .memory = {JOB_RANKS, 3, JOBS}};
        stream.every_ns = JOBS_EVERY_NS;
        stream.is_wide = true;
        return stream;
    default:
        assert(number - MADE_STREAMS < MADE_KIND_COUNT);
        return (struct stream){MADE_KINDS[number - MADE_STREAMS].name,
                               {.kind = BENCH_KINDS,
                                .made = &MADE_KINDS[number - MADE_STREAMS],
                                .step_ns = KIND_STEP_NS},
                               "",
                               "",
                               KIND_RECORDS,
                               BENCH_KIND_BATCH,
                               EVALUATE_EVERY_NS,
                               false};
    }
}

static int usage(const char *program) {
    fprintf(stderr,
            "usage: %s instructions|bytes [--slow N] [--leak N] [--in decode] [NAME...]\n"
            "       %s files FOLDER\n",
            program, program);
    return 64;
}

int main(int argc, char **argv) {
    int at = 2;
    if (argc == 3 && strcmp(argv[1], "files") == 0) {
        write_files(argv[2]);
        return 0;
    }
    bool instructions = argc > 1 && strcmp(argv[1], "instructions") == 0, any = false;
    if (!instructions && (argc < 2 || strcmp(argv[1], "bytes") != 0))
        return usage(argv[0]);
    if (instructions && !RUNNING_ON_VALGRIND) {
        fprintf(stderr,
                "%s: run it under valgrind --tool=callgrind, and build it where "
                "valgrind/callgrind.h is\n",
                argv[0]);
        return 69;
    }
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--in") == 0 && strcmp(argv[at + 1], "decode") == 0) {
            burdened_part = BENCH_DECODE_PART;
            continue;
        }
        uint32_t *to = strcmp(argv[at], "--slow") == 0   ? &slow_by
                       : strcmp(argv[at], "--leak") == 0 ? &leak_by
                                                         : NULL;
        if (to == NULL)
            return usage(argv[0]);
        *to = (uint32_t)strtoul(argv[at + 1], NULL, 10);
    }
    if (!instructions)
        printf("[");
    for (uint32_t i = 0; i < MADE_STREAMS + MADE_KIND_COUNT; i++) {
        struct stream stream = stream_of(i);
        if (!is_asked(stream.name, argc - at, argv + at))
            continue;
        if (instructions) {
            count_instructions(&stream);
            continue;
        }
        printf(any ? ",\n " : "");
        any = true;
        count_bytes(&stream);
    }
    if (!instructions)
        printf("]\n");
    return 0;
}
