// SPDX-License-Identifier: Apache-2.0
// Reads the lines that a span stream consists of, written as they usually are.
//
// Nearly all lines are `transition`, `metrics` and `tasks`, without spaces and escapes, their
// members in the order of docs/spans.md, tasks as bare keys. These are read in one pass. It can
// only accept: whatever is not like that is left to the general way, which knows the order of
// faults and gives the same event.
#pragma once

#include "base/arena.h"
#include "pipeline/model/span_event.h"

// True: the line is right and `event`, which was zeroed, holds it; its texts stand in the line or
// the arena. False: nothing is said about the line, and what `event` holds is of no use.
bool span_read_usual(struct slice line, struct arena *arena, struct span_event *event);

// A pass looks at this many bytes at once, at most; shorter lines are left to the general way.
enum { SPAN_USUAL_MIN = 32 };

// The same for a line of at least SPAN_USUAL_MIN bytes, by level of base/simd.h.
bool span_read_usual_baseline(struct slice line, struct arena *arena, struct span_event *event);
bool span_read_usual_avx2(struct slice line, struct arena *arena, struct span_event *event);
