// SPDX-License-Identifier: Apache-2.0
// Text from events on its way to a terminal: nothing in it can move the cursor, colour, reorder or
// break a line.
//
// Control characters (C0, DEL, C1), line and paragraph separators, bidirectional controls,
// invisible format characters, surrogates and bytes that are not UTF-8 are written as \xNN or
// \uNNNN; the rest stays as it is.
#pragma once

#include "base/buffer.h"

// Appends `text`, made safe. `max` bytes of output at most (0: no limit), at least 4: what is
// longer is shortened (text_shorten).
void display_append(struct buffer *out, struct slice text, size_t max);
// How many columns `text` takes once made safe: one a character, two for wide East Asian ones and
// emoji, none for combining marks.
size_t display_columns(struct slice text);
