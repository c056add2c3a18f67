// SPDX-License-Identifier: Apache-2.0
// Finds who is to blame for a collective operation that does not end.
//
// The numbers in which somebody waits are looked at from the lowest on, until one gives a finding:
// all that comes later waits behind it. What speaks against naming anybody (the ring was lost past
// this number, a record may be older than the others') is no finding. A recorder that never tells
// an end shows only how far each rank is: the first number that somebody lacks is judged then.
#include "base/sort.h"
#include "processors/nccl_hang/judge.h"
#include "processors/nccl_hang/refusal.h"

enum { SEQUENCES_MAX = 16 };

enum presence {
    IS_WAITING,
    HAS_COMPLETED,
    HAS_PASSED, // is further, but what became of this one is not known
    IS_MISSING,
    HAS_NO_DUMP,
    IS_UNREAD,  // its dump could not be read
    IS_UNKNOWN, // the ring was lost, it is leaving the group, or is in another set
};

struct cohort {
    const struct hang_partition *partition;
    int64_t sequence;
    bool silent;
    enum presence *presence; // of each expected rank
    const struct hang_open **opens;
    const struct hang_refusal **refusals; // of those that are IS_UNREAD
    uint32_t counts[IS_UNKNOWN + 1];
    bool stuck;     // one of them at least, as a file counts
    bool stuck_age; // by its age alone
    uint64_t earliest_ns;
};

static const struct hang_open *find_open(const struct hang_store *store,
                                         const struct hang_member *member, int64_t sequence,
                                         bool silent) {
    assert(sequence >= -1);
    for (uint32_t row = member->first_open; row != TABLE_NO_ROW;) {
        const struct hang_open *open = hang_open_at(store, row);
        if (open->direction == HANG_COLLECTIVE && open->sequence == sequence &&
            open->silent == silent && hang_is_live(store, member, open))
            return open;
        row = open->next;
    }
    return NULL;
}

// -- who is where --------------------------------------------------------------------------------

// Of a recorder that tells no ends: its entry of this number, or what stands in for one that its
// ring lost.
static const struct hang_open *silent_open(const struct hang_judging *judging,
                                           const struct hang_member *member, int64_t sequence) {
    const struct hang_open *open = find_open(judging->store, member, sequence, true);
    if (open != NULL)
        return open;
    const struct hang_open *newest =
        find_open(judging->store, member, member->collective.newest, true);
    if (newest == NULL)
        return NULL;
    struct hang_open *made = arena_take(judging->arena, sizeof *made);
    *made = *newest;
    made->sequence = sequence;
    made->name = made->sizes = made->dtypes = STRING_NONE;
    made->sizes_hash = made->dtypes_hash = 0;
    return made;
}

static void find_waiting(const struct hang_judging *judging, struct cohort *cohort) {
    const struct hang_partition *partition = cohort->partition;
    cohort->earliest_ns = UINT64_MAX;
    for (uint32_t i = 0; i < partition->rank_count; i++) {
        const struct hang_member *member = partition->members[i];
        if (member == NULL)
            continue;
        const struct hang_open *open = NULL;
        if (!cohort->silent)
            open = find_open(judging->store, member, cohort->sequence, false);
        else if (member->collective.newest >= cohort->sequence)
            open = silent_open(judging, member, cohort->sequence);
        cohort->opens[i] = open;
        if (open == NULL)
            continue;
        cohort->stuck |= hang_is_stuck(judging, open);
        cohort->stuck_age |= !open->silent && hang_age_ns(judging, open) >= judging->stuck_after_ns;
        if (open->created_ns < cohort->earliest_ns)
            cohort->earliest_ns = open->created_ns;
    }
}

// A dump says nothing about what its rank did after it. One without a date was written with the
// others, when something hung; single records come until there is nothing to tell.
static bool is_older_than_the_wait(const struct hang_source *source, const struct cohort *cohort) {
    return source->dated && !source->streams && source->dump_ns < cohort->earliest_ns;
}

