// SPDX-License-Identifier: Apache-2.0
// Selects by place in a large, changing multiset.
//
// New values wait in a small array; when it is full it is sorted and merged with the runs of its
// size, like a carry in binary counting, into one block; blocks are used again. A query keeps one
// range of candidates for each run and splits all of them at the weighted median of the ranges'
// middles, which drops at least a quarter of the candidates each time. Memory: see the header.
#include "processors/rank_group/order_statistic.h"

#include "base/memory.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static void spares_release(struct order_statistic *set, size_t first_class) {
    for (size_t i = first_class; i < ORDER_RUNS_MAX; i++) {
        for (size_t j = 0; j < ORDER_SPARES; j++) {
            memory_give(set->spares[i][j]);
            set->spares[i][j] = NULL;
        }
    }
}

void order_release(struct order_statistic *set) {
    for (size_t i = 0; i < ORDER_RUNS_MAX; i++) {
        memory_give(set->added.runs[i].values);
        memory_give(set->erased.runs[i].values);
    }
    spares_release(set, 0);
    memset(set, 0, sizeof *set);
}

// An empty run with room for `count` values: a spare block, or a new one.
static struct order_run run_take(struct order_statistic *set, size_t count) {
    struct order_run run = {0};
    while ((size_t)ORDER_PENDING_MAX << run.size_class < count)
        run.size_class++;
    assert(run.size_class < ORDER_RUNS_MAX);
    for (size_t i = 0; run.values == NULL && i < ORDER_SPARES; i++) {
        run.values = set->spares[run.size_class][i];
        set->spares[run.size_class][i] = NULL;
    }
    if (run.values == NULL)
        run.values = memory_take(((size_t)ORDER_PENDING_MAX << run.size_class) * sizeof(uint64_t));
    return run;
}

static void run_give(struct order_statistic *set, struct order_run *run) {
    uint64_t *left = run->values;
    for (size_t i = 0; left != NULL && i < ORDER_SPARES; i++) {
        if (set->spares[run->size_class][i] == NULL) {
            set->spares[run->size_class][i] = left;
            left = NULL;
        }
    }
    memory_give(left);
    *run = (struct order_run){0};
}

static bool is_sorted(const uint64_t *values, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (values[i - 1] > values[i])
            return false;
    return true;
}

// One step of the radix sort: by the byte at `shift`, keeping the order of equal ones.
static void byte_sort(const uint64_t *from, uint64_t *to, size_t count, unsigned shift) {
    uint16_t places[256] = {0};
    for (size_t i = 0; i < count; i++)
        places[from[i] >> shift & 255]++;
    uint16_t next = 0;
    for (size_t i = 0; i < 256; i++) {
        uint16_t here = places[i];
        places[i] = next;
        next = (uint16_t)(next + here);
    }
    for (size_t i = 0; i < count; i++)
        to[places[from[i] >> shift & 255]++] = from[i];
}

// Radix sort over the bytes in which the values differ: time spans of one job differ in few.
static void pending_sort(uint64_t *values, size_t count) {
    if (is_sorted(values, count))
        return;
    uint64_t differing = 0;
    for (size_t i = 1; i < count; i++)
        differing |= values[i] ^ values[0];
    uint64_t other[ORDER_PENDING_MAX];
    uint64_t *from = values, *to = other;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((differing >> shift & 255) == 0)
            continue;
        byte_sort(from, to, count, shift);
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != values)
        memcpy(values, from, count * sizeof *values);
}

// The place of a run of `count` values.
static size_t run_level(size_t count) {
    size_t level = 0;
    while (count >= (size_t)ORDER_PENDING_MAX << (level + 1))
        level++;
    assert(level < ORDER_RUNS_MAX);
    return level;
}

// Merges `run` with the sorted values that stand at the end of `block` from `begin` on; returns
// where the merged ones begin. Writing never overtakes reading.
static size_t run_merge(uint64_t *block, size_t begin, size_t end, const struct order_run *run) {
    size_t out = begin - run->count, carry = begin, taken = 0;
    // Without a branch on the values: which side is next cannot be guessed.
    while (taken < run->count && carry < end) {
        uint64_t ours = block[carry], theirs = run->values[taken];
        bool take_ours = ours < theirs;
        block[out++] = take_ours ? ours : theirs;
        carry += take_ours;
        taken += !take_ours;
    }
    memcpy(block + out, run->values + taken, (run->count - taken) * sizeof *block);
    return begin - run->count;
}

// Moves the pending values and the runs of `levels` into one run of `total` values, smaller runs
// first. The runs are given back.
static struct order_run side_merge(struct order_statistic *set, struct order_side *side,
                                   uint64_t levels, size_t total) {
    struct order_run merged = run_take(set, total);
    merged.count = total;
    uint64_t *block = merged.values;
    size_t begin = total - side->pending_count;
    pending_sort(side->pending, side->pending_count);
    memcpy(block + begin, side->pending, side->pending_count * sizeof *block);
    side->pending_count = 0;
    for (size_t i = 0; i < ORDER_RUNS_MAX; i++) {
        if ((levels >> i & 1) == 0)
            continue;
        begin = run_merge(block, begin, total, &side->runs[i]);
        run_give(set, &side->runs[i]);
    }
    assert(begin == 0);
    return merged;
}

static void side_carry(struct order_statistic *set, struct order_side *side) {
    size_t total = side->pending_count;
    uint64_t levels = 0;
    size_t level = run_level(total);
    while (side->runs[level].count > 0 && (levels >> level & 1) == 0) {
        levels |= UINT64_C(1) << level;
        total += side->runs[level].count;
        level = run_level(total);
    }
    side->runs[level] = side_merge(set, side, levels, total);
}

