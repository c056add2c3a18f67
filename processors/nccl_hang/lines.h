// SPDX-License-Identifier: Apache-2.0
// What the watchdogs of process groups write into the logs of their ranks: the numbers of the
// operations that a rank waits in, called last and completed last, a row a rank and group.
//
// A log does not name the members of a group. Who is in it is told by the ranks in the group, which
// the lines hold, as long as they stand to the ranks in the job in a constant step; and everybody
// is in the group of the whole job. Newest words win, so the order of lines does not matter.
#pragma once

#include "processors/nccl_hang/store.h"

struct hang_line_key {
    string_id job, group;
    int32_t rank;
};

struct hang_line {
    struct row_head head;
    struct hang_line_key key;
    string_id desc;     // STRING_NONE: not said
    string_id node;     // where it ran; STRING_NONE: not said
    int32_t group_rank; // -1: not said
    int64_t waits_in;   // -1: no line says that it waits
    uint64_t waits_ns;  // when the newest such line was written
    int64_t enqueued;   // -1: nothing; APP_NUMBER_UNKNOWN: not known
    int64_t completed;
    uint64_t progress_ns; // when the newest line with these two was written
    uint64_t heard_ns;
    uint32_t time_of; // enum time_of of waits_ns: its own, or when its file was written or received
};

struct hang_timeout_key {
    string_id job;
    int32_t rank;
    int64_t sequence;
} __attribute__((packed));

// What the line about the timeout says of the operation; it often does not name the group.
struct hang_timeout {
    struct row_head head;
    struct hang_timeout_key key;
    string_id operation; // or STRING_NONE
    int64_t elements;    // of its input; -1: not said
    int64_t timeout_ms, ran_ms;
    uint64_t time_ns;
};

extern const struct row_type HANG_LINE_ROWS, HANG_TIMEOUT_ROWS;

// EVENT_APP_LINE and EVENT_OBSERVATION; others are passed over.
void hang_lines_take(struct hang_store *store, const struct event *event, struct arena *scratch);
