// SPDX-License-Identifier: Apache-2.0
// Judges groups by the lines of their watchdogs. Cost: rows sorted once an evaluation.
//
// The lowest number that somebody waits in is judged. Who called less is behind: to blame, unless
// it waits in another group. Who should be there and never came into the log is a suspect.
#include "processors/nccl_hang/lines.h"

#include "base/sort.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/row_bound.h"
#include "processors/nccl_hang/judge.h"
#include "processors/nccl_hang/refusal.h"

KEYED_ROW_CHECK(struct hang_line, key);
KEYED_ROW_CHECK(struct hang_timeout, key);

const struct row_type HANG_LINE_ROWS = {
    .size = sizeof(struct hang_line),
    .key_size = sizeof(struct hang_line_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct hang_line, key.job), offsetof(struct hang_line, key.group),
                offsetof(struct hang_line, desc), offsetof(struct hang_line, node)},
};
const struct row_type HANG_TIMEOUT_ROWS = {
    .size = sizeof(struct hang_timeout),
    .key_size = sizeof(struct hang_timeout_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct hang_timeout, key.job), offsetof(struct hang_timeout, operation)},
};

// -- taking --------------------------------------------------------------------------------------

static string_id name_of(struct slice text) {
    string_id id = text.data == NULL ? STRING_NONE : intern(text);
    return id == STRING_REFUSED ? STRING_NONE : id;
}