static void side_add(struct order_statistic *set, struct order_side *side, uint64_t value) {
    if (side->pending_count == ORDER_PENDING_MAX)
        side_carry(set, side);
    side->pending[side->pending_count++] = value;
    side->count++;
}

static struct order_run side_merge_all(struct order_statistic *set, struct order_side *side) {
    uint64_t levels = 0;
    for (size_t i = 0; i < ORDER_RUNS_MAX; i++)
        if (side->runs[i].count > 0)
            levels |= UINT64_C(1) << i;
    return side_merge(set, side, levels, side->count);
}

// Gives back what a much larger set once needed.
static void trim(struct order_statistic *set, struct order_run *run) {
    size_t needed = 0;
    while ((size_t)ORDER_PENDING_MAX << needed < run->count)
        needed++;
    if (run->size_class > needed + 1) {
        struct order_run smaller = run_take(set, run->count);
        memcpy(smaller.values, run->values, run->count * sizeof *run->values);
        smaller.count = run->count;
        run_give(set, run);
        *run = smaller;
    }
    spares_release(set, needed + 2);
}

// Takes the erased values out of the added ones: everything becomes one run.
static void cancel_erased(struct order_statistic *set) {
    struct order_run added = side_merge_all(set, &set->added);
    struct order_run erased = side_merge_all(set, &set->erased);
    size_t kept = 0, next = 0;
    for (size_t i = 0; i < added.count; i++) {
        if (next < erased.count && erased.values[next] == added.values[i])
            next++;
        else
            added.values[kept++] = added.values[i];
    }
    assert(next == erased.count && "a value was erased that is not in the set");
    run_give(set, &erased);
    set->erased.count = 0;
    set->added.count = added.count = kept;
    if (kept == 0) {
        run_give(set, &added);
        return;
    }
    trim(set, &added);
    set->added.runs[run_level(kept)] = added;
}

void order_add(struct order_statistic *set, uint64_t value) {
    side_add(set, &set->added, value);
}

void order_erase(struct order_statistic *set, uint64_t value) {
    assert(order_count(set) > 0);
    side_add(set, &set->erased, value);
    size_t left = order_count(set);
    if (set->erased.count > ORDER_PENDING_MAX && set->erased.count > left / 2)
        cancel_erased(set);
}

size_t order_count(const struct order_statistic *set) {
    return set->added.count - set->erased.count;
}

// The candidates left in one run.
struct candidates {
    const uint64_t *values;
    size_t begin, end;
};

enum { SOURCES_MAX = 2 * (ORDER_RUNS_MAX + 1) };

struct selection {
    struct candidates sources[SOURCES_MAX]; // the added side first
    size_t added_count, count;
};

static size_t side_sources(struct order_side *side, struct candidates *sources) {
    size_t count = 0;
    if (side->pending_count > 0) {
        pending_sort(side->pending, side->pending_count);
        sources[count++] = (struct candidates){side->pending, 0, side->pending_count};
    }
    for (size_t i = 0; i < ORDER_RUNS_MAX; i++)
        if (side->runs[i].count > 0)
            sources[count++] = (struct candidates){side->runs[i].values, 0, side->runs[i].count};
    return count;
}

// How many of the run's values are smaller than `value` (or equal to it, with `or_equal`), given
// that the border lies within the candidates.
static size_t border(const struct candidates *run, uint64_t value, bool or_equal) {
    size_t begin = run->begin, end = run->end;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (run->values[middle] < value || (or_equal && run->values[middle] == value))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

// The weighted median of the middles of the added side's ranges.
static uint64_t selection_pivot(const struct selection *selection) {
    uint64_t middles[SOURCES_MAX];
    size_t weights[SOURCES_MAX];
    size_t count = 0, total = 0;
    for (size_t i = 0; i < selection->added_count; i++) {
        const struct candidates *run = &selection->sources[i];
        if (run->begin == run->end)
            continue;
        uint64_t middle = run->values[run->begin + (run->end - run->begin) / 2];
        size_t weight = run->end - run->begin, at = count++;
        for (; at > 0 && middles[at - 1] > middle; at--) {
            middles[at] = middles[at - 1];
            weights[at] = weights[at - 1];
        }
        middles[at] = middle;
        weights[at] = weight;
        total += weight;
    }
    assert(count > 0);
    size_t at = 0;
    for (size_t before = weights[0]; at + 1 < count && before < total - total / 2;
         before += weights[at])
        at++;
    return middles[at];
}

// Where the pivot divides every run; returns how many values of the set stand before.
static size_t selection_borders(const struct selection *selection, uint64_t pivot, bool or_equal,
                                size_t *borders) {
    size_t before = 0;
    for (size_t i = 0; i < selection->count; i++) {
        borders[i] = border(&selection->sources[i], pivot, or_equal);
        before += i < selection->added_count ? borders[i] : 0 - borders[i];
    }
    return before;
}

uint64_t order_select(struct order_statistic *set, size_t k) {
    assert(k < order_count(set));
    struct selection selection;
    selection.added_count = side_sources(&set->added, selection.sources);
    selection.count = selection.added_count +
                      side_sources(&set->erased, selection.sources + selection.added_count);
    size_t borders[SOURCES_MAX];
    for (;;) {
        uint64_t pivot = selection_pivot(&selection);
        if (k < selection_borders(&selection, pivot, false, borders)) {
            for (size_t i = 0; i < selection.count; i++)
                selection.sources[i].end = borders[i];
        } else if (k >= selection_borders(&selection, pivot, true, borders)) {
            for (size_t i = 0; i < selection.count; i++)
                selection.sources[i].begin = borders[i];
        } else {
            return pivot;
        }
    }
}
