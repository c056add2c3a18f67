// SPDX-License-Identifier: Apache-2.0
// Keeps a stack of the lows that were not undercut so far: a new low takes off all that are not
// below it. What is left is the staircase of the use's running minimum seen from the end.
#include "processors/spike_detect/low_steps.h"

#include "base/memory.h"
#include "base/table/table.h"
#include "pipeline/model/series.h"

#include <assert.h>

static struct low_step *step_at(const struct table *table, uint32_t row) {
    return table_row(table, row);
}

void low_steps_drop(struct low_steps *steps, struct table *table) {
    table_free_list(table, offsetof(struct low_step, below), &steps->newest);
    *steps = (struct low_steps){.newest = TABLE_NO_ROW};
}

void low_steps_restart(struct low_steps *steps, struct series_cursor at) {
    *steps = (struct low_steps){.cursor = at, .newest = steps->newest};
}

// -- reading ------------------------------------------------------------------------------------

// The lows as they are with the edit, newest first.
struct low_walk {
    const struct table *table;
    const struct low_step *items; // [item] of the edit are still to come
    uint32_t item;
    uint32_t row; // and then this row and those below it
};

static struct low_walk walk_begin(const struct low_edit *edit, const struct low_list *list,
                                  const struct table *table) {
    assert(edit->first <= list->count);
    return (struct low_walk){.table = table,
                             .items = list->items == NULL ? NULL : list->items + edit->first,
                             .item = edit->count,
                             .row = edit->kept};
}

static inline const struct low_step *walk_next(struct low_walk *walk) {
    if (walk->item > 0)
        return &walk->items[--walk->item];
    if (walk->row == TABLE_NO_ROW)
        return NULL;
    const struct low_step *step = step_at(walk->table, walk->row);
    assert(step->below == TABLE_NO_ROW || step_at(walk->table, step->below)->number < step->number);
    walk->row = step->below;
    return step;
}

// Takes the newest away.
static inline void pop(struct low_edit *edit, const struct table *table) {
    if (edit->count > 0)
        edit->count--;
    else
        edit->kept = step_at(table, edit->kept)->below;
}

static void push(struct low_steps *steps, const struct table *table, const struct sample *row,
                 int64_t step_bytes, struct low_edit *edit, struct low_list *list) {
    list->count = edit->first + edit->count;
    struct low_walk walk = walk_begin(edit, list, table);
    const struct low_step *newest = walk_next(&walk);
    while (newest != NULL && newest->used_bytes >= row->used_bytes) {
        pop(edit, table);
        newest = walk_next(&walk);
    }
    // The newest low stands between two that are closer than a step: it tells nothing.
    const struct low_step *below = newest == NULL ? NULL : walk_next(&walk);
    while (below != NULL && row->used_bytes - below->used_bytes < step_bytes) {
        pop(edit, table);
        below = walk_next(&walk);
    }
    list->count = edit->first + edit->count;
    list->items = memory_room(list->items, &list->capacity, list->count, sizeof *list->items);
    list->items[list->count++] = (struct low_step){.time_ns = row->time_ns,
                                                   .used_bytes = row->used_bytes,
                                                   .number = ++steps->lows,
                                                   .origin = row->origin};
    edit->count++;
}

void low_steps_read(struct low_steps *steps, const struct table *table,
                    const struct growth_source *source, int64_t step_bytes, struct low_edit *edit,
                    struct low_list *list) {
    edit->first = list->count;
    edit->count = 0;
    const struct sample *rows;
    uint32_t count;
    while ((count = series_next_distinct_run(source->store, source->series, &steps->cursor,
                                             source->as_of_ns, &rows)) > 0) {
        int64_t previous = steps->has_previous ? steps->previous_bytes : INT64_MIN;
        for (uint32_t i = 0; i < count; i++) {
            int64_t used = rows[i].used_bytes;
            if (used <= previous)
                push(steps, table, &rows[i], step_bytes, edit, list);
            previous = used;
        }
        steps->has_previous = true;
        steps->previous_bytes = previous;
    }
    assert(list->count == edit->first + edit->count);
}

bool low_steps_replace(struct low_steps *steps, const struct table *table, struct low_edit *edit,
                       struct low_list *list) {
    assert(list->count == edit->first + edit->count);
    if (edit->count == 0)
        return edit->kept == steps->newest;
    if (edit->count > 1 || edit->kept == steps->newest)
        return false;
    struct low_step *newest = step_at(table, steps->newest);
    if (newest->below != edit->kept)
        return false;
    *newest = list->items[edit->first];
    newest->below = edit->kept;
    *edit = (struct low_edit){.kept = steps->newest, .first = edit->first};
    list->count = edit->first;
    return true;
}

void low_steps_write(struct low_steps *steps, struct table *table, const struct low_edit *edit,
                     const struct low_list *list) {
    while (steps->newest != edit->kept) {
        uint32_t row = steps->newest;
        assert(row != TABLE_NO_ROW);
        steps->newest = step_at(table, row)->below;
        table_free(table, row);
    }
    for (uint32_t i = 0; i < edit->count; i++) {
        uint32_t row = table_add(table);
        *step_at(table, row) = list->items[edit->first + i];
        step_at(table, row)->below = steps->newest;
        steps->newest = row;
    }
}

// -- what it comes to ---------------------------------------------------------------------------

struct spike low_steps_creep(const struct low_edit *edit, const struct low_list *list,
                             const struct table *table, uint64_t end_ns, int64_t threshold_bytes,
                             struct low_answer *answer) {
    // The low that the use did not undercut from `end_ns` on, and the oldest of all.
    const struct low_step *newest = NULL, *bottom = NULL, *step;
    struct low_walk walk = walk_begin(edit, list, table), from = walk;
    *answer = (struct low_answer){.until_ns = UINT64_MAX};
    for (struct low_walk before = walk; (step = walk_next(&walk)) != NULL; before = walk) {
        bool holds = step->time_ns >= end_ns;
        if (holds || newest == NULL) {
            newest = step;
            from = before;
        }
        if (holds)
            answer->until_ns = step->time_ns;
        else if (answer->after_ns == 0)
            answer->after_ns = step->time_ns;
        bottom = step;
    }
    if (newest == NULL)
        return (struct spike){0};
    answer->growth_bytes = newest->used_bytes - bottom->used_bytes;
    // The last low near the bottom, and the first at the threshold above it, from the top down.
    const struct low_step *base = newest;
    walk = from;
    while ((step = walk_next(&walk)) != NULL) {
        base = step;
        if (base->used_bytes - bottom->used_bytes <= answer->growth_bytes / 8)
            break;
    }
    const struct low_step *reached = newest;
    walk = from;
    while ((step = walk_next(&walk)) != NULL)
        if (step->used_bytes - base->used_bytes >= threshold_bytes)
            reached = step;
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
