// SPDX-License-Identifier: Apache-2.0
// Finds the name that was probably meant.
//
// Edit distance with swapped neighbours (the restricted form of Damerau's distance), in three rows.
// A third of the letters, at least one, may be wrong; else a name that begins the other will do
// ("warning" for "warn"). Names longer than NAME_LENGTH_MAX are not compared.
// Cost: O(count * length^2), no heap.
#include "config/option.h"

#include <assert.h>
#include <string.h>

enum { NAME_LENGTH_MAX = 64, PREFIX_MIN = 3 };

static unsigned min2(unsigned a, unsigned b) {
    return a < b ? a : b;
}

// Both at most NAME_LENGTH_MAX bytes.
static unsigned edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    assert(a_length <= NAME_LENGTH_MAX && b_length <= NAME_LENGTH_MAX);
    unsigned rows[3][NAME_LENGTH_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *now = rows[2];
    for (unsigned j = 0; j <= b_length; j++)
        last[j] = j;
    for (unsigned i = 1; i <= a_length; i++) {
        now[0] = i;
        for (unsigned j = 1; j <= b_length; j++) {
            unsigned change = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = min2(change, min2(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min2(now[j], before[j - 2] + 1);
        }
        unsigned *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[b_length];
}

static bool begins_other(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t shorter = a_length < b_length ? a_length : b_length;
    return shorter >= PREFIX_MIN && memcmp(a, b, shorter) == 0;
}

const char *option_nearest(const char *given, const char *const *names, size_t count) {
    assert(given != NULL);
    size_t length = strlen(given);
    if (length == 0 || length > NAME_LENGTH_MAX)
        return NULL;
    unsigned best = length == 1 ? 1 : (unsigned)(length < 5 ? 1 : length < 6 ? 2 : length / 3) + 1;
    const char *nearest = NULL, *begun = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length > NAME_LENGTH_MAX)
            continue;
        unsigned distance = edit_distance(given, length, names[i], name_length);
        if (distance < best) {
            best = distance;
            nearest = names[i];
        }
        if (begun == NULL && begins_other(given, length, names[i], name_length))
            begun = names[i];
    }
    return nearest != NULL ? nearest : begun;
}
