// SPDX-License-Identifier: Apache-2.0
// Finds many short texts at once in a large one.
//
// All needles have NEEDLE_SIZE bytes. Each of their GRAMS grams of four bytes stands in a bitmap,
// so that looking at every third place of a text is enough: exactly one gram of a needle that is
// there begins at such a place. A place costs a load, a multiplication and a look at the bitmap,
// which lies in the first cache. Immutable once it is made: any thread.
#pragma once

#include "base/arena.h"

#include <stdint.h>

enum { NEEDLE_SIZE = 6, NEEDLE_GRAM = 4, NEEDLE_GRAMS = NEEDLE_SIZE - NEEDLE_GRAM + 1 };
enum { NEEDLE_LOOKS_A_BYTE = 16, NEEDLE_LOOKS_MIN = 16384 };

struct needles;

// `texts` have NEEDLE_SIZE bytes each and live as long; the same may come twice.
struct needles *needles_make(const char *const *texts, uint32_t count, struct arena *arena);

struct needle_walk {
    size_t at;
    uint32_t next; // among the entries of the gram at `at`
    // Entries that were looked at. Above NEEDLE_LOOKS_A_BYTE for each byte up to here, and
    // NEEDLE_LOOKS_MIN, a place is passed over: a bound for needles that are all alike, behind
    // which what follows is searched again.
    uint64_t looks;
};
// The next needle of the text: which, and where it begins. Begin with a walk of zeros. Needles come
// once each, not strictly in the order of their places: within NEEDLE_SIZE of it. O(text).
bool needles_next(const struct needles *needles, struct slice text, struct needle_walk *walk,
                  uint32_t *needle, size_t *begins);
