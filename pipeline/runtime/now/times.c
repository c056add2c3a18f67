// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/now/times.h"

#include <assert.h>
#include <string.h>

static uint64_t sum(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static bool is_single(const struct time_run *run) {
    return run->low == run->high;
}

// Puts `run` in place of those from `first` to before `end`; returns how many there are then.
static uint32_t replace(struct time_run *runs, uint32_t count, uint32_t first, uint32_t end,
                        const struct time_run *run) {
    assert(first <= end && end <= count && count <= TIME_RUNS);
    memmove(&runs[first + 1], &runs[end], (count - end) * sizeof *runs);
    runs[first] = *run;
    return count - (end - first) + 1;
}

// One run too many: the two oldest become one. But a single time that the source itself went back
// from is forgotten instead, or it would pass for the end of the older ones.
static void merge_oldest(struct time_run *runs, uint32_t count) {
    assert(count == TIME_RUNS + 1);
    if (is_single(&runs[1]) && runs[1].behind != 0) {
        runs[1] = runs[0];
    } else {
        runs[1].low = runs[0].low;
        runs[1].behind = 0;
    }
    memmove(&runs[0], &runs[1], (count - 1) * sizeof *runs);
}

void source_times_add(struct source_times *times, uint64_t low, uint64_t high, uint64_t jump) {
    assert(low <= high && times->count <= TIME_RUNS);
    struct time_run runs[TIME_RUNS + 1], joined = {.low = low, .high = high};
    memcpy(runs, times->runs, sizeof times->runs);
    uint32_t count = times->count, first = 0;
    while (first < count && sum(runs[first].high, jump) < low)
        first++;
    uint32_t end = first;
    while (end < count && runs[end].low <= sum(high, jump))
        end++;
    if (end > first) {
        joined = runs[first];
        joined.low = low < joined.low ? low : joined.low;
        joined.high = high > runs[end - 1].high ? high : runs[end - 1].high;
    }
    count = replace(runs, count, first, end, &joined);
    for (uint32_t i = first + 1; i < count; i++)
        runs[i].behind = 1;
    if (count > TIME_RUNS) {
        merge_oldest(runs, count);
        count--;
        first -= first > 0;
    }
    memcpy(times->runs, runs, sizeof times->runs);
    times->count = count;
    times->at = first;
    times->limit_ns = sum(runs[first].high, jump);
    if (first + 1 < count && times->limit_ns >= runs[first + 1].low - jump)
        times->limit_ns = runs[first + 1].low - jump - 1;
}

void source_times_merge(struct source_times *times, const struct source_times *later,
                        uint64_t jump) {
    assert(times != later);
    for (uint32_t i = 0; i < later->count; i++) {
        const struct time_run *run = &later->runs[i];
        source_times_add(times, run->low, run->high, jump);
        times->runs[times->at].behind |= run->behind;
        times->runs[times->at].tells |= run->tells;
    }
}

uint32_t source_times_sure(const struct source_times *times) {
    assert(times->count <= TIME_RUNS);
    for (uint32_t i = times->count; i-- > 0;)
        if (!is_single(&times->runs[i]) || (i + 1 < times->count && times->runs[i].behind == 0))
            return i;
    return times->count;
}

uint64_t source_times_until(const struct source_times *times, uint64_t now_ns) {
    assert(times->count <= TIME_RUNS);
    for (uint32_t i = times->count; i-- > 0;)
        if (times->runs[i].low <= now_ns)
            return times->runs[i].high < now_ns ? times->runs[i].high : now_ns;
    return now_ns;
}
