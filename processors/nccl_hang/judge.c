// SPDX-License-Identifier: Apache-2.0
// Judges each group: who belongs to it, and who is held up where.
//
// Members of one name are parted by the member set that their dumps name: groups that were split
// off share names. What is not told is the ranks that were seen. Cost: members of groups in which
// somebody waits, sorted; nothing for the others.
#include "processors/nccl_hang/judge.h"
#include "base/sort.h"
#include "processors/cluster/compare.h"

// -- times ---------------------------------------------------------------------------------------

// A dump is a picture of its own moment: what became of the operation after it is not known.
uint64_t hang_age_ns(const struct hang_judging *judging, const struct hang_open *open) {
    uint64_t since = open->started_ns != 0 ? open->started_ns : open->created_ns;
    uint64_t until = open->seen_ns < judging->now_ns ? open->seen_ns : judging->now_ns;
    return until > since ? until - since : 0;
}

bool hang_is_stuck(const struct hang_judging *judging, const struct hang_open *open) {
    if (open->from_file && judging->dump_means_hang)
        return true;
    return !open->silent && hang_age_ns(judging, open) >= judging->stuck_after_ns;
}

bool hang_may_be_one(string_id job, string_id node, string_id other) {
    return job != STRING_NONE || node == STRING_NONE || other == STRING_NONE || node == other;
}

bool hang_is_live(const struct hang_store *store, const struct hang_member *member,
                  const struct hang_open *open) {
    assert(member->head.live != 0);
    if (open->direction == HANG_COLLECTIVE && open->tells_states &&
        open->sequence <= member->collective.done)
        return false;
    const struct hang_group *group = hang_group_at(store, member->group);
    const struct hang_source *source = hang_find_source(store, group, member->rank);
    if (source == NULL || !source->whole ||
        !hang_may_be_one(group->job, source->node, member->node))
        return true;
    if (!open->silent && open->seen_ns < source->dump_ns)
        return false;
    return source->first_record <= 0 || source->oldest_ns <= open->created_ns;
}

bool hang_is_past_timeout(const struct hang_judging *judging, const struct hang_open *open) {
    if (open->retired && open->tells_states && !open->silent)
        return true;
    uint64_t age_ms = hang_age_ns(judging, open) / 1000000;
    return open->timeout_ms > 0 && age_ms >= (uint64_t)open->timeout_ms;
}

// -- who waits -----------------------------------------------------------------------------------

static int compare_waits(const void *a, const void *b) {
    const struct hang_wait *first = a, *second = b;
    return COMPARE_KEYS(COMPARE(first->job, second->job),
                        COMPARE((uint64_t)first->rank, (uint64_t)second->rank));
}

// Held up for a quarter of the threshold is enough to be excused: who came into another operation
// a little later is not to blame for what the others wait for.
static bool is_held_up(const struct hang_judging *judging, const struct hang_open *open) {
    if (open->silent)
        return false;
    return hang_is_stuck(judging, open) ||
           hang_age_ns(judging, open) >= judging->stuck_after_ns / 4;
}

static void gather_waits(struct hang_judging *judging, const struct hang_lines *lines,
                         const struct hang_lines *ras) {
    const struct hang_store *store = judging->store;
    size_t most = (size_t)table_live(&store->opens) + lines->open_count + ras->open_count + 1;
    struct hang_wait *waits = arena_take(judging->arena, most * sizeof *waits);
    uint32_t at = 0, count = hang_lines_waits(lines, waits);
    count += hang_lines_waits(ras, waits + count);
    for (const struct hang_member *member;
         (member = keyed_rows_next(&store->members, &at)) != NULL;) {
        for (uint32_t row = member->first_open; row != TABLE_NO_ROW;) {
            const struct hang_open *open = hang_open_at(store, row);
            row = open->next;
            if (!is_held_up(judging, open) || !hang_is_live(store, member, open))
                continue;
            const struct hang_group *group = hang_group_at(store, member->group);
            waits[count++] =
                (struct hang_wait){group->job, member->rank, member->node, group, open};
        }
    }
    sort_stable(waits, count, sizeof *waits, judging->arena, compare_waits);
    judging->waits = waits;
    judging->wait_count = count;
}