static int64_t higher(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static struct hang_line *line_row(struct hang_store *store, const struct event *event,
                                  struct slice group, struct slice desc, int64_t group_rank,
                                  struct arena *scratch) {
    struct hang_line_key key = {event->job, name_of(group), event->rank};
    if (key.group == STRING_NONE)
        return NULL;
    struct hang_line *row = row_bound_take(&store->lines, &store->line_bound, &key,
                                           offsetof(struct hang_line, heard_ns), scratch);
    if (row->heard_ns == 0) {
        row->waits_in = row->enqueued = row->completed = -1;
        row->group_rank = -1;
    }
    string_id said = name_of(desc);
    if (row->desc == STRING_NONE || (said != STRING_NONE && compare_strings(said, row->desc) > 0))
        row->desc = said;
    if (row->node == STRING_NONE || compare_strings(event->node, row->node) > 0)
        row->node = event->node;
    if (group_rank >= 0 && group_rank <= RANK_MAX)
        row->group_rank = (int32_t)higher(row->group_rank, group_rank);
    if (event->time_ns > row->heard_ns || row->heard_ns == 0)
        row->heard_ns = event->time_ns;
    return row;
}

// PyTorch before 2.3 wrote no time. A line behind one that has a time came soon after it.
static enum time_of time_of_line(const struct event *event) {
    bool is_undated = event->timeless && event->time_of != TIME_OF_LINE_BEFORE;
    return is_undated ? event->time_of : TIME_OF_EVENT;
}

static bool is_undated(const struct hang_line *row) {
    return row->time_of != TIME_OF_EVENT;
}

static void take_wait(struct hang_line *row, int64_t sequence, const struct event *event) {
    enum time_of time_of = time_of_line(event);
    bool is_new = row->waits_in < 0 || (is_undated(row) && time_of == TIME_OF_EVENT);
    if (sequence < 0 || (!is_new && time_of != TIME_OF_EVENT && !is_undated(row)) ||
        (!is_new && event->time_ns < row->waits_ns))
        return;
    // Of two lines of one time the lower number: what comes later waits behind it.
    if (is_new || event->time_ns > row->waits_ns || sequence < row->waits_in)
        row->waits_in = sequence;
    row->waits_ns = event->time_ns;
    row->time_of = time_of;
}

static void take_progress(struct hang_line *row, int64_t enqueued, int64_t completed,
                          uint64_t time_ns) {
    if (time_ns < row->progress_ns)
        return;
    bool tie = time_ns == row->progress_ns;
    row->enqueued = tie ? higher(row->enqueued, enqueued) : enqueued;
    row->completed = tie ? higher(row->completed, completed) : completed;
    row->progress_ns = time_ns;
}

static void take_timeout(struct hang_store *store, const struct event *event,
                         struct arena *scratch) {
    const struct app_line *line = event->line;
    const struct hang_timeout_key key = {event->job, event->rank, line->collective_seq_id};
    struct hang_timeout *row = row_bound_take(&store->timeouts, &store->timeout_bound, &key,
                                              offsetof(struct hang_timeout, time_ns), scratch);
    string_id operation = name_of(line->operation);
    if (event->time_ns < row->time_ns ||
        (event->time_ns == row->time_ns && compare_strings(operation, row->operation) < 0))
        return;
    row->operation = operation;
    row->elements = line->input_elements;
    row->timeout_ms = line->timeout_ms;
    row->ran_ms = line->ran_ms;
    row->time_ns = event->time_ns;
}

static void take_line(struct hang_store *store, const struct event *event, struct arena *scratch) {
    const struct app_line *line = event->line;
    if (line->kind == APP_TIMEOUT && line->collective_seq_id >= 0)
        take_timeout(store, event, scratch);
    struct hang_line *row =
        line_row(store, event, line->group, line->group_desc, line->group_rank, scratch);
    if (row == NULL)
        return;
    take_wait(row, line->collective_seq_id, event);
    if (line->has_progress)
        take_progress(row, line->last_enqueued, line->last_completed, event->time_ns);
}

// A rank that was asked for its dump says how far it is.
static void take_dump_signal(struct hang_store *store, const struct event *event,
                             struct arena *scratch) {
    const struct observation *said = event->observation;
    struct slice group = {NULL, 0}, desc = {NULL, 0};
    int64_t group_rank = -1, enqueued, completed = -1;
    observation_text(said, FACT_GROUP, &group);
    observation_text(said, FACT_GROUP_DESC, &desc);
    observation_number(said, FACT_GROUP_RANK, &group_rank);
    if (!observation_number(said, FACT_LAST_ENQUEUED, &enqueued))
        return;
    observation_number(said, FACT_LAST_COMPLETED, &completed);
    struct hang_line *row = line_row(store, event, group, desc, group_rank, scratch);
    if (row != NULL)
        take_progress(row, enqueued, completed, event->time_ns);
}

void hang_lines_take(struct hang_store *store, const struct event *event, struct arena *scratch) {
    assert(store->line_bound.max > 0 && store->timeout_bound.max > 0);
    if (event->rank < 0)
        return;
    if (event->kind == EVENT_APP_LINE)
        take_line(store, event, scratch);
    else if (event->kind == EVENT_OBSERVATION &&
             event->observation->kind == OBSERVATION_WATCHDOG_DUMP)
        take_dump_signal(store, event, scratch);
}

// -- groups --------------------------------------------------------------------------------------

static int compare_lines(const void *left, const void *right) {
    const struct hang_line *a = *(struct hang_line *const *)left;
    const struct hang_line *b = *(struct hang_line *const *)right;
    int order = compare_strings(a->key.job, b->key.job);
    order = order != 0 ? order : compare_strings(a->key.group, b->key.group);
    return order != 0 ? order : (a->key.rank > b->key.rank) - (a->key.rank < b->key.rank);
}

static bool same_group(const struct hang_line *a, const struct hang_line *b) {
    return a->key.job == b->key.job && a->key.group == b->key.group;
}

// `waits_ns`: when the line was written that says so.
static struct hang_open *open_of(const struct hang_judging *judging, const struct hang_line *row,
                                 uint64_t waits_ns) {
    const struct hang_timeout_key key = {row->key.job, row->key.rank, row->waits_in};
    const struct hang_timeout *timeout = keyed_rows_find(&judging->store->timeouts, &key);
    struct hang_open *open = arena_zero(judging->arena, 1, sizeof *open);
    int64_t ran_ms = timeout == NULL            ? 0
                     : timeout->ran_ms >= 0     ? timeout->ran_ms
                     : timeout->timeout_ms >= 0 ? timeout->timeout_ms
                                                : 0;
    uint64_t ran_ns = (uint64_t)ran_ms < waits_ns / 1000000 ? (uint64_t)ran_ms * 1000000 : 0;
    *open = (struct hang_open){.next = TABLE_NO_ROW,
                               .name = timeout == NULL ? STRING_NONE : timeout->operation,
                               .own = -1,
                               .peer = -1,
                               .state = FLIGHT_STARTED,
                               .retired = true,
                               .tells_states = true,
                               .sequence = row->waits_in,
                               .created_ns = waits_ns - ran_ns,
                               .seen_ns = waits_ns,
                               .timeout_ms = timeout == NULL ? 0 : timeout->timeout_ms,
                               .sizes_hash = timeout == NULL || timeout->elements < 0
                                                 ? 0
                                                 : (uint64_t)timeout->elements + 1};
    return open;
}

// A dump tells the same and more.
static bool has_newer_dump(const struct hang_judging *judging, const struct hang_lines_group *group,
                           const struct hang_line *row, const struct hang_open *open) {
    const struct hang_source *source =
        hang_find_source(judging->store, &group->group, row->key.rank);
    uint64_t since_ns = open != NULL ? open->created_ns : row->progress_ns;
    return source != NULL && source->whole && source->dump_ns >= since_ns &&
           hang_may_be_one(row->key.job, source->node, row->node);
}

static bool waited_by(const struct hang_line *row, uint64_t now_ns) {
    return row->waits_in >= 0 && (is_undated(row) || row->waits_ns <= now_ns);
}

// The newest line that has a time, or of all where none has.
static uint64_t newest_wait(struct hang_line **rows, uint32_t count, uint64_t now_ns,
                            enum time_of *time_of) {
    uint64_t newest_ns = 0;
    *time_of = TIME_OF_FILE;
    for (uint32_t i = 0; i < count; i++) {
        if (!waited_by(rows[i], now_ns) || (is_undated(rows[i]) && *time_of == TIME_OF_EVENT))
            continue;
        bool is_first = newest_ns == 0 || (*time_of != TIME_OF_EVENT && !is_undated(rows[i]));
        if (is_first || rows[i]->waits_ns > newest_ns) {
            newest_ns = rows[i]->waits_ns;
            *time_of = (enum time_of)rows[i]->time_of;
        }
    }
    return newest_ns;
}

// `rows` are all of one group; those of another time, such as before a restart, are left out.
static bool gather_group(const struct hang_judging *judging, struct hang_line **rows,
                         uint32_t count, struct hang_lines_group *group) {
    *group = (struct hang_lines_group){.group = {.head = {.live = 1},
                                                 .job = rows[0]->key.job,
                                                 .backend = intern(SLICE("nccl")),
                                                 .name = rows[0]->key.group,
                                                 .desc = intern(SLICE(""))},
                                       .rows = arena_take(judging->arena, count * sizeof(void *)),
                                       .opens = arena_zero(judging->arena, count, sizeof(void *))};
    uint64_t newest_ns = newest_wait(rows, count, judging->now_ns, &group->time_of);
    bool waits = false;
    for (uint32_t i = 0; i < count && newest_ns > 0; i++) {
        const struct hang_line *row = rows[i];
        // Of a rank that waited by then it does not matter that it was heard of since.
        bool waited = waited_by(row, judging->now_ns);
        if ((row->heard_ns > judging->now_ns && !waited) ||
            newest_ns > row->heard_ns + judging->lines_apart_ns)
            continue;
        bool waiting = row->waits_in >= 0 &&
                       (is_undated(row) || newest_ns <= row->waits_ns + judging->lines_apart_ns);
        uint64_t waits_ns = is_undated(row) ? newest_ns : row->waits_ns;
        struct hang_open *open = waiting ? open_of(judging, row, waits_ns) : NULL;
        if (has_newer_dump(judging, group, row, open))
            continue;
        if (row->desc != STRING_NONE && compare_strings(row->desc, group->group.desc) > 0)
            group->group.desc = row->desc;
        group->opens[group->row_count] = open;
        group->rows[group->row_count++] = row;
        waits |= waiting;
    }
    return waits;
}

struct hang_lines hang_lines_gather(const struct hang_judging *judging) {
    uint32_t total = keyed_rows_count(&judging->store->lines), count = 0, at = 0;
    struct hang_lines lines = {.group_count = 0};
    if (total == 0)
        return lines;
    struct hang_line *row, **rows = arena_take(judging->arena, total * sizeof *rows);
    while ((row = keyed_rows_next(&judging->store->lines, &at)) != NULL)
        rows[count++] = row;
    sort_stable(rows, count, sizeof *rows, judging->arena, compare_lines);
    lines.groups = arena_take(judging->arena, count * sizeof *lines.groups);
    for (uint32_t from = 0, until; from < count; from = until) {
        for (until = from + 1; until < count && same_group(rows[from], rows[until]);)
            until++;
        struct hang_lines_group *group = &lines.groups[lines.group_count];
        if (!gather_group(judging, rows + from, until - from, group))
            continue;
        lines.group_count++;
        lines.open_count += group->row_count;
    }
    return lines;
}

uint32_t hang_lines_waits(const struct hang_lines *lines, struct hang_wait *waits) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < lines->group_count; i++) {
        const struct hang_lines_group *of = &lines->groups[i];
        for (uint32_t j = 0; j < of->row_count; j++)
            if (of->opens[j] != NULL)
                waits[count++] = (struct hang_wait){of->group.job, of->rows[j]->key.rank,
                                                    of->rows[j]->node, &of->group, of->opens[j]};
    }
    return count;
}

