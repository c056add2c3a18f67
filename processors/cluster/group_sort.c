// SPDX-License-Identifier: Apache-2.0
// Finds the groups by a hash of their names, sorts them, deals the items out to them, and sorts
// each.
#include "processors/cluster/group_sort.h"

#include "base/hash/hash.h"
#include "base/sort.h"

#include <assert.h>
#include <string.h>

struct group {
    const char *first; // of its items
    uint32_t number;   // in the order in which they came
    uint32_t count;    // of items
    uint32_t hash;
};

struct groups {
    const struct group_order *order;
    struct group *items;
    uint32_t count;
    uint32_t *slots; // one more than the number of a group; 0: free
    uint32_t slot_count;
};

enum { SLOTS_FIRST = 256 };

static const char *key_of(const struct groups *groups, const char *item) {
    return item + groups->order->key_offset;
}

static uint32_t *free_slot(const struct groups *groups, uint32_t hash) {
    uint32_t at = hash & (groups->slot_count - 1);
    while (groups->slots[at] != 0)
        at = (at + 1) & (groups->slot_count - 1);
    return &groups->slots[at];
}

static void grow(struct groups *groups, struct arena *arena) {
    uint32_t capacity = groups->slot_count; // twice what there was room for
    groups->items =
        arena_enlarge(arena, groups->items, groups->count, capacity, sizeof *groups->items);
    groups->slot_count = capacity * 2;
    groups->slots = arena_zero(arena, groups->slot_count, sizeof *groups->slots);
    for (uint32_t i = 0; i < groups->count; i++)
        *free_slot(groups, groups->items[i].hash) = i + 1;
}

static struct group *find_group(struct groups *groups, const char *item, struct arena *arena) {
    size_t size = groups->order->key_size;
    uint32_t hash = hash_folded(hash_words(key_of(groups, item), size)), slot;
    for (uint32_t at = hash; (slot = groups->slots[at & (groups->slot_count - 1)]) != 0; at++) {
        struct group *group = &groups->items[slot - 1];
        if (group->hash == hash &&
            memcmp(key_of(groups, group->first), key_of(groups, item), size) == 0)
            return group;
    }
    if (groups->count == groups->slot_count / 2)
        grow(groups, arena);
    struct group *group = &groups->items[groups->count];
    *group = (struct group){.first = item, .number = groups->count, .hash = hash};
    *free_slot(groups, hash) = ++groups->count;
    return group;
}

// What sort_stable compares begins with the place of the comparison to call.
struct ranked {
    int (*compare)(const void *, const void *);
    const struct group *group;
};

static int compare_ranked(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    return a->compare(a->group->first, b->group->first);
}

// Where the items of each group begin, by its number.
static uint32_t *place_groups(const struct groups *groups, struct arena *arena) {
    struct ranked *ranked = arena_take(arena, (groups->count + 1) * sizeof *ranked);
    uint32_t *starts = arena_take(arena, (groups->count + 1) * sizeof *starts), at = 0;
    for (uint32_t i = 0; i < groups->count; i++)
        ranked[i] = (struct ranked){groups->order->compare_groups, &groups->items[i]};
    sort_stable(ranked, groups->count, sizeof *ranked, arena, compare_ranked);
    for (uint32_t i = 0; i < groups->count; i++) {
        starts[ranked[i].group->number] = at;
        at += ranked[i].group->count;
    }
    return starts;
}

void *group_sort(const struct group_order *order, const void *items, uint32_t count,
                 struct arena *arena) {
    assert(order->key_offset + order->key_size <= order->item_size && order->key_size > 0);
    struct groups groups = {
        .order = order,
        .items = arena_take(arena, SLOTS_FIRST / 2 * sizeof *groups.items),
        .slots = arena_zero(arena, SLOTS_FIRST, sizeof *groups.slots),
        .slot_count = SLOTS_FIRST,
    };
    size_t size = order->item_size;
    const char *from = items;
    char *to = arena_take(arena, (count + 1) * size);
    uint32_t *numbers = arena_take(arena, (count + 1) * sizeof *numbers);
    struct group *group = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const char *item = from + i * size;
        if (group == NULL ||
            memcmp(key_of(&groups, group->first), key_of(&groups, item), order->key_size) != 0)
            group = find_group(&groups, item, arena);
        numbers[i] = group->number;
        group->count++;
    }
    uint32_t *starts = place_groups(&groups, arena);
    for (uint32_t i = 0; i < count; i++)
        memcpy(to + starts[numbers[i]]++ * size, from + i * size, size);
    // Each start stands at the end of its group now.
    for (uint32_t i = 0; i < groups.count; i++)
        sort_stable(to + (starts[i] - groups.items[i].count) * size, groups.items[i].count, size,
                    arena, order->compare);
    return to;
}
