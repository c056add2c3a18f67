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

uint32_t row_bound_make_room(struct keyed_rows *rows, uint32_t max, size_t time_offset,
                             struct arena *scratch) {
    uint32_t count = keyed_rows_count(rows), at = 0, gathered = 0;
    assert(max > 0 && time_offset >= sizeof(struct row_head));
    if (count < max)
        return 0;
    void *row;
    struct dated_row *dated = arena_take(scratch, count * sizeof *dated);
    while ((row = keyed_rows_next(rows, &at)) != NULL)
        dated[gathered++] = (struct dated_row){time_of(row, time_offset), row};
    sort_stable(dated, gathered, sizeof *dated, scratch, compare_times);
    uint32_t share = share_of(count, max);
    share = share < gathered ? share : gathered;
    for (uint32_t i = 0; i < share; i++)
        keyed_rows_remove(rows, dated[i].row);
    return share;
}

void *rows_oldest(const struct keyed_rows *rows, size_t time_offset) {
    void *row, *oldest = NULL;
    for (uint32_t at = 0; (row = keyed_rows_next(rows, &at)) != NULL;)
        if (oldest == NULL || time_of(row, time_offset) < time_of(oldest, time_offset))
            oldest = row;
    return oldest;
}

void *row_bound_take(struct keyed_rows *rows, struct row_bound *bound, const void *key,
                     size_t time_offset, struct arena *scratch) {
    void *row = keyed_rows_find(rows, key);
    if (row != NULL)
        return row;
    uint32_t gone = row_bound_make_room(rows, bound->max, time_offset, scratch);
    bound->evicted += gone;
    const void *oldest = gone == 0 ? NULL : rows_oldest(rows, time_offset);
    if (gone > 0)
        bound->horizon_ns = oldest == NULL ? UINT64_MAX : time_of(oldest, time_offset);
    return keyed_rows_add(rows, key);
}

void rows_expire(struct keyed_rows *rows, size_t time_offset, uint64_t before_ns) {
    assert(time_offset >= sizeof(struct row_head));
    void *row;
    for (uint32_t at = 0; (row = keyed_rows_next(rows, &at)) != NULL;)
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
