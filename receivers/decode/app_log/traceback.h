// SPDX-License-Identifier: Apache-2.0
// Python's tracebacks as text: what a line of one is, and which exception is the reason.
//
// A chain names several exceptions: the first that tells a reason is the reason, the last is what
// ended the process. Nothing is allocated; slices point into the text. Any bytes.
#pragma once

#include "base/arena.h"

enum { TRACEBACK_FRONT_MAX = 400 };

enum traceback_line {
    TRACEBACK_OTHER, // nothing of a traceback
    TRACEBACK_HEAD,  // "Traceback (most recent call last):"
    TRACEBACK_FRAME, // indented: a place, its source, markers
    TRACEBACK_BLANK,
    TRACEBACK_FINAL, // "Type: message" at column 0
    TRACEBACK_TAIL,  // known to follow such a message
    TRACEBACK_LINK,  // joins two of a chain
};

// An exception as the last line of its traceback tells it.
struct raised {
    struct slice type;    // "torch.OutOfMemoryError"; data NULL: none
    struct slice message; // the first line of it; empty: none
    struct slice text;    // from the type to the end of what belongs to the message
    struct slice place;   // the last line "File …" before it; data NULL: none
    bool cut;             // the input ended inside the message
};

struct traceback {
    struct raised reason; // the first that is no wrapper of others; of wrappers alone the first
    struct raised last;   // that ended the process
    uint32_t count;       // exceptions in the chain
    bool only_wrapped;    // none but wrappers
    bool mixed;           // several writers wrote over one another
    bool unfinished;      // it ends inside a traceback, or where another one was announced
};

// `inside`: an exception of the user's own may end the traceback, by whatever name.
enum traceback_line traceback_line(struct slice line, bool inside);
// "Type: message", at the front of a line.
bool traceback_raised(struct slice line, bool inside, struct raised *raised);
// The first exception that stands inside a line as words of its own, behind something else:
// "Type: message", "Type('message')", or the type at the line's end. `front`: what stands before
// it, at most TRACEBACK_FRONT_MAX bytes. O(line).
bool traceback_raised_within(struct slice line, struct raised *raised, struct slice *front);
// Whether a message says what follows in the next line: it ends in a colon.
bool traceback_goes_on(struct slice message);
// All lines of it, joined by newlines. O(size).
void traceback_read(struct slice text, struct traceback *traceback);
// "  File "/w/train.py", line 12, in main" (a comma or none): "main (/w/train.py:12)" as its three
// parts; false when it is no such line.
struct traceback_place {
    struct slice file, line, function;
};
bool traceback_place(struct slice line, struct traceback_place *place);
// The same as one text, in the arena; data NULL where the line is none.
struct slice traceback_place_text(struct slice line, struct arena *arena);
