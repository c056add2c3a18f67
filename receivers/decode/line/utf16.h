// SPDX-License-Identifier: Apache-2.0
// Whether text is UTF-16, which nobody reads here: by its mark or, where tools leave that out, by
// its first characters, each with a zero byte beside it.
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <string.h>

enum utf16 { UTF16_NOT, UTF16_LITTLE, UTF16_BIG, UTF16_BARE };

enum { UTF16_BYTES_LEAST = 8, UTF16_BYTES_MOST = 64 };

// Whether all of the characters are of ASCII, with the byte that is not zero at `first` of each.
static inline bool utf16_pairs(struct slice text, size_t first) {
    for (size_t i = 0; i + 1 < text.size; i += 2) {
        unsigned char low = (unsigned char)text.data[i + first];
        bool is_text = (low >= ' ' && low < 0x7f) || (low >= '\t' && low <= '\r');
        if (!is_text || text.data[i + 1 - first] != '\0')
            return false;
    }
    return true;
}

// `text` begins where the input or its first line does. Without a mark it is not told which byte
// comes first: a zero before a line may have been taken for one of a hole.
static inline enum utf16 utf16_told(struct slice text) {
    if (text.size >= 2 && memcmp(text.data, "\xff\xfe", 2) == 0)
        return UTF16_LITTLE;
    if (text.size >= 2 && memcmp(text.data, "\xfe\xff", 2) == 0)
        return UTF16_BIG;
    if (text.size < UTF16_BYTES_LEAST)
        return UTF16_NOT;
    struct slice begin = {text.data,
                          text.size < UTF16_BYTES_MOST ? text.size : (size_t)UTF16_BYTES_MOST};
    return utf16_pairs(begin, 0) || utf16_pairs(begin, 1) ? UTF16_BARE : UTF16_NOT;
}
