// SPDX-License-Identifier: Apache-2.0
// Keeps which node a pod runs on.
//
// Each pod has a row by uid and one by namespace and name; both are told everything that has such a
// key. A row keeps what was told last in event time, of equal times the greater, so that the order
// of telling does not matter; what nobody dated is older than all else. 72 bytes a row, O(1) an
// object.
#include "processors/cluster/pod_map.h"

#include "base/hash/hash.h"
#include "base/table/table.h"

enum { ROWS_PER_CHUNK = 256, KEY_WORDS = 4 };

// A second hash of the same bytes, from another start.
#define OTHER_START UINT64_C(0x9ae16a3b2f90404f)

struct pod_row {
    struct row_head head;
    uint32_t key[KEY_WORDS];
    string_id node;
    string_id job;
    uint32_t gpu;
    uint32_t has_uid;   // somebody who told of it said a uid
    uint64_t seen_ns;   // of anything that was told
    uint64_t place_ns;  // of what told `node`
    uint64_t object_ns; // of the Pod object that told `job` and `gpu`
    uint64_t name;      // hash of "NAMESPACE/NAME"; a uid has one, and of two the greater counts
};
_Static_assert(sizeof(struct pod_key) == KEY_WORDS * sizeof(uint32_t), "the key of a row");

// What one event says of a pod.
struct telling {
    struct slice uid, namespace, name;
    uint64_t time_ns;
    string_id node;
    bool is_object;
    string_id job;
    enum pod_gpu gpu;
};

static struct pod_key key_of(struct slice first, struct slice second) {
    // A zero byte stands in neither part.
    uint64_t a = hash_more(hash_more(hash_slice(first), "", 1), second.data, second.size);
    uint64_t b = hash_more(hash_more(OTHER_START, first.data, first.size), "", 1);
    b = hash_more(b, second.data, second.size);
    return (struct pod_key){{(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)}};
}

struct pod_key pod_uid_key(struct slice uid) {
    return key_of(uid, SLICE(""));
}

const struct row_type POD_ROWS = {
    .size = sizeof(struct pod_row),
    .key_size = sizeof(struct pod_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct pod_row, node), offsetof(struct pod_row, job)},
};

static string_id intern_or_none(struct slice text) {
    string_id id = text.size == 0 ? STRING_NONE : intern(text);
    return id == STRING_REFUSED ? STRING_NONE : id;
}

static bool read_telling(const struct event *event, struct telling *out) {
    const struct kubernetes_object *object = event->kubernetes;
    *out = (struct telling){.time_ns = event->timeless ? 0 : event->time_ns};
    if (object->kind == KUBERNETES_POD) {
        out->uid = object->uid;
        out->namespace = object->namespace;
        out->name = object->name;
        out->is_object = true;
        out->node = intern_or_none(object->node_name);
        out->job = intern_or_none(object->job_label);
        out->gpu = object->has_gpu ? POD_GPU_SOME : POD_GPU_NONE;
        return true;
    }
    if (object->kind != KUBERNETES_EVENT || !slice_equal(object->object_kind, SLICE("Pod")))
        return false;
    struct slice node = object->host;
    if (slice_equal(object->reason, SLICE("Scheduled")))
        node = object->said_node.size > 0 ? object->said_node : kubernetes_said_node(object);
    else if (!slice_equal(object->component, SLICE("kubelet")))
        return false;
    out->uid = object->object_uid;
    out->namespace = object->object_namespace;
    out->name = object->object_name;
    out->node = intern_or_none(node);
    return out->node != STRING_NONE;
}

// Whether what was told at `time_ns` stands above what the row has.
static bool is_newer(uint64_t time_ns, string_id id, uint64_t known_ns, string_id known) {
    if (time_ns != known_ns)
        return time_ns > known_ns;
    return slice_compare(intern_slice(id), intern_slice(known)) > 0;
}

static void tell(struct pod_row *row, const struct telling *telling) {
    uint64_t time_ns = telling->time_ns;
    if (time_ns > row->seen_ns)
        row->seen_ns = time_ns;
    row->has_uid |= telling->uid.size > 0;
    if (telling->name.size > 0) {
        uint64_t hash = hash_more(hash_slice(telling->namespace), "/", 1);
        hash = hash_more(hash, telling->name.data, telling->name.size);
        if (hash > row->name)
            row->name = hash;
    }
    if (telling->node != STRING_NONE &&
        (row->node == STRING_NONE || is_newer(time_ns, telling->node, row->place_ns, row->node))) {
        row->node = telling->node;
        row->place_ns = time_ns;
    }
    if (!telling->is_object)
        return;
    bool newer = row->gpu == POD_GPU_UNKNOWN || time_ns > row->object_ns;
    if (newer) {
        row->job = telling->job;
        row->gpu = telling->gpu;
        row->object_ns = time_ns;
    } else if (time_ns == row->object_ns) {
        if (telling->gpu > row->gpu)
            row->gpu = telling->gpu;
        if (is_newer(time_ns, telling->job, row->object_ns, row->job))
            row->job = telling->job;
    }
}

static void take_key(struct pod_map *map, struct keyed_rows *rows, struct pod_key key,
                     const struct telling *telling, struct arena *scratch) {
    assert(rows->key_size == sizeof(struct pod_key));
    tell(row_bound_take(rows, &map->bound, &key, offsetof(struct pod_row, seen_ns), scratch),
         telling);
}

void pod_map_take(struct pod_map *map, const struct event *event, struct arena *scratch) {
    assert(event->kind == EVENT_KUBERNETES && map->bound.max > 0);
    struct telling telling;
    if (!read_telling(event, &telling))
        return;
    if (telling.uid.size > 0)
        take_key(map, &map->by_uid, key_of(telling.uid, SLICE("")), &telling, scratch);
    if (telling.name.size > 0)
        take_key(map, &map->by_name, key_of(telling.namespace, telling.name), &telling, scratch);
}

// A name can be another pod's by now: who knows the uid is not given the row of another one.
static const struct pod_row *find(const struct pod_map *map, struct slice uid,
                                  struct slice namespace, struct slice name) {
    const struct pod_row *row = NULL;
    struct pod_key key = key_of(uid, SLICE(""));
    if (uid.size > 0)
        row = keyed_rows_find(&map->by_uid, &key);
    if (row != NULL || name.size == 0)
        return row;
    key = key_of(namespace, name);
    row = keyed_rows_find(&map->by_name, &key);
    return row != NULL && uid.size > 0 && row->has_uid != 0 ? NULL : row;
}

static bool tell_place(const struct pod_row *row, struct pod_place *place) {
    *place = (struct pod_place){0};
    if (row != NULL)
        *place = (struct pod_place){row->node, row->job, (enum pod_gpu)row->gpu, row->name};
    return row != NULL;
}

bool pod_map_find(const struct pod_map *map, struct slice uid, struct slice namespace,
                  struct slice name, struct pod_place *place) {
    return tell_place(find(map, uid, namespace, name), place);
}

bool pod_map_find_uid(const struct pod_map *map, struct pod_key uid, struct pod_place *place) {
    return tell_place(keyed_rows_find(&map->by_uid, &uid), place);
}
