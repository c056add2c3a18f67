// SPDX-License-Identifier: Apache-2.0
// What the parts of the hang detector's judgement share.
#pragma once

#include "processors/nccl_hang/judge.h"

// That a rank is held up in some operation.
struct hang_wait {
    string_id job;
    int32_t rank;
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
    const struct hang_rules *rules;
    struct arena *arena;
    struct hang_wait *waits; // by job, then rank
    uint32_t wait_count;
    struct hang_finding *found;
    uint32_t found_count, found_capacity;
};

// Operations of a group end in their order where states are told, so one below another that ended
// did too, or is a part of a coalesced one that has no state of its own. And one that the ring of a
// later dump has lost was followed by so many others that nothing hung there.
bool hang_is_live(const struct hang_store *store, const struct hang_member *member,
                  const struct hang_open *open);
bool hang_is_stuck(const struct hang_rules *rules, const struct hang_open *open);
uint64_t hang_age_ns(const struct hang_rules *rules, const struct hang_open *open);
bool hang_is_past_timeout(const struct hang_rules *rules, const struct hang_open *open);
// Whether the rank is held up outside of this group's collectives, or in its sends and receives.
bool hang_waits_elsewhere(const struct hang_judging *judging, const struct hang_group *group,
                          int32_t rank);
struct hang_finding *hang_add_finding(struct hang_judging *judging,
                                      const struct hang_partition *partition, enum hang_kind kind);
// Sums over the seats: counts, start, end, timeout.
void hang_sum_up(const struct hang_judging *judging, struct hang_finding *finding);
// The seat of a rank, -1 when it is not expected.
int64_t hang_index_of(const struct hang_partition *partition, int32_t rank);

void hang_judge_collectives(struct hang_judging *judging, const struct hang_partition *partition);
void hang_judge_p2p(struct hang_judging *judging, const struct hang_partition *partition);
