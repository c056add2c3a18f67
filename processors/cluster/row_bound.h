// SPDX-License-Identifier: Apache-2.0
// Room for one more row in a table that is full: the rows that were told of least recently go.
#pragma once

#include "base/arena.h"
#include "base/table/keyed_rows.h"

// When there are `max` rows, removes the sixteenth with the lowest uint64_t at `time_offset` of the
// row; returns how many went. O(1) while there is room, else O(n log n), once in max / 16 rows.
uint32_t row_bound_make_room(struct keyed_rows *rows, uint32_t max, size_t time_offset,
                             struct arena *scratch);
