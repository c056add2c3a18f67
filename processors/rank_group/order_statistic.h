// SPDX-License-Identifier: Apache-2.0
// The k-th smallest of a growing and shrinking multiset of 64-bit numbers.
//
// The numbers are dealt out to buckets, each for a range of values, in the order of the ranges;
// within a bucket they stand as they came. A bucket that is full is sorted and cut in two at its
// median, two that became small are joined, and a bucket for one value alone only counts. No call
// does more work than a few buckets take, whatever the size of the set: adding and erasing cost
// O(log n) in 64 at a time, now and then with a bucket sorted, a query O(n / ORDER_BUCKET_MAX) and
// a bucket sorted. Values that are erased many at once wait in a list, at most as many as there are
// left, and each query takes a part of them out of their buckets: until then a query walks through
// that list a few times. Memory: 8 to 24 bytes a value, and 8 to 16 for each that waits; a set of
// steady size allocates nothing.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    ORDER_PENDING_MAX = 64,
    ORDER_BUCKET_LEAST = 56, // room in the smallest bucket; each class has twice that before it
    ORDER_CLASSES = 6,
    ORDER_BUCKET_MAX = ORDER_BUCKET_LEAST << (ORDER_CLASSES - 1),
};

struct order_bucket;

struct order_pending { // not yet in a bucket
    uint64_t values[ORDER_PENDING_MAX];
    uint32_t count;
};

struct order_waiting { // still in a bucket, or among the pending
    uint64_t *values;
    size_t count, capacity;
};

struct order_statistic { // all zero: empty
    size_t count;        // pending ones included, those that wait to be erased not
    // By bucket, ascending; bucket i takes values from firsts[i] to below firsts[i + 1].
    uint64_t *firsts;              // [0] is 0
    size_t *counts;                // without what was erased, with what waits
    struct order_bucket **buckets; // NULL: empty, or for one value
    uint32_t bucket_count, bucket_capacity;
    struct order_pending added;
    struct order_waiting erased;
    struct order_bucket *spares[ORDER_CLASSES]; // to be used again
    size_t room, spare_room;                    // values that fit into buckets, and into spares
};

void order_release(struct order_statistic *set); // and empty
void order_add(struct order_statistic *set, uint64_t value);
// `value` must be in the set.
void order_erase(struct order_statistic *set, uint64_t value);
size_t order_count(const struct order_statistic *set);
// The value with exactly `k` values before it in ascending order, k < order_count.
uint64_t order_select(struct order_statistic *set, size_t k);
