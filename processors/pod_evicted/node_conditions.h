// SPDX-License-Identifier: Apache-2.0
// The moments at which nodes reported that they are short of memory, disk or process ids.
//
// Kept from the conditions of Node objects: for each node and condition the newest transitions,
// flat rows, found by node. Heartbeats change nothing. What is kept does not depend on the order of
// the objects, short of the bound: then the rows that were told of least recently (event time) go.
#pragma once

#include "base/arena.h"
#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "processors/cluster/row_bound.h"

enum node_condition { NODE_MEMORY, NODE_DISK, NODE_PIDS, NODE_CONDITION_COUNT };
const char *node_condition_name(enum node_condition condition); // "MemoryPressure"

enum { TRANSITIONS_MAX = 8, CONDITION_REASON_MAX = 48, CONDITION_MESSAGE_MAX = 100 };

struct transition {
    uint64_t time_ns;
    uint32_t is_true;
    char reason[CONDITION_REASON_MAX];   // shortened
    char message[CONDITION_MESSAGE_MAX]; // shortened
};

extern const struct row_type CONDITION_ROWS;

// Its table is the owner's state row; `bound.max` is the owner's to set.
struct node_conditions {
    struct keyed_rows rows; // CONDITION_ROWS
    struct row_bound bound;
};

// Takes the conditions of a Node (event of kind EVENT_KUBERNETES); other objects are passed over.
void node_conditions_take(struct node_conditions *conditions, const struct event *event,
                          struct arena *scratch);

struct pressure_window {
    uint64_t before_ns, after_ns; // how far from the moment a transition may lie
};

// The transition to True that lies nearest to `at_ns` within the window and that no other state
// ended up to `at_ns`; NULL: there is none. `older` (may be NULL) is set to one that lies before
// the window and still held at `at_ns`, or to NULL. Valid until the next call that takes.
const struct transition *node_conditions_find(const struct node_conditions *conditions,
                                              string_id node, enum node_condition condition,
                                              uint64_t at_ns, struct pressure_window window,
                                              const struct transition **older);
