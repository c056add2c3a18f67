// SPDX-License-Identifier: Apache-2.0
#include "receivers/journald/cursor.h"

#include "base/text/cut.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static int hex_digit(char c) {
    if (text_is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_hex(struct slice text, uint64_t *value) {
    *value = 0;
    if (text.size == 0 || text.size > 16)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0)
            return false;
        *value = *value << 4 | (uint64_t)digit;
    }
    return true;
}

static bool read_part(char key, struct slice value, struct journal_cursor *cursor, unsigned *seen) {
    uint64_t *words = cursor->words;
    switch (key) {
    case 's':
        *seen |= 1;
        return value.size == 32 && read_hex((struct slice){value.data, 16}, &words[0]) &&
               read_hex(text_from(value, 16), &words[1]);
    case 'i':
        *seen |= 2;
        return read_hex(value, &words[2]);
    case 't':
        *seen |= 4;
        return read_hex(value, &words[3]);
    case 'x':
        *seen |= 8;
        return read_hex(value, &words[4]);
    default:
        return true;
    }
}

bool journal_cursor_parse(struct slice text, struct journal_cursor *cursor) {
    unsigned seen = 0;
    *cursor = (struct journal_cursor){{0}};
    while (text.size > 0) {
        struct slice part = text_until(text, ';');
        text = text_from(text, part.size + (part.size < text.size));
        if (part.size < 2 || part.data[1] != '=' ||
            !read_part(part.data[0], text_from(part, 2), cursor, &seen))
            return false;
    }
    return seen == 15;
}

void journal_cursor_format(const struct journal_cursor *cursor, char out[JOURNAL_CURSOR_TEXT_MAX]) {
    const uint64_t *words = cursor->words;
    int size = snprintf(out, JOURNAL_CURSOR_TEXT_MAX,
                        "s=%016" PRIx64 "%016" PRIx64 ";i=%" PRIx64 ";t=%" PRIx64 ";x=%" PRIx64,
                        words[0], words[1], words[2], words[3], words[4]);
    assert(size > 0 && size < JOURNAL_CURSOR_TEXT_MAX);
}
