// SPDX-License-Identifier: Apache-2.0
// Which node does a pod run on? Kept from Pod objects, from what kubelets say of pods, and from
// where schedulers say they put them.
//
// Only those events name a node; without this map the events of schedulers and controllers could
// not be joined with anything that a node does. Rows are 64 flat bytes, found by uid or by
// namespace and name (then of the pod that had that name last); texts are kept as 128 bits of hash.
// What is kept does not depend on the order of the objects, short of the bound: then those that
// were told of least recently (event time) go, a sixteenth at a time. Not thread-safe.
//
// The owner declares the state: pod_map_state in its `state`, pod_map_restored in `restored`.
#pragma once

#include "base/arena.h"
#include "base/table/keyed_rows.h"
#include "pipeline/component/state.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"

enum { POD_MAP_MAX_DEFAULT = 65536 };

enum pod_gpu { POD_GPU_UNKNOWN, POD_GPU_NONE, POD_GPU_SOME }; // limits nvidia.com/gpu

struct pod_place {
    string_id node;   // STRING_NONE: not known
    string_id job;    // from the Pod's labels; STRING_NONE: has none, or no Pod object was seen
    enum pod_gpu gpu; // UNKNOWN: no Pod object was seen
};

struct pod_map {
    struct keyed_rows by_uid;
    struct keyed_rows by_name;
    uint32_t max;     // pods
    uint64_t evicted; // rows that went because of the bound: for the owner's metric
};

// `uid_table` and `name_table` are static texts, unique in the component ("xid_correlation.pods").
void pod_map_init(struct pod_map *map, const char *uid_table, const char *name_table, uint32_t max);
void pod_map_release(struct pod_map *map);
void pod_map_state(struct pod_map *map, struct state_list *list);
void pod_map_restored(struct pod_map *map);

// Takes what the event (kind EVENT_KUBERNETES) says of a pod's place; events of no use are passed
// over. O(1); allocates only when the tables grow. `scratch` is used when the bound is reached.
void pod_map_take(struct pod_map *map, const struct event *event, struct arena *scratch);
// By uid, else by namespace and name; parts that are not known have size 0. False when the pod is
// not known at all.
bool pod_map_find(const struct pod_map *map, struct slice uid, struct slice namespace,
                  struct slice name, struct pod_place *place);
