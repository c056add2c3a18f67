// SPDX-License-Identifier: Apache-2.0
// A tree of spans as a list of lines that a person can take in: what took the most thread time, in
// the order in which it was begun, siblings that differ only by a number told together.
//
// Bounded by its limits, whatever the tree: of many children those with the most thread time have
// lines and the others share one; deeper spans are counted. Cost: what it takes to ask every span
// that lies below an opened line; memory on the way: some 350 bytes for each child of one line.
#pragma once

#include "base/arena.h"
#include "pipeline/model/span_event.h"
#include "pipeline/model/span_report.h"

struct span_outline_limits {
    uint32_t lines;    // in all, at least 1
    uint32_t children; // lines below one line, beside the one for the others
    uint32_t depth;    // levels
};

enum span_line_kind {
    SPAN_LINE_ONE,  // a span
    SPAN_LINE_MANY, // siblings whose names differ by numbers at most
    SPAN_LINE_REST, // those that found no room
};

struct span_line {
    enum span_line_kind kind;
    uint32_t depth; // from 0
    uint64_t count; // spans that it tells of
    // The last part of its name; of many that of the first. Texts of the arena.
    struct slice name;
    struct slice last_name; // MANY: that of the last
    struct slice longest;   // MANY: the one that was open longest
    double longest_s;
    double seconds;  // that it was open; of several: that at least one was
    double thread_s; // thread seconds that it had
    double idle_s;   // of them; of no meaning unless `measured`
    bool measured;   // its workers reported metrics, so idle time means something
    double busy_s;   // of its tasks' actions, summed
    __int128 nbytes;
    bool done;
    uint64_t states[TASK_STATE_COUNT];
    uint64_t below; // direct children that are not shown
};

struct span_outline {
    const struct span_line *lines; // each below its parent
    uint32_t count;
    double thread_s;       // of all roots together: what shares are of
    double begin_s, end_s; // first begin of all roots, and when the last one was over
};

// A name with each number in it as "#", so that "step-17" and "step-18" are one.
struct slice span_stem(struct arena *arena, struct slice name);

// Texts and lines lie in `arena`. An empty tree has no lines.
void span_outline_make(const struct span_report *report, const struct span_outline_limits *limits,
                       struct arena *arena, struct span_outline *outline);
