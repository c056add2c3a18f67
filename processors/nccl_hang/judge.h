// SPDX-License-Identifier: Apache-2.0
// Finds who holds up whom, from the operations of all ranks.
//
// Of each process group (and member set) the oldest operation that somebody is stuck in is judged:
// what comes after it waits behind it. Sends and receives are followed from rank to rank.
#pragma once

#include "processors/cluster/detector.h"
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

struct hang_config {
    struct duration stuck_after, lines_apart, forget_after;
    bool dump_means_hang;
    int64_t max_groups, max_ranks, max_entries, max_pending;
    // In percent:
    int64_t confidence_missing_rank, confidence_mismatch, confidence_not_started,
        confidence_missing_peer, confidence_not_completed, confidence_all_started,
        confidence_missing_dump;
    int64_t confidence_past_timeout; // added
    int64_t confidence_without_dump; // taken off for each quarter of members that left no dump
};

// HANG_UNREAD: its dump could not be read, so that nothing is known of it; it is not blamed.
enum hang_part { HANG_BYSTANDER, HANG_CULPRIT, HANG_SUSPECT, HANG_VICTIM, HANG_UNREAD };

// A rank in a finding.
struct hang_seat {
    int32_t rank;
    enum hang_part part;
    const struct hang_member *member;   // NULL: nothing of this group came from it
    const struct hang_open *open;       // what it waits in; NULL: it does not
    bool is_absent;                     // never called what the others wait in
    bool is_silent;                     // `open` may have ended: its recorder does not tell
    const struct hang_stack *stack;     // where it stood; NULL: not told
    const struct hang_refusal *refusal; // of HANG_UNREAD: its dump
};

enum { HANG_RELATED_MAX = 8 };

// Another finding of the same incident.
struct hang_relation {
    uint32_t finding; // its index
    bool is_cause;    // it explains this one
};

struct hang_finding {
    const struct hang_group *group;
    const struct hang_set *set; // NULL: members are the ranks seen
    bool p2p;
    bool from_lines;                       // the watchdogs' lines tell of it, or RAS, and no dump
    bool by_ras;                           // RAS does
    enum time_of time_of;                  // whose time it is; TIME_OF_EVENT: its own
    bool crowded;                          // another finding has the same job, group and number
    const struct hang_finding *first_told; // what RAS alone had told of it before; NULL: nothing
    enum hang_kind kind;
    int64_t sequence;
    struct hang_seat *seats; // ascending; the waiting ones, the absent ones and those named
    uint32_t seat_count;
    uint32_t waiting_count, culprit_count, suspect_count, absent_count;
    uint32_t expected_count, without_dump_count, unread_count;
    const int32_t *unknown; // ranks of whom more is known than nothing, but not what they did here
    uint32_t unknown_count;
    bool depends;       // on what those did whose dumps could not be read: it may be otherwise
    bool has_old_dumps; // some of those without a dump left one of before the wait
    bool past_timeout;
    bool straggler;                // exactly one rank is behind
    const struct hang_open *usual; // what most called; NULL: nothing that most called
    uint32_t usual_count;
    uint64_t start_ns; // when the oldest waiting operation was created
    uint64_t end_ns;   // when somebody was last seen waiting
    int32_t seen_rank; // whose dump of `end_ns` shows that; RANK_NONE: no event does
    bool outlasts;     // from start_ns to end_ns is at least the threshold
    struct hang_relation related[HANG_RELATED_MAX]; // along causes there is no circle
    uint32_t related_count;
};

struct hang_findings {
    struct hang_finding *items; // by start, then group name, then number
    uint32_t count;
};

// All of it in `arena`.
struct hang_findings hang_judge(const struct hang_store *store, const struct hang_config *config,
                                uint64_t now_ns, struct arena *arena);

// -- Parts (collective.c, p2p.c, relation.c)
// --------------------------------------------------------------

// That a rank is held up in some operation.
struct hang_wait {
    string_id job;
    int32_t rank;
    string_id node; // where it runs; STRING_NONE: not known
    const struct hang_group *group;
    const struct hang_open *open;
};

// The members of a group that belong together.
struct hang_partition {
    const struct hang_group *group;
    const struct hang_set *set;
    const int32_t *ranks; // expected, ascending
    uint32_t rank_count;
    const struct hang_member **members; // of each; NULL: none, or it says it is in another set
    const bool *elsewhere;              // whose member is in another set
};

