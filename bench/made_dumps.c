// SPDX-License-Identifier: Apache-2.0
#include "bench/made_dumps.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

// Which operation comes, in which of the rank's three groups.
struct plan {
    char names[3][16], descs[3][24];
    int sequences[3];
};

static const char *const NAMES[] = {"all_reduce", "_all_gather_base", "_reduce_scatter_base"};

static struct plan plan_of(int rank) {
    struct plan plan = {.names = {"0"}, .descs = {"default_pg"}, .sequences = {100, 100, 100}};
    snprintf(plan.names[1], sizeof plan.names[1], "%d", 1 + rank / TENSOR);
    snprintf(plan.names[2], sizeof plan.names[2], "%d", 100000 + rank % TENSOR);
    snprintf(plan.descs[1], sizeof plan.descs[1], "tp%d", rank / TENSOR);
    snprintf(plan.descs[2], sizeof plan.descs[2], "dp%d", rank % TENSOR);
    return plan;
}

static int which_group(int number, int entries) {
    return number + 1 == entries || number % 16 == 0 ? 0 : number % 2 + 1;
}

void made_dump_write(struct made_dump *out, int rank, int ranks, int entries) {
    struct plan plan = plan_of(rank);
    out->size = (size_t)sprintf(out->data, "{\"comm_lib_version\":\"2.28.9\",\"entries\":[");
    for (int i = 0; i < entries; i++) {
        int which = which_group(i, entries);
        if (i + 1 < entries || rank != ODD_RANK)
            put_entry(out, rank, i, plan.names[which], plan.descs[which], NAMES[which],
                      ++plan.sequences[which], i + 1 < entries);
    }
    out->size += (size_t)sprintf(out->data + out->size, "],\"nccl_comm_state\":{},\"pg_config\":{");
    put_group(out, "0", "default_pg", 0, 1, ranks);
    out->data[out->size++] = ',';
    put_group(out, plan.names[1], plan.descs[1], rank / TENSOR * TENSOR, 1, TENSOR);
    out->data[out->size++] = ',';
    put_group(out, plan.names[2], plan.descs[2], rank % TENSOR, TENSOR, ranks / TENSOR);
    out->size += (size_t)sprintf(out->data + out->size,
                                 "},\"pg_status\":{\"0\":{\"last_completed_collective\":\"5\","
                                 "\"last_enqueued_collective\":\"6\",\"last_started_collective\":"
                                 "\"6\"}},\"version\":\"2.10\"}");
}

// -- pickles -------------------------------------------------------------------------------------

static void op(struct made_dump *out, unsigned char code) {
    out->data[out->size++] = (char)code;
}

static void put_bytes(struct made_dump *out, uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; i++)
        op(out, (unsigned char)(value >> (8 * i)));
}

static void put_place(struct made_dump *out, unsigned char small, uint16_t place) {
    op(out, (unsigned char)(place < 256 ? small : small + 2 - (small == 'q')));
    put_bytes(out, place, place < 256 ? 1 : 4);
}

// A text, which is in the memo from its first time on; `slot` tells it from others.
static void put_text(struct made_dump *out, unsigned slot, const char *text) {
    if (out->memo[slot] != 0) {
        put_place(out, 'h', (uint16_t)(out->memo[slot] - 1));
        return;
    }
    op(out, 'X');
    put_bytes(out, strlen(text), 4);
    out->size += (size_t)sprintf(out->data + out->size, "%s", text);
    put_place(out, 'q', out->memoized);
    out->memo[slot] = ++out->memoized;
}

static void put_integer(struct made_dump *out, int64_t value) {
    bool small = value >= 0 && value < 1 << 16, medium = value == (int32_t)value;
    op(out, small ? (value < 256 ? 'K' : 'M') : medium ? 'J' : 0x8a);
    if (!small && !medium)
        op(out, 8);
    put_bytes(out, (uint64_t)value, small ? (value < 256 ? 1 : 2) : medium ? 4 : 8);
}

// Slots of texts: names of keys, then those of groups, operations and frames.
enum { SLOT_GROUPS = 64, SLOT_NAMES = 72, SLOT_TEXTS = 80, SLOT_FRAMES = 96, FRAMES = 8 };

