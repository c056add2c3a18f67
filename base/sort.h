// SPDX-License-Identifier: Apache-2.0
// Sorting without the heap, and how two items compare. qsort takes memory behind its caller's back
// and promises no order of equal items.
#pragma once

#include "base/arena.h"

// -1, 0 or 1: `a` is smaller than, equal to or larger than `b`. For two numbers of the same type.
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
// The order by several keys: the first of these comparisons that is not 0. All are worked out.
//     return COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), slice_compare(a->name, b->name));
#define COMPARE_KEYS(...)                                                                          \
    compare_keys((const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

static inline int compare_keys(const int *orders, size_t count) {
    assert(count > 0);
    size_t i = 0;
    while (i + 1 < count && orders[i] == 0)
        i++;
    return orders[i];
}

// For sort_stable, qsort and bsearch: ascending by the number that an item is, or begins with.
int compare_by_u32(const void *left, const void *right);
int compare_by_i32(const void *left, const void *right);
int compare_by_u64(const void *left, const void *right);
int compare_by_i64(const void *left, const void *right);
int compare_by_double(const void *left, const void *right);
// The same for the slice that an item is, or begins with: by its bytes.
int compare_by_slice(const void *left, const void *right);

// Ascending by `compare`, equal items in the order they came in. Scratch of the same size as the
// items is taken from the arena, and half as many size_t. O(n log r) of r runs that ascend or
// descend already; O(n log n) at most.
void sort_stable(void *items, size_t count, size_t item_size, struct arena *scratch,
                 int (*compare)(const void *, const void *));

// The value that stands at place `k` < count in ascending order. The values are put in another
// order. O(count), whatever they are.
int64_t select_i64(int64_t *values, size_t count, size_t k);
