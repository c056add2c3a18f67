// SPDX-License-Identifier: Apache-2.0
// One character at a time out of bytes that may be anything.
//
// Generalised UTF-8 (see intern.h): shortest forms up to U+10FFFF, surrogates included. Source:
// RFC 3629, table 3-7 of the Unicode standard without its exclusion of D800..DFFF.
#pragma once

#include "base/slice.h"

#include <stdint.h>

// The length of the character at `at` (1 to 4) and its code point; 0 when the byte there begins no
// whole character. `at` is before the end.
static inline size_t utf8_decode(struct slice text, size_t at, uint32_t *code_point) {
    const unsigned char *bytes = (const unsigned char *)text.data + at;
    size_t left = text.size - at;
    if (bytes[0] < 0x80) {
        *code_point = bytes[0];
        return 1;
    }
    size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || left < length)
        return 0;
    uint32_t value = bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (bytes[i] & 0x3fu);
    }
    if ((length == 3 && value < 0x800) || (length == 4 && (value < 0x10000 || value > 0x10ffff)))
        return 0;
    *code_point = value;
    return length;
}

// Whether it is whole characters and nothing else.
static inline bool utf8_is_valid(struct slice text) {
    for (size_t at = 0; at < text.size;) {
        uint32_t code_point;
        size_t length =
            (unsigned char)text.data[at] < 0x80 ? 1 : utf8_decode(text, at, &code_point);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

// The first `max` characters; a byte that begins none counts as one.
static inline struct slice utf8_cut(struct slice text, size_t max) {
    size_t at = 0;
    for (size_t left = max; left > 0 && at < text.size; left--) {
        uint32_t code_point;
        size_t length = utf8_decode(text, at, &code_point);
        at += length == 0 ? 1 : length;
    }
    return (struct slice){text.data, at};
}