// It has no entry of this number and none of a later one.
static enum presence absence_of(const struct hang_judging *judging, const struct cohort *cohort,
                                uint32_t i) {
    assert(i < cohort->partition->rank_count);
    const struct hang_partition *partition = cohort->partition;
    const struct hang_member *member = partition->members[i];
    const struct hang_source *source =
        hang_find_source(judging->store, partition->group, partition->ranks[i]);
    if (partition->elsewhere[i])
        return IS_UNKNOWN;
    cohort->refusals[i] = hang_refusal_of(judging, partition, i, cohort->earliest_ns);
    if (cohort->refusals[i] != NULL)
        return IS_UNREAD;
    if (source == NULL || is_older_than_the_wait(source, cohort))
        return HAS_NO_DUMP;
    // What it called before all that its ring still holds may be this one.
    if (member == NULL && source->whole && source->first_record > 0 &&
        source->oldest_ns > cohort->earliest_ns)
        return IS_UNKNOWN;
    if (member != NULL && member->listed == HANG_UNLISTED && partition->set != NULL)
        return IS_UNKNOWN;
    return IS_MISSING;
}

static enum presence presence_of(const struct hang_judging *judging, const struct cohort *cohort,
                                 uint32_t i) {
    assert(i < cohort->partition->rank_count);
    const struct hang_member *member = cohort->partition->members[i];
    if (cohort->opens[i] != NULL)
        return IS_WAITING;
    if (member == NULL || member->collective.newest < cohort->sequence)
        return absence_of(judging, cohort, i);
    return hang_is_done(&member->collective, cohort->sequence) ? HAS_COMPLETED : HAS_PASSED;
}

// -- operations that differ ----------------------------------------------------------------------

enum aspect { ASPECT_TYPE, ASPECT_SIZE, ASPECT_DTYPE };

static uint64_t aspect_of(const struct hang_open *open, enum aspect aspect) {
    assert(open != NULL && aspect <= ASPECT_DTYPE);
    if (open->several)
        return 0;
    switch (aspect) {
    case ASPECT_TYPE:
        return open->name;
    case ASPECT_SIZE:
        return open->sizes_hash;
    default:
        return open->dtypes_hash;
    }
}

struct aspect_row {
    uint64_t value;
    uint32_t index;
};

static int compare_aspects(const void *a, const void *b) {
    const struct aspect_row *first = a, *second = b;
    return (first->value > second->value) - (first->value < second->value);
}

// Whether the operations differ in this; `*usual` is then what more than half of them say, 0 when
// there is no such.
static bool differ(const struct hang_judging *judging, const struct cohort *cohort,
                   enum aspect aspect, uint64_t *usual) {
    const struct hang_partition *partition = cohort->partition;
    struct aspect_row *rows =
        arena_take(judging->arena, (partition->rank_count + 1) * sizeof *rows);
    uint32_t count = 0, run = 0;
    for (uint32_t i = 0; i < partition->rank_count; i++)
        if (cohort->opens[i] != NULL && aspect_of(cohort->opens[i], aspect) != 0)
            rows[count++] = (struct aspect_row){aspect_of(cohort->opens[i], aspect), i};
    sort_stable(rows, count, sizeof *rows, judging->arena, compare_aspects);
    *usual = 0;
    if (count == 0 || rows[0].value == rows[count - 1].value)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        run = i > 0 && rows[i].value == rows[i - 1].value ? run + 1 : 1;
        if (run * 2 > count)
            *usual = rows[i].value;
    }
    return true;
}

// -- findings ------------------------------------------------------------------------------------

static bool is_named(const struct hang_seat *seat) {
    return seat->open != NULL || seat->is_absent || seat->part != HANG_BYSTANDER;
}

