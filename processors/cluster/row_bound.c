// SPDX-License-Identifier: Apache-2.0
// Finds the rows with the lowest times and removes them.
#include "processors/cluster/row_bound.h"

#include "base/sort.h"
#include "processors/cluster/compare.h"

enum { SHARE = 16 };

struct dated_row {
    uint64_t time_ns;
    void *row;
};

static int compare_times(const void *a, const void *b) {
    return COMPARE_KEYS(
        COMPARE(((const struct dated_row *)a)->time_ns, ((const struct dated_row *)b)->time_ns));
}

static uint64_t time_of(const void *row, size_t time_offset) {
    uint64_t time_ns;
    memcpy(&time_ns, (const char *)row + time_offset, sizeof time_ns);
    return time_ns;
}

static uint32_t share_of(uint32_t count, uint32_t max) {
    assert(count >= max);
    return count - max + max / SHARE + 1;
}

// Which of these times stands at `nth`, from 0, in order. Byte by byte from the highest, so O(n)
// whatever the times are. They are lost.
static uint64_t time_at(uint64_t *times, uint32_t count, uint32_t nth) {
    assert(nth < count);
    for (unsigned shift = 64; shift > 0;) {
        uint32_t numbers[256] = {0}, kept = 0;
        uint64_t byte = 0;
        shift -= 8;
        for (uint32_t i = 0; i < count; i++)
            numbers[times[i] >> shift & 0xff]++;
        for (; nth >= numbers[byte]; byte++)
            nth -= numbers[byte];
        for (uint32_t i = 0; i < count; i++)
            if ((times[i] >> shift & 0xff) == byte)
                times[kept++] = times[i];
        count = kept;
    }
    return times[0];
}

// Rows in the order in which they stand.
struct row_times {
    struct dated_row *items;
    uint32_t count;
};

// Removes the `share` of them with the lowest times; returns the lowest that is left, UINT64_MAX
// when none is. From the last to the first, so that new rows fill the gaps in the order in which
// rows stand: what is added in order of time then lies in that order, and is quickly sorted.
static uint64_t remove_lowest(struct keyed_rows *rows, const struct row_times *all, uint32_t share,
                              struct arena *scratch) {
    uint32_t below = 0, same = 0;
    uint64_t *times = arena_take(scratch, all->count * sizeof *times), left_ns = UINT64_MAX;
    for (uint32_t i = 0; i < all->count; i++)
        times[i] = all->items[i].time_ns;
    uint64_t cut_ns = time_at(times, all->count, share - 1);
    for (uint32_t i = 0; i < all->count; i++) {
        below += all->items[i].time_ns < cut_ns;
        same += all->items[i].time_ns == cut_ns;
    }
    assert(below < share && share <= below + same);
    for (uint32_t i = all->count; i-- > 0;) {
        const struct dated_row *item = &all->items[i];
        // Of those of this time the first go.
        bool goes = item->time_ns < cut_ns || (item->time_ns == cut_ns && same-- <= share - below);
        if (goes)
            keyed_rows_remove(rows, item->row);
        else if (item->time_ns < left_ns)
            left_ns = item->time_ns;
    }
    return left_ns;
}

// `*left_ns`: the lowest time that is left, when rows went.
static uint32_t make_room(struct keyed_rows *rows, uint32_t max, size_t time_offset,
                          uint64_t *left_ns, struct arena *scratch) {
    uint32_t count = keyed_rows_count(rows), at = 0;
    assert(max > 0 && time_offset >= sizeof(struct row_head));
    if (count < max)
        return 0;
    void *row;
    struct row_times all = {arena_take(scratch, count * sizeof *all.items), 0};
    while ((row = keyed_rows_next(rows, &at)) != NULL)
        all.items[all.count++] = (struct dated_row){time_of(row, time_offset), row};
    assert(all.count == count);
    uint32_t share = share_of(count, max);
    share = share < count ? share : count;
    *left_ns = remove_lowest(rows, &all, share, scratch);
    return share;
}

uint32_t row_bound_make_room(struct keyed_rows *rows, uint32_t max, size_t time_offset,
                             struct arena *scratch) {
    uint64_t left_ns;
    return make_room(rows, max, time_offset, &left_ns, scratch);
}

void *rows_oldest(const struct keyed_rows *rows, size_t time_offset) {
    void *row, *oldest = NULL;
    for (uint32_t at = 0; (row = keyed_rows_next(rows, &at)) != NULL;)
        if (oldest == NULL || time_of(row, time_offset) < time_of(oldest, time_offset))
            oldest = row;
    return oldest;
}

void *row_bound_get(struct keyed_rows *rows, struct row_bound *bound, const void *key,
                    size_t time_offset, bool *is_new, struct arena *scratch) {
    void *row = keyed_rows_find(rows, key);
    *is_new = row == NULL;
    if (row != NULL)
        return row;
    bound->evicted += make_room(rows, bound->max, time_offset, &bound->horizon_ns, scratch);
    return keyed_rows_add(rows, key);
}

void *row_bound_take(struct keyed_rows *rows, struct row_bound *bound, const void *key,
                     size_t time_offset, struct arena *scratch) {
    bool is_new;
    return row_bound_get(rows, bound, key, time_offset, &is_new, scratch);
}

void rows_expire(struct keyed_rows *rows, size_t time_offset, uint64_t before_ns) {
    assert(time_offset >= sizeof(struct row_head));
    void *row;
    // From the last to the first: see remove_lowest.
    for (uint32_t at = UINT32_MAX; (row = keyed_rows_previous(rows, &at)) != NULL;)
        if (time_of(row, time_offset) < before_ns)
            keyed_rows_remove(rows, row);
}

void row_bound_expire(struct keyed_rows *rows, struct row_bound *bound, size_t time_offset,
                      uint64_t before_ns) {
    if (before_ns <= bound->horizon_ns)
        return;
    rows_expire(rows, time_offset, before_ns);
    bound->horizon_ns = before_ns;
}

bool idle_rows_make_room(const struct idle_rows *rows, struct arena *scratch) {
    assert(rows->max > 0 && rows->is_idle != NULL && rows->forget != NULL);
    uint32_t max = rows->max, count = keyed_rows_count(rows->rows), at = 0, idle = 0;
    if (count < max || (count < *rows->looked_at && count < 2 * max))
        return true;
    if (count >= 2 * max && count < *rows->looked_at)
        return false;
    void *row;
    struct dated_row *dated = arena_take(scratch, count * sizeof *dated);
    while ((row = keyed_rows_next(rows->rows, &at)) != NULL)
        if (rows->is_idle(rows->owner, row))
            dated[idle++] = (struct dated_row){time_of(row, rows->time_offset), row};
    sort_stable(dated, idle, sizeof *dated, scratch, compare_times);
    uint32_t share = share_of(count, max);
    for (uint32_t i = 0; i < idle && i < share; i++)
        rows->forget(rows->owner, dated[i].row);
    // Not again for each row more: that would be a walk through all of them each time.
    count = keyed_rows_count(rows->rows);
    *rows->looked_at = count < max ? 0 : count + max / SHARE + 1;
    return count < 2 * max;
}