// -- who should be there -------------------------------------------------------------------------

// The ranks of places 0 to the last that the lines name, when all lie on a line; else nothing.
static uint32_t ranks_by_place(const struct hang_judging *judging,
                               const struct hang_lines_group *group, int32_t *ranks) {
    const struct hang_line *low = NULL, *high = NULL;
    for (uint32_t i = 0; i < group->row_count; i++) {
        const struct hang_line *row = group->rows[i];
        if (row->group_rank < 0)
            continue;
        low = low == NULL || row->group_rank < low->group_rank ? row : low;
        high = high == NULL || row->group_rank > high->group_rank ? row : high;
    }
    if (low == high)
        return 0;
    int64_t places = (int64_t)high->group_rank - low->group_rank;
    int64_t ranges = (int64_t)high->key.rank - low->key.rank, step = ranges / places;
    int64_t first = low->key.rank - step * low->group_rank;
    if (step <= 0 || ranges % places != 0 || first < 0 ||
        high->group_rank >= (int64_t)judging->store->max_ranks)
        return 0;
    for (uint32_t i = 0; i < group->row_count; i++)
        if (group->rows[i]->group_rank >= 0 &&
            group->rows[i]->key.rank != first + step * group->rows[i]->group_rank)
            return 0;
    for (int64_t place = 0; place <= high->group_rank; place++)
        ranks[place] = (int32_t)(first + step * place);
    return (uint32_t)high->group_rank + 1;
}

