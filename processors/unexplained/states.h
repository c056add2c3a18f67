// SPDX-License-Identifier: Apache-2.0
// When states of machines ended, as their own sources say it: a condition of a Node that is well
// again, a file server that answers, a health check that passes.
//
// A state and its end may come in any order, from different files. Rows of 72 bytes; O(1) an event.
#pragma once

#include "processors/unexplained/signs.h"

extern const struct row_type STATE_END_ROWS;

// Keeps which states the event says to be over, if any.
void state_ends_take(struct keyed_rows *ends, struct row_bound *bound, const struct event *event,
                     struct arena *scratch);
// When the state that this is a sign of was over; 0: nobody said so, or it is no state.
uint64_t state_end_of(const struct keyed_rows *ends, const struct sign *sign);
