// SPDX-License-Identifier: Apache-2.0
// How fast are Flight Recorder dumps read, and the ranks of a job judged?
//
//     bench_flight [RANKS [ENTRIES [DIRECTORY]]]      (4096 dumps of 2000 entries)
//
// Dumps are made one by one (made_dumps.h), first in JSON and then as pickles, and only reading and
// judging them is timed, in CPU time of one thread. With DIRECTORY the pickles are written there
// instead, for `culprit analyze`.
#include "base/memory.h"
#include "bench/made_dumps.h"
#include "cli/component_list.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *start_detector(void **config) {
    const struct component_type *type = &processor_nccl_hang;
    *config = memory_zero(1, type->config_size);
    for (size_t i = 0; i < type->option_count; i++) {
        const struct option *row = &type->options[i];
        void *field = (char *)*config + row->offset;
        char why[160];
        if (row->type == OPTION_BOOL)
            *(bool *)field = strcmp(row->default_value, "true") == 0;
        else if (row->type == OPTION_INT)
            *(int64_t *)field = strtoll(row->default_value, NULL, 10);
        else if (!option_parse_duration(row->default_value, field, why))
            abort();
    }
    void *instance = memory_zero(1, type->instance_size);
    struct component_context context = {.id = type->name, .site = type->name, .once = true};
    struct error error = {0};
    if (component_start(type, instance, *config, &context, &error) != STATUS_OK)
        abort();
    return instance;
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// A form that dumps have.
struct form {
    const char *name;
    const struct decoder_type *decoder;
    void (*make)(struct made_dump *out, int rank, int ranks, int entries);
};

static const struct form FORMS[] = {
    {"JSON", &decoder_flight_json, made_dump_write},
    {"pickle", &decoder_flight_pickle, made_dump_write_pickle},
};

static struct event read_dump(const struct form *form, void *state, int rank,
                              const struct made_dump *text, struct arena *arena) {
    char path[64];
    snprintf(path, sizeof path, "trace_rank_%d", rank);
    form->decoder->begin(state, &(struct decoder_input){.path = slice_of(path), .is_file = true});
    struct event event = {0};
    struct decode_fault fault;
    if (form->decoder->decode(state, (struct slice){text->data, text->size}, arena, &event,
                              &fault) != DECODE_OK) {
        fprintf(stderr, "rank %d: %s: %s\n", rank, fault.field, fault.detail);
        exit(1);
    }
    return event;
}

static void measure(const struct form *form, struct made_dump *text, int ranks, int entries) {
    void *config, *instance = start_detector(&config);
    void *state = memory_zero(1, form->decoder->state_size);
    struct arena arena;
    arena_init(&arena, 1 << 20);
    double decoding = 0, taking = 0;
    uint64_t bytes = 0, count = 0, newest_ns = 0;
    struct memory_figures before = memory_figures();
    for (int rank = 0; rank < ranks; rank++) {
        form->make(text, rank, ranks, entries);
        double from = cpu_seconds();
        struct event event = read_dump(form, state, rank, text, &arena);
        decoding += cpu_seconds() - from;
        newest_ns = event.time_ns > newest_ns ? event.time_ns : newest_ns;
        bytes += text->size;
        count += event.flight->entry_count;
        from = cpu_seconds();
        struct batch batch = {
            .events = &event, .event_count = 1, .arena = &arena, .newest_ns = newest_ns};
        processor_nccl_hang.processor.consume(instance, &batch);
        taking += cpu_seconds() - from;
        arena_reset(&arena);
    }
    double from = cpu_seconds();
    struct batch batch = {.arena = &arena,
                          .newest_ns = newest_ns,
                          .evaluate = true,
                          .as_of_ns = UINT64_MAX,
                          .last = true};
    processor_nccl_hang.processor.consume(instance, &batch);
    double judging = cpu_seconds() - from;
    struct memory_figures after = memory_figures();
    printf("%s: %d dumps, %" PRIu64 " entries, %.1f MB\n", form->name, ranks, count,
           (double)bytes * 1e-6);
    printf("reading  %.3f s  %.2f M entries/s  %.0f MB/s\n", decoding,
           (double)count * 1e-6 / decoding, (double)bytes * 1e-6 / decoding);
    printf("taking   %.3f s  %.2f M entries/s\n", taking, (double)count * 1e-6 / taking);
    printf("judging  %.3f s  %u verdicts: %.*s\n", judging, batch.verdicts.count,
           batch.verdicts.count == 0 ? 0 : (int)batch.verdicts.items[0].headline.size,
           batch.verdicts.count == 0 ? "" : batch.verdicts.items[0].headline.data);
    printf("all      %.3f s; peak %.1f MB, %" PRIu64 " allocations\n", decoding + taking + judging,
           (double)after.peak_bytes * 1e-6, after.allocations - before.allocations);
    arena_release(&arena);
    component_stop(&processor_nccl_hang, instance);
    memory_give(instance);
    memory_give(config);
    memory_give(state);
}

static int write_pickles(const char *directory, struct made_dump *text, int ranks, int entries) {
    for (int rank = 0; rank < ranks; rank++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/comm_lib_trace_rank_%d", directory, rank);
        FILE *file = fopen(path, "wb");
        made_dump_write_pickle(text, rank, ranks, entries);
        if (file == NULL || fwrite(text->data, 1, text->size, file) != text->size ||
            fclose(file) != 0) {
            perror(path);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    int ranks = argc > 1 ? atoi(argv[1]) : 4096;
    int entries = argc > 2 ? atoi(argv[2]) : 2000;
    if (ranks < 2 * MADE_DUMP_TENSOR || ranks % MADE_DUMP_TENSOR != 0 || entries < 2) {
        fprintf(stderr,
                "usage: bench_flight [RANKS, a multiple of 8 from 16 on [ENTRIES "
                "[DIRECTORY, for pickles]]]\n");
        return 2;
    }
    struct made_dump text = {.data = memory_take(made_dump_size_max(ranks, entries))};
    int failed = 0;
    if (argc > 3)
        failed = write_pickles(argv[3], &text, ranks, entries);
    else
        for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
            measure(&FORMS[i], &text, ranks, entries);
    memory_give(text.data);
    return failed;
}
