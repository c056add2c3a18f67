// SPDX-License-Identifier: Apache-2.0
// What NCCL itself says of its communicators: how many operations each rank has begun (RAS), and
// which one it completed last (Inspector). A row a communicator and rank.
//
// A single answer of RAS proves nothing: operations run on while it is collected. But a count that
// is the same in two answers is one that did not move in between. So of each row the first and the
// newest time of its count are kept; with counts that differ, and did not move for the threshold,
// those who are behind hold up the others. Rows do not depend on the order of answers.
//
// Ranks are those of the communicator. They are ranks of the job where it holds all of them: where
// it is as large as the rank map, or is the only one of the largest size. Else the rank map must
// say whose the processes are. Sources: NCCL, src/ras and plugins/profiler/inspector.
#pragma once

#include "processors/nccl_hang/store.h"

struct hang_ras_key {
    string_id job, communicator;
    string_id op; // STRING_NONE: all collectives together
    int32_t rank; // in the communicator; -1: the others, of whom an answer in text gives one count
};

// The newest time, and the one before it: an answer with a date of tomorrow may stand alone.
struct hang_times {
    uint64_t newest_ns, before_ns; // 0: none
};

struct hang_ras {
    struct row_head head;
    struct hang_ras_key key;
    string_id node; // where it runs; STRING_NONE: not said
    string_id name; // of the communicator; STRING_NONE: not said
    int64_t pid;    // -1: not said
    int64_t size;   // of the communicator; -1: not said
    int64_t count;  // operations begun; -1: not said
    int64_t ended;  // the last that the Inspector saw; -1: none
    uint64_t ended_ns;
    uint64_t since_ns;         // the first answer with that count
    uint64_t confirmed_ns;     // the first that much later; 0: none yet
    struct hang_times told;    // answers with that count
    struct hang_times missing; // answers without it
    struct hang_times dead;    // those that consider it dead
    uint64_t heard_ns;
};

struct hang_process_key {
    string_id job;
    int32_t rank;
};

// Whose process it is, as the rank map says.
struct hang_process {
    struct row_head head;
    struct hang_process_key key;
    string_id node;
    uint64_t pid : 63, is_undated : 1; // undated: nobody said when, `heard_ns` is when it was read
    uint64_t heard_ns;
};
_Static_assert(sizeof(struct hang_process) == 40, "stores of 0.2 have rows of this size");

extern const struct row_type HANG_RAS_ROWS, HANG_PROCESS_ROWS;

// EVENT_OBSERVATION and EVENT_RANK_MAP; others are passed over.
void hang_ras_take(struct hang_store *store, const struct event *event, struct arena *scratch);

// What the rank map says, by PID.
struct hang_judging;
struct hang_processes {
    struct hang_process **items;
    uint32_t count;
    bool several_jobs; // ranks of several are told of
};
struct hang_processes hang_processes_of(const struct hang_judging *judging);
// NULL: it cannot be told. A PID is its node's; who names no job is of one only where no other has
// such a process.
const struct hang_process *hang_find_process(const struct hang_processes *all, string_id job,
                                             string_id node, int64_t pid);
