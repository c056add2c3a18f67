// SPDX-License-Identifier: Apache-2.0
// Merge sort of the runs that are there, between the items and the scratch. What comes in order, or
// in the opposite order, as rows by time mostly do, costs one comparison an item.
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

static void reverse(char *items, size_t count, size_t size, char *spare) {
    for (size_t low = 0, high = count - 1; low < high; low++, high--) {
        memcpy(spare, items + low * size, size);
        memcpy(items + low * size, items + high * size, size);
        memcpy(items + high * size, spare, size);
    }
}

// Where the ascending run that begins at `begin` ends. One that descends is turned around; equal
// items are none of it, so that they stay in order.
static size_t run_end(const struct sort *sort, char *items, size_t begin, size_t count,
                      char *spare) {
    size_t size = sort->item_size, end = begin + 1;
    if (end == count)
        return end;
    if (sort->compare(items + begin * size, items + end * size) <= 0) {
        while (end < count && sort->compare(items + (end - 1) * size, items + end * size) <= 0)
            end++;
        return end;
    }
    while (end < count && sort->compare(items + (end - 1) * size, items + end * size) > 0)
        end++;
    reverse(items + begin * size, end - begin, size, spare);
    return end;
}

// Merges runs two by two; `ends` become those of what was merged. Returns how many are left.
static size_t merge_runs(const struct sort *sort, const char *from, char *to, size_t *ends,
                         size_t runs) {
    size_t left = 0, begin = 0;
    assert(runs > 1);
    for (size_t i = 0; i < runs; i += 2) {
        size_t middle = ends[i], end = i + 1 < runs ? ends[i + 1] : middle;
        merge(sort, from, to, begin, middle, end);
        ends[left++] = begin = end;
    }
    return left;
}

void sort_stable(void *items, size_t count, size_t item_size, struct arena *scratch,
                 int (*compare)(const void *, const void *)) {
    assert(compare != NULL && item_size > 0);
    if (count < 2)
        return;
    assert(items != NULL && scratch != NULL && count <= SIZE_MAX / item_size);
    const struct sort sort = {item_size, compare};
    char *from = items, *spare = arena_take(scratch, item_size);
    size_t end = run_end(&sort, from, 0, count, spare), runs = 0;
    if (end == count)
        return;
    // Runs but for the last have two items or more.
    size_t *ends = arena_take(scratch, (count / 2 + 1) * sizeof *ends);
    for (ends[runs++] = end; end < count; ends[runs++] = end)
        end = run_end(&sort, from, end, count, spare);
    char *to = arena_take(scratch, count * item_size);
    while (runs > 1) {
        runs = merge_runs(&sort, from, to, ends, runs);
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * item_size);
}

// -- selection ----------------------------------------------------------------------------------

enum { SELECT_BITS = 11 };

// Keeps the values of the bucket that has the one at *k, which becomes its place among them; two
// buckets at least have values. `lowest`: of all; a bucket has 2^shift values.
static size_t keep_bucket(int64_t *values, size_t count, size_t *k, int64_t lowest,
                          unsigned shift) {
    uint32_t counts[1 << SELECT_BITS] = {0};
    for (size_t i = 0; i < count; i++)
        counts[((uint64_t)values[i] - (uint64_t)lowest) >> shift]++;
    uint64_t bucket = 0;
    while (*k >= counts[bucket])
        *k -= counts[bucket++];
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t value = values[i];
        values[kept] = value;
        kept += ((uint64_t)value - (uint64_t)lowest) >> shift == bucket;
    }
    assert(kept == counts[bucket] && kept < count);
    return kept;
}

int64_t select_i64(int64_t *values, size_t count, size_t k) {
    assert(k < count && count <= UINT32_MAX);
    for (;;) {
        int64_t lowest = values[0], highest = values[0];
        for (size_t i = 1; i < count; i++) {
            lowest = values[i] < lowest ? values[i] : lowest;
            highest = values[i] > highest ? values[i] : highest;
        }
        uint64_t range = (uint64_t)highest - (uint64_t)lowest;
        if (range == 0)
            return lowest;
        unsigned bits = 64 - (unsigned)__builtin_clzll(range);
        count = keep_bucket(values, count, &k, lowest, bits > SELECT_BITS ? bits - SELECT_BITS : 0);
    }
}
