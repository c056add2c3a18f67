// SPDX-License-Identifier: Apache-2.0
// Where the main threads of ranks stood (py-spy): a frame of a process at a time.
//
// A stack by itself says nothing of a hang, since a rank that works stands somewhere too. It is
// told with a hang that was found, of the ranks in it.
#pragma once

#include "processors/nccl_hang/store.h"

enum { HANG_FRAME_MAX = 256 };

struct hang_stack_key {
    string_id job, node;
    int32_t rank; // RANK_NONE: not said
    uint32_t pid;
    uint64_t time_ns;
} __attribute__((packed));

struct hang_stack {
    struct row_head head;
    struct hang_stack_key key;
    uint64_t time_ns;           // once more, as rows have it
    char frame[HANG_FRAME_MAX]; // "load (data.py:88)", ends with a NUL
};

extern const struct row_type HANG_STACK_ROWS;

// EVENT_OBSERVATION; others are passed over.
void hang_stack_take(struct hang_store *store, const struct event *event, struct arena *scratch);