static void put_key(struct made_dump *out, unsigned slot) {
    static const char *const KEYS[] = {"version",
                                       "pg_config",
                                       "name",
                                       "desc",
                                       "ranks",
                                       "comm_lib_version",
                                       "pg_status",
                                       "last_enqueued_collective",
                                       "last_started_collective",
                                       "last_completed_collective",
                                       "entries",
                                       "frames",
                                       "filename",
                                       "line",
                                       "record_id",
                                       "pg_id",
                                       "process_group",
                                       "thread_name",
                                       "thread_id",
                                       "collective_seq_id",
                                       "p2p_seq_id",
                                       "op_id",
                                       "profiling_name",
                                       "time_created_ns",
                                       "duration_ms",
                                       "input_sizes",
                                       "input_dtypes",
                                       "output_sizes",
                                       "output_dtypes",
                                       "state",
                                       "time_discovered_started_ns",
                                       "time_discovered_completed_ns",
                                       "retired",
                                       "timeout_ms",
                                       "is_p2p"};
    put_text(out, slot, KEYS[slot]);
}

// Numbers of the keys above.
enum { KEY_NAME = 2, KEY_FRAMES = 11, KEY_RECORD_ID = 14 };

static void put_frames(struct made_dump *out, int which) {
    put_key(out, KEY_FRAMES);
    put_bytes(out, ']' | '(' << 8, 2);
    for (unsigned i = 0; i < FRAMES; i++) {
        unsigned slot = SLOT_FRAMES + 32 * (i == 0 ? (unsigned)which : 3) + i;
        char text[80];
        if (out->memo[slot] != 0) {
            put_place(out, 'h', (uint16_t)(out->memo[slot] - 1));
            continue;
        }
        put_bytes(out, '}' | '(' << 8, 2);
        put_key(out, KEY_NAME);
        snprintf(text, sizeof text, "function_%u", slot);
        put_text(out, slot + 8, text);
        put_key(out, KEY_FRAMES + 1);
        snprintf(text, sizeof text, "/srv/venv/lib/python3.11/site-packages/torch/%u.py", i);
        put_text(out, slot + 16, text);
        put_key(out, KEY_FRAMES + 2);
        put_integer(out, 83 + 40 * (int)i);
        op(out, 'u');
        put_place(out, 'q', out->memoized);
        out->memo[slot] = ++out->memoized;
    }
    op(out, 'e');
}

static void put_pickled_sizes(struct made_dump *out, int number) {
    put_bytes(out, ']' | '(' << 8 | ']' << 16 | (uint64_t)'(' << 24, 4);
    put_integer(out, 1024 << (number % 3));
    put_integer(out, 4096);
    put_bytes(out, 'e' | 'e' << 8, 2);
}

static void put_pickled_types(struct made_dump *out) {
    put_bytes(out, ']' | '(' << 8, 2);
    put_text(out, SLOT_TEXTS, "BFloat16");
    op(out, 'e');
}

