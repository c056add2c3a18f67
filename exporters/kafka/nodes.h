// SPDX-License-Identifier: Apache-2.0
// Which jobs a node works for, learned from events that name both: telemetry, or a rank map of a
// job.
//
// A node that goes over to another job keeps the one before for an hour of event time, so that both
// get what it says; so do jobs that share it. At most 8 jobs of a node (the one that was seen
// longest ago makes room), and 65,536 pairs: then those that were not seen for an hour make room,
// which is looked for once an hour, and further ones are not learned. O(1) an event; allocates only
// when it grows. What is known depends on the order of the events only at these bounds. One thread.
#pragma once

#include "base/table/row_index.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"

enum { KAFKA_NODE_JOBS_MAX = 8, KAFKA_PAIRS_MAX = 65536 };

struct kafka_pair {
    uint32_t reserved; // of free rows the next one
    string_id job;     // STRING_NONE: this row is free
    string_id node;
    uint64_t last_ns; // event time, Unix nanoseconds
};

struct kafka_nodes {
    struct table pairs;
    struct row_index index; // by node
    uint64_t newest_ns;     // of all events
    uint64_t looked_ns;     // when room was looked for, in event time
};

extern const struct row_type kafka_pair_rows;

void kafka_nodes_release(struct kafka_nodes *nodes); // what is no state
void kafka_nodes_restored(struct kafka_nodes *nodes);
// Takes what an event says. One without a time counts as of the newest event that has one.
void kafka_nodes_note(struct kafka_nodes *nodes, const struct event *event);
// The jobs of a node, in an order that a restart does not change; returns how many.
uint32_t kafka_nodes_jobs(const struct kafka_nodes *nodes, string_id node,
                          string_id jobs[KAFKA_NODE_JOBS_MAX]);
