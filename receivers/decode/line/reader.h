// SPDX-License-Identifier: Apache-2.0
// What makes events of messages: one reader for each family of messages, in tables of constants.
//
// A reader looks at one message and knows nothing else. What a line must hold for it to read the
// line stands in forms/literals.c, too: long logs are searched for that, and other lines are not
// offered. A report of several lines is gathered for
// it (gather.h): `read` says READ_BEGIN, `more` says of each further line of the same writer
// whether it belongs to it, and `finish` reads the whole, its messages joined by newlines.
#pragma once

#include "receivers/decode/line/reading.h"

enum block_step {
    BLOCK_TAKE, // belongs to it, and more may come
    BLOCK_LAST, // belongs to it and ends it
    BLOCK_OVER, // the report ended before this line, which is read by itself
    BLOCK_PASS, // somebody else's line in between: read by itself, the report goes on
};

// How far a block was read.
struct block_walk {
    size_t at;
    size_t
        marks[2]; // the reader's own: places in the text that later messages refer to; 0 at first
};

struct line_reader {
    const char *name;
    // Only the first line of its reports has "[rank3]:" in front: lines of the same origin without
    // one are offered to `more` as well.
    bool unmarked;
    // The same where already the second line, directly behind the first, has none: loggers put
    // their prefix in front of the first line of a message alone.
    bool bare;
    // How many lines of somebody else may stand in a row within a report; 0: GATHER_PASSED_MAX.
    uint32_t passes;
    // Never reads beyond the message; linear in its size.
    enum read_result (*read)(const struct frame *frame, struct slice message,
                             struct reading *reading);
    // NULL: its reports are of one line. `so_far`: the messages that were taken, joined by
    // newlines; `count` of them. Looks at `message` and the end of `so_far` only: it is called for
    // every line.
    enum block_step (*more)(struct slice so_far, uint32_t count, const struct frame *frame,
                            struct slice message);
    // `cut`: it may not be whole (the input ended, a bound was reached). READ_EVENT, READ_OTHER or
    // READ_REFUSED. `frame` is that of the first line.
    enum read_result (*finish)(struct slice text, bool cut, const struct frame *frame,
                               struct reading *reading);
    // Instead of `finish`, for blocks that give several readings (a table, a report with headings):
    // reads what begins at walk->at, where a message does, and moves it behind the messages that it
    // took, one at least; called until nothing is left. A block that grew too long goes on in
    // another one, which begins with the same first message.
    enum read_result (*next)(struct slice text, struct block_walk *walk, bool cut,
                             const struct frame *frame, struct reading *reading);
};
