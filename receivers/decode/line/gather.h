// SPDX-License-Identifier: Apache-2.0
// Reports of several lines, gathered writer by writer while others write in between.
//
// A block begins when a reader says so and takes the further lines of its writer (frame.key) until
// the reader says that it is over, a bound is reached, or nothing more comes. At most GATHER_BLOCKS
// are open: with one more the oldest is cut. What is finished waits in order to be taken.
#pragma once

#include "receivers/decode/line/reader.h"

enum {
    GATHER_BLOCKS = 64,
    GATHER_LINES_MAX = 200,
    GATHER_SIZE_MAX = 64 << 10,
    GATHER_PASSED_MAX = 500 // lines of its writer in a row that do not belong to it
};

struct gather;

struct gather *gather_make(void);
void gather_free(struct gather *gather); // NULL is fine
// Whether the line belongs to a block that is open. Blocks that end by it are finished.
bool gather_takes(struct gather *gather, const struct frame *frame);
// The line begins a block. The frame's texts are copied.
void gather_begin(struct gather *gather, const struct line_reader *reader,
                  const struct frame *frame);
// Whether blocks are open or wait to be taken.
bool gather_holds(const struct gather *gather);
// All that are open are cut.
void gather_finish(struct gather *gather);

// A finished block; its slices stand until the next call of any function here.
struct gathered {
    const struct line_reader *reader;
    struct frame frame;      // of its first line; `truncated` is that of its last
    struct slice text;       // the messages, joined by newlines
    struct block_walk *walk; // for line_reader.next
    uint32_t lines;
    bool cut;
};
// The next that is finished; false: none is. One whose reader has `next` comes again until all of
// it was read.
bool gather_take(struct gather *gather, struct gathered *gathered);
// The reader's `next` has moved the walk of the block that was taken last: where the first of these
// messages stood, and how many lines they took. Ends the block when nothing of it is left.
void gather_read(struct gather *gather, uint64_t *position, uint32_t *lines);
