// SPDX-License-Identifier: Apache-2.0
// Bounds of tables: when one is full, the rows that were told of least recently go.
//
// `time_offset`: where in a row the uint64_t stands that says when it was told of. Many rows go at
// once, a sixteenth of the bound, so that a flood of new keys does not cost a walk through the
// table each. Of rows of one time those that stand first go.
#pragma once

#include "base/arena.h"
#include "base/table/keyed_rows.h"

struct row_bound {
    uint32_t max;        // rows; above 0
    uint64_t evicted;    // rows that went because of it, since the start
    uint64_t horizon_ns; // rows of before may have gone
};

// When there are `max` rows, removes the sixteenth with the lowest times; returns how many went.
// O(1) while there is room, else O(n), once in max / 16 rows.
uint32_t row_bound_make_room(struct keyed_rows *rows, uint32_t max, size_t time_offset,
                             struct arena *scratch);
// The row with this key, or a new zeroed one for which room is made.
void *row_bound_take(struct keyed_rows *rows, struct row_bound *bound, const void *key,
                     size_t time_offset, struct arena *scratch);
// The same, and whether it is new.
void *row_bound_get(struct keyed_rows *rows, struct row_bound *bound, const void *key,
                    size_t time_offset, bool *is_new, struct arena *scratch);
// The row with the lowest time, of equal ones the first; NULL: there is none. O(n).
void *rows_oldest(const struct keyed_rows *rows, size_t time_offset);
// Removes rows of before `before_ns`. O(n).
void rows_expire(struct keyed_rows *rows, size_t time_offset, uint64_t before_ns);
// The same for rows with a horizon, which moves there; nothing is looked at when it is there.
void row_bound_expire(struct keyed_rows *rows, struct row_bound *bound, size_t time_offset,
                      uint64_t before_ns);

// Rows of which some are in use and must stay.
struct idle_rows {
    struct keyed_rows *rows;
    uint32_t max;
    size_t time_offset;
    uint32_t *looked_at; // the owner's, 0 at first: with fewer rows there is no use in looking
    bool (*is_idle)(void *owner, const void *row);
    void (*forget)(void *owner, void *row); // removes it
    void *owner;
};
// When there are `max` rows, forgets idle ones; where these are too few, there may be up to twice
// as many rows. False: there is no room for one more.
bool idle_rows_make_room(const struct idle_rows *rows, struct arena *scratch);
