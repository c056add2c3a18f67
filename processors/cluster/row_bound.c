// SPDX-License-Identifier: Apache-2.0
// Which rows go when a table is full? Those whose time is lowest; of equal ones those that stand
// first. Many at once, so that a flood of new keys does not cost a walk through the table each.
#include "processors/cluster/row_bound.h"

#include "base/sort.h"

enum { SHARE = 16 };

static int compare_times(const void *a, const void *b) {
    const uint64_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

static uint64_t time_of(const void *row, size_t time_offset) {
    uint64_t time;
    memcpy(&time, (const char *)row + time_offset, sizeof time);
    return time;
}

uint32_t row_bound_make_room(struct keyed_rows *rows, uint32_t max, size_t time_offset,
                             struct arena *scratch) {
    uint32_t count = keyed_rows_count(rows), at = 0, gathered = 0, removed = 0;
    if (count < max || count == 0)
        return 0;
    void *row;
    uint64_t *times = arena_take(scratch, count * sizeof *times);
    while ((row = keyed_rows_next(rows, &at)) != NULL)
        times[gathered++] = time_of(row, time_offset);
    sort_stable(times, gathered, sizeof *times, scratch, compare_times);
    uint32_t share = count - max + max / SHARE + 1;
    uint64_t limit = times[share - 1 < gathered ? share - 1 : gathered - 1];
    at = 0;
    while (removed < share && (row = keyed_rows_next(rows, &at)) != NULL) {
        if (time_of(row, time_offset) > limit)
            continue;
        keyed_rows_remove(rows, row);
        removed++;
    }
    return removed;
}
