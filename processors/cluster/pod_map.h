// SPDX-License-Identifier: Apache-2.0
// The node that each pod runs on. Kept from Pod objects, from what kubelets say of pods, and from
// where schedulers say they put them.
//
// Only those events name a node; without this map the events of schedulers and controllers could
// not be joined with anything that a node does. Rows are 72 flat bytes, found by uid or by
// namespace and name (then of the pod that had that name last); texts are kept as 128 bits of hash.
// What is kept does not depend on the order of the objects, short of the bound: then those that
// were told of least recently (event time) go, a sixteenth at a time. Not thread-safe.
//
// Its two tables are the owner's state rows; `bound.max` is the owner's to set.
#pragma once

#include "base/arena.h"
#include "base/table/table.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/row_bound.h"

enum { POD_MAP_MAX_DEFAULT = 65536 };

enum pod_gpu { POD_GPU_UNKNOWN, POD_GPU_NONE, POD_GPU_SOME }; // limits nvidia.com/gpu

struct pod_place {
    string_id node;   // STRING_NONE: not known
    string_id job;    // from the Pod's labels; STRING_NONE: has none, or no Pod object was seen
    enum pod_gpu gpu; // UNKNOWN: no Pod object was seen
    uint64_t name;    // hash_slice of "NAMESPACE/NAME"; 0: not known
};

extern const struct row_type POD_ROWS;

// 128 bits of hash. Of a uid: pod_uid_key; all 0: none.
struct pod_key {
    uint32_t words[4];
};

struct pod_map {
    struct keyed_rows by_uid;  // POD_ROWS, as
    struct keyed_rows by_name; // the other
    struct row_bound bound;    // of each: pods
};

// Takes what the event (kind EVENT_KUBERNETES) says of a pod's place; events of no use are passed
// over. O(1); allocates only when the tables grow. `scratch` is used when the bound is reached.
void pod_map_take(struct pod_map *map, const struct event *event, struct arena *scratch);
// By uid, else by namespace and name; parts that are not known have size 0. False when the pod is
// not known at all.
bool pod_map_find(const struct pod_map *map, struct slice uid, struct slice namespace,
                  struct slice name, struct pod_place *place);
// By the hash of its uid. A Pod's name stands until another of that uid is told.
bool pod_map_find_uid(const struct pod_map *map, struct pod_key uid, struct pod_place *place);
struct pod_key pod_uid_key(struct slice uid);
