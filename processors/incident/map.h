// SPDX-License-Identifier: Apache-2.0
// Where things run: rank to GPU and node, pod to node, and what the entities of a verdict stand on.
//
// Names are kept as hashes; a place is a node, or a GPU of a node. Rows are bounded; the ones told
// of least recently go first. Not thread-safe.
#pragma once

#include "base/table/keyed_rows.h"
#include "pipeline/component/state.h"
#include "pipeline/model/batch.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/pod_map.h"

enum { INCIDENT_PLACES_MAX = 16, INCIDENT_RANKS_MAX = 65536 };

struct place_at {
    uint64_t node; // hash of its name
    uint64_t gpu;  // hash of "NODE/ADDRESS"; 0: which of the node's is not known, or it is none
};

// What a verdict stands on.
struct places {
    struct place_at items[INCIDENT_PLACES_MAX];
    uint32_t count;
};

struct incident_map {
    struct keyed_rows ranks;
    struct pod_map pods;
    uint64_t evicted;
};

void incident_map_init(struct incident_map *map);
void incident_map_release(struct incident_map *map);
void incident_map_state(struct incident_map *map, struct state_list *list);
void incident_map_restored(struct incident_map *map);
// Looks at the events of a batch.
void incident_map_take(struct incident_map *map, const struct batch *batch);
// The places of the verdict's entities: of those it blames, and with `victims` of all.
void incident_map_places(const struct incident_map *map, const struct batch *batch,
                         const struct verdict *verdict, bool victims, struct places *places);
// Whether something of both can be at one place.
bool places_meet(const struct places *a, const struct places *b);