static void list_ranks(const struct hang_judging *judging, const struct hang_lines_group *group,
                       struct hang_partition *partition) {
    const struct hang_store *store = judging->store;
    *partition = (struct hang_partition){
        .group = &group->group, .ranks = group->ranks, .rank_count = group->rank_count};
    if (group->ranks != NULL)
        return;
    uint32_t known = keyed_rows_count(&store->ranks), count = 0;
    int32_t *ranks = arena_take(
        judging->arena, ((size_t)group->row_count + known + store->max_ranks) * sizeof *ranks);
    for (uint32_t i = 0; i < group->row_count; i++)
        ranks[count++] = group->rows[i]->key.rank;
    count += ranks_by_place(judging, group, ranks + count);
    count += hang_ranks_of_job(store, &group->group, ranks + count);
    partition->rank_count = hang_sort_ranks(ranks, count, judging->arena);
    partition->ranks = ranks;
}

// -- findings ------------------------------------------------------------------------------------

static const struct hang_member *member_of(const struct hang_judging *judging,
                                           const struct hang_line *row) {
    struct hang_member *member = arena_zero(judging->arena, 1, sizeof *member);
    member->rank = row->key.rank;
    member->node = row->node;
    member->set = member->next = member->first_open = TABLE_NO_ROW;
    member->last = row->completed;
    member->last_completed_ns = row->progress_ns;
    return member;
}

static int64_t lowest_wait(const struct hang_lines_group *group) {
    int64_t lowest = INT64_MAX;
    for (uint32_t i = 0; i < group->row_count; i++)
        if (group->opens[i] != NULL && group->opens[i]->sequence < lowest)
            lowest = group->opens[i]->sequence;
    return lowest;
}

static uint64_t first_wait_ns(const struct hang_lines_group *group) {
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < group->row_count; i++)
        if (group->opens[i] != NULL && group->opens[i]->created_ns < first_ns)
            first_ns = group->opens[i]->created_ns;
    return first_ns;
}

// Whether its watchdog gave up on this number, too, and no line that names the group is there:
// people paste a part of a log.
static bool gave_up_as_well(const struct hang_judging *judging,
                            const struct hang_lines_group *group, int32_t rank, int64_t sequence) {
    const struct hang_timeout_key key = {group->group.job, rank, sequence};
    return !group->by_ras && keyed_rows_find(&judging->store->timeouts, &key) != NULL;
}

