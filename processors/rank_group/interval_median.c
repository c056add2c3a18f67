// SPDX-License-Identifier: Apache-2.0
// The exact median of all sampling intervals. One pass over the samples writes them down, 4 bytes
// each, and the halves of their bits are counted, first the upper, then the lower. Where one is of
// 4.2 s or more, passes over the samples count them in buckets of 1/1024 of their size, and the
// bucket that holds the middle again in up to 65,536 cells, until a cell is one nanosecond wide.
// Scratch: 4 bytes a sample and 260 KiB, or 450 KiB.
#include "processors/rank_group/interval_median.h"

#include "base/sort.h"
#include "base/table/table.h"
#include "base/workers.h"
#include "pipeline/model/series.h"

#include <assert.h>

enum {
    BUCKET_BITS = 10,
    BUCKET_COUNT = (65 - BUCKET_BITS) << BUCKET_BITS,
    CELL_COUNT = 1 << 16,
};

__int128 median_of_middle(unsigned __int128 a, unsigned __int128 b) {
    return (__int128)((double)(a + b) / 2);
}

static uint32_t bucket_of(uint64_t value) {
    if (value < UINT64_C(2) << BUCKET_BITS)
        return (uint32_t)value;
    uint32_t shift = 63 - BUCKET_BITS - (uint32_t)__builtin_clzll(value);
    return (shift << BUCKET_BITS) + (uint32_t)(value >> shift);
}

struct value_range {
    uint64_t first;
    uint32_t shift; // 2^shift values
};

static struct value_range bucket_range(uint32_t bucket) {
    if (bucket < UINT32_C(2) << BUCKET_BITS)
        return (struct value_range){bucket, 0};
    uint32_t shift = (bucket >> BUCKET_BITS) - 1;
    uint64_t top = (bucket & ((1U << BUCKET_BITS) - 1)) | (1U << BUCKET_BITS);
    return (struct value_range){top << shift, shift};
}

// What one pass over all intervals counts: those of a range in cells, or all in buckets.
struct count {
    const struct value_range *range; // NULL: all, in buckets
    uint32_t cell_shift;             // 2^cell_shift values a cell
    uint32_t *counts;
    uint64_t total; // counted
};

static inline void count_one(struct count *count, uint64_t interval) {
    if (interval == 0)
        return;
    uint32_t place;
    if (count->range == NULL) {
        place = bucket_of(interval);
    } else {
        uint64_t above = interval - count->range->first;
        if (above >> count->range->shift != 0)
            return;
        place = (uint32_t)(above >> count->cell_shift);
    }
    count->counts[place]++;
    count->total++;
}

static void count_intervals(const struct evaluation *evaluation, struct count *count) {
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_series *series = evaluation->ranks[i].series;
        struct series_cursor cursor = series_begin(series);
        const struct sample *rows;
        uint64_t before = 0;
        bool first = true;
        uint32_t size;
        while ((size = series_next_run(evaluation->store, series, &cursor, evaluation->as_of_ns,
                                       &rows)) > 0) {
            if (first)
                before = rows[0].time_ns;
            first = false;
            for (uint32_t j = 0; j < size; j++) {
                count_one(count, rows[j].time_ns - before);
                before = rows[j].time_ns;
            }
        }
    }
}

// The place that holds the value of rank *k; *k becomes its rank within that place.
static uint32_t place_of_rank(const uint32_t *counts, uint64_t *k) {
    uint32_t place = 0;
    while (*k >= counts[place])
        *k -= counts[place++];
    return place;
}

// The value of rank `k` within `range`.
static uint64_t select_in_range(const struct evaluation *evaluation, struct value_range range,
                                uint64_t k, uint32_t *cells) {
    while (range.shift > 0) {
        uint32_t cell_shift = range.shift > 16 ? range.shift - 16 : 0;
        memset(cells, 0, CELL_COUNT * sizeof *cells);
        struct count count = {.range = &range, .cell_shift = cell_shift, .counts = cells};
        count_intervals(evaluation, &count);
        uint32_t cell = place_of_rank(cells, &k);
        range = (struct value_range){range.first + ((uint64_t)cell << cell_shift), cell_shift};
    }
    return range.first;
}

struct claim {
    int64_t interval_ms; // first, for compare_by_i64
    uint64_t count;
};

