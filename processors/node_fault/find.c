// SPDX-License-Identifier: Apache-2.0
// Puts together what one part of one machine said with no longer gap than `burst`. O(rows · log).
#include "base/sort.h"
#include "processors/cluster/compare.h"
#include "processors/node_fault/parts.h"

static int compare_places(const struct node_said *a, const struct node_said *b) {
    int order = compare_strings(a->node, b->node);
    return order != 0
               ? order
               : COMPARE((uint32_t)node_said_cause(a)->part, (uint32_t)node_said_cause(b)->part);
}

static int compare_said(const void *left, const void *right) {
    const struct node_said *a = *(const struct node_said *const *)left;
    const struct node_said *b = *(const struct node_said *const *)right;
    int order = compare_places(a, b);
    order = order != 0 ? order : COMPARE(a->time_ns, b->time_ns);
    order = order != 0 ? order
                       : COMPARE_KEYS(COMPARE(a->address, b->address), COMPARE(a->cause, b->cause));
    return order != 0 ? order : compare_strings(a->device, b->device);
}

static int compare_bursts(const void *left, const void *right) {
    const struct node_burst *a = left, *b = right;
    int order = COMPARE(a->first_ns, b->first_ns);
    return order != 0 ? order : compare_places(a->anchor, b->anchor);
}

static struct node_burst burst_of(const struct node_said **items, uint32_t count) {
    struct node_burst burst = {.items = items,
                               .count = count,
                               .anchor = items[0],
                               .first_ns = items[0]->time_ns,
                               .last_ns = items[count - 1]->time_ns};
    for (uint32_t i = 1; i < count; i++)
        if (node_said_cause(items[i])->grade > node_said_cause(burst.anchor)->grade)
            burst.anchor = items[i];
    return burst;
}

struct node_bursts node_fault_find(const struct node_log *log,
                                   const struct node_fault_config *config, uint64_t now_ns,
                                   struct arena *arena) {
    uint32_t count = 0, all = keyed_rows_count(&log->rows);
    const struct node_said *said, **items = arena_take(arena, (all + 1) * sizeof *items);
    struct node_bursts bursts = {arena_take(arena, (all + 1) * sizeof *bursts.items), 0};
    for (uint32_t at = 0; (said = keyed_rows_next(&log->rows, &at)) != NULL;)
        if ((said->time_ns <= now_ns || node_said_time_of(said) != TIME_OF_EVENT) &&
            node_said_cause(said) != NULL)
            items[count++] = said;
    sort_stable(items, count, sizeof *items, arena, compare_said);
    for (uint32_t from = 0, to; from < count; from = to) {
        for (to = from + 1;
             to < count && compare_places(items[from], items[to]) == 0 &&
             items[to]->time_ns - items[to - 1]->time_ns <= duration_ns(config->burst);)
            to++;
        bursts.items[bursts.count++] = burst_of(items + from, to - from);
    }
    sort_stable(bursts.items, bursts.count, sizeof *bursts.items, arena, compare_bursts);
    return bursts;
}