// A seat for each expected rank, with what it waits in; parts are given afterwards.
static struct hang_seat *make_seats(const struct hang_judging *judging,
                                    const struct cohort *cohort) {
    const struct hang_partition *partition = cohort->partition;
    struct hang_seat *seats = arena_zero(judging->arena, partition->rank_count + 1, sizeof *seats);
    for (uint32_t i = 0; i < partition->rank_count; i++)
        seats[i] = (struct hang_seat){.rank = partition->ranks[i],
                                      .member = partition->members[i],
                                      .open = cohort->opens[i],
                                      .part = cohort->presence[i] == IS_UNREAD ? HANG_UNREAD
                                                                               : HANG_BYSTANDER,
                                      .is_absent = cohort->presence[i] == IS_MISSING,
                                      .is_silent = cohort->silent,
                                      .refusal = cohort->refusals[i]};
    return seats;
}

static void note_unknown(const struct hang_judging *judging, const struct cohort *cohort,
                         struct hang_finding *finding) {
    uint32_t count = cohort->counts[IS_UNKNOWN] + cohort->counts[HAS_PASSED], at = 0;
    if (count == 0)
        return;
    int32_t *ranks = arena_take(judging->arena, count * sizeof *ranks);
    for (uint32_t i = 0; i < cohort->partition->rank_count; i++)
        if (cohort->presence[i] == IS_UNKNOWN || cohort->presence[i] == HAS_PASSED)
            ranks[at++] = cohort->partition->ranks[i];
    finding->unknown = ranks;
    finding->unknown_count = count;
}

static void keep_finding(struct hang_judging *judging, const struct cohort *cohort,
                         enum hang_kind kind, struct hang_seat *seats,
                         const struct hang_open *usual) {
    assert(seats != NULL && cohort->stuck);
    const struct hang_partition *partition = cohort->partition;
    struct hang_finding *finding = hang_add_finding(judging, partition, kind);
    finding->sequence = cohort->sequence;
    finding->expected_count = partition->rank_count;
    finding->without_dump_count = cohort->counts[HAS_NO_DUMP];
    note_unknown(judging, cohort, finding);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < partition->rank_count; i++)
        if (is_named(&seats[i]))
            seats[kept++] = seats[i];
    finding->seats = seats;
    finding->seat_count = kept;
    hang_sum_up(judging, finding);
    finding->straggler = finding->culprit_count == 1 && kind != HANG_MISMATCH_TYPE &&
                         kind != HANG_MISMATCH_SIZE && kind != HANG_MISMATCH_DTYPE;
    finding->usual = usual;
}

static bool judge_mismatch(struct hang_judging *judging, const struct cohort *cohort,
                           enum aspect aspect, enum hang_kind kind) {
    uint64_t usual;
    if (cohort->silent || !differ(judging, cohort, aspect, &usual))
        return false;
    struct hang_seat *seats = make_seats(judging, cohort);
    const struct hang_open *example = NULL;
    uint32_t usual_count = 0;
    for (uint32_t i = 0; i < cohort->partition->rank_count; i++) {
        seats[i].is_absent = false;
        uint64_t value = seats[i].open == NULL ? 0 : aspect_of(seats[i].open, aspect);
        if (value == 0 || usual == 0)
            continue;
        if (value != usual) {
            seats[i].part = HANG_CULPRIT;
            continue;
        }
        usual_count++;
        example = example == NULL ? seats[i].open : example;
    }
    keep_finding(judging, cohort, kind, seats, example);
    struct hang_finding *finding = &judging->found[judging->found_count - 1];
    finding->usual_count = usual_count;
    finding->depends = usual != 0 && usual_count <= finding->culprit_count + finding->unread_count;
    return true;
}

