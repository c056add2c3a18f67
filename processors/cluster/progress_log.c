// SPDX-License-Identifier: Apache-2.0
// Rows sorted by writer and position, so that what was counted behind a line is found by halving.
#include "processors/cluster/progress_log.h"

#include "base/sort.h"
#include "base/table/table.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/row_text.h"

KEYED_ROW_CHECK(struct progress_row, key);

const struct row_type PROGRESS_ROWS =
    KEYED_ROW_TYPE(struct progress_row, key, 64, offsetof(struct progress_row, key.source),
                   offsetof(struct progress_row, job), offsetof(struct progress_row, node));

// Others that are further by so much did not only finish what they had begun.
#define LONG_NS (10 * UINT64_C(1000000000))
// … and so many rows show it.
enum { LONG_STEPS = 10, ROWS_BEHIND = 64 };

// -- keeping --------------------------------------------------------------------------------------

static enum progress_state state_of(const struct observation *observation) {
    static const char *const NAMES[] = {"counting", "saved", "begins", "done"};
    struct slice state = SLICE("");
    observation_text(observation, FACT_STATE, &state);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (slice_equal(state, slice_of(NAMES[i])))
            return (enum progress_state)i;
    return PROGRESS_COUNTS;
}

static int64_t number_of(const struct observation *observation, enum fact_key key) {
    int64_t number = -1;
    observation_number(observation, key, &number);
    return number;
}

void progress_log_keep(struct progress_log *log, const struct event *event, struct arena *scratch) {
    const struct observation *observation = event->observation;
    struct progress_key key = {event->source, (uint32_t)(event->position >> 32),
                               (uint32_t)event->position, state_of(observation)};
    struct progress_row *row = row_bound_take(&log->rows, &log->bound, &key,
                                              offsetof(struct progress_row, time_ns), scratch);
    struct slice epoch = SLICE(""), scope = SLICE("");
    int64_t rises = number_of(observation, FACT_COUNT);
    int64_t local_rank = number_of(observation, FACT_LOCAL_RANK);
    int64_t task = number_of(observation, FACT_TASK);
    observation_text(observation, FACT_EPOCH, &epoch);
    observation_text(observation, FACT_SCOPE, &scope);
    row->time_ns = event->time_ns;
    row->timeless = event->timeless;
    row->anew = number_of(observation, FACT_RESTARTS) > 0;
    row->iteration = number_of(observation, FACT_ITERATION);
    row->total = number_of(observation, FACT_TOTAL);
    row->pid = number_of(observation, FACT_PID);
    row->job = event->job;
    row->node = event->node;
    row->rank = event->rank;
    row->local_rank = local_rank > INT32_MAX ? -1 : (int32_t)local_rank;
    row->task = task > INT32_MAX ? -1 : (int32_t)task;
    row->rises = rises < 0 ? 0 : rises > UINT16_MAX ? UINT16_MAX : (uint32_t)rises;
    row->of_epoch = slice_equal(scope, SLICE("epoch"));
    row_text_put(row->epoch, sizeof row->epoch, epoch);
}

static uint64_t position_of(const struct progress_row *row) {
    return (uint64_t)row->key.position_high << 32 | row->key.position_low;
}

// -- the index ------------------------------------------------------------------------------------

struct entry {
    const struct progress_row *row;
};

struct progress_index {
    struct entry *entries; // by source, writer and position
    uint32_t *firsts;      // of each writer
    uint32_t writer_count, count;
};

static int compare_writers(const struct progress_row *a, const struct progress_row *b) {
    return COMPARE_KEYS(COMPARE(a->key.source, b->key.source), COMPARE(a->job, b->job),
                        COMPARE(a->node, b->node), COMPARE(a->rank, b->rank),
                        COMPARE(a->local_rank, b->local_rank), COMPARE(a->task, b->task),
                        COMPARE(a->pid, b->pid));
}

static int compare_entries(const void *left, const void *right) {
    const struct progress_row *a = ((const struct entry *)left)->row;
    const struct progress_row *b = ((const struct entry *)right)->row;
    int order = compare_writers(a, b);
    return order != 0 ? order : COMPARE(position_of(a), position_of(b));
}

const struct progress_index *progress_index_make(const struct progress_log *log, uint64_t now_ns,
                                                 struct arena *arena) {
    struct progress_index *index = arena_zero(arena, 1, sizeof *index);
    uint32_t most = keyed_rows_count(&log->rows) + 1;
    const struct progress_row *row;
    index->entries = arena_zero(arena, most, sizeof *index->entries);
    index->firsts = arena_zero(arena, most, sizeof *index->firsts);
    for (uint32_t at = 0; (row = keyed_rows_next(&log->rows, &at)) != NULL;)
        if (row->timeless || row->time_ns <= now_ns)
            index->entries[index->count++].row = row;
    sort_stable(index->entries, index->count, sizeof *index->entries, arena, compare_entries);
    for (uint32_t i = 0; i < index->count; i++)
        if (i == 0 || compare_writers(index->entries[i - 1].row, index->entries[i].row) != 0)
            index->firsts[index->writer_count++] = i;
    return index;
}

static uint32_t end_of_writer(const struct progress_index *index, uint32_t writer) {
    return writer + 1 < index->writer_count ? index->firsts[writer + 1] : index->count;
}

const struct progress_row *progress_next_writer(const struct progress_index *index, uint32_t *at) {
    if (*at >= index->writer_count)
        return NULL;
    return index->entries[end_of_writer(index, (*at)++) - 1].row;
}

// -- who went on ----------------------------------------------------------------------------------

