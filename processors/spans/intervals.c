// SPDX-License-Identifier: Apache-2.0
// A grid of all times, and both lists walked forward over it in their own order: a point that came
// late in the list hides those behind it until its time is reached.
#include "processors/spans/intervals.h"

#include <assert.h>

struct thread_point {
    double time_s;
    int64_t threads;
};

static uint32_t thread_points(const struct span_forest *forest, uint32_t first,
                              const struct span_answer *answer, struct arena *arena,
                              struct thread_point **points) {
    uint32_t count = 0;
    for (uint32_t at = first; at != TABLE_NO_ROW; at = span_point_at(forest, at)->next)
        count++;
    struct thread_point *items = arena_take(arena, count * sizeof *items + 1);
    count = 0;
    for (uint32_t at = first; at != TABLE_NO_ROW; at = span_point_at(forest, at)->next) {
        const struct span_point_row *point = span_point_at(forest, at);
        if (answer->done && point->time_s >= answer->stop_s)
            break;
        double time_s = point->time_s > answer->enqueued_s ? point->time_s : answer->enqueued_s;
        items[count++] = (struct thread_point){time_s, point->threads};
    }
    *points = items;
    return count;
}

static uint32_t make_grid(double *grid, uint32_t count, struct arena *arena) {
    sort_stable(grid, count, sizeof *grid, arena, compare_by_double);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || grid[kept - 1] != grid[i])
            grid[kept++] = grid[i];
    return kept;
}

void span_intervals(const struct span_forest *forest, uint32_t first,
                    const struct span_activity *activity, uint32_t activity_count,
                    struct arena *arena, struct span_answer *answer) {
    struct thread_point *points;
    uint32_t point_count = thread_points(forest, first, answer, arena, &points);
    assert(answer->interval_count == 0 && activity_count % 2 == 0);
    if (point_count == 0)
        return;
    double *grid = arena_take(arena, (point_count + activity_count) * sizeof *grid);
    uint32_t count = 0;
    for (uint32_t i = 0; i < point_count; i++)
        grid[count++] = points[i].time_s;
    for (uint32_t i = 0; i < activity_count; i++)
        grid[count++] = activity[i].time_s;
    count = make_grid(grid, count, arena);
    struct span_interval *intervals = arena_take(arena, count * sizeof *intervals);
    uint32_t next_point = 0, next_activity = 0;
    int64_t threads = 0;
    bool on = false;
    for (uint32_t i = 0; i + 1 < count; i++) {
        while (next_point < point_count && points[next_point].time_s <= grid[i])
            threads = points[next_point++].threads;
        while (next_activity < activity_count && activity[next_activity].time_s <= grid[i])
            on = activity[next_activity++].on;
        if (!on)
            continue;
        intervals[answer->interval_count++] = (struct span_interval){grid[i], grid[i + 1], threads};
        answer->active_cpu_s += (grid[i + 1] - grid[i]) * (double)threads;
    }
    answer->intervals = intervals;
}
