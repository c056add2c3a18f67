// SPDX-License-Identifier: Apache-2.0
// Where things run: rank to GPU and node, pod to node, and what the entities of a verdict stand on.
//
// Names are kept as hashes; a place is a node, or a GPU of a node. Rows are bounded; the ones told
// of least recently go first. Not thread-safe.
#pragma once

#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "pipeline/model/batch.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/gpu_names.h"
#include "processors/cluster/pod_map.h"

enum { INCIDENT_PLACES_MAX = 128, INCIDENT_RANKS_MAX = 65536 };

struct place_at {
    uint64_t node; // hash of its name
    uint64_t gpu;  // hash of its address, even, or of its UUID, odd; 0: which of the node's is not
                   // known, or it is none
};

// What a verdict stands on.
struct places {
    struct place_at items[INCIDENT_PLACES_MAX];
    uint32_t count;
};

extern const struct row_type INCIDENT_RANK_ROWS;

// Its tables are the owner's state rows; the two `bound.max` are the owner's to set.
struct incident_map {
    struct keyed_rows ranks; // INCIDENT_RANK_ROWS
    struct pod_map pods;
    struct gpu_names gpus;
};

// Who used a GPU. Texts are interned.
struct gpu_user {
    string_id job; // STRING_NONE: not known
    string_id pod; // "NAMESPACE/NAME", or NAME alone; STRING_NONE: not known
    int32_t rank;
};

// Looks at the events of a batch.
void incident_map_take(struct incident_map *map, const struct batch *batch);
// The places of the verdict's entities: of those it blames; with `struck` those that a fault
// struck, too: pods that were taken away, and ranks that wait where it names none that they wait
// for.
void incident_map_places(const struct incident_map *map, const struct batch *batch,
                         const struct verdict *verdict, bool struck, struct places *places);
// Of the ranks on the GPU that an entity (kind "gpu") names, the one that was first told of last,
// no later than `time_ns`; false: none, the GPU is not known, or nobody knows which of two jobs had
// it last. O(ranks).
bool incident_map_user(const struct incident_map *map, struct slice gpu, uint64_t time_ns,
                       struct gpu_user *user);
// Whether something of both can be at one place.
bool places_meet(const struct places *a, const struct places *b);