struct hang_judging {
    const struct hang_store *store;
    uint64_t now_ns, stuck_after_ns, lines_apart_ns;
    bool dump_means_hang;
    struct arena *arena;
    struct hang_wait *waits; // by job, then rank
    uint32_t wait_count;
    struct hang_finding *found;
    uint32_t found_count, found_capacity;
};

// Writes the ranks of the rank map to `ranks` when the group is that of the whole job, at most as
// many as the store knows; returns how many.
uint32_t hang_ranks_of_job(const struct hang_store *store, const struct hang_group *group,
                           int32_t *ranks);
// Ascending and each once; returns how many are left.
uint32_t hang_sort_ranks(int32_t *ranks, uint32_t count, struct arena *arena);
// Whether what came from these nodes about one rank number can be of one rank: jobs without a name
// are told apart by where their ranks run.
bool hang_may_be_one(string_id job, string_id node, string_id other);
// Operations of a group end in their order where states are told, so one below another that ended
// did too, or is a part of a coalesced one that has no state of its own. What a later dump of its
// recorder does not show any more is over: it ended, or its process was started again. And one that
// the ring of a later dump has lost was followed by so many others that nothing hung there.
bool hang_is_live(const struct hang_store *store, const struct hang_member *member,
                  const struct hang_open *open);
bool hang_is_stuck(const struct hang_judging *judging, const struct hang_open *open);
uint64_t hang_age_ns(const struct hang_judging *judging, const struct hang_open *open);
bool hang_is_past_timeout(const struct hang_judging *judging, const struct hang_open *open);
// The index of the first of the rank's waits, or of what stands where they would.
uint32_t hang_first_wait(const struct hang_judging *judging, string_id job, int32_t rank);
// Whether a wait of the rank is outside of this group's collectives, or one of its sends and
// receives. `node`: where the rank runs that is asked about; STRING_NONE: not known.
bool hang_is_elsewhere(const struct hang_wait *wait, const struct hang_group *group,
                       string_id node);
// Whether the rank is held up in such a one. `member`: what the group knows of it, or NULL.
bool hang_waits_elsewhere(const struct hang_judging *judging, const struct hang_group *group,
                          int32_t rank, const struct hang_member *member);
struct hang_finding *hang_add_finding(struct hang_judging *judging,
                                      const struct hang_partition *partition, enum hang_kind kind);
// Sums over the seats: counts, start, end, timeout.
void hang_sum_up(const struct hang_judging *judging, struct hang_finding *finding);
// The seat of a rank, -1 when it is not expected.
int64_t hang_index_of(const struct hang_partition *partition, int32_t rank);

// relation.c: fills `related` of each; `findings` are in their final order.
void hang_relate(const struct hang_judging *judging, struct hang_finding *findings, uint32_t count);

void hang_judge_collectives(struct hang_judging *judging, const struct hang_partition *partition);
void hang_judge_p2p(struct hang_judging *judging, const struct hang_partition *partition);

// A group as the lines of watchdogs tell of it (lines.c).
struct hang_line;
struct hang_lines_group {
    struct hang_group group;       // made up, for findings
    const struct hang_line **rows; // of one time, ascending by rank
    struct hang_open **opens;      // of each; NULL: it does not wait
    uint32_t row_count;
    int32_t *ranks; // its members, ascending; NULL: the lines do not say
    uint32_t rank_count;
    bool by_ras;
    uint64_t confirmed_ns; // … which was sure of it then
    enum time_of time_of;  // of what its lines have the times
};

struct hang_lines {
    struct hang_lines_group *groups; // by job, then name
    uint32_t group_count;
    uint32_t open_count;
};

// Groups in which somebody waits; rows that a dump of the rank makes needless are left out.
struct hang_lines hang_lines_gather(const struct hang_judging *judging);
// Writes a wait for each operation under way, at most `open_count`; returns how many.
uint32_t hang_lines_waits(const struct hang_lines *lines, struct hang_wait *waits);
void hang_lines_judge(struct hang_judging *judging, const struct hang_lines_group *group);
// The same of what RAS tells (ras.c); those that lines and dumps tell of are judged before.
struct hang_lines hang_ras_gather(const struct hang_judging *judging);

// stack.c. Gives the seats of a finding their stacks: those of its time, of the ranks that are
// named first. It was last seen when the last of these was taken. O(stacks · log), once an
// evaluation.
void hang_see_stacks(const struct hang_judging *judging, struct hang_finding *findings,
                     uint32_t count);
