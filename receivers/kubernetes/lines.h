// SPDX-License-Identifier: Apache-2.0
// Cuts the body of a watch, which comes in pieces, into its lines.
//
// A line that lies in one piece is given where it is; only one that was begun in an earlier piece
// is copied together. A longer line than the bound is passed over to its end and counted.
#pragma once

#include "base/buffer.h"

struct watch_lines {
    struct buffer begun; // the beginning of a line whose end has not come
    size_t line_max;
    bool passing; // over the rest of a line that is too long
    uint64_t too_long;
};

void watch_lines_init(struct watch_lines *lines, size_t line_max);
void watch_lines_release(struct watch_lines *lines);
// Drops what was begun: what comes next is the beginning of a body.
void watch_lines_reset(struct watch_lines *lines);

// Gives each line that ends in the piece, without its newline, to `take`; blank ones are left out.
// The bytes of those lines stay where they are until `settle` was called, which is at the latest
// before this returns. False as soon as `take` says so (`settle` is called then, too).
bool watch_lines_take(struct watch_lines *lines, struct slice piece,
                      bool (*take)(void *context, struct slice line), void (*settle)(void *context),
                      void *context) MUST_USE;
