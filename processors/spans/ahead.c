// SPDX-License-Identifier: Apache-2.0
// Fetches ahead what a line of tasks will look at: with many spans the one that is opened was last
// touched long ago. Each step reads what the one before asked for and asks for what that names:
// where the numbers of the id and of the keys stand, the id, its span, the neighbours of the span.
#include "processors/spans/forest.h"

#include <assert.h>

enum { STEP_ID, STEP_SPAN, STEP_NEIGHBOURS, STEPS_DONE };

// BETWEEN_MAX: events from one step to the next at most. In one what was asked for may not have
// come yet.
enum { BETWEEN_MAX = 3, CACHE_LINE = 64 };

void span_ahead_begin(struct span_forest *forest, const struct span_event *event, uint32_t events) {
    struct span_ahead *ahead = &forest->ahead;
    uint32_t between = events / (STEPS_DONE + 1);
    ahead->between = ahead->left = between > BETWEEN_MAX ? BETWEEN_MAX : between;
    assert(event->kind == SPAN_TASKS);
    ahead->event = event;
    ahead->step = STEPS_DONE;
    for (uint32_t i = 0; i < event->task_count && i < AHEAD_KEYS; i++) {
        ahead->hashes[i] = span_names_hash(&forest->names, event->tasks[i].key);
        span_names_expect(&forest->names, ahead->hashes[i]);
    }
    const struct span_annotation *annotation =
        event->task_count == 0 ? NULL : event->tasks[0].annotation;
    if (annotation == NULL)
        return;
    ahead->hash = span_names_hash(&forest->names, annotation->ids[annotation->count - 1]);
    span_names_expect(&forest->names, ahead->hash);
    ahead->step = STEP_ID;
}

static void fetch_neighbours(const struct span_forest *forest, uint32_t number) {
    const struct span_row *span = span_at(forest, number);
    if (span->head.live == 0)
        return;
    if (span->parent < forest->spans.table.used)
        __builtin_prefetch(&span_at(forest, span->parent)->active);
    if (span->groups.last < forest->groups.used)
        __builtin_prefetch(span_group_at(forest, span->groups.last));
    if (span->items.first < forest->items.table.used)
        __builtin_prefetch(span_item_at(forest, span->items.first));
}

void span_ahead_step(struct span_forest *forest) {
    struct span_ahead *ahead = &forest->ahead;
    if (ahead->step >= STEPS_DONE || ahead->event == NULL)
        return;
    if (ahead->left > 1) {
        ahead->left--;
        return;
    }
    ahead->left = ahead->between;
    switch (ahead->step++) {
    case STEP_ID:
        ahead->name = span_names_approach(&forest->names, ahead->hash);
        if (ahead->name == NAME_NONE)
            ahead->step = STEPS_DONE;
        break;
    case STEP_SPAN:
        ahead->span = span_names_hint(&forest->names, ahead->name);
        if (ahead->span >= forest->spans.table.used) {
            ahead->step = STEPS_DONE;
            break;
        }
        for (size_t at = 0; at < sizeof(struct span_row); at += CACHE_LINE)
            __builtin_prefetch((const char *)span_at(forest, ahead->span) + at);
        break;
    default:
        fetch_neighbours(forest, ahead->span);
        break;
    }
}

void span_ahead_end(struct span_forest *forest) {
    forest->ahead.event = NULL;
}

const uint32_t *span_ahead_hashes(const struct span_forest *forest,
                                  const struct span_event *event) {
    assert(event != NULL);
    return forest->ahead.event == event ? forest->ahead.hashes : NULL;
}
