// SPDX-License-Identifier: Apache-2.0
// Finds which hang waits for which.
//
// A rank that others wait for may itself be held up in another group: the finding about that one is
// the cause of theirs, or, where they have a culprit of their own, of the same incident. Findings
// that name the same rank belong together as well: the gravest explains the others. What waits in a
// circle is cut open, so that along the causes each finding leads to one that has none. Cost: all
// seats, sorted; a circle is found by following one cause after the other, no more steps than there
// are findings.
#include "base/sort.h"
#include "processors/cluster/compare.h"
#include "processors/nccl_hang/judge.h"

// A rank in a finding, for lookup by job and rank.
struct place {
    string_id job;
    int32_t rank;
    uint32_t finding;
    const struct hang_seat *seat;
};

struct relating {
    const struct hang_judging *judging;
    struct hang_finding *findings;
    uint32_t count;
    struct place *places;
    uint32_t place_count;
};

static int compare_places(const void *a, const void *b) {
    const struct place *first = a, *second = b;
    return COMPARE_KEYS(COMPARE(first->job, second->job),
                        COMPARE((uint64_t)first->rank, (uint64_t)second->rank),
                        COMPARE(first->finding, second->finding));
}

static void gather_places(struct relating *relating) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < relating->count; i++)
        count += relating->findings[i].seat_count;
    relating->places = arena_take(relating->judging->arena, (count + 1) * sizeof *relating->places);
    for (uint32_t i = 0; i < relating->count; i++) {
        const struct hang_finding *finding = &relating->findings[i];
        for (uint32_t j = 0; j < finding->seat_count; j++)
            relating->places[relating->place_count++] =
                (struct place){finding->group->job, finding->seats[j].rank, i, &finding->seats[j]};
    }
    sort_stable(relating->places, count, sizeof *relating->places, relating->judging->arena,
                compare_places);
}

static const struct place *first_place(const struct relating *relating, string_id job,
                                       int32_t rank) {
    const struct place key = {.job = job, .rank = rank};
    uint32_t low = 0, high = relating->place_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_places(&relating->places[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return &relating->places[low];
}

static bool is_same_rank(const struct relating *relating, const struct place *place, string_id job,
                         int32_t rank) {
    return place < relating->places + relating->place_count && place->job == job &&
           place->rank == rank;
}

// -- relations -----------------------------------------------------------------------------------

static void add_relation(struct hang_finding *finding, uint32_t other, bool is_cause) {
    for (uint32_t i = 0; i < finding->related_count; i++)
        if (finding->related[i].finding == other) {
            finding->related[i].is_cause |= is_cause;
            return;
        }
    if (finding->related_count < HANG_RELATED_MAX)
        finding->related[finding->related_count++] = (struct hang_relation){other, is_cause};
}

static string_id node_of(const struct hang_seat *seat) {
    return seat->member == NULL ? STRING_NONE : seat->member->node;
}

// The finding that this rank waits in: about this very operation, else about an earlier one of the
// same group, which it waits behind. UINT32_MAX: none.
static uint32_t finding_of(const struct relating *relating, const struct hang_wait *wait) {
    uint32_t found = UINT32_MAX;
    bool p2p = wait->open->direction != HANG_COLLECTIVE;
    const struct place *place = first_place(relating, wait->job, wait->rank);
    for (; is_same_rank(relating, place, wait->job, wait->rank); place++) {
        const struct hang_finding *finding = &relating->findings[place->finding];
        if (place->seat->open == wait->open)
            return place->finding;
        if (found == UINT32_MAX && finding->group == wait->group && finding->p2p == p2p &&
            place->seat->open != NULL &&
            hang_may_be_one(wait->job, node_of(place->seat), wait->node))
            found = place->finding;
    }
    return found;
}

static bool is_older(const struct hang_wait *a, const struct hang_wait *b) {
    if (a->open->created_ns != b->open->created_ns)
        return a->open->created_ns < b->open->created_ns;
    int order = compare_strings(a->group->name, b->group->name);
    order = order != 0 ? order : compare_strings(a->group->desc, b->group->desc);
    return order != 0 ? order < 0 : a->open->sequence < b->open->sequence;
}

// The finding that a held up rank waits for longest; UINT32_MAX: none.
static uint32_t held_by(const struct relating *relating, uint32_t index,
                        const struct hang_seat *seat) {
    const struct hang_judging *judging = relating->judging;
    const struct hang_finding *finding = &relating->findings[index];
    const struct hang_wait *oldest = NULL;
    uint32_t found = UINT32_MAX;
    for (uint32_t i = hang_first_wait(judging, finding->group->job, seat->rank);
         i < judging->wait_count; i++) {
        const struct hang_wait *wait = &judging->waits[i];
        if (wait->job != finding->group->job || wait->rank != seat->rank)
            break;
        if (!hang_is_elsewhere(wait, finding->group, node_of(seat)) ||
            (oldest != NULL && !is_older(wait, oldest)))
            continue;
        uint32_t other = finding_of(relating, wait);
        if (other == UINT32_MAX || other == index)
            continue;
        oldest = wait;
        found = other;
    }
    return found;
}

static void relate_victims(struct relating *relating, uint32_t index) {
    struct hang_finding *finding = &relating->findings[index];
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        if (finding->seats[i].part != HANG_VICTIM)
            continue;
        uint32_t other = held_by(relating, index, &finding->seats[i]);
        if (other != UINT32_MAX)
            add_relation(finding, other, finding->culprit_count == 0);
    }
}

// -- findings that name the same rank ------------------------------------------------------------

static bool is_blamed(const struct hang_seat *seat) {
    return seat->part == HANG_CULPRIT || seat->part == HANG_SUSPECT;
}

static int gravity(const struct hang_finding *finding) {
    if (finding->kind <= HANG_MISMATCH_DTYPE)
        return 0;
    return finding->culprit_count > 0 ? 1 : finding->suspect_count > 0 ? 2 : 3;
}

// Whether the other finding names all whom this one calls culprits.
static bool names_all_culprits(const struct hang_finding *other,
                               const struct hang_finding *finding) {
    uint32_t at = 0; // seats are ascending in both
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        if (finding->seats[i].part != HANG_CULPRIT)
            continue;
        while (at < other->seat_count && other->seats[at].rank < finding->seats[i].rank)
            at++;
        if (at == other->seat_count || other->seats[at].rank != finding->seats[i].rank ||
            !is_blamed(&other->seats[at]))
            return false;
    }
    return true;
}

