// SPDX-License-Identifier: Apache-2.0
// Keeps a stack of the lows that were not undercut so far: a new low takes off all that are not
// below it. What is left is the staircase of the use's running minimum seen from the end.
#include "processors/spike_detect/low_steps.h"

#include "base/table/table.h"
#include "pipeline/model/series.h"

#include <assert.h>

static struct low_step *step_at(const struct table *table, uint32_t row) {
    return table_row(table, row);
}

void low_steps_begin(struct low_steps *steps, struct table *table, struct series_cursor at) {
    table_free_list(table, offsetof(struct low_step, below), &steps->newest);
    *steps = (struct low_steps){.cursor = at, .newest = TABLE_NO_ROW};
}

static void pop(struct low_steps *steps, struct table *table) {
    uint32_t row = steps->newest;
    steps->newest = step_at(table, row)->below;
    assert(steps->newest == TABLE_NO_ROW ||
           step_at(table, steps->newest)->number < step_at(table, row)->number);
    table_free(table, row);
}

// The newest low stands between two that are closer than a step: it tells nothing.
static bool newest_is_between(const struct low_steps *steps, const struct table *table,
                              int64_t used_bytes, int64_t step_bytes) {
    if (steps->newest == TABLE_NO_ROW)
        return false;
    uint32_t below = step_at(table, steps->newest)->below;
    return below != TABLE_NO_ROW && used_bytes - step_at(table, below)->used_bytes < step_bytes;
}

static void push(struct low_steps *steps, struct table *table, const struct sample *row,
                 int64_t step_bytes) {
    while (steps->newest != TABLE_NO_ROW &&
           step_at(table, steps->newest)->used_bytes >= row->used_bytes)
        pop(steps, table);
    while (newest_is_between(steps, table, row->used_bytes, step_bytes))
        pop(steps, table);
    uint32_t added = table_add(table);
    *step_at(table, added) = (struct low_step){.time_ns = row->time_ns,
                                               .used_bytes = row->used_bytes,
                                               .number = ++steps->lows,
                                               .origin = row->origin,
                                               .below = steps->newest};
    steps->newest = added;
}

void low_steps_advance(struct low_steps *steps, struct table *table,
                       const struct growth_source *source, int64_t step_bytes) {
    const struct sample *rows;
    uint32_t count;
    while ((count = series_next_run(source->store, source->series, &steps->cursor, source->as_of_ns,
                                    &rows)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            if (steps->has_previous && rows[i].used_bytes <= steps->previous_bytes)
                push(steps, table, &rows[i], step_bytes);
            steps->has_previous = true;
            steps->previous_bytes = rows[i].used_bytes;
        }
    }
}

// The low that the use did not undercut from `end_ns` on, and the oldest of all.
static bool find_ends(const struct low_steps *steps, const struct table *table, uint64_t end_ns,
                      uint32_t *last, const struct low_step **bottom) {
    *last = steps->newest;
    for (uint32_t row = steps->newest; row != TABLE_NO_ROW; row = (*bottom)->below) {
        *bottom = step_at(table, row);
        if ((*bottom)->time_ns >= end_ns)
            *last = row;
    }
    return *last != TABLE_NO_ROW;
}

struct spike low_steps_creep(const struct low_steps *steps, const struct table *table,
                             uint64_t end_ns, int64_t threshold_bytes, int64_t *growth_bytes) {
    uint32_t last;
    const struct low_step *bottom;
    *growth_bytes = 0;
    if (!find_ends(steps, table, end_ns, &last, &bottom))
        return (struct spike){0};
    const struct low_step *newest = step_at(table, last);
    *growth_bytes = newest->used_bytes - bottom->used_bytes;
    // The last low near the bottom, and the first at the threshold above it, from the top down.
    const struct low_step *base = newest;
    for (uint32_t row = last; row != TABLE_NO_ROW; row = base->below) {
        base = step_at(table, row);
        if (base->used_bytes - bottom->used_bytes <= *growth_bytes / 8)
            break;
    }
    const struct low_step *reached = newest;
    for (uint32_t row = last; row != TABLE_NO_ROW; row = step_at(table, row)->below)
        if (step_at(table, row)->used_bytes - base->used_bytes >= threshold_bytes)
            reached = step_at(table, row);
    int64_t rise = newest->used_bytes - base->used_bytes;
    if (rise < threshold_bytes || newest->number - base->number < LOWS_TO_STAND)
        return (struct spike){0};
    return (struct spike){.found = true,
                          .time_ns = reached->time_ns,
                          .window_ns = base->time_ns,
                          .base_bytes = base->used_bytes,
                          .growth_bytes = reached->used_bytes - base->used_bytes,
                          .samples = reached->number - base->number,
                          .origin = reached->origin};
}
