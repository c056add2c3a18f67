// SPDX-License-Identifier: Apache-2.0
// How far each writer of a log has come: the newest progress of each, of lines that say nothing
// else.
//
// Most lines of a training log count, so none of them is an event and none is parsed when it comes:
// the last few of each writer are kept as they are. They are read when it matters: where something
// else is told (counters_mark), for some lines behind that, and at the end. Then what moved since
// it was told last is told once more, with how often it rose in between. So who goes on counting
// behind a fault shows. Lines that count nothing are kept with them: the last is the reason of an
// end of which a launcher knows but the exit code.
#pragma once

#include "receivers/decode/line/frame.h"
#include "receivers/decode/log/progress.h"

struct counters;

// What is told of a writer; its slices stand until the next call of any function here.
struct counted {
    struct frame frame; // of the line
    struct slice text;  // as it was written, shortened
    struct progress progress;
    // How often it rose since it was told last. A bar that is drawn once more when its program
    // ends is no rise.
    uint32_t rises;
    bool anew; // it counted from lower on since then: another start, or another epoch
};

struct counters *counters_make(void);
void counters_free(struct counters *counters); // NULL is fine
// A line that no reader wanted. O(COUNTED_TEXT_MAX), but behind a mark: it is read there.
void counters_note(struct counters *counters, const struct frame *frame);
// Something else is told here: what moved before it is to be told, and soon what moves behind it.
void counters_mark(struct counters *counters);
// Nothing more comes.
void counters_finish(struct counters *counters);
// What the rank wrote last in front of `position`, shortened: its own writer, else a line that says
// "rank 3" of those whose writer nobody names. data NULL: not known, or it counted behind that, so
// that it went on. The slice stands until the next call of any function here. NULL is fine.
struct slice counters_last(const struct counters *counters, int32_t rank, uint64_t position);
// Lines were passed over: what is kept is no longer what was written last. NULL is fine.
void counters_forget(struct counters *counters);
// Whether lines are kept of which nothing is told yet. NULL is fine.
bool counters_hold(const struct counters *counters);
// The next that is to be told; false: nothing. NULL is fine.
bool counters_take(struct counters *counters, struct counted *counted);
