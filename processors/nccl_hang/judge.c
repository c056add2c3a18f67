// SPDX-License-Identifier: Apache-2.0
// Which groups are there, who belongs to them, and who is held up where?
//
// Members of one name are parted by the member set that their dumps name: groups that were split
// off share names. What is not told is the ranks that were seen. Cost: members of groups in which
// somebody waits, sorted; nothing for the others.
#include "base/sort.h"
#include "processors/nccl_hang_judge_parts.h"

// -- times ---------------------------------------------------------------------------------------

uint64_t hang_age_ns(const struct hang_rules *rules, const struct hang_open *open) {
    uint64_t since = open->started_ns != 0 ? open->started_ns : open->created_ns;
    return rules->now_ns > since ? rules->now_ns - since : 0;
}

bool hang_is_stuck(const struct hang_rules *rules, const struct hang_open *open) {
    if (open->from_file && rules->dump_means_hang)
        return true;
    return !open->silent && hang_age_ns(rules, open) >= rules->stuck_after_ns;
}

bool hang_is_live(const struct hang_store *store, const struct hang_member *member,
                  const struct hang_open *open) {
    if (open->direction == HANG_COLLECTIVE && open->tells_states &&
        open->sequence <= member->collective.done)
        return false;
    const struct hang_source *source =
        hang_find_source(store, hang_group_at(store, member->group), member->rank);
    return source == NULL || !source->whole || source->first_record <= 0 ||
           source->oldest_ns <= open->created_ns;
}

bool hang_is_past_timeout(const struct hang_rules *rules, const struct hang_open *open) {
    if (open->retired && open->tells_states && !open->silent)
        return true;
    uint64_t age_ms = hang_age_ns(rules, open) / 1000000;
    return open->timeout_ms > 0 && age_ms >= (uint64_t)open->timeout_ms;
}

// -- who waits -----------------------------------------------------------------------------------

static int compare_waits(const void *a, const void *b) {
    const struct hang_wait *first = a, *second = b;
    if (first->job != second->job)
        return first->job < second->job ? -1 : 1;
    return (first->rank > second->rank) - (first->rank < second->rank);
}

// Held up for a quarter of the threshold is enough to be excused: who came into another operation
// a little later is not to blame for what the others wait for.
static bool is_held_up(const struct hang_rules *rules, const struct hang_open *open) {
    if (open->silent)
        return false;
    return hang_is_stuck(rules, open) || hang_age_ns(rules, open) >= rules->stuck_after_ns / 4;
}

static void gather_waits(struct hang_judging *judging) {
    const struct hang_store *store = judging->store;
    struct hang_wait *waits =
        arena_take(judging->arena, (table_live(&store->opens) + 1) * sizeof *waits);
    uint32_t at = 0, count = 0;
    for (const struct hang_member *member;
         (member = keyed_rows_next(&store->members, &at)) != NULL;) {
        for (uint32_t row = member->first_open; row != TABLE_NO_ROW;) {
            const struct hang_open *open = hang_open_at(store, row);
            row = open->next;
            if (!is_held_up(judging->rules, open) || !hang_is_live(store, member, open))
                continue;
            const struct hang_group *group = hang_group_at(store, member->group);
            waits[count++] = (struct hang_wait){group->job, member->rank, group, open};
        }
    }
    sort_stable(waits, count, sizeof *waits, judging->arena, compare_waits);
    judging->waits = waits;
    judging->wait_count = count;
}

