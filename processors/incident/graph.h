// SPDX-License-Identifier: Apache-2.0
// The verdicts that stand as a graph: what explains what, which belong together, which is the root.
//
// Links lead from a cause to what it explains. They never form a circle: those that a detector says
// itself come first, then those from earlier to later verdicts, then those the other way (a cause
// may be seen a little later than what it did) as long as they close no circle. So every set of
// verdicts that belong together has verdicts that nothing explains; the first of them is the root.
#pragma once

#include "base/arena.h"
#include "base/table/keyed_rows.h"
#include "pipeline/model/batch.h"
#include "processors/incident/map.h"

enum { INCIDENT_RANKS_NAMED_MAX = 128, INCIDENT_SAID_MAX = 16, INCIDENT_LINKS_MAX = 65536 };

// What its detector says of another of its verdicts.
struct said {
    char id[VERDICT_ID_SIZE];
    uint32_t relation; // enum relation
};

// A verdict that stands.
struct standing {
    struct row_head head;
    char id[VERDICT_ID_SIZE]; // the key
    int32_t pattern;          // index of its pattern, from 1; 0: one that no component gives
    int32_t severity;
    uint32_t can_explain; // whether it is a cause at all
    uint16_t broken;      // what it says stays so until it is mended (enum lasting)
    uint16_t met;         // and what of that a program says it met
    uint64_t begin_ns;    // it began in between these
    uint64_t start_ns;
    uint64_t told;         // hash of what was said of its relations; 0: nothing yet
    uint64_t job;          // hash of its name; 0: none
    struct places causes;  // of whom it blames
    struct places effects; // and of whom it struck
    uint32_t blamed_count; // of `ranks`: the culprits, which come first
    uint32_t rank_count;
    int32_t ranks[INCIDENT_RANKS_NAMED_MAX]; // that it names; those that only wait where it names
                                             // no others
    uint32_t said_count;
    struct said said[INCIDENT_SAID_MAX];
};

struct incident_node {
    struct standing *row;
    uint32_t set;      // while sets are joined: towards the first of its set
    uint32_t root;     // of its set
    uint32_t out;      // first of its links as a cause; INCIDENT_NO_LINK: none
    uint32_t visit;    // of the last search that came here
    bool is_explained; // something explains it
};

enum { INCIDENT_NO_LINK = UINT32_MAX };

struct incident_link {
    uint32_t cause, effect;
    uint32_t next; // of the same cause
};

struct incident_graph {
    struct incident_node *nodes; // by begin, severity, pattern, id
    uint32_t node_count;
    struct incident_link *links; // by cause and effect, once they are sorted
    uint32_t link_count;
    uint32_t visit;
    uint64_t steps; // of all searches
};

// Whether the first may explain the second, times and places included.
typedef bool incident_explains(const void *owner, const struct standing *cause,
                               const struct standing *effect);

// All in the arena. `reach_ns`: no verdict explains one that begins so much later, but for one that
// met what is broken. O(verdicts, times those within reach; times all for those that met
// something).
void incident_graph_make(struct incident_graph *graph, const struct keyed_rows *standing,
                         uint64_t reach_ns, incident_explains *explains, const void *owner,
                         struct arena *arena);
// The number of a row's node.
uint32_t incident_graph_find(const struct incident_graph *graph, const struct standing *row);
// The order of nodes: what began first, of several the gravest, then by id.
int incident_compare(const struct standing *a, const struct standing *b);