static uint32_t make_seats(const struct hang_judging *judging, const struct hang_lines_group *group,
                           const struct hang_partition *partition, int64_t sequence,
                           struct hang_seat *seats) {
    uint32_t at = 0, kept = 0;
    const uint64_t since_ns = first_wait_ns(group);
    for (uint32_t i = 0; i < partition->rank_count; i++) {
        struct hang_seat seat = {.rank = partition->ranks[i]};
        if (at == group->row_count || group->rows[at]->key.rank != seat.rank) {
            if (gave_up_as_well(judging, group, seat.rank, sequence))
                continue;
            if (!group->by_ras)
                seat.refusal = hang_find_refusal(judging->store, group->group.job, seat.rank,
                                                 STRING_NONE, since_ns);
            seat.part = seat.refusal != NULL ? HANG_UNREAD : HANG_SUSPECT;
            seats[kept++] = seat;
            continue;
        }
        const struct hang_line *row = group->rows[at];
        struct hang_open *open = group->opens[at++];
        seat.member = member_of(judging, row);
        if (open != NULL && open->sequence == sequence) {
            seat.open = open;
        } else if (open == NULL && row->enqueued >= -1 && row->progress_ns > 0 &&
                   row->enqueued < sequence) {
            seat.is_absent = true;
            bool held = hang_waits_elsewhere(judging, &group->group, seat.rank, seat.member);
            seat.part = held ? HANG_VICTIM : HANG_CULPRIT;
        } else {
            continue;
        }
        seats[kept++] = seat;
    }
    return kept;
}

static bool sizes_may_differ(string_id operation) {
    static const char *const OPERATIONS[] = {"ALLTOALL", "GATHER", "SCATTER"};
    struct slice name = intern_slice(operation);
    for (size_t i = 0; i < sizeof OPERATIONS / sizeof OPERATIONS[0]; i++)
        if (name.size >= strlen(OPERATIONS[i]) &&
            memcmp(name.data, OPERATIONS[i], strlen(OPERATIONS[i])) == 0)
            return true;
    return false;
}

static uint64_t aspect_of(const struct hang_open *open, bool size) {
    if (open == NULL)
        return 0;
    if (!size)
        return open->name;
    return sizes_may_differ(open->name) ? 0 : open->sizes_hash;
}

// Whether those who wait called different things; the one that more than half of them called is in
// `finding->usual` then, NULL when there is none.
static bool differ(struct hang_finding *finding, bool size) {
    const struct hang_open *candidate = NULL;
    uint32_t lead = 0, said = 0;
    bool differs = false;
    uint64_t first = 0;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        uint64_t value = aspect_of(finding->seats[i].open, size);
        if (value == 0)
            continue;
        said++;
        first = first == 0 ? value : first;
        differs |= value != first;
        if (lead == 0)
            candidate = finding->seats[i].open;
        lead = value == aspect_of(candidate, size) ? lead + 1 : lead - 1;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; differs && i < finding->seat_count; i++)
        count += aspect_of(finding->seats[i].open, size) == aspect_of(candidate, size) &&
                 finding->seats[i].open != NULL;
    finding->usual = differs && count * 2 > said ? candidate : NULL;
    finding->usual_count = finding->usual == NULL ? 0 : count;
    return differs;
}

static bool is_mismatch(struct hang_finding *finding, bool size) {
    if (!differ(finding, size))
        return false;
    finding->kind = size ? HANG_MISMATCH_SIZE : HANG_MISMATCH_TYPE;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        struct hang_seat seat = finding->seats[i];
        if (seat.open == NULL)
            continue;
        uint64_t value = aspect_of(seat.open, size);
        seat.part = finding->usual != NULL && value != 0 && value != aspect_of(finding->usual, size)
                        ? HANG_CULPRIT
                        : HANG_BYSTANDER;
        finding->seats[kept++] = seat;
    }
    finding->seat_count = kept;
    return true;
}

static bool is_told_by_dumps(const struct hang_judging *judging, const struct hang_group *group) {
    for (uint32_t i = 0; i < judging->found_count; i++)
        if (!judging->found[i].from_lines && judging->found[i].group->job == group->job &&
            judging->found[i].group->name == group->name)
            return true;
    return false;
}

