// SPDX-License-Identifier: Apache-2.0
// Merge sort from the bottom up, between the items and the scratch.
#include "base/sort.h"

struct sort {
    size_t item_size;
    int (*compare)(const void *, const void *);
};

// Merges [begin, middle) and [middle, end) of `from` into `to`; the left one wins a tie.
static void merge(const struct sort *sort, const char *from, char *to, size_t begin, size_t middle,
                  size_t end) {
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
    if (count < 2)
        return;
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
