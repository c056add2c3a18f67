// SPDX-License-Identifier: Apache-2.0
// Keeps what RAS and the Inspector say, and makes groups of it as the lines of watchdogs do
// (judge.h).
//
// Of a communicator the ranks with the highest count wait, those with a lower one are behind, and
// of those who are missing nothing came. It is told when all counts have stood still for the
// threshold, or when RAS considers a missing one dead, which takes it a minute. Cost: rows sorted
// once an evaluation.
#include "processors/nccl_hang/ras.h"

#include "base/sort.h"
#include "base/text/cut.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/nccl_hang/judge.h"
#include "processors/nccl_hang/lines.h"

KEYED_ROW_CHECK(struct hang_ras, key);
KEYED_ROW_CHECK(struct hang_process, key);

enum { DIGITS_MAX = 18, RAS_OTHERS = -1 };

const struct row_type HANG_RAS_ROWS = {
    .size = sizeof(struct hang_ras),
    .key_size = sizeof(struct hang_ras_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct hang_ras, key.job), offsetof(struct hang_ras, key.communicator),
                offsetof(struct hang_ras, key.op), offsetof(struct hang_ras, node),
                offsetof(struct hang_ras, name)},
};
const struct row_type HANG_PROCESS_ROWS = {
    .size = sizeof(struct hang_process),
    .key_size = sizeof(struct hang_process_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct hang_process, key.job), offsetof(struct hang_process, node)},
};

// -- taking --------------------------------------------------------------------------------------