static bool agrees(string_id a, string_id b) {
    return a == STRING_NONE || b == STRING_NONE || a == b;
}

// Of two numbers of which -1 is none. `same`: they are known, and one.
static bool may_be(int64_t a, int64_t b, bool *same) {
    *same = *same || (a >= 0 && a == b);
    return a < 0 || b < 0 || a == b;
}

static bool is_same_writer(const struct progress_row *row, const struct progress_who *who) {
    bool same = false;
    bool may = agrees(row->job, who->job) && agrees(row->node, who->node) &&
               may_be(row->rank, who->rank, &same) &&
               may_be(row->local_rank, who->local_rank, &same) &&
               may_be(row->task, who->task, &same) && may_be(row->pid, who->pid, &same);
    return may && same;
}

// Whether what is told there came behind: in one log by where it stands, else by times.
static bool is_behind(const struct progress_row *row, const struct progress_who *who) {
    if (row->key.source == who->source)
        return position_of(row) > who->position;
    return !row->timeless && who->time_ns != 0 && row->time_ns > who->time_ns;
}

// Whether it is of another start.
static bool is_too_late(const struct progress_row *row, const struct progress_who *who) {
    bool same = row->key.source == who->source;
    uint64_t until = same ? who->until_position : who->until_ns;
    return row->anew || (until != 0 && (same ? position_of(row) : row->time_ns) > until);
}

// The first that came behind, of those from `low` to before `high`.
static uint32_t first_behind(const struct progress_index *index, uint32_t low, uint32_t high,
                             const struct progress_who *who) {
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_behind(index->entries[middle].row, who))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// From the last that was told before it to the last that is told.
static bool is_long(const struct progress_index *index, uint32_t first, uint32_t at, uint32_t end,
                    const struct progress_who *who) {
    const struct progress_row *last = index->entries[end - 1].row;
    const struct progress_row *before = at > first ? index->entries[at - 1].row : NULL;
    if (who->time_ns != 0 && !last->timeless && last->time_ns > who->time_ns + LONG_NS)
        return true;
    return before != NULL && before->iteration >= 0 && !before->of_epoch && !last->of_epoch &&
           last->iteration >= before->iteration + LONG_STEPS;
}

// How often the writer rose behind it. What is told first in another log may have risen before.
static uint32_t rises_behind(const struct progress_index *index, uint32_t at, uint32_t end,
                             const struct progress_who *who) {
    bool same = index->entries[at].row->key.source == who->source;
    uint64_t rises = 0;
    for (uint32_t i = at; i < end; i++)
        rises += same || i > at ? index->entries[i].row->rises : 0;
    return rises > UINT32_MAX ? UINT32_MAX : (uint32_t)rises;
}

static void add_writer(const struct progress_index *index, uint32_t first, uint32_t end,
                       const struct progress_who *who, struct progress_after *after) {
    const struct progress_row *row = index->entries[first].row;
    uint32_t at = agrees(row->job, who->job) ? first_behind(index, first, end, who) : end;
    uint32_t behind = at;
    while (behind < end && behind < at + ROWS_BEHIND &&
           !is_too_late(index->entries[behind].row, who))
        behind++;
    if (at == behind)
        return;
    uint32_t rises = rises_behind(index, at, behind, who);
    // Of another of whom nothing was told before it is not known from where it rose.
    bool is_own = is_same_writer(row, who);
    uint32_t *counted = is_own ? &after->own : &after->others;
    if ((is_own || at > first) && rises > *counted)
        *counted = rises;
    for (uint32_t i = at; i < behind && !after->is_done; i++)
        after->is_done = index->entries[i].row->key.state == PROGRESS_DONE;
    bool counts = index->entries[behind - 1].row->rises > 0;
    after->is_long = after->is_long || (counts && is_long(index, first, at, behind, who));
}

struct progress_after progress_after(const struct progress_index *index,
                                     const struct progress_who *who) {
    struct progress_after after = {0};
    for (uint32_t i = 0; i < index->writer_count; i++)
        add_writer(index, index->firsts[i], end_of_writer(index, i), who, &after);
    return after;
}

// -- how far it came ------------------------------------------------------------------------------

// Whether it was told by then, of the job.
static bool is_of(const struct progress_row *row, string_id job, uint64_t until_ns, bool timeless) {
    return agrees(row->job, job) && (row->timeless ? timeless : row->time_ns <= until_ns);
}

// The later of two, by times, in one log by where they stand, else the one that is further.
static bool is_later(const struct progress_row *row, const struct progress_row *than) {
    if (than == NULL)
        return true;
    if (row->key.source == than->key.source)
        return position_of(row) > position_of(than);
    if (row->time_ns != than->time_ns && !row->timeless && !than->timeless)
        return row->time_ns > than->time_ns;
    return row->iteration != than->iteration ? row->iteration > than->iteration
                                             : strcmp(row->epoch, than->epoch) > 0;
}

struct progress_reached progress_reached(const struct progress_log *log, string_id job,
                                         uint64_t until_ns, bool timeless) {
    struct progress_reached reached = {NULL, NULL};
    const struct progress_row *row;
    for (uint32_t at = 0; (row = keyed_rows_next(&log->rows, &at)) != NULL;) {
        if (!is_of(row, job, until_ns, timeless))
            continue;
        bool is_count = row->key.state == PROGRESS_COUNTS;
        bool is_saved = row->key.state == PROGRESS_SAVED && (row->iteration >= 0 || *row->epoch);
        if (is_count && is_later(row, reached.newest))
            reached.newest = row;
        if (is_saved && is_later(row, reached.saved))
            reached.saved = row;
    }
    return reached;
}