uint32_t hang_first_wait(const struct hang_judging *judging, string_id job, int32_t rank) {
    assert(judging->waits != NULL || judging->wait_count == 0);
    const struct hang_wait key = {.job = job, .rank = rank};
    uint32_t low = 0, high = judging->wait_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_waits(&judging->waits[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool hang_is_elsewhere(const struct hang_wait *wait, const struct hang_group *group,
                       string_id node) {
    return (wait->group != group || wait->open->direction != HANG_COLLECTIVE) &&
           hang_may_be_one(wait->job, wait->node, node);
}

bool hang_waits_elsewhere(const struct hang_judging *judging, const struct hang_group *group,
                          int32_t rank, const struct hang_member *member) {
    string_id node = member == NULL ? STRING_NONE : member->node;
    for (uint32_t i = hang_first_wait(judging, group->job, rank); i < judging->wait_count; i++) {
        const struct hang_wait *wait = &judging->waits[i];
        if (wait->job != group->job || wait->rank != rank)
            break;
        if (hang_is_elsewhere(wait, group, node))
            return true;
    }
    return false;
}

// -- findings ------------------------------------------------------------------------------------

struct hang_finding *hang_add_finding(struct hang_judging *judging,
                                      const struct hang_partition *partition, enum hang_kind kind) {
    assert(kind < HANG_KIND_COUNT);
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
// of it is known only that no end came by now; and a dump with a date of tomorrow was made by now.
static void see_waiting(const struct hang_judging *judging, const struct hang_seat *seat,
                        struct hang_finding *finding) {
    assert(seat->open != NULL);
    const struct hang_source *source = hang_find_source(judging->store, finding->group, seat->rank);
    bool dumped = source != NULL && source->whole && source->dump_ns >= seat->open->created_ns;
    uint64_t seen_ns = dumped ? source->dump_ns : seat->open->seen_ns;
    seen_ns = seen_ns < judging->now_ns ? seen_ns : judging->now_ns;
    if (seat->is_silent || seen_ns <= finding->end_ns)
        return;
    finding->end_ns = seen_ns;
    finding->seen_rank = dumped ? seat->rank : RANK_NONE;
}

void hang_sum_up(const struct hang_judging *judging, struct hang_finding *finding) {
    assert(finding->seats != NULL && finding->seat_count > 0);
    finding->start_ns = UINT64_MAX;
    finding->seen_rank = RANK_NONE;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        finding->culprit_count += seat->part == HANG_CULPRIT;
        finding->suspect_count += seat->part == HANG_SUSPECT;
        finding->unread_count += seat->part == HANG_UNREAD;
        finding->absent_count += seat->is_absent;
        if (seat->open == NULL)
            continue;
        finding->waiting_count++;
        finding->past_timeout |= hang_is_past_timeout(judging, seat->open);
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
    finding->outlasts = finding->end_ns >= finding->start_ns + judging->stuck_after_ns;
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
    assert(partition->members != NULL && partition->elsewhere != NULL);
    if (partition->rank_count == 0)
        return;
    hang_judge_collectives(judging, partition);
    hang_judge_p2p(judging, partition);
}

static bool is_whole_job(const struct hang_group *group) {
    return slice_equal(intern_slice(group->desc), SLICE("default_pg")) ||
           (intern_slice(group->desc).size == 0 &&
            slice_equal(intern_slice(group->name), SLICE("0")));
}

uint32_t hang_ranks_of_job(const struct hang_store *store, const struct hang_group *group,
                           int32_t *ranks) {
    uint32_t count = 0, at = 0;
    const struct hang_rank *rank;
    bool is_only_job = is_whole_job(group) && !hang_has_several_jobs(store);
    while (is_whole_job(group) && (rank = keyed_rows_next(&store->ranks, &at)) != NULL)
        if (rank->key.job == group->job || (rank->key.job == STRING_NONE && is_only_job))
            ranks[count++] = rank->key.rank;
    return count;
}

static int compare_ranks(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

uint32_t hang_sort_ranks(int32_t *ranks, uint32_t count, struct arena *arena) {
    sort_stable(ranks, count, sizeof *ranks, arena, compare_ranks);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || ranks[kept - 1] != ranks[i])
            ranks[kept++] = ranks[i];
    return kept;
}

// The ranks that dumps without a member set came of, and, of the group of the whole job, those of
// the rank map: who is stopped or gone leaves no dump.
static void list_seen(const struct hang_judging *judging, const struct gathered *gathered,
                      const uint32_t *sets, struct hang_partition *partition) {
    const struct hang_store *store = judging->store;
    size_t most = (size_t)gathered->count + keyed_rows_count(&store->ranks) + 1;
    int32_t *ranks = arena_take(judging->arena, most * sizeof *ranks);
    uint32_t count = 0;
    for (uint32_t i = 0; i < gathered->count; i++)
        if (sets[i] == TABLE_NO_ROW)
            ranks[count++] = gathered->members[i]->rank;
    if (gathered->set_count == 0)
        count += hang_ranks_of_job(store, partition->group, ranks + count);
    partition->ranks = ranks;
    partition->rank_count = hang_sort_ranks(ranks, count, judging->arena);
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
        list_seen(judging, gathered, sets, &partition);
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

static int compare_findings(const void *left, const void *right) {
    const struct hang_finding *a = left, *b = right;
    const struct hang_group *one = a->group, *other = b->group;
    int order = COMPARE(a->start_ns, b->start_ns);
    order = order != 0 ? order : compare_strings(one->name, other->name);
    if (order == 0 && a->sequence != b->sequence)
        return a->sequence < b->sequence ? -1 : 1;
    if (order == 0)
        order = COMPARE_KEYS(COMPARE(a->p2p, b->p2p),
                             COMPARE((uint64_t)a->seats[0].rank, (uint64_t)b->seats[0].rank));
    order = order != 0 ? order : compare_strings(one->desc, other->desc);
    order = order != 0 ? order : compare_strings(one->backend, other->backend);
    return order != 0 ? order : compare_strings(one->job, other->job);
}

static int compare_names(const void *left, const void *right) {
    const struct hang_finding *a = *(struct hang_finding *const *)left;
    const struct hang_finding *b = *(struct hang_finding *const *)right;
    return COMPARE_KEYS(COMPARE(a->group->job, b->group->job),
                        COMPARE(a->group->name, b->group->name),
                        COMPARE(a->group->backend, b->group->backend), COMPARE(a->p2p, b->p2p),
                        COMPARE((uint64_t)a->sequence, (uint64_t)b->sequence));
}

// Groups that were split off may share name and number; they need more to be told apart.
static void mark_crowded(struct hang_judging *judging) {
    uint32_t count = judging->found_count;
    struct hang_finding **by_name =
        arena_take(judging->arena, (count + (size_t)1) * sizeof *by_name);
    for (uint32_t i = 0; i < count; i++)
        by_name[i] = &judging->found[i];
    sort_stable(by_name, count, sizeof *by_name, judging->arena, compare_names);
    for (uint32_t i = 1; i < count; i++)
        if (compare_names(&by_name[i - 1], &by_name[i]) == 0)
            by_name[i - 1]->crowded = by_name[i]->crowded = true;
}

struct hang_findings hang_judge(const struct hang_store *store, const struct hang_config *config,
                                uint64_t now_ns, struct arena *arena) {
    struct hang_judging judging = {.store = store,
                                   .now_ns = now_ns,
                                   .stuck_after_ns = duration_ns(config->stuck_after),
                                   .lines_apart_ns = duration_ns(config->lines_apart),
                                   .dump_means_hang = config->dump_means_hang,
                                   .arena = arena};
    struct hang_lines lines = hang_lines_gather(&judging);
    struct hang_lines ras = hang_ras_gather(&judging);
    if (table_live(&store->opens) == 0 && lines.group_count == 0 && ras.group_count == 0)
        return (struct hang_findings){0};
    gather_waits(&judging, &lines, &ras);
    uint32_t at = 0;
    for (const struct hang_group *group; (group = keyed_rows_next(&store->groups, &at)) != NULL;)
        judge_group(&judging, group);
    for (uint32_t i = 0; i < lines.group_count; i++)
        hang_lines_judge(&judging, &lines.groups[i]);
    for (uint32_t i = 0; i < ras.group_count; i++)
        hang_lines_judge(&judging, &ras.groups[i]);
    sort_stable(judging.found, judging.found_count, sizeof *judging.found, arena, compare_findings);
    mark_crowded(&judging);
    hang_see_stacks(&judging, judging.found, judging.found_count);
    hang_relate(&judging, judging.found, judging.found_count);
    return (struct hang_findings){judging.found, judging.found_count};
}
