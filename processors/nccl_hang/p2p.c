// SPDX-License-Identifier: Apache-2.0
// Finds who is to blame for a send or recv that does not end.
//
// A send waits for the recv of its peer and the other way round; their numbers differ between
// ranks, so they are matched by who and which way. A rank whose operation has no counterpart waits
// for its peer; the peer may wait for another one in turn. Each chain is followed to its end: a
// rank that waits for nobody is to blame; in a circle nobody is. At most one step a rank.
#include "processors/nccl_hang/judge.h"
#include "processors/nccl_hang/refusal.h"

enum { NOBODY = -1 };

struct chain_link {
    const struct hang_open *open; // the oldest send or recv that it is stuck in
    int64_t peer;                 // index of whom it waits for; NOBODY: does not wait
    bool matched;                 // the peer is in the counterpart
    int64_t end;                  // index of the chain's end; in a circle its lowest index
    bool circle;
};

// Numbers in names are places in the group, which are also ranks where the group is everybody.
static int64_t peer_index(const struct hang_partition *partition, uint32_t i,
                          const struct hang_open *open) {
    assert(i < partition->rank_count);
    if (partition->set != NULL && open->own == (int64_t)i)
        return open->peer < (int64_t)partition->rank_count ? open->peer : NOBODY;
    return open->own == partition->ranks[i] ? hang_index_of(partition, open->peer) : NOBODY;
}

static bool has_counterpart(const struct hang_judging *judging,
                            const struct hang_partition *partition, uint32_t i, uint32_t peer,
                            const struct hang_open *open) {
    const struct hang_member *member = partition->members[peer];
    uint32_t row = member == NULL ? TABLE_NO_ROW : member->first_open;
    while (row != TABLE_NO_ROW) {
        const struct hang_open *other = hang_open_at(judging->store, row);
        row = other->next;
        if (other->direction + open->direction == HANG_SEND + HANG_RECV && !other->silent &&
            other->direction != open->direction && peer_index(partition, peer, other) == (int64_t)i)
            return true;
    }
    return false;
}

static bool is_older(const struct hang_open *a, const struct hang_open *b) {
    if (a->created_ns != b->created_ns)
        return a->created_ns < b->created_ns;
    if (a->sequence != b->sequence)
        return a->sequence < b->sequence;
    return a->direction != b->direction ? a->direction < b->direction : a->peer < b->peer;
}

static struct chain_link find_link(const struct hang_judging *judging,
                                   const struct hang_partition *partition, uint32_t i) {
    struct chain_link link = {.peer = NOBODY, .end = NOBODY};
    const struct hang_member *member = partition->members[i];
    uint32_t row = member == NULL ? TABLE_NO_ROW : member->first_open;
    while (row != TABLE_NO_ROW) {
        const struct hang_open *open = hang_open_at(judging->store, row);
        row = open->next;
        bool one_way = open->direction == HANG_SEND || open->direction == HANG_RECV;
        if (!one_way || open->silent || !hang_is_stuck(judging, open) ||
            !hang_is_live(judging->store, member, open))
            continue;
        int64_t peer = peer_index(partition, i, open);
        if (peer == NOBODY || peer == (int64_t)i)
            continue;
        bool matched = has_counterpart(judging, partition, i, (uint32_t)peer, open);
        // What lacks its counterpart comes before what has one.
        if (link.open != NULL && (link.matched == matched ? !is_older(open, link.open) : matched))
            continue;
        link = (struct chain_link){open, peer, matched, NOBODY, false};
    }
    return link;
}

static bool waits(const struct chain_link *link) {
    return link->open != NULL && !link->matched;
}

// Sets where the chain from `from` ends, for all on it: later walks stop where an earlier one was.
static void follow(struct chain_link *links, uint32_t count, uint32_t from) {
    assert(from < count && waits(&links[from]));
    int64_t at = from;
    for (uint32_t step = 0; step <= count && waits(&links[at]) && links[at].end == NOBODY; step++)
        at = links[at].peer;
    int64_t end = at;
    bool circle = false;
    if (waits(&links[at]) && links[at].end != NOBODY) {
        end = links[at].end;
        circle = links[at].circle;
    } else if (waits(&links[at])) {
        // Still waiting after as many steps as there are ranks: `at` is in a circle.
        circle = true;
        for (int64_t next = links[at].peer; next != at; next = links[next].peer)
            end = next < end ? next : end;
    }
    for (at = from; waits(&links[at]) && links[at].end == NOBODY; at = links[at].peer) {
        links[at].end = end;
        links[at].circle = circle;
    }
}

