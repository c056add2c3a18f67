// SPDX-License-Identifier: Apache-2.0
// Sorting without the heap: qsort takes memory behind its caller's back and promises no order of
// equal items.
#pragma once

#include "base/arena.h"

// Ascending by `compare`, equal items in the order they came in. Scratch of the same size as the
// items is taken from the arena. O(n log n).
void sort_stable(void *items, size_t count, size_t item_size, struct arena *scratch,
                 int (*compare)(const void *, const void *));