static bool judge_absence(struct hang_judging *judging, const struct cohort *cohort) {
    uint32_t missing = cohort->counts[IS_MISSING];
    uint32_t without = cohort->counts[HAS_NO_DUMP] + cohort->counts[IS_UNREAD];
    if (missing + without == 0)
        return false;
    const struct hang_partition *partition = cohort->partition;
    struct hang_seat *seats = make_seats(judging, cohort);
    uint32_t culprits = 0;
    bool has_old_dumps = false;
    for (uint32_t i = 0; i < partition->rank_count; i++) {
        if (cohort->presence[i] == HAS_NO_DUMP) {
            seats[i].part = HANG_SUSPECT;
            has_old_dumps |=
                hang_find_source(judging->store, partition->group, seats[i].rank) != NULL;
        }
        if (cohort->presence[i] != IS_MISSING)
            continue;
        bool held = hang_waits_elsewhere(judging, partition->group, seats[i].rank, seats[i].member);
        seats[i].part = held ? HANG_VICTIM : HANG_CULPRIT;
        culprits += !held;
    }
    keep_finding(judging, cohort,
                 culprits == 0 && without > 0 ? HANG_MISSING_DUMP : HANG_MISSING_RANK, seats, NULL);
    judging->found[judging->found_count - 1].has_old_dumps = has_old_dumps;
    return true;
}

static bool judge_not_started(struct hang_judging *judging, const struct cohort *cohort) {
    const struct hang_partition *partition = cohort->partition;
    uint32_t scheduled = 0, started = 0;
    for (uint32_t i = 0; i < partition->rank_count; i++) {
        if (cohort->opens[i] == NULL || !cohort->opens[i]->tells_states)
            continue;
        started += cohort->opens[i]->state == FLIGHT_STARTED;
        scheduled += cohort->opens[i]->state == FLIGHT_SCHEDULED;
    }
    if (scheduled == 0 || started == 0)
        return false;
    struct hang_seat *seats = make_seats(judging, cohort);
    for (uint32_t i = 0; i < partition->rank_count; i++) {
        const struct hang_open *open = cohort->opens[i];
        if (open == NULL || !open->tells_states || open->state != FLIGHT_SCHEDULED)
            continue;
        bool held = hang_waits_elsewhere(judging, partition->group, seats[i].rank, seats[i].member);
        seats[i].part = held ? HANG_VICTIM : HANG_CULPRIT;
    }
    keep_finding(judging, cohort, HANG_NOT_STARTED, seats, NULL);
    judging->found[judging->found_count - 1].depends = cohort->counts[IS_UNREAD] > 0;
    return true;
}

// One is in it while the others are through, as far as their dumps could be read.
static bool judge_solo(struct hang_judging *judging, const struct cohort *cohort) {
    const struct hang_partition *partition = cohort->partition;
    uint32_t completed = cohort->counts[HAS_COMPLETED], unread = cohort->counts[IS_UNREAD];
    if (cohort->counts[IS_WAITING] != 1 || completed + unread + 1 != partition->rank_count ||
        (completed == 0 && (unread > 0 || partition->set == NULL)))
        return false;
    // Of files one does not know when they were written: the others may have ended it later.
    if (!cohort->stuck_age && completed > 0)
        return false;
    struct hang_seat *seats = make_seats(judging, cohort);
    for (uint32_t i = 0; i < partition->rank_count; i++)
        if (seats[i].open != NULL)
            seats[i].part = HANG_CULPRIT;
    keep_finding(judging, cohort, HANG_NOT_COMPLETED, seats, NULL);
    judging->found[judging->found_count - 1].depends = unread > 0;
    return true;
}

static bool judge_rest(struct hang_judging *judging, const struct cohort *cohort) {
    if (cohort->counts[IS_UNKNOWN] + cohort->counts[HAS_PASSED] > 0)
        return false;
    if (cohort->counts[HAS_COMPLETED] > 0 && !cohort->stuck_age)
        return false;
    keep_finding(judging, cohort, HANG_ALL_STARTED, make_seats(judging, cohort), NULL);
    return true;
}