bool hang_waits_elsewhere(const struct hang_judging *judging, const struct hang_group *group,
                          int32_t rank) {
    const struct hang_wait key = {.job = group->job, .rank = rank};
    uint32_t low = 0, high = judging->wait_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_waits(&judging->waits[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < judging->wait_count && compare_waits(&judging->waits[low], &key) == 0; low++)
        if (judging->waits[low].group != group ||
            judging->waits[low].open->direction != HANG_COLLECTIVE)
            return true;
    return false;
}

// -- findings ------------------------------------------------------------------------------------

struct hang_finding *hang_add_finding(struct hang_judging *judging,
                                      const struct hang_partition *partition, enum hang_kind kind) {
    if (judging->found_count == judging->found_capacity) {
        uint32_t capacity = judging->found_capacity == 0 ? 16 : judging->found_capacity * 2;
        struct hang_finding *found = arena_take(judging->arena, capacity * sizeof *found);
        if (judging->found_count > 0)
            memcpy(found, judging->found, judging->found_count * sizeof *found);
        judging->found = found;
        judging->found_capacity = capacity;
    }
    struct hang_finding *finding = &judging->found[judging->found_count++];
    *finding = (struct hang_finding){
        .group = partition->group, .set = partition->set, .kind = kind, .sequence = -1};
    return finding;
}

// A dump shows what its rank waited in when it was made. Of an operation that single records tell
// of it is known only that no end came by now.
static void see_waiting(const struct hang_judging *judging, const struct hang_seat *seat,
                        struct hang_finding *finding) {
    const struct hang_source *source = hang_find_source(judging->store, finding->group, seat->rank);
    bool dumped = source != NULL && source->whole && source->dump_ns >= seat->open->created_ns;
    uint64_t seen_ns = dumped ? source->dump_ns : judging->rules->now_ns;
    if (seat->is_silent || seen_ns <= finding->end_ns)
        return;
    finding->end_ns = seen_ns;
    finding->seen_rank = dumped ? seat->rank : RANK_NONE;
}

void hang_sum_up(const struct hang_judging *judging, struct hang_finding *finding) {
    finding->start_ns = UINT64_MAX;
    finding->seen_rank = RANK_NONE;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        finding->culprit_count += seat->part == HANG_CULPRIT;
        finding->suspect_count += seat->part == HANG_SUSPECT;
        finding->absent_count += seat->is_absent;
        if (seat->open == NULL)
            continue;
        finding->waiting_count++;
        finding->past_timeout |= hang_is_past_timeout(judging->rules, seat->open);
        if (seat->open->created_ns < finding->start_ns)
            finding->start_ns = seat->open->created_ns;
        if (seat->open->created_ns > finding->end_ns) {
            finding->end_ns = seat->open->created_ns;
            finding->seen_rank = RANK_NONE;
        }
        see_waiting(judging, seat, finding);
    }
    if (finding->start_ns == UINT64_MAX)
        finding->start_ns = 0;
    finding->outlasts = finding->end_ns >= finding->start_ns + judging->rules->stuck_after_ns;
}