static unsigned __int128 claim_of_rank(const struct claim *claims, uint64_t k) {
    while (k >= claims->count)
        k -= claims++->count;
    return (unsigned __int128)claims->interval_ms * 1000000;
}

// The median of the claimed sampling intervals, each sample counting once.
static __int128 claimed_median(const struct evaluation *evaluation, struct arena *arena) {
    uint32_t origin_count = evaluation->store->origins.used;
    struct claim *claims = arena_zero(arena, origin_count + 1, sizeof *claims);
    uint64_t total = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        const struct rank_series *series = evaluation->ranks[i].series;
        struct series_cursor cursor = series_begin(series);
        const struct sample *row;
        while ((row = series_next(evaluation->store, series, &cursor, evaluation->as_of_ns))) {
            int64_t interval_ms = series_origin(evaluation->store, row)->sampling_interval_ms;
            if (interval_ms <= 0)
                continue;
            claims[row->origin].interval_ms = interval_ms;
            claims[row->origin].count++;
            total++;
        }
    }
    if (total == 0)
        return 0;
    // Origins of other jobs are among them.
    uint32_t claim_count = 0;
    for (uint32_t i = 0; i < origin_count; i++)
        if (claims[i].count > 0)
            claims[claim_count++] = claims[i];
    sort_stable(claims, claim_count, sizeof *claims, arena, compare_by_i64);
    unsigned __int128 high = claim_of_rank(claims, total / 2);
    if (total % 2 == 1)
        return (__int128)high;
    return median_of_middle(claim_of_rank(claims, total / 2 - 1), high);
}

// In buckets, whatever the intervals are.
static __int128 median_of_any(const struct evaluation *evaluation, struct arena *arena) {
    uint32_t *counts = arena_zero(arena, BUCKET_COUNT + CELL_COUNT, sizeof *counts);
    uint32_t *cells = counts + BUCKET_COUNT;
    struct count all = {.counts = counts};
    count_intervals(evaluation, &all);
    if (all.total == 0)
        return claimed_median(evaluation, arena);
    // One or both of the middle two.
    uint64_t middle[2];
    for (uint64_t i = 0; i <= 1 - all.total % 2; i++) {
        uint64_t k = all.total / 2 - i;
        struct value_range range = bucket_range(place_of_rank(counts, &k));
        middle[i] = select_in_range(evaluation, range, k, cells);
    }
    return all.total % 2 == 1 ? (__int128)middle[0] : median_of_middle(middle[1], middle[0]);
}

// -- intervals of less than 4.2 s, by several threads -------------------------------------------

enum { PIECE_SAMPLES = 32768 };

// All intervals, written down in one pass over the rows.
struct list {
    const struct evaluation *evaluation;
    uint32_t *intervals;
    uint32_t pieces;
    struct list_piece {
        uint64_t begin, count; // of `intervals`
        bool is_long;          // it met one that does not fit
    } piece[PIECES_MAX];
};

// Behind *out; returns the largest.
static uint64_t list_rank(const struct evaluation *evaluation, const struct rank_series *series,
                          uint32_t **out) {
    struct series_cursor cursor = series_begin(series);
    const struct sample *rows;
    uint64_t before = 0, longest = 0;
    bool first = true;
    uint32_t size, *end = *out;
    while ((size = series_next_run(evaluation->store, series, &cursor, evaluation->as_of_ns,
                                   &rows)) > 0) {
        before = first ? rows[0].time_ns : before;
        first = false;
        for (uint32_t i = 0; i < size; i++) {
            uint64_t interval = rows[i].time_ns - before;
            before = rows[i].time_ns;
            *end = (uint32_t)interval;
            end += interval != 0;
            longest |= interval;
        }
    }
    *out = end;
    return longest;
}

static void list_piece(void *context, uint32_t number, uint32_t worker) {
    struct list *list = context;
    struct list_piece *piece = &list->piece[number];
    (void)worker;
    uint32_t *out = list->intervals + piece->begin;
    uint32_t end = piece_begin(list->evaluation->rank_count, list->pieces, number + 1);
    for (uint32_t i = piece_begin(list->evaluation->rank_count, list->pieces, number); i < end; i++)
        piece->is_long |=
            list_rank(list->evaluation, list->evaluation->ranks[i].series, &out) > UINT32_MAX;
    piece->count = (uint64_t)(out - list->intervals) - piece->begin;
}

