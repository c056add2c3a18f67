// SPDX-License-Identifier: Apache-2.0
// Compares the first and the last byte of what is wanted at sixteen places at once, and the bytes
// between only where both are right. memmem prepares a table for each call, which takes longer than
// a line of a log.
#include "base/text/find.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { PLACES = 16, WANTED_MAX = 64 };

typedef unsigned char places __attribute__((vector_size(PLACES)));

// Of what both bytes are right for at `at` and the places behind it, the first that is whole.
static const char *look(const char *at, places first, places last, struct slice wanted) {
    places heads, tails;
    unsigned char right[PLACES];
    uint64_t halves[2];
    memcpy(&heads, at, sizeof heads);
    memcpy(&tails, at + wanted.size - 1, sizeof tails);
    places both = (places)((heads == first) & (tails == last));
    memcpy(halves, &both, sizeof halves);
    if ((halves[0] | halves[1]) == 0)
        return NULL;
    memcpy(right, &both, sizeof right);
    for (size_t i = 0; i < PLACES; i++)
        if (right[i] != 0 && memcmp(at + i, wanted.data, wanted.size) == 0)
            return at + i;
    return NULL;
}

// For texts that are too short for sixteen places.
static const char *look_singly(struct slice text, struct slice wanted) {
    for (size_t i = 0; i + wanted.size <= text.size; i++)
        if (text.data[i] == wanted.data[0] && memcmp(text.data + i, wanted.data, wanted.size) == 0)
            return text.data + i;
    return NULL;
}

const char *text_position(struct slice text, struct slice wanted) {
    if (wanted.size > text.size || text.size == 0)
        return NULL;
    if (wanted.size == 0)
        return text.data;
    if (wanted.size > WANTED_MAX)
        return memmem(text.data, text.size, wanted.data, wanted.size);
    size_t count = text.size - wanted.size + 1;
    if (count < PLACES)
        return look_singly(text, wanted);
    places first = (unsigned char)wanted.data[0] - (places){0};
    places last = (unsigned char)wanted.data[wanted.size - 1] - (places){0};
    const char *found = NULL;
    for (size_t at = 0; at < count && found == NULL; at += PLACES)
        // The last sixteen overlap those before.
        found = look(text.data + (at + PLACES <= count ? at : count - PLACES), first, last, wanted);
    assert(found == NULL || (size_t)(found - text.data) < count);
    return found;
}
