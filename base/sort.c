// SPDX-License-Identifier: Apache-2.0
// Merge sort from the bottom up, between the items and the scratch.
#include "base/sort.h"

#include <assert.h>

int compare_by_u32(const void *left, const void *right) {
    return COMPARE(*(const uint32_t *)left, *(const uint32_t *)right);
}

int compare_by_i32(const void *left, const void *right) {
    return COMPARE(*(const int32_t *)left, *(const int32_t *)right);
}

int compare_by_u64(const void *left, const void *right) {
    return COMPARE(*(const uint64_t *)left, *(const uint64_t *)right);
}

int compare_by_i64(const void *left, const void *right) {
    return COMPARE(*(const int64_t *)left, *(const int64_t *)right);
}

int compare_by_double(const void *left, const void *right) {
    return COMPARE(*(const double *)left, *(const double *)right);
}

int compare_by_slice(const void *left, const void *right) {
    return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

struct sort {
    size_t item_size;
    int (*compare)(const void *, const void *);
};

// Merges [begin, middle) and [middle, end) of `from` into `to`; the left one wins a tie.
static void merge(const struct sort *sort, const char *from, char *to, size_t begin, size_t middle,
                  size_t end) {
    assert(begin <= middle && middle <= end);
    size_t size = sort->item_size;
    size_t left = begin;
    size_t right = middle;
    for (size_t at = begin; at < end; at++) {
        bool take_left = right == end || (left < middle && sort->compare(from + left * size,
                                                                         from + right * size) <= 0);
        memcpy(to + at * size, from + (take_left ? left++ : right++) * size, size);
    }
}

void sort_stable(void *items, size_t count, size_t item_size, struct arena *scratch,
                 int (*compare)(const void *, const void *)) {
    assert(compare != NULL && item_size > 0);
    if (count < 2)
        return;
    assert(items != NULL && scratch != NULL && count <= SIZE_MAX / item_size);
    const struct sort sort = {item_size, compare};
    char *from = items;
    char *to = arena_take(scratch, count * item_size);
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t middle = begin + width < count ? begin + width : count;
            size_t end = middle + width < count ? middle + width : count;
            merge(&sort, from, to, begin, middle, end);
        }
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * item_size);
}