// Counts by the upper half, or by the lower half those with this upper half.
static void count_halves(const struct list *list, uint32_t *cells, int64_t upper) {
    memset(cells, 0, CELL_COUNT * sizeof *cells);
    for (uint32_t i = 0; i < list->pieces; i++) {
        const uint32_t *values = list->intervals + list->piece[i].begin;
        for (uint64_t j = 0; j < list->piece[i].count; j++) {
            if (upper < 0)
                cells[values[j] >> 16]++;
            else if (values[j] >> 16 == upper)
                cells[values[j] & UINT16_MAX]++;
        }
    }
}

static __int128 median_of_list(const struct list *list, uint64_t total, uint32_t *cells) {
    uint64_t middle[2] = {0};
    uint64_t places[2] = {total / 2, total / 2 - 1};
    uint32_t uppers[2];
    count_halves(list, cells, -1);
    for (uint64_t i = 0; i <= 1 - total % 2; i++)
        uppers[i] = place_of_rank(cells, &places[i]);
    for (uint64_t i = 0; i <= 1 - total % 2; i++) {
        if (i == 0 || uppers[1] != uppers[0])
            count_halves(list, cells, uppers[i]);
        middle[i] = (uint64_t)uppers[i] << 16 | place_of_rank(cells, &places[i]);
    }
    return total % 2 == 1 ? (__int128)middle[0] : median_of_middle(middle[1], middle[0]);
}

// Of few.
static __int128 median_of_few(const struct list *list, uint64_t total, struct arena *arena) {
    int64_t *values = arena_take(arena, total * sizeof *values);
    int64_t *again = arena_take(arena, total * sizeof *again);
    uint64_t count = 0;
    for (uint32_t i = 0; i < list->pieces; i++)
        for (uint64_t j = 0; j < list->piece[i].count; j++)
            values[count++] = list->intervals[list->piece[i].begin + j];
    assert(count == total);
    memcpy(again, values, total * sizeof *again);
    uint64_t high = (uint64_t)select_i64(values, total, total / 2);
    if (total % 2 == 1)
        return (__int128)high;
    return median_of_middle((uint64_t)select_i64(again, total, total / 2 - 1), high);
}

__int128 interval_median_of_samples(const struct evaluation *evaluation, struct workers *workers,
                                    struct arena *arena) {
    struct list *list = arena_zero(arena, 1, sizeof *list);
    uint64_t samples = 0, total = 0;
    for (uint32_t i = 0; i < evaluation->rank_count; i++)
        samples += evaluation->ranks[i].sample_count;
    list->evaluation = evaluation;
    list->pieces = workers_pieces(workers, samples, PIECE_SAMPLES, evaluation->rank_count);
    // One place more: what is not an interval is written behind the last.
    list->intervals = arena_take(arena, (samples + 1) * sizeof *list->intervals);
    uint64_t begin = 0;
    for (uint32_t i = 0, piece = 0; i < evaluation->rank_count; i++) {
        for (;
             piece < list->pieces && piece_begin(evaluation->rank_count, list->pieces, piece) == i;
             piece++)
            list->piece[piece].begin = begin;
        begin += evaluation->ranks[i].sample_count;
    }
    workers_run(workers, list->pieces, list_piece, list);
    for (uint32_t i = 0; i < list->pieces; i++) {
        if (list->piece[i].is_long)
            return median_of_any(evaluation, arena);
        total += list->piece[i].count;
    }
    if (total == 0)
        return claimed_median(evaluation, arena);
    if (total < CELL_COUNT)
        return median_of_few(list, total, arena);
    return median_of_list(list, total, arena_take(arena, CELL_COUNT * sizeof(uint32_t)));
}

__int128 interval_median_of_set(const struct evaluation *evaluation, struct order_statistic *set,
                                struct arena *arena) {
    size_t total = order_count(set);
    if (total == 0)
        return claimed_median(evaluation, arena);
    uint64_t high = order_select(set, total / 2);
    return total % 2 == 1 ? (__int128)high
                          : median_of_middle(order_select(set, total / 2 - 1), high);
}
