// SPDX-License-Identifier: Apache-2.0
#include "bench/made_dumps.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

enum { PER_ENTRY_MAX = 640, TENSOR = MADE_DUMP_TENSOR, ODD_RANK = 7 };
static const uint64_t START_NS = UINT64_C(1795249274000000000);

static void put_group(struct made_dump *out, const char *name, const char *desc, int from, int step,
                      int count) {
    out->size +=
        (size_t)sprintf(out->data + out->size,
                        "\"%s\":{\"desc\":\"%s\",\"name\":\"%s\",\"ranks\":\"[", name, desc, name);
    for (int i = 0; i < count; i++)
        out->size +=
            (size_t)sprintf(out->data + out->size, "%s%d", i == 0 ? "" : ", ", from + i * step);
    out->size += (size_t)sprintf(out->data + out->size, "]\"}");
}

static void put_entry(struct made_dump *out, int rank, int number, const char *group,
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

size_t made_dump_size_max(int ranks, int entries) {
    return (size_t)entries * PER_ENTRY_MAX + (size_t)ranks * 16 + 65536;
}

void made_dump_write(struct made_dump *out, int rank, int ranks, int entries) {
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