// `from` up to `until` are places of one rank of one job.
static void join_blamed(struct relating *relating, uint32_t from, uint32_t until) {
    const struct place *gravest = NULL;
    for (uint32_t i = from; i < until; i++) {
        const struct place *place = &relating->places[i];
        if (is_blamed(place->seat) &&
            (gravest == NULL || gravity(&relating->findings[place->finding]) <
                                    gravity(&relating->findings[gravest->finding])))
            gravest = place;
    }
    for (uint32_t i = from; i < until && gravest != NULL; i++) {
        const struct place *place = &relating->places[i];
        if (place == gravest || !is_blamed(place->seat) || place->finding == gravest->finding ||
            !hang_may_be_one(place->job, node_of(place->seat), node_of(gravest->seat)))
            continue;
        struct hang_finding *finding = &relating->findings[place->finding];
        add_relation(finding, gravest->finding,
                     names_all_culprits(&relating->findings[gravest->finding], finding));
    }
}

static void join_all_blamed(struct relating *relating) {
    for (uint32_t from = 0, until; from < relating->place_count; from = until) {
        const struct place *first = &relating->places[from];
        for (until = from + 1; until < relating->place_count; until++)
            if (!is_same_rank(relating, &relating->places[until], first->job, first->rank))
                break;
        join_blamed(relating, from, until);
    }
}

// -- findings whose suspects are all of one node --------------------------------------------------

struct silent_node {
    string_id job, node;
    uint32_t finding;
};

static int compare_silent(const void *a, const void *b) {
    const struct silent_node *first = a, *second = b;
    return COMPARE_KEYS(COMPARE(first->job, second->job), COMPARE(first->node, second->node),
                        COMPARE(first->finding, second->finding));
}

// The node that all are of whom nothing is known; STRING_NONE: there is none, or somebody is to
// blame.
static string_id silent_node_of(const struct hang_store *store,
                                const struct hang_finding *finding) {
    string_id node = STRING_NONE;
    for (uint32_t i = 0; finding->culprit_count == 0 && i < finding->seat_count; i++) {
        if (finding->seats[i].part != HANG_SUSPECT)
            continue;
        const struct hang_rank *rank =
            hang_find_rank(store, finding->group->job, finding->seats[i].rank);
        if (rank == NULL || rank->node == STRING_NONE ||
            (node != STRING_NONE && rank->node != node))
            return STRING_NONE;
        node = rank->node;
    }
    return node;
}

