// SPDX-License-Identifier: Apache-2.0
// What stands in front of the lines of a traceback and is no prefix that a row knows: a program's
// logger, or a launcher of a site's own, put it before each line.
//
// The line that begins a traceback ends in words of its own, and a place in one begins with words
// of its own, so all before them is a head. A line that begins with a head of the same shape (equal
// but for its numbers) has one, too.
#pragma once

#include "receivers/decode/line/peel.h"

enum { HEAD_SIZE_MAX = 200 };

// The last head that a log had; zeros at first.
struct head_seen {
    char text[HEAD_SIZE_MAX];
    uint32_t size;   // 0: none
    bool is_certain; // a line within a traceback had it, too
    bool names;      // … when the last traceback began
};

// Takes such a head off the lines behind the beginning of a traceback. From the second traceback
// with such a head on it names the writer, without the time that stands in it; a rank that stands
// in it is the writer's. O(HEAD_SIZE_MAX)
void head_peel(struct peel *peel, struct head_seen *seen);
// "rank 3", "rank=3", "Rank3" in a head; that of a process group or of a node is another number.
bool head_rank(struct slice head, uint64_t *rank);
