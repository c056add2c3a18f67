// SPDX-License-Identifier: Apache-2.0
// A cursor of the journal as five words, which is what a position holds of it.
//
// A cursor is `s=ID;i=N;b=BOOT;m=USEC;t=USEC;x=HASH`, all in hexadecimal: the id of the sequence,
// the number in it, boot and time since boot, time of day, and a hash of the entry. Without boot
// and time since boot the reader finds an entry as well, and tells whether it is that one. Source:
// sd_journal_get_cursor(3); the parts are as systemd 252 writes them.
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct journal_cursor {
    uint64_t words[5]; // sequence id (2), number, time of day in microseconds, hash
};
enum { JOURNAL_CURSOR_TEXT_MAX = 128 };

// False: a part is missing or is no number.
bool journal_cursor_parse(struct slice text, struct journal_cursor *cursor);
void journal_cursor_format(const struct journal_cursor *cursor, char out[JOURNAL_CURSOR_TEXT_MAX]);