// Ranks of one node that are all silent are so for one reason.
static void join_silent_nodes(struct relating *relating) {
    struct silent_node *nodes =
        arena_take(relating->judging->arena, (relating->count + 1) * sizeof *nodes);
    uint32_t count = 0;
    for (uint32_t i = 0; i < relating->count; i++) {
        string_id node = silent_node_of(relating->judging->store, &relating->findings[i]);
        if (node != STRING_NONE)
            nodes[count++] = (struct silent_node){relating->findings[i].group->job, node, i};
    }
    sort_stable(nodes, count, sizeof *nodes, relating->judging->arena, compare_silent);
    uint32_t first = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (nodes[i].job != nodes[first].job || nodes[i].node != nodes[first].node)
            first = i;
        else
            add_relation(&relating->findings[nodes[i].finding], nodes[first].finding, true);
    }
}

// -- groups of which one rank is known -----------------------------------------------------------

static bool is_lonely(const struct hang_finding *finding) {
    return finding->from_lines && finding->expected_count == 1;
}

// Lines do not say whom the only rank of a group waits for. When ranks of its job are missing
// elsewhere it is one of these.
static void relate_lonely(struct relating *relating, uint32_t index) {
    struct hang_finding *finding = &relating->findings[index];
    uint32_t gravest = UINT32_MAX;
    for (uint32_t i = 0; i < relating->count; i++) {
        const struct hang_finding *other = &relating->findings[i];
        if (other->from_lines && !is_lonely(other) && other->group->job == finding->group->job &&
            other->culprit_count + other->suspect_count > 0 &&
            (gravest == UINT32_MAX || gravity(other) < gravity(&relating->findings[gravest])))
            gravest = i;
    }
    if (gravest != UINT32_MAX)
        add_relation(finding, gravest, true);
}

// -- circles -------------------------------------------------------------------------------------

// A cause of this finding that is not settled yet; UINT32_MAX: there is none.
static uint32_t open_cause(const struct hang_finding *finding, const bool *settled) {
    for (uint32_t i = 0; i < finding->related_count; i++)
        if (finding->related[i].is_cause && !settled[finding->related[i].finding])
            return finding->related[i].finding;
    return UINT32_MAX;
}

// Settles all whose causes are; returns one that is left, UINT32_MAX when none is.
static uint32_t settle(const struct relating *relating, bool *settled) {
    uint32_t left;
    bool changed;
    do {
        left = UINT32_MAX;
        changed = false;
        for (uint32_t i = relating->count; i-- > 0;) {
            if (settled[i])
                continue;
            if (open_cause(&relating->findings[i], settled) == UINT32_MAX)
                changed = settled[i] = true;
            else
                left = i;
        }
    } while (changed && left != UINT32_MAX);
    return left;
}

// Of the circle that the causes from `at` lead into, the gravest finding, of several the first.
static uint32_t gravest_of_circle(const struct relating *relating, uint32_t at,
                                  const bool *settled) {
    for (uint32_t i = 0; i < relating->count; i++) // as many steps: then it is in the circle
        at = open_cause(&relating->findings[at], settled);
    uint32_t gravest = at;
    for (uint32_t next = open_cause(&relating->findings[at], settled); next != at;
         next = open_cause(&relating->findings[next], settled)) {
        int order = gravity(&relating->findings[next]) - gravity(&relating->findings[gravest]);
        if (order < 0 || (order == 0 && next < gravest))
            gravest = next;
    }
    return gravest;
}

static void cut_circles(struct relating *relating) {
    bool *settled = arena_zero(relating->judging->arena, relating->count + 1, sizeof *settled);
    uint32_t left;
    while ((left = settle(relating, settled)) != UINT32_MAX) {
        struct hang_finding *first =
            &relating->findings[gravest_of_circle(relating, left, settled)];
        for (uint32_t i = 0; i < first->related_count; i++)
            first->related[i].is_cause &= settled[first->related[i].finding];
    }
}

void hang_relate(const struct hang_judging *judging, struct hang_finding *findings,
                 uint32_t count) {
    struct relating relating = {.judging = judging, .findings = findings, .count = count};
    if (count < 2)
        return;
    gather_places(&relating);
    for (uint32_t i = 0; i < count; i++)
        relate_victims(&relating, i);
    join_all_blamed(&relating);
    join_silent_nodes(&relating);
    for (uint32_t i = 0; i < count; i++)
        if (is_lonely(&findings[i]) && findings[i].related_count == 0)
            relate_lonely(&relating, i);
    cut_circles(&relating);
}
