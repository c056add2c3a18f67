// SPDX-License-Identifier: Apache-2.0
// Sorts items of which many are of few groups: the Xids of GPUs, the errors of ports.
//
// Names are compared once a group, not once a comparison of items; within a group items mostly
// stand in order already. Not thread-safe.
#pragma once

#include "base/arena.h"

struct group_order {
    size_t item_size;
    size_t key_offset, key_size; // where in an item its group is named: flat bytes without gaps
    // Of two items of different groups: never 0. Of two of one group. Both as for sort_stable.
    int (*compare_groups)(const void *left, const void *right);
    int (*compare)(const void *left, const void *right);
};

// The items by group and then in order, equal ones as they came; in the arena, which holds them
// twice then. O(n) where they ascend within each group, O(n log n) at most, and O(g log g) of g
// groups.
void *group_sort(const struct group_order *order, const void *items, uint32_t count,
                 struct arena *arena);
