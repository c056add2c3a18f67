// SPDX-License-Identifier: Apache-2.0
// Who holds up whom? From what is known of every rank's operations to findings.
//
// Of each process group (and member set) the oldest operation that somebody is stuck in is judged:
// what comes after it waits behind it. Sends and receives are followed from rank to rank.
#pragma once

#include "processors/nccl_hang/store.h"

enum hang_kind { // in the order of test
    HANG_MISMATCH_TYPE,
    HANG_MISMATCH_SIZE,
    HANG_MISMATCH_DTYPE,
    HANG_MISSING_RANK,
    HANG_MISSING_DUMP,
    HANG_NOT_STARTED,
    HANG_NOT_COMPLETED,
    HANG_ALL_STARTED,
    HANG_MISSING_PEER,
    HANG_KIND_COUNT
};

struct hang_rules {
    uint64_t stuck_after_ns;
    bool dump_means_hang;
    uint64_t now_ns;
};

enum hang_part { HANG_BYSTANDER, HANG_CULPRIT, HANG_SUSPECT, HANG_VICTIM };

// A rank in a finding.
struct hang_seat {
    int32_t rank;
    enum hang_part part;
    const struct hang_member *member; // NULL: nothing of this group came from it
    const struct hang_open *open;     // what it waits in; NULL: it does not
    bool is_absent;                   // never called what the others wait in
    bool is_silent;                   // `open` may have ended: its recorder does not tell
};

struct hang_finding {
    const struct hang_group *group;
    const struct hang_set *set; // NULL: members are the ranks seen
    bool p2p;
    enum hang_kind kind;
    int64_t sequence;
    struct hang_seat *seats; // ascending; the waiting ones, the absent ones and those named
    uint32_t seat_count;
    uint32_t waiting_count, culprit_count, suspect_count, absent_count;
    uint32_t expected_count, without_dump_count;
    bool past_timeout;
    bool straggler;                // exactly one rank is behind
    const struct hang_open *usual; // what most called; NULL: nothing that most called
    uint32_t usual_count;
    uint64_t start_ns; // when the oldest waiting operation was created
    uint64_t end_ns;   // when somebody was last seen waiting
    int32_t seen_rank; // whose dump of `end_ns` shows that; RANK_NONE: no event does
    bool outlasts;     // from start_ns to end_ns is at least the threshold
};

struct hang_findings {
    struct hang_finding *items; // by start, then group name, then number
    uint32_t count;
};

// All of it in `arena`.
struct hang_findings hang_judge(const struct hang_store *store, const struct hang_rules *rules,
                                struct arena *arena);
