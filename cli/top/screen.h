// SPDX-License-Identifier: Apache-2.0
// A terminal that is used whole: its alternate screen, without echo, and put back as it was at the
// end, also when this process crashes or is stopped (Ctrl-Z). Plain ANSI sequences.
#pragma once

#include "cli/top/view.h"

#include <stdint.h>

struct screen {
    bool colours;
    uint32_t columns, rows;
    struct buffer frame;
};

// Whether standard input and output are a terminal that knows how to move the cursor.
bool screen_possible(void);
// False when the terminal cannot be set so; it is then as it was.
bool screen_enter(struct screen *screen) MUST_USE;
void screen_leave(struct screen *screen);
// Asks the terminal for its size.
void screen_measure(struct screen *screen);
// The view from line `from` on, the last row being `footer`. False: the terminal is gone.
bool screen_draw(struct screen *screen, const struct view *view, uint32_t from,
                 const char *footer) MUST_USE;

enum screen_key {
    KEY_NONE,
    KEY_UP = 256,
    KEY_DOWN,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END_OF_INPUT, // the terminal is gone
};
// The next key that was pressed, a character or one of the above; KEY_NONE when none waits.
int screen_key(void);
