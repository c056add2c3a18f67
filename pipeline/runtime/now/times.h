// SPDX-License-Identifier: Apache-2.0
// When the events of one source happened, as a few runs of times.
//
// A run holds times with no gap over `jump`; one that holds a single time stands by itself: a line
// with a wrong date, or an event with a long silence around it. What comes out depends neither on
// batches nor, short of the bound on runs, on the order of events; but `behind` says for a single
// time what its source said after it. A note costs two comparisons as long as events stay in the
// run of the one before.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TIME_RUNS = 4 }; // the newest ones; older ones are one

enum run_told {
    RUN_NOT_TOLD,
    RUN_LEFT_ASIDE, // until others get there
    RUN_JUDGED,
    RUN_NOT_JUDGED
};

struct time_run {
    uint64_t low, high; // the same: a single time
    uint32_t behind;    // a record that came later happened more than `jump` before it
    uint16_t told;      // what is done with it: enum run_told
    uint16_t tells;     // a line of the kernel is of it, which tells of what happened
};

struct source_times {                // all zero: none
    struct time_run runs[TIME_RUNS]; // ascending
    uint32_t count;
    uint32_t at;       // the run of the event before
    uint64_t limit_ns; // up to here a time belongs to that run
};

// All times from `low` to `high`, which came after those that it holds. O(TIME_RUNS).
void source_times_add(struct source_times *times, uint64_t low, uint64_t high, uint64_t jump);
// Those of `later`, which came after its own.
void source_times_merge(struct source_times *times, const struct source_times *later,
                        uint64_t jump);

static inline void source_times_note(struct source_times *times, uint64_t time_ns, uint64_t jump) {
    struct time_run *run = &times->runs[times->at];
    if (time_ns - run->low > times->limit_ns - run->low)
        source_times_add(times, time_ns, time_ns, jump);
    else if (time_ns > run->high)
        run->high = time_ns;
}

// That the event that was noted last is a line of the kernel.
static inline void source_times_tell(struct source_times *times) {
    times->runs[times->at].tells = 1;
}

static inline uint64_t source_times_newest(const struct source_times *times) {
    return times->count == 0 ? 0 : times->runs[times->count - 1].high;
}

// The newest run that is beyond doubt: of several times, or a single one that the source went on
// from. `count` when there is none.
uint32_t source_times_sure(const struct source_times *times);
// The newest time up to `now_ns`; `now_ns` itself when all are later.
uint64_t source_times_until(const struct source_times *times, uint64_t now_ns);