// -- what RAS told first --------------------------------------------------------------------------

// Whether the other finding blames all whom this one blames.
static bool blames_all(const struct hang_finding *other, const struct hang_finding *finding) {
    uint32_t at = 0; // seats are ascending in both
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_seat *seat = &finding->seats[i];
        if (seat->part != HANG_CULPRIT && seat->part != HANG_SUSPECT)
            continue;
        while (at < other->seat_count && other->seats[at].rank < seat->rank)
            at++;
        if (at == other->seat_count || other->seats[at].rank != seat->rank ||
            (other->seats[at].part != HANG_CULPRIT && other->seats[at].part != HANG_SUSPECT))
            return false;
    }
    return true;
}

// When somebody could say so first.
static uint64_t told_ns(const struct hang_judging *judging, const struct hang_finding *finding) {
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < finding->seat_count; i++) {
        const struct hang_open *open = finding->seats[i].open;
        if (open == NULL)
            continue;
        uint64_t own_ns = open->seen_ns == HANG_SEEN_ALWAYS
                              ? open->created_ns + judging->stuck_after_ns
                              : open->seen_ns;
        first_ns = own_ns < first_ns ? own_ns : first_ns;
    }
    return first_ns;
}

// Lines and dumps say more than RAS. Where one of them tells of this hang it takes over the name
// under which RAS told of it first. The last of `found` is RAS's, and goes then.
static void yield_to_others(struct hang_judging *judging, uint64_t confirmed_ns) {
    struct hang_finding *own = &judging->found[judging->found_count - 1];
    for (uint32_t i = 0; i + 1 < judging->found_count; i++) {
        struct hang_finding *other = &judging->found[i];
        if (other->by_ras || other->group->job != own->group->job ||
            (other->group->name != own->group->name && !blames_all(other, own)))
            continue;
        bool is_same = own->end_ns + judging->lines_apart_ns >= other->start_ns &&
                       confirmed_ns <= told_ns(judging, other);
        if (is_same && other->first_told == NULL) {
            struct hang_finding *kept = arena_take(judging->arena, sizeof *kept);
            *kept = *own;
            other->first_told = kept;
        }
        judging->found_count--;
        return;
    }
}

static void judge_lines(struct hang_judging *judging, const struct hang_lines_group *group) {
    struct hang_partition partition;
    list_ranks(judging, group, &partition);
    struct hang_seat *seats = arena_zero(judging->arena, partition.rank_count + 1, sizeof *seats);
    int64_t sequence = lowest_wait(group);
    uint32_t count = make_seats(judging, group, &partition, sequence, seats);
    struct hang_finding *finding = hang_add_finding(judging, &partition, HANG_ALL_STARTED);
    finding->from_lines = true;
    finding->by_ras = group->by_ras;
    finding->time_of = group->time_of;
    finding->sequence = sequence;
    finding->expected_count = partition.rank_count;
    finding->seats = seats;
    finding->seat_count = count;
    bool mismatch = is_mismatch(finding, false) || is_mismatch(finding, true);
    if (!mismatch)
        finding->usual = NULL;
    hang_sum_up(judging, finding);
    // An absent rank tells how far it is while the others wait.
    for (uint32_t i = 0; i < finding->seat_count; i++)
        if (finding->seats[i].is_absent &&
            finding->seats[i].member->last_completed_ns > finding->end_ns)
            finding->end_ns = finding->seats[i].member->last_completed_ns;
    finding->outlasts = finding->end_ns >= finding->start_ns + judging->stuck_after_ns;
    if (mismatch)
        return;
    finding->without_dump_count = finding->suspect_count;
    if (finding->culprit_count > 0 ||
        (finding->absent_count > 0 && finding->suspect_count + finding->unread_count == 0))
        finding->kind = HANG_MISSING_RANK;
    else if (finding->suspect_count + finding->unread_count > 0)
        finding->kind = HANG_MISSING_DUMP;
    finding->straggler = finding->culprit_count == 1;
}

void hang_lines_judge(struct hang_judging *judging, const struct hang_lines_group *group) {
    if (!group->by_ras && is_told_by_dumps(judging, &group->group))
        return;
    judge_lines(judging, group);
    if (group->by_ras)
        yield_to_others(judging, group->confirmed_ns);
}