static bool judge_sequence(struct hang_judging *judging, const struct hang_partition *partition,
                           int64_t sequence, bool silent) {
    assert(partition->rank_count > 0);
    struct cohort cohort = {.partition = partition, .sequence = sequence, .silent = silent};
    cohort.presence = arena_zero(judging->arena, partition->rank_count, sizeof *cohort.presence);
    cohort.opens = arena_zero(judging->arena, partition->rank_count, sizeof(void *));
    cohort.refusals = arena_zero(judging->arena, partition->rank_count, sizeof(void *));
    find_waiting(judging, &cohort);
    if (!cohort.stuck)
        return false;
    for (uint32_t i = 0; i < partition->rank_count; i++) {
        cohort.presence[i] = presence_of(judging, &cohort, i);
        cohort.counts[cohort.presence[i]]++;
    }
    if (silent)
        return judge_absence(judging, &cohort);
    // What those did whose dumps could not be read is asked last: others may be known to blame.
    bool is_absent = cohort.counts[IS_MISSING] + cohort.counts[HAS_NO_DUMP] > 0;
    return judge_mismatch(judging, &cohort, ASPECT_TYPE, HANG_MISMATCH_TYPE) ||
           judge_mismatch(judging, &cohort, ASPECT_SIZE, HANG_MISMATCH_SIZE) ||
           judge_mismatch(judging, &cohort, ASPECT_DTYPE, HANG_MISMATCH_DTYPE) ||
           (is_absent && judge_absence(judging, &cohort)) || judge_not_started(judging, &cohort) ||
           judge_solo(judging, &cohort) || judge_absence(judging, &cohort) ||
           judge_rest(judging, &cohort);
}

// -- which number --------------------------------------------------------------------------------

// The lowest number above `after` that somebody is in, -1 when there is none.
static int64_t next_sequence(const struct hang_judging *judging,
                             const struct hang_partition *partition, int64_t after) {
    int64_t lowest = -1;
    for (uint32_t i = 0; i < partition->rank_count; i++) {
        const struct hang_member *member = partition->members[i];
        uint32_t row = member == NULL ? TABLE_NO_ROW : member->first_open;
        while (row != TABLE_NO_ROW) {
            const struct hang_open *open = hang_open_at(judging->store, row);
            row = open->next;
            if (open->direction == HANG_COLLECTIVE && !open->silent && open->sequence > after &&
                (lowest < 0 || open->sequence < lowest) &&
                hang_is_live(judging->store, member, open))
                lowest = open->sequence;
        }
    }
    return lowest;
}

// The first number that somebody lacks and somebody has; -1 when there is none, or when a recorder
// that tells ends is among them. A rank that never called anything counts when it left a dump.
static int64_t silent_sequence(const struct hang_judging *judging,
                               const struct hang_partition *partition) {
    int64_t lowest = INT64_MAX, highest = -1;
    bool idle = false;
    for (uint32_t i = 0; i < partition->rank_count; i++) {
        const struct hang_member *member = partition->members[i];
        if (member != NULL && member->known)
            return -1;
        if (member == NULL || member->collective.newest < 0) {
            idle |= hang_find_source(judging->store, partition->group, partition->ranks[i]) != NULL;
            continue;
        }
        int64_t newest = member->collective.newest;
        lowest = newest < lowest ? newest : lowest;
        highest = newest > highest ? newest : highest;
    }
    if (idle)
        return highest < 0 ? -1 : lowest;
    return lowest < highest ? lowest + 1 : -1;
}

void hang_judge_collectives(struct hang_judging *judging, const struct hang_partition *partition) {
    int64_t silent = silent_sequence(judging, partition);
    if (silent >= 0) {
        judge_sequence(judging, partition, silent, true);
        return;
    }
    int64_t sequence = -1;
    for (int i = 0; i < SEQUENCES_MAX; i++) {
        sequence = next_sequence(judging, partition, sequence);
        if (sequence < 0 || judge_sequence(judging, partition, sequence, false))
            return;
    }
}
