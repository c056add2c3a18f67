// SPDX-License-Identifier: Apache-2.0
// A sorted list of evidence, made anew at each evaluation.
#include "processors/cluster/told_by.h"

#include "base/sort.h"

static bool is_one_of(const struct verdict *verdict, const char *const *patterns) {
    while (*patterns != NULL && strcmp(*patterns, verdict->pattern) != 0)
        patterns++;
    return *patterns != NULL;
}

static int compare_items(const void *left, const void *right) {
    const struct told_item *a = left, *b = right;
    int order = slice_compare(a->uid, b->uid);
    return order != 0 ? order : strcmp(a->by->id, b->by->id);
}

struct told_by told_by_gather(const struct batch *batch, const char *const *patterns,
                              struct arena *arena) {
    uint32_t most = 0, count = 0;
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        most += batch->verdicts.items[i].evidence_count;
    struct told_item *items = arena_take(arena, (most + 1) * sizeof *items);
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        if (verdict->state == VERDICT_RESOLVED || !is_one_of(verdict, patterns))
            continue;
        for (uint32_t j = 0; j < verdict->evidence_count; j++)
            items[count++] = (struct told_item){verdict->evidence[j].uid, verdict};
    }
    sort_stable(items, count, sizeof *items, arena, compare_items);
    return (struct told_by){items, count};
}

const struct verdict *told_by_find(const struct told_by *told, const char *uid) {
    struct slice wanted = slice_of(uid);
    uint32_t low = 0, high = told->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (slice_compare(told->items[middle].uid, wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < told->count && slice_equal(told->items[low].uid, wanted);
    return found ? told->items[low].by : NULL;
}

bool told_by_ended(const struct batch *batch, const char *id) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++)
        if (batch->verdicts.items[i].state == VERDICT_RESOLVED &&
            strcmp(batch->verdicts.items[i].id, id) == 0)
            return true;
    return false;
}