int64_t hang_index_of(const struct hang_partition *partition, int32_t rank) {
    uint32_t low = 0, high = partition->rank_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (partition->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < partition->rank_count && partition->ranks[low] == rank ? (int64_t)low : -1;
}

// -- partitions ----------------------------------------------------------------------------------

static int compare_members(const void *a, const void *b) {
    const struct hang_member *first = *(struct hang_member *const *)a;
    const struct hang_member *second = *(struct hang_member *const *)b;
    return (first->rank > second->rank) - (first->rank < second->rank);
}

struct gathered {
    const struct hang_member **members; // ascending
    uint32_t count;
    uint32_t sets[64]; // rows; more in one name are judged by the ranks seen
    uint32_t set_count;
    bool any_open;
    bool all_silent;
};

static void note_set(struct gathered *gathered, uint32_t set) {
    for (uint32_t i = 0; i < gathered->set_count; i++)
        if (gathered->sets[i] == set)
            return;
    if (gathered->set_count < sizeof gathered->sets / sizeof gathered->sets[0])
        gathered->sets[gathered->set_count++] = set;
}

static struct gathered gather(const struct hang_judging *judging, const struct hang_group *group) {
    const struct hang_store *store = judging->store;
    struct gathered gathered = {
        .members = arena_take(judging->arena, (group->member_count + 1) * sizeof(void *)),
        .all_silent = true};
    for (uint32_t row = group->first_member; row != TABLE_NO_ROW;) {
        const struct hang_member *member = hang_member_at(store, row);
        gathered.members[gathered.count++] = member;
        gathered.any_open |= member->open_count > 0;
        gathered.all_silent &= !member->known;
        row = member->next;
    }
    if (!gathered.any_open)
        return gathered;
    sort_stable(gathered.members, gathered.count, sizeof(void *), judging->arena, compare_members);
    for (uint32_t i = 0; i < gathered.count; i++)
        if (gathered.members[i]->set != TABLE_NO_ROW)
            note_set(&gathered, gathered.members[i]->set);
    return gathered;
}

// The one set that holds a member which names none; TABLE_NO_ROW when it is not exactly one.
static uint32_t set_of(const struct hang_judging *judging, const struct gathered *gathered,
                       const struct hang_member *member) {
    if (member->set != TABLE_NO_ROW)
        return member->set;
    uint32_t found = TABLE_NO_ROW;
    for (uint32_t i = 0; i < gathered->set_count; i++) {
        if (!hang_set_holds(judging->store, hang_set_at(judging->store, gathered->sets[i]),
                            member->rank))
            continue;
        if (found != TABLE_NO_ROW)
            return TABLE_NO_ROW;
        found = gathered->sets[i];
    }
    return found;
}

static void judge_partition(struct hang_judging *judging, const struct hang_partition *partition) {
    if (partition->rank_count == 0)
        return;
    hang_judge_collectives(judging, partition);
    hang_judge_p2p(judging, partition);
}

// Members with this set (TABLE_NO_ROW: with none).
static void judge_set(struct hang_judging *judging, const struct hang_group *group,
                      const struct gathered *gathered, const uint32_t *sets, uint32_t set) {
    struct arena *arena = judging->arena;
    struct hang_partition partition = {.group = group};
    if (set != TABLE_NO_ROW) {
        partition.set = hang_set_at(judging->store, set);
        partition.ranks = hang_set_ranks(judging->store, partition.set, arena);
        partition.rank_count = partition.set->count;
    } else {
        int32_t *ranks = arena_take(arena, (gathered->count + 1) * sizeof *ranks);
        for (uint32_t i = 0; i < gathered->count; i++)
            if (sets[i] == TABLE_NO_ROW)
                ranks[partition.rank_count++] = gathered->members[i]->rank;
        partition.ranks = ranks;
    }
    partition.members = arena_zero(arena, partition.rank_count + 1, sizeof(void *));
    bool *elsewhere = arena_zero(arena, partition.rank_count + 1, sizeof(bool));
    for (uint32_t i = 0; i < gathered->count; i++) {
        int64_t index = hang_index_of(&partition, gathered->members[i]->rank);
        if (index < 0)
            continue;
        if (sets[i] == set)
            partition.members[index] = gathered->members[i];
        else
            elsewhere[index] = true;
    }
    partition.elsewhere = elsewhere;
    judge_partition(judging, &partition);
}

static void judge_group(struct hang_judging *judging, const struct hang_group *group) {
    struct gathered gathered = gather(judging, group);
    if (!gathered.any_open)
        return;
    uint32_t *sets = arena_take(judging->arena, (gathered.count + 1) * sizeof *sets);
    bool some_without = false;
    for (uint32_t i = 0; i < gathered.count; i++) {
        sets[i] = set_of(judging, &gathered, gathered.members[i]);
        some_without |= sets[i] == TABLE_NO_ROW;
    }
    for (uint32_t i = 0; i < gathered.set_count; i++)
        judge_set(judging, group, &gathered, sets, gathered.sets[i]);
    if (some_without)
        judge_set(judging, group, &gathered, sets, TABLE_NO_ROW);
}

// -- order ---------------------------------------------------------------------------------------

static int compare_ids(string_id a, string_id b) {
    return slice_compare(intern_slice(a), intern_slice(b));
}

static int compare_findings(const void *a, const void *b) {
    const struct hang_finding *first = a, *second = b;
    if (first->start_ns != second->start_ns)
        return first->start_ns < second->start_ns ? -1 : 1;
    int order = compare_ids(first->group->name, second->group->name);
    if (order != 0)
        return order;
    if (first->sequence != second->sequence)
        return first->sequence < second->sequence ? -1 : 1;
    if (first->p2p != second->p2p)
        return first->p2p ? 1 : -1;
    int32_t first_rank = first->seats[0].rank, second_rank = second->seats[0].rank;
    if (first_rank != second_rank)
        return first_rank < second_rank ? -1 : 1;
    order = compare_ids(first->group->desc, second->group->desc);
    if (order == 0)
        order = compare_ids(first->group->backend, second->group->backend);
    return order != 0 ? order : compare_ids(first->group->job, second->group->job);
}

struct hang_findings hang_judge(const struct hang_store *store, const struct hang_rules *rules,
                                struct arena *arena) {
    struct hang_judging judging = {.store = store, .rules = rules, .arena = arena};
    if (table_live(&store->opens) == 0)
        return (struct hang_findings){0};
    gather_waits(&judging);
    uint32_t at = 0;
    for (const struct hang_group *group; (group = keyed_rows_next(&store->groups, &at)) != NULL;)
        judge_group(&judging, group);
    sort_stable(judging.found, judging.found_count, sizeof *judging.found, arena, compare_findings);
    return (struct hang_findings){judging.found, judging.found_count};
}