static string_id text_fact(const struct observation *said, enum fact_key key) {
    struct slice text = {NULL, 0};
    if (!observation_text(said, key, &text) || text.size == 0)
        return STRING_NONE;
    string_id id = intern(text);
    return id == STRING_REFUSED ? STRING_NONE : id;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void note(struct hang_times *times, uint64_t time_ns) {
    if (time_ns > times->newest_ns) {
        times->before_ns = times->newest_ns;
        times->newest_ns = time_ns;
    } else if (time_ns < times->newest_ns) {
        times->before_ns = later(times->before_ns, time_ns);
    }
}

// The newest that is not after now; 0: none.
static uint64_t newest_by(const struct hang_times *times, uint64_t now_ns) {
    if (times->newest_ns <= now_ns)
        return times->newest_ns;
    return times->before_ns <= now_ns ? times->before_ns : 0;
}

// Collectives of `{"AllReduce":6650,"SendRecv":3}`; -1: there are none. Ranks send and receive in
// different numbers.
static int64_t collectives_in(struct slice counts) {
    int64_t sum = -1;
    uint64_t count;
    struct slice rest = counts, sends = SLICE("Send"), receives = SLICE("Recv");
    while (text_find(rest, SLICE("\""), &rest)) {
        struct slice name = text_until(rest, '"');
        rest = text_from(rest, name.size);
        if (!text_skip(&rest, SLICE("\":")) || !text_take_number(&rest, 1, DIGITS_MAX, &count))
            return -1;
        if (text_begins(name, sends) || text_begins(name, receives))
            continue;
        sum = (sum < 0 ? 0 : sum) + (int64_t)(count & INT32_MAX);
    }
    return sum;
}

static struct hang_ras *ras_row(struct hang_store *store, const struct event *event, string_id op,
                                int64_t rank, struct arena *scratch) {
    const struct observation *said = event->observation;
    struct hang_ras_key key = {event->job, text_fact(said, FACT_COMMUNICATOR), op, (int32_t)rank};
    if (key.communicator == STRING_NONE || rank < RAS_OTHERS || rank > RANK_MAX)
        return NULL;
    struct hang_ras *row = row_bound_take(&store->ras, &store->ras_bound, &key,
                                          offsetof(struct hang_ras, heard_ns), scratch);
    if (row->heard_ns == 0)
        row->pid = row->size = row->count = row->ended = -1;
    if (compare_strings(event->node, row->node) > 0)
        row->node = event->node;
    string_id name = text_fact(said, FACT_GROUP);
    if (compare_strings(name, row->name) > 0)
        row->name = name;
    observation_number(said, FACT_PID, &row->pid);
    observation_number(said, FACT_SIZE, &row->size);
    row->heard_ns = later(row->heard_ns, event->time_ns);
    return row;
}

static void take_count(const struct hang_store *store, struct hang_ras *row, int64_t count,
                       uint64_t time_ns) {
    if (count < row->count)
        return;
    if (count > row->count) {
        row->count = count;
        row->since_ns = time_ns;
        row->told = (struct hang_times){.newest_ns = time_ns};
        row->confirmed_ns = 0;
        return;
    }
    row->since_ns = time_ns < row->since_ns ? time_ns : row->since_ns;
    note(&row->told, time_ns);
    uint64_t enough_ns = row->since_ns + store->stuck_after_ns;
    if (time_ns >= enough_ns && (row->confirmed_ns == 0 || time_ns < row->confirmed_ns))
        row->confirmed_ns = time_ns;
    if (row->confirmed_ns == 0 && row->told.newest_ns >= enough_ns)
        row->confirmed_ns = row->told.newest_ns;
}

static void take_missing(struct hang_ras *row, const struct event *event) {
    note(&row->missing, event->time_ns);
    if (observation_is(event->observation, FACT_CONSIDERED_DEAD, false))
        note(&row->dead, event->time_ns);
}

static void take_rank(struct hang_store *store, const struct event *event, struct arena *scratch) {
    const struct observation *said = event->observation;
    int64_t rank = -1, count = -1;
    struct slice counts = {NULL, 0};
    string_id op = text_fact(said, FACT_OP);
    if (!observation_number(said, FACT_GROUP_RANK, &rank) || rank < 0)
        return;
    bool missing =
        said->kind == OBSERVATION_RAS_MISSING || observation_is(said, FACT_MISSING, false);
    struct hang_ras *row = ras_row(store, event, missing ? STRING_NONE : op, rank, scratch);
    if (row == NULL)
        return;
    if (missing)
        take_missing(row, event);
    else if (op == STRING_NONE && observation_text(said, FACT_COUNTS, &counts))
        count = collectives_in(counts);
    else if (op != STRING_NONE)
        observation_number(said, FACT_COUNT, &count);
    if (count >= 0)
        take_count(store, row, count, event->time_ns);
}

// Several ranks in one line: "13,14".
static void take_several(struct hang_store *store, const struct event *event,
                         struct arena *scratch) {
    struct slice ranks = {NULL, 0};
    uint64_t rank;
    observation_text(event->observation, FACT_TASKS, &ranks);
    while (text_take_number(&ranks, 1, 9, &rank)) {
        struct hang_ras *row = ras_row(store, event, STRING_NONE, (int64_t)rank, scratch);
        if (row != NULL)
            take_missing(row, event);
        text_skip_char(&ranks, ',');
    }
}

static void take_others(struct hang_store *store, const struct event *event,
                        struct arena *scratch) {
    int64_t count = -1;
    string_id op = text_fact(event->observation, FACT_OP);
    if (op == STRING_NONE || !observation_number(event->observation, FACT_COUNT, &count))
        return;
    struct hang_ras *row = ras_row(store, event, op, RAS_OTHERS, scratch);
    if (row != NULL)
        take_count(store, row, count, event->time_ns);
}

static void take_ended(struct hang_store *store, const struct event *event, struct arena *scratch) {
    int64_t rank = -1, sequence = -1;
    if (!observation_number(event->observation, FACT_GROUP_RANK, &rank) || rank < 0 ||
        !observation_number(event->observation, FACT_SEQ, &sequence))
        return;
    struct hang_ras *row = ras_row(store, event, STRING_NONE, rank, scratch);
    if (row == NULL || sequence < row->ended)
        return;
    row->ended_ns = sequence > row->ended ? event->time_ns : later(row->ended_ns, event->time_ns);
    row->ended = sequence;
}

// The newest word counts. Of words that nobody dated, which give way to those with a time, and of
// two of one moment, it is the greater pid.
static bool is_news(const struct hang_process *known, const struct event *event) {
    bool is_undated = known->is_undated != 0;
    if (known->heard_ns == 0 || event->timeless != is_undated)
        return known->heard_ns == 0 || is_undated;
    if (!is_undated && event->time_ns != known->heard_ns)
        return event->time_ns > known->heard_ns;
    return event->place->pid >= (int64_t)known->pid;
}

static void take_process(struct hang_store *store, const struct event *event,
                         struct arena *scratch) {
    const struct rank_place *place = event->place;
    const struct hang_process_key key = {event->job, place->rank};
    if (place->rank == RANK_NONE || place->pid < 0)
        return;
    struct hang_process *row = row_bound_take(&store->processes, &store->process_bound, &key,
                                              offsetof(struct hang_process, heard_ns), scratch);
    if (is_news(row, event)) {
        row->node = place->node != STRING_NONE ? place->node : event->node;
        row->pid = (uint64_t)place->pid & INT64_MAX;
        row->is_undated = event->timeless;
        row->heard_ns = event->time_ns;
    }
}

void hang_ras_take(struct hang_store *store, const struct event *event, struct arena *scratch) {
    assert(store->ras_bound.max > 0 && store->process_bound.max > 0);
    if (event->kind == EVENT_RANK_MAP)
        take_process(store, event, scratch);
    if (event->kind != EVENT_OBSERVATION)
        return;
    const struct observation *said = event->observation;
    if (said->kind == OBSERVATION_RAS_MISSING && observation_fact(said, FACT_GROUP_RANK) == NULL)
        take_several(store, event, scratch);
    else if (said->kind == OBSERVATION_RAS_RANK || said->kind == OBSERVATION_RAS_MISSING)
        take_rank(store, event, scratch);
    else if (said->kind == OBSERVATION_RAS_MISMATCH)
        take_others(store, event, scratch);
    else if (said->kind == OBSERVATION_INSPECTOR_COLL)
        take_ended(store, event, scratch);
}

// -- whose processes -----------------------------------------------------------------------------

// All rows of one communicator, ascending by operation, then rank.
struct communicator {
    struct hang_ras *const *rows;
    uint32_t row_count;
    string_id job, name;
    int64_t size; // -1: not known
    bool is_job;  // its ranks are those of the job
    bool is_only; // … and no other communicator is as large
};

static int compare_rows(const void *left, const void *right) {
    const struct hang_ras *a = *(struct hang_ras *const *)left;
    const struct hang_ras *b = *(struct hang_ras *const *)right;
    int order = compare_strings(a->key.job, b->key.job);
    order = order != 0 ? order : compare_strings(a->key.communicator, b->key.communicator);
    order = order != 0 ? order : compare_strings(a->key.op, b->key.op);
    return order != 0 ? order : (a->key.rank > b->key.rank) - (a->key.rank < b->key.rank);
}

// Answers name no job: it is that of the ranks that are known, when these are of one.
static string_id job_of(const struct hang_store *store, string_id said) {
    string_id found = STRING_NONE;
    uint32_t at = 0;
    const struct hang_rank *rank;
    while (said == STRING_NONE && (rank = keyed_rows_next(&store->ranks, &at)) != NULL) {
        if (found != STRING_NONE && rank->key.job != found)
            return STRING_NONE;
        found = rank->key.job;
    }
    return said != STRING_NONE ? said : found;
}

static int64_t ranks_known(const struct hang_store *store, string_id job) {
    int64_t count = 0;
    uint32_t at = 0;
    const struct hang_rank *rank;
    while ((rank = keyed_rows_next(&store->ranks, &at)) != NULL)
        count += rank->key.job == job;
    return count;
}

// `all` are those of one job.
static void find_whole(const struct hang_store *store, struct communicator *all, uint32_t count) {
    string_id job = job_of(store, all[0].job);
    int64_t known = ranks_known(store, job), largest = 0;
    uint32_t as_large = 0;
    if (count == 1 && all[0].size < 0 && known > 0)
        all[0].size = known;
    for (uint32_t i = 0; i < count; i++)
        largest = all[i].size > largest ? all[i].size : largest;
    for (uint32_t i = 0; i < count; i++)
        as_large += all[i].size == largest;
    for (uint32_t i = 0; i < count; i++) {
        bool is_largest = all[i].size == largest && largest > 0;
        all[i].job = job;
        all[i].is_only = is_largest && as_large == 1 && largest >= known;
        all[i].is_job = all[i].is_only || (is_largest && largest == known);
    }
}

static int compare_processes(const void *left, const void *right) {
    const struct hang_process *a = *(struct hang_process *const *)left;
    const struct hang_process *b = *(struct hang_process *const *)right;
    return COMPARE_KEYS(COMPARE((uint64_t)a->pid, (uint64_t)b->pid),
                        COMPARE((uint64_t)a->key.rank, (uint64_t)b->key.rank));
}

struct hang_processes hang_processes_of(const struct hang_judging *judging) {
    struct hang_processes all = {
        .items =
            arena_take(judging->arena, (keyed_rows_count(&judging->store->processes) + (size_t)1) *
                                           sizeof(void *))};
    struct hang_process *process;
    uint32_t at = 0;
    while ((process = keyed_rows_next(&judging->store->processes, &at)) != NULL)
        all.items[all.count++] = process;
    all.several_jobs = hang_has_several_jobs(judging->store);
    sort_stable(all.items, all.count, sizeof(void *), judging->arena, compare_processes);
    return all;
}

// Of those that name the job, else of those that may be of it, the only one. Without a node a PID
// says nothing where several jobs have ranks, unless both name theirs.
const struct hang_process *hang_find_process(const struct hang_processes *all, string_id job,
                                             string_id node, int64_t pid) {
    uint32_t low = 0, high = all->count;
    const struct hang_process *found = NULL;
    bool is_named = false, several = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((int64_t)all->items[middle]->pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < all->count && (int64_t)all->items[low]->pid == pid; low++) {
        const struct hang_process *process = all->items[low];
        bool names_job = process->key.job == job;
        bool may_be = names_job || process->key.job == STRING_NONE || job == STRING_NONE;
        if (process->node != node || !may_be || (is_named && !names_job))
            continue;
        several = found != NULL && names_job == is_named;
        is_named = names_job;
        found = process;
    }
    bool is_lost = node == STRING_NONE && all->several_jobs && (!is_named || job == STRING_NONE);
    return several || is_lost ? NULL : found;
}

// -- groups --------------------------------------------------------------------------------------

// One communicator with the operations that its counts are of.
struct tally {
    const struct communicator *in;
    uint32_t from, until;          // rows
    const struct hang_ras *others; // NULL: each rank has its own
    int64_t lead;                  // the highest count
    uint64_t confirmed_ns;         // since when it is known that all stood still; 0: it is not
    uint32_t behind;
};

static bool is_missing(const struct hang_judging *judging, const struct hang_ras *row) {
    return newest_by(&row->missing, judging->now_ns) > newest_by(&row->told, judging->now_ns);
}

static struct tally tally_of(const struct hang_judging *judging, const struct communicator *in,
                             uint32_t from, uint32_t until) {
    struct tally tally = {.in = in, .from = from, .until = until, .lead = -1};
    bool still = true;
    for (uint32_t i = from; i < until; i++) {
        const struct hang_ras *row = in->rows[i];
        tally.lead = row->count > tally.lead ? row->count : tally.lead;
        if (row->key.rank == RAS_OTHERS)
            tally.others = row;
    }
    for (uint32_t i = from; i < until; i++) {
        const struct hang_ras *row = in->rows[i];
        if (row->ended >= tally.lead &&
            row->ended_ns <= judging->now_ns) // the Inspector saw it end
            still = false;
        if (row->count < 0 || is_missing(judging, row))
            continue;
        tally.behind += row->count < tally.lead;
        still = still && row->confirmed_ns != 0 && row->confirmed_ns <= judging->now_ns;
        tally.confirmed_ns = later(tally.confirmed_ns, row->confirmed_ns);
    }
    if (!still)
        tally.confirmed_ns = 0;
    return tally;
}

// Of rows with one operation.
static const struct hang_ras *row_at(const struct tally *tally, uint32_t from, uint32_t until,
                                     int64_t place) {
    uint32_t end = until;
    while (from < until) {
        uint32_t middle = from + (until - from) / 2;
        if (tally->in->rows[middle]->key.rank < place)
            from = middle + 1;
        else
            until = middle;
    }
    return from < end && tally->in->rows[from]->key.rank == place ? tally->in->rows[from] : NULL;
}

static void add_row(const struct hang_judging *judging, const struct tally *tally,
                    const struct hang_ras *row, int32_t rank, int64_t place,
                    struct hang_lines_group *group) {
    assert(row->count >= 0);
    uint64_t told_ns = newest_by(&row->told, judging->now_ns);
    struct hang_line *line = arena_zero(judging->arena, 1, sizeof *line);
    *line = (struct hang_line){.key = {tally->in->job, group->group.name, rank},
                               .node = row->key.rank == RAS_OTHERS ? STRING_NONE : row->node,
                               .group_rank = (int32_t)place,
                               .waits_in = row->count == tally->lead ? row->count : -1,
                               .waits_ns = told_ns,
                               .enqueued = row->count,
                               .completed = row->count,
                               .progress_ns = told_ns,
                               .heard_ns = told_ns};
    struct hang_open *open = NULL;
    if (row->count == tally->lead) {
        open = arena_zero(judging->arena, 1, sizeof *open);
        *open = (struct hang_open){.next = TABLE_NO_ROW,
                                   .name = row->key.op,
                                   .own = -1,
                                   .peer = -1,
                                   .state = FLIGHT_SCHEDULED,
                                   .sequence = row->count,
                                   .created_ns = row->since_ns,
                                   .seen_ns = told_ns};
    }
    group->opens[group->row_count] = open;
    group->rows[group->row_count++] = line;
}

static int compare_ranks(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

struct placed {
    int32_t rank;
    int64_t place;
    const struct hang_ras *row; // NULL: nothing came of it
};

static int compare_placed(const void *left, const void *right) {
    return compare_ranks(&((const struct placed *)left)->rank,
                         &((const struct placed *)right)->rank);
}

static int32_t rank_of(const struct hang_processes *processes, string_id job,
                       const struct hang_ras *row) {
    const struct hang_process *process = hang_find_process(processes, job, row->node, row->pid);
    return process == NULL ? RANK_NONE : process->key.rank;
}

// Each place of the communicator, by its rank in the job; false: some cannot be told.
static bool find_places(const struct hang_judging *judging, const struct hang_processes *processes,
                        const struct tally *tally, uint32_t whole_until, struct placed *places) {
    for (int64_t place = 0; place < tally->in->size; place++) {
        const struct hang_ras *own = row_at(tally, tally->from, tally->until, place);
        const struct hang_ras *plain = row_at(tally, 0, whole_until, place);
        bool missing = plain != NULL && is_missing(judging, plain);
        const struct hang_ras *known = own != NULL ? own : plain;
        int32_t rank = tally->in->is_job ? (int32_t)place
                       : known != NULL   ? rank_of(processes, tally->in->job, known)
                                         : RANK_NONE;
        if (rank == RANK_NONE)
            return false;
        bool counted = own != NULL && own->count >= 0 && !missing;
        places[place] = (struct placed){rank, place, counted ? own : NULL};
        if (!counted && !missing)
            places[place].row = tally->others;
    }
    sort_stable(places, (size_t)tally->in->size, sizeof *places, judging->arena, compare_placed);
    return true;
}

static bool make_group(const struct hang_judging *judging, const struct hang_processes *processes,
                       const struct tally *tally, uint32_t whole_until,
                       struct hang_lines_group *group) {
    const struct communicator *in = tally->in;
    uint32_t size = (uint32_t)in->size;
    struct placed *places = arena_take(judging->arena, size * sizeof *places);
    if (!find_places(judging, processes, tally, whole_until, places))
        return false;
    bool is_default = in->is_job && in->is_only;
    *group = (struct hang_lines_group){
        .group = {.head = {.live = 1},
                  .job = in->job,
                  .backend = intern(SLICE("nccl")),
                  .name = is_default ? intern(SLICE("0")) : in->rows[0]->key.communicator,
                  .desc = is_default                ? intern(SLICE("default_pg"))
                          : in->name != STRING_NONE ? in->name
                                                    : intern(SLICE(""))},
        .rows = arena_take(judging->arena, size * sizeof(void *)),
        .opens = arena_zero(judging->arena, size, sizeof(void *)),
        .ranks = arena_take(judging->arena, size * sizeof(int32_t)),
        .rank_count = size,
        .by_ras = true,
        .confirmed_ns = tally->confirmed_ns};
    for (uint32_t i = 0; i < size; i++) {
        group->ranks[i] = places[i].rank;
        if (places[i].row != NULL)
            add_row(judging, tally, places[i].row, places[i].rank, places[i].place, group);
    }
    for (uint32_t i = 0; i < group->row_count; i++)
        if (group->opens[i] != NULL)
            return true;
    return false;
}

// Whether RAS gave somebody up: the newest time, 0: nobody.
static uint64_t dead_ns(const struct hang_judging *judging, const struct communicator *in,
                        uint32_t whole_until, bool *missing) {
    uint64_t newest_ns = 0;
    for (uint32_t i = 0; i < whole_until; i++) {
        const struct hang_ras *row = in->rows[i];
        if (!is_missing(judging, row))
            continue;
        *missing = true;
        newest_ns = later(newest_ns, newest_by(&row->dead, judging->now_ns));
    }
    return newest_ns;
}

// What all operations together tell goes before what one of them tells.
static bool gather_communicator(const struct hang_judging *judging,
                                const struct hang_processes *processes,
                                const struct communicator *in, struct hang_lines_group *group) {
    uint32_t whole_until = 0;
    bool missing = false;
    if (in->size <= 0 || in->size > judging->store->max_ranks)
        return false;
    while (whole_until < in->row_count && in->rows[whole_until]->key.op == STRING_NONE)
        whole_until++;
    uint64_t dead = dead_ns(judging, in, whole_until, &missing);
    for (uint32_t from = 0, until; from < in->row_count; from = until) {
        for (until = from + 1;
             until < in->row_count && in->rows[until]->key.op == in->rows[from]->key.op;)
            until++;
        struct tally tally = tally_of(judging, in, from, until);
        if (tally.confirmed_ns == 0 && dead != 0)
            tally.confirmed_ns = dead;
        if (tally.lead < 0 || tally.confirmed_ns == 0 || (tally.behind == 0 && !missing))
            continue;
        if (make_group(judging, processes, &tally, whole_until, group))
            return true;
    }
    return false;
}

static uint64_t heard_ns(const struct hang_judging *judging, const struct hang_ras *row) {
    uint64_t newest_ns = row->ended_ns <= judging->now_ns ? row->ended_ns : 0;
    newest_ns = later(newest_ns, newest_by(&row->told, judging->now_ns));
    return later(newest_ns, newest_by(&row->missing, judging->now_ns));
}

// Of one job; at least one. One of which nothing came for long while others were told of is of a
// job that was started again since.
static uint32_t list_communicators(const struct hang_judging *judging, struct hang_ras *const *rows,
                                   uint32_t count, struct communicator *all) {
    uint32_t known = 0;
    uint64_t newest_ns = 0;
    for (uint32_t i = 0; i < count; i++)
        newest_ns = later(newest_ns, heard_ns(judging, rows[i]));
    for (uint32_t from = 0, end; from < count; from = end) {
        struct communicator *in = &all[known];
        uint64_t last_ns = 0;
        *in = (struct communicator){.rows = rows + from, .job = rows[from]->key.job, .size = -1};
        for (end = from; end < count && rows[end]->key.communicator == rows[from]->key.communicator;
             end++) {
            in->size = rows[end]->size > in->size ? rows[end]->size : in->size;
            if (compare_strings(rows[end]->name, in->name) > 0)
                in->name = rows[end]->name;
            last_ns = later(last_ns, heard_ns(judging, rows[end]));
        }
        in->row_count = end - from;
        known += newest_ns - last_ns <= judging->lines_apart_ns;
    }
    assert(known > 0);
    return known;
}

struct hang_lines hang_ras_gather(const struct hang_judging *judging) {
    const struct hang_store *store = judging->store;
    uint32_t total = keyed_rows_count(&store->ras), count = 0, at = 0, known = 0;
    struct hang_lines lines = {.group_count = 0};
    if (total == 0)
        return lines;
    struct hang_ras *row, **rows = arena_take(judging->arena, total * sizeof *rows);
    while ((row = keyed_rows_next(&store->ras, &at)) != NULL)
        rows[count++] = row;
    sort_stable(rows, count, sizeof *rows, judging->arena, compare_rows);
    struct communicator *all = arena_zero(judging->arena, count, sizeof *all);
    for (uint32_t from = 0, until; from < count; from = until) {
        until = from + 1;
        while (until < count && rows[until]->key.job == rows[from]->key.job)
            until++;
        uint32_t of_job = list_communicators(judging, rows + from, until - from, all + known);
        find_whole(store, all + known, of_job);
        known += of_job;
    }
    struct hang_processes processes = hang_processes_of(judging);
    lines.groups = arena_take(judging->arena, known * sizeof *lines.groups);
    for (uint32_t i = 0; i < known; i++) {
        struct hang_lines_group *group = &lines.groups[lines.group_count];
        if (!gather_communicator(judging, &processes, &all[i], group))
            continue;
        lines.group_count++;
        lines.open_count += group->row_count;
    }
    return lines;
}
