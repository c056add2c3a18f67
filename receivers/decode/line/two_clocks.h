// SPDX-License-Identifier: Apache-2.0
// One clock for each source, where its lines have two: that of what carries them (CRI, Docker, the
// journal, syslog, OTLP) before each line, and the program's own within some.
//
// The carrier's counts. Lines that have both tell how far the programs' is ahead: a zone, less how
// late the carrier is. It is taken off the times that messages tell (the summary of torchrun). Any
// thread, no allocation, O(a date) for each line.
#pragma once

#include "receivers/decode/line/frame.h"

#include <stdbool.h>
#include <stdint.h>

// Of one source; zeros at first.
struct two_clocks {
    bool known;
    int64_t ahead_ns; // of the lines that came with the least delay
    uint32_t others;  // lines in a row that say another difference
    int64_t other_ns; // … and which
};

// Takes account of a line, and tells its frame what is known.
void two_clocks_note(struct two_clocks *clock, struct frame *frame);

enum told_as {
    TOLD_LOCAL = 1 << 0, // by a clock of the place, without a zone
    TOLD_NOW = 1 << 1,   // of what came about shortly before the line was written
};
// The time that a message tells, by the clock of its source; `told_as` are bits of enum told_as.
uint64_t two_clocks_time(const struct frame *frame, uint64_t told_ns, unsigned told_as);