static bool is_on_chain(const struct chain_link *link, uint32_t end, bool circle) {
    return waits(link) && link->end == (int64_t)end && link->circle == circle;
}

static void keep_chain(struct hang_judging *judging, const struct hang_partition *partition,
                       const struct chain_link *links, uint32_t end, bool circle) {
    struct hang_seat *seats = arena_zero(judging->arena, partition->rank_count + 1, sizeof *seats);
    const struct hang_open *oldest = NULL;
    uint32_t kept = 0, without = 0;
    uint64_t since_ns = UINT64_MAX;
    for (uint32_t i = 0; i < partition->rank_count; i++)
        if (is_on_chain(&links[i], end, circle) && links[i].open->created_ns < since_ns)
            since_ns = links[i].open->created_ns;
    const struct hang_refusal *refusal = hang_refusal_of(judging, partition, end, since_ns);
    for (uint32_t i = 0; i < partition->rank_count; i++) {
        struct hang_seat seat = {.rank = partition->ranks[i], .member = partition->members[i]};
        if (is_on_chain(&links[i], end, circle)) {
            seat.open = links[i].open;
            if (oldest == NULL || is_older(seat.open, oldest))
                oldest = seat.open;
        } else if (i != end) {
            continue;
        } else if (refusal != NULL) {
            seat.part = HANG_UNREAD;
            seat.refusal = refusal;
        } else if (hang_find_source(judging->store, partition->group, seat.rank) == NULL) {
            seat.part = HANG_SUSPECT;
            without++;
        } else {
            bool held = hang_waits_elsewhere(judging, partition->group, seat.rank, seat.member);
            seat.part = held ? HANG_VICTIM : HANG_CULPRIT;
            seat.is_absent = true;
        }
        seats[kept++] = seat;
    }
    assert(oldest != NULL && kept > 0);
    struct hang_finding *finding = hang_add_finding(judging, partition, HANG_MISSING_PEER);
    finding->p2p = true;
    finding->sequence = oldest->sequence;
    finding->seats = seats;
    finding->seat_count = finding->expected_count = kept;
    finding->without_dump_count = without;
    hang_sum_up(judging, finding);
    finding->straggler = finding->culprit_count == 1;
    finding->usual = oldest;
}

// Both are in it and it does not end.
static void keep_pair(struct hang_judging *judging, const struct hang_partition *partition,
                      const struct chain_link *links, uint32_t low, uint32_t high) {
    assert(low < high && high < partition->rank_count);
    struct hang_seat *seats = arena_zero(judging->arena, 2, sizeof *seats);
    uint32_t at[2] = {low, high};
    for (int i = 0; i < 2; i++)
        seats[i] = (struct hang_seat){.rank = partition->ranks[at[i]],
                                      .member = partition->members[at[i]],
                                      .open = links[at[i]].open};
    struct hang_finding *finding = hang_add_finding(judging, partition, HANG_ALL_STARTED);
    finding->p2p = true;
    finding->sequence = links[low].open->sequence;
    finding->seats = seats;
    finding->seat_count = finding->expected_count = 2;
    hang_sum_up(judging, finding);
}

void hang_judge_p2p(struct hang_judging *judging, const struct hang_partition *partition) {
    uint32_t count = partition->rank_count;
    struct chain_link *links = arena_take(judging->arena, (count + 1) * sizeof *links);
    bool *told = arena_zero(judging->arena, 2 * (size_t)count + 1, sizeof *told);
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        links[i] = find_link(judging, partition, i);
        any |= links[i].open != NULL;
    }
    if (!any)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (waits(&links[i]))
            follow(links, count, i);
    for (uint32_t i = 0; i < count; i++) {
        const struct chain_link *link = &links[i];
        if (waits(link)) {
            bool *done = &told[2 * link->end + link->circle];
            if (!*done)
                keep_chain(judging, partition, links, (uint32_t)link->end, link->circle);
            *done = true;
        } else if (link->open != NULL && link->peer > (int64_t)i) {
            const struct chain_link *peer = &links[link->peer];
            if (peer->open != NULL && peer->matched && peer->peer == (int64_t)i)
                keep_pair(judging, partition, links, i, (uint32_t)link->peer);
        }
    }
}
