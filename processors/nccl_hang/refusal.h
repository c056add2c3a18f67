// SPDX-License-Identifier: Apache-2.0
// Dumps that were there and could not be read: a row a rank.
//
// Such a dump says nothing about its rank. That rank is neither missing nor present: what it did is
// not known, unless a dump that was written later, or records that stream, say it.
#pragma once

#include "processors/nccl_hang/store.h"

enum { HANG_WHY_MAX = 384 };

struct hang_refusal {
    struct row_head head;
    struct hang_rank_key key;
    string_id node;         // where it was written; STRING_NONE: not said
    bool dated;             // `time_ns` is its own; false: its file's
    uint64_t time_ns;       // when it was written; 0: not known
    char why[HANG_WHY_MAX]; // "node3/nccl_trace_rank_6: nothing is in it", ends with a NUL
};

extern const struct row_type HANG_REFUSAL_ROWS;

// An EVENT_FLIGHT of a dump that could not be read; others are passed over.
void hang_refusal_take(struct hang_store *store, const struct event *event, struct arena *scratch);
// That nothing is known of the rank because its dump could not be read; NULL: it is not so. `node`:
// where the rank runs that is asked about; STRING_NONE: not known. A dump with a time of its own
// says nothing of what began after it: of before `since_ns` it does not matter.
const struct hang_refusal *hang_find_refusal(const struct hang_store *store, string_id job,
                                             int32_t rank, string_id node, uint64_t since_ns);
struct hang_judging;
struct hang_partition;
// The same of number `i` of a partition. Records that stream tell what a rank does.
const struct hang_refusal *hang_refusal_of(const struct hang_judging *judging,
                                           const struct hang_partition *partition, uint32_t i,
                                           uint64_t since_ns);
