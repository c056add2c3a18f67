// SPDX-License-Identifier: Apache-2.0
// The k-th smallest of a growing and shrinking multiset of 64-bit numbers.
//
// Sorted runs of doubling size (Bentley and Saxe's logarithmic method): adding is amortised
// O(log n) in sequential merges. A query halves the candidates O(log n) times, each time with one
// binary search in each of the O(log n) runs. Erased values stand in runs of their own and cancel
// when they outgrow half of the rest. Memory: 8 to 24 bytes a value with what values are erased,
// and as much in blocks that wait to be used again: a set of steady size allocates nothing.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { ORDER_RUNS_MAX = 48, ORDER_PENDING_MAX = 256, ORDER_SPARES = 2 };

struct order_run {
    uint64_t *values; // ascending
    size_t count;
    size_t size_class; // room for ORDER_PENDING_MAX << size_class values
};

struct order_side {
    uint64_t pending[ORDER_PENDING_MAX]; // not yet in a run
    size_t pending_count;
    struct order_run
        runs[ORDER_RUNS_MAX]; // [i] holds fewer than 2^(i+1) * ORDER_PENDING_MAX values
    size_t count;             // pending included
};

struct order_statistic { // all zero: empty
    struct order_side added;
    struct order_side erased;
    uint64_t *spares[ORDER_RUNS_MAX][ORDER_SPARES]; // given-back blocks of each size class
};

void order_release(struct order_statistic *set); // and empty
void order_add(struct order_statistic *set, uint64_t value);
// `value` must be in the set.
void order_erase(struct order_statistic *set, uint64_t value);
size_t order_count(const struct order_statistic *set);
// The value with exactly `k` values before it in ascending order, k < order_count.
uint64_t order_select(struct order_statistic *set, size_t k);
