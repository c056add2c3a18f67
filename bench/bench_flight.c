// SPDX-License-Identifier: Apache-2.0
// How fast are Flight Recorder dumps read, and the ranks of a job judged?
//
//     bench_flight [RANKS [ENTRIES]]      (4096 dumps of 2000 entries)
//
// Dumps are made one by one as PyTorch writes them in JSON, and only reading and judging them is
// timed, in CPU time of one thread: a world group, a tensor and a data parallel group a rank, all
// ended but one all_reduce that rank 7 never calls.
#include "base/memory.h"
#include "cli/component_list.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PER_ENTRY_MAX = 640, TENSOR = 8, ODD_RANK = 7 };
static const uint64_t START_NS = UINT64_C(1795249274000000000);

struct dump_text {
    char *data;
    size_t size;
};

static void put_group(struct dump_text *out, const char *name, const char *desc, int from, int step,
                      int count) {
    out->size +=
        (size_t)sprintf(out->data + out->size,
                        "\"%s\":{\"desc\":\"%s\",\"name\":\"%s\",\"ranks\":\"[", name, desc, name);
    for (int i = 0; i < count; i++)
        out->size +=
            (size_t)sprintf(out->data + out->size, "%s%d", i == 0 ? "" : ", ", from + i * step);
    out->size += (size_t)sprintf(out->data + out->size, "]\"}");
}

static void put_entry(struct dump_text *out, int rank, int number, const char *group,
                      const char *desc, const char *name, int sequence, bool ended) {
    uint64_t created = START_NS + (uint64_t)number * 2000000 + (uint64_t)rank * 131;
    out->size += (size_t)sprintf(
        out->data + out->size,
        "%s{\"collective_seq_id\":%d,%s\"input_dtypes\":[\"BFloat16\"],\"input_sizes\":[[%d,4096]],"
        "\"is_p2p\":false,\"op_id\":%d,\"output_dtypes\":[\"BFloat16\"],\"output_sizes\":[[%d,4096]"
        "]"
        ",\"p2p_seq_id\":0,\"pg_id\":%d,\"process_group\":[\"%s\",\"%s\"],\"profiling_name\":"
        "\"nccl:%s\",\"record_id\":%d,\"retired\":%s,\"state\":\"%s\",\"thread_id\":"
        "\"140651786107776\",\"thread_name\":\"pt_main_thread\",\"time_created_ns\":%" PRIu64
        ",\"time_discovered_completed_ns\":%" PRIu64 ",\"time_discovered_started_ns\":%" PRIu64
        ",\"timeout_ms\":600000}",
        number == 0 ? "" : ",", sequence, ended ? "\"duration_ms\":1.2345600128173828," : "",
        1024 << (number % 3), number, 1024 << (number % 3), number % 3, group, desc, name, number,
        ended ? "true" : "false", ended ? "completed" : "started", created,
        ended ? created + 1400000 : 0, created + 150000);
}

static void make_dump(struct dump_text *out, int rank, int ranks, int entries) {
    static const char *const NAMES[] = {"all_reduce", "_all_gather_base", "_reduce_scatter_base"};
    char names[2][16], descs[2][24];
    snprintf(names[0], sizeof names[0], "%d", 1 + rank / TENSOR);
    snprintf(names[1], sizeof names[1], "%d", 100000 + rank % TENSOR);
    snprintf(descs[0], sizeof descs[0], "tp%d", rank / TENSOR);
    snprintf(descs[1], sizeof descs[1], "dp%d", rank % TENSOR);
    out->size = (size_t)sprintf(out->data, "{\"comm_lib_version\":\"2.28.9\",\"entries\":[");
    int sequences[3] = {100, 100, 100};
    for (int i = 0; i + 1 < entries; i++) {
        int which = i % 16 == 0 ? 0 : i % 2 + 1;
        put_entry(out, rank, i, which == 0 ? "0" : names[which - 1],
                  which == 0 ? "default_pg" : descs[which - 1], NAMES[which], ++sequences[which],
                  true);
    }
    if (rank != ODD_RANK)
        put_entry(out, rank, entries - 1, "0", "default_pg", "all_reduce", ++sequences[0], false);
    out->size += (size_t)sprintf(out->data + out->size, "],\"nccl_comm_state\":{},\"pg_config\":{");
    put_group(out, "0", "default_pg", 0, 1, ranks);
    out->data[out->size++] = ',';
    put_group(out, names[0], descs[0], rank / TENSOR * TENSOR, 1, TENSOR);
    out->data[out->size++] = ',';
    put_group(out, names[1], descs[1], rank % TENSOR, TENSOR, ranks / TENSOR);
    out->size += (size_t)sprintf(out->data + out->size,
                                 "},\"pg_status\":{\"0\":{\"last_completed_collective\":\"5\","
                                 "\"last_enqueued_collective\":\"6\",\"last_started_collective\":"
                                 "\"6\"}},\"version\":\"2.10\"}");
}

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

int main(int argc, char **argv) {
    int ranks = argc > 1 ? atoi(argv[1]) : 4096;
    int entries = argc > 2 ? atoi(argv[2]) : 2000;
    if (ranks < 2 * TENSOR || ranks % TENSOR != 0 || entries < 2) {
        fprintf(stderr, "usage: bench_flight [RANKS, a multiple of 8 from 16 on [ENTRIES]]\n");
        return 2;
    }
    void *config, *instance = start_detector(&config);
    void *state = memory_zero(1, decoder_flight_json.state_size);
    struct dump_text text = {
        .data = memory_take((size_t)entries * PER_ENTRY_MAX + (size_t)ranks * 16 + 65536)};
    struct arena arena;
    arena_init(&arena, 1 << 20);
    double decoding = 0, taking = 0;
    uint64_t bytes = 0, count = 0, newest_ns = 0;
    struct memory_figures before = memory_figures();
    for (int rank = 0; rank < ranks; rank++) {
        make_dump(&text, rank, ranks, entries);
        char path[64];
        snprintf(path, sizeof path, "trace_rank_%d", rank);
        double from = cpu_seconds();
        decoder_flight_json.begin(state,
                                  &(struct decoder_input){.path = slice_of(path), .is_file = true});
        struct event event = {0};
        struct decode_fault fault;
        if (decoder_flight_json.decode(state, (struct slice){text.data, text.size}, &arena, &event,
                                       &fault) != DECODE_OK) {
            fprintf(stderr, "rank %d: %s: %s\n", rank, fault.field, fault.detail);
            return 1;
        }
        decoding += cpu_seconds() - from;
        newest_ns = event.time_ns > newest_ns ? event.time_ns : newest_ns;
        bytes += text.size;
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
    printf("%d dumps, %" PRIu64 " entries, %.1f MB\n", ranks, count, (double)bytes * 1e-6);
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
    memory_give(text.data);
    return 0;
}
