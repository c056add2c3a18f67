// SPDX-License-Identifier: Apache-2.0
// What time it is for a pipeline: the newest time of its sources that does not stand alone.
//
// A time counts when another event of its source is at most max_jump away, when another source has
// come within max_jump of it, or when its source went on from it. A single time that is further
// ahead than that is left aside. At the end of the input or in a silence, when nothing more can
// speak for it, it counts after all unless its source went back from it, or most of the (at least
// three) sources agree on an earlier end. What a kernel log ends with
// counts even then where inputs end: a fault is judged, and its time said to be doubtful. So one
// line with the date of tomorrow does not make all else old, and a lone Xid at the end of a kernel
// log is not lost.
#pragma once

#include "base/arena.h"
#include "base/intern.h"
#include "base/table/table.h"
#include "pipeline/runtime/now/times.h"

// How far the source is from the others (offset.h).
struct source_offset {
    uint64_t seen_ns; // its newest time at the last look
    uint32_t events;  // that it has given
    int32_t quarters; // of an hour, ahead of the others
    uint32_t count;   // of looks in a row with that
    uint32_t said;
};

// One a source.
struct source_clock {
    uint32_t chained; // what the table puts there when the row is freed
    string_id path;
    struct source_times times;
    struct source_offset offset;
    uint32_t told; // how many of its times were left aside
};

// Whether anything more can speak for a time that stands alone.
enum now_end {
    NOW_GOES_ON,
    NOW_RESTS, // perhaps not for a while: what was read as it happened counts, the rest waits
    NOW_ENDS,  // no
};

struct now_rule {
    uint64_t max_jump_ns; // UINT64_MAX: any time counts
    enum now_end end;
    // Unless it goes on, in a live pipeline: the time of day; 0: none. What is after it by more
    // than max_jump cannot have happened; a time that is at most fresh_ns before it was read as it
    // happened, and its clock is right.
    uint64_t unix_ns;
    uint64_t fresh_ns;
    // Each run that is left aside for good, or judged though nothing speaks for it, once.
    void (*tell)(void *context, const struct source_clock *clock, const struct time_run *run);
    void *context;
};

// 0: no time counts yet. `clocks` holds struct source_clock; those without times are skipped.
// O(sources), and O(n log n) in those that stand alone ahead of all others.
uint64_t now_of(struct table *clocks, const struct now_rule *rule, struct arena *scratch);