static void put_pickled_entry(struct made_dump *out, int rank, int number, struct plan *plan,
                              int which, bool ended) {
    uint64_t created = START_NS + (uint64_t)number * 2000000 + (uint64_t)rank * 131;
    unsigned key = KEY_RECORD_ID;
    char name[40];
    snprintf(name, sizeof name, "nccl:%s", NAMES[which]);
    put_bytes(out, '}' | '(' << 8, 2);
    put_frames(out, which);
    put_key(out, key++);
    put_integer(out, number);
    put_key(out, key++);
    put_integer(out, number % 3);
    put_key(out, key++);
    put_text(out, SLOT_GROUPS + (unsigned)which, plan->names[which]);
    put_text(out, SLOT_GROUPS + 4 + (unsigned)which, plan->descs[which]);
    op(out, 0x86);
    put_key(out, key++);
    put_text(out, SLOT_TEXTS + 1, "pt_main_thread");
    put_key(out, key++);
    put_text(out, SLOT_TEXTS + 2, "140651786107776");
    put_key(out, key++);
    put_integer(out, ++plan->sequences[which]);
    put_key(out, key++);
    put_integer(out, 0);
    put_key(out, key++);
    put_integer(out, number);
    put_key(out, key++);
    put_text(out, SLOT_NAMES + (unsigned)which, name);
    put_key(out, key++);
    put_integer(out, (int64_t)created);
    if (ended) {
        put_key(out, key);
        op(out, 'G');
        put_bytes(out, UINT64_C(0x00004021c0f33f3f), 8);
    }
    key++;
    for (unsigned i = 0; i < 2; i++) {
        put_key(out, key++);
        put_pickled_sizes(out, number);
        put_key(out, key++);
        put_pickled_types(out);
    }
    put_key(out, key++);
    put_text(out, SLOT_TEXTS + 4 + ended, ended ? "completed" : "started");
    put_key(out, key++);
    put_integer(out, (int64_t)created + 150000);
    put_key(out, key++);
    if (ended)
        put_integer(out, (int64_t)created + 1400000);
    else
        op(out, 'N');
    put_key(out, key++);
    op(out, ended ? 0x88 : 0x89);
    put_key(out, key++);
    put_integer(out, 600000);
    put_key(out, key);
    op(out, 0x89);
    op(out, 'u');
}

static void put_pickled_group(struct made_dump *out, const struct plan *plan, int which, int from,
                              int step, int count) {
    put_text(out, SLOT_GROUPS + (unsigned)which, plan->names[which]);
    put_bytes(out, '}' | '(' << 8, 2);
    put_key(out, KEY_NAME);
    put_text(out, SLOT_GROUPS + (unsigned)which, plan->names[which]);
    put_key(out, KEY_NAME + 1);
    put_text(out, SLOT_GROUPS + 4 + (unsigned)which, plan->descs[which]);
    put_key(out, KEY_NAME + 2);
    op(out, 'X');
    size_t length_at = out->size;
    put_bytes(out, 0, 4);
    for (int i = 0; i < count; i++)
        out->size +=
            (size_t)sprintf(out->data + out->size, "%s%d", i == 0 ? "[" : ", ", from + i * step);
    op(out, ']');
    size_t end = out->size, size = end - length_at - 4;
    out->size = length_at;
    put_bytes(out, size, 4);
    out->size = end;
    put_place(out, 'q', out->memoized++);
    op(out, 'u');
}

void made_dump_write_pickle(struct made_dump *out, int rank, int ranks, int entries) {
    struct plan plan = plan_of(rank);
    out->size = out->memoized = 0;
    memset(out->memo, 0, sizeof out->memo);
    put_bytes(out, 0x80 | 2 << 8 | '}' << 16 | (uint64_t)'(' << 24, 4);
    put_key(out, 0);
    put_text(out, SLOT_TEXTS + 8, "2.10");
    put_key(out, 1);
    put_bytes(out, '}' | '(' << 8, 2);
    put_pickled_group(out, &plan, 0, 0, 1, ranks);
    put_pickled_group(out, &plan, 1, rank / TENSOR * TENSOR, 1, TENSOR);
    put_pickled_group(out, &plan, 2, rank % TENSOR, TENSOR, ranks / TENSOR);
    op(out, 'u');
    put_key(out, 5);
    put_text(out, SLOT_TEXTS + 9, "2.28.9");
    put_key(out, 6);
    put_bytes(out, '}' | '(' << 8, 2);
    put_text(out, SLOT_GROUPS, "0");
    put_bytes(out, '}' | '(' << 8, 2);
    for (unsigned key = 7; key < 10; key++) {
        put_key(out, key);
        put_integer(out, 5 + (key < 9));
    }
    put_bytes(out, 'u' | 'u' << 8, 2);
    put_key(out, 10);
    put_bytes(out, ']' | '(' << 8, 2);
    for (int i = 0; i < entries; i++)
        if (i + 1 < entries || rank != ODD_RANK)
            put_pickled_entry(out, rank, i, &plan, which_group(i, entries), i + 1 < entries);
    put_bytes(out, 'e' | 'u' << 8 | '.' << 16, 3);
}
