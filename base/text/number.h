// SPDX-License-Identifier: Apache-2.0
// Whole numbers of up to 128 bits as decimal digits, which printf cannot write.
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum { NUMBER_TEXT_MAX = 40 }; // the longest is -2^127

// The digits lie in `room`, which has no terminating zero.
static inline struct slice number_text(__int128 value, char room[NUMBER_TEXT_MAX]) {
    unsigned __int128 left = value < 0 ? 0 - (unsigned __int128)value : (unsigned __int128)value;
    size_t at = NUMBER_TEXT_MAX;
    for (; left > UINT64_MAX; left /= 10) // ten times as dear as what follows
        room[--at] = (char)('0' + (int)(left % 10));
    uint64_t rest = (uint64_t)left;
    do {
        room[--at] = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest != 0);
    if (value < 0)
        room[--at] = '-';
    return (struct slice){room + at, NUMBER_TEXT_MAX - at};
}
