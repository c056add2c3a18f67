// SPDX-License-Identifier: Apache-2.0
// What a line must hold for a reader that is written in C to read it. What rows read is known from
// the rows; this is the same of all other readers, so that a log can be searched for both at once.
#pragma once

#include <stdbool.h>

struct form_literal {
    const char *text; // NEEDLE_SIZE bytes
    // The line is of interest, whatever it says by itself: it stands inside a report that begins
    // with a line that no text tells ("[0]:").
    bool certain;
};

extern const struct form_literal FORM_LITERALS[];
extern const unsigned FORM_LITERAL_COUNT;
