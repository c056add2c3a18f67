// SPDX-License-Identifier: Apache-2.0
// For tests: events as a Kubernetes decoder makes them, from a few words.
#pragma once

#include "base/intern.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t CLUSTER_SECOND = 1000000000;
// 2026-11-18T09:00:00Z; times of the tests are seconds after it.
static const uint64_t CLUSTER_START = UINT64_C(1794992400) * 1000000000;

enum { CLUSTER_EVENTS_MAX = 4096 };

struct cluster {
    struct event events[CLUSTER_EVENTS_MAX];
    struct kubernetes_object objects[CLUSTER_EVENTS_MAX];
    struct kubernetes_condition conditions[CLUSTER_EVENTS_MAX];
    uint32_t count;
};

static inline struct slice cluster_text(const char *text) {
    return text == NULL ? (struct slice){NULL, 0} : slice_of(text);
}

static inline uint64_t cluster_time(double seconds) {
    return CLUSTER_START + (uint64_t)(seconds * 1e9);
}

static inline struct kubernetes_object *cluster_add(struct cluster *cluster, double seconds,
                                                    enum kubernetes_kind kind, const char *node) {
    if (cluster->count == CLUSTER_EVENTS_MAX)
        abort();
    struct kubernetes_object *object = &cluster->objects[cluster->count];
    *object = (struct kubernetes_object){.kind = kind, .watch = WATCH_ADDED};
    cluster->events[cluster->count++] =
        (struct event){.time_ns = cluster_time(seconds),
                       .rank = RANK_NONE,
                       .kind = EVENT_KUBERNETES,
                       .node = node == NULL ? STRING_NONE : intern(slice_of(node)),
                       .kubernetes = object};
    return object;
}

// Of the kubelet when `node` is not NULL; the pod's uid is "uid-" and its name.
static inline struct kubernetes_object *cluster_event(struct cluster *cluster, double seconds,
                                                      const char *uid, const char *reason,
                                                      const char *pod, const char *node,
                                                      const char *message) {
    static char uids[CLUSTER_EVENTS_MAX][64];
    char *pod_uid = uids[cluster->count];
    snprintf(pod_uid, sizeof uids[0], "uid-%s", pod);
    struct kubernetes_object *object = cluster_add(cluster, seconds, KUBERNETES_EVENT, node);
    object->event_ns = cluster_time(seconds);
    object->whole_seconds = true;
    object->uid = cluster_text(uid);
    object->reason = cluster_text(reason);
    object->message = cluster_text(message);
    object->object_kind = SLICE("Pod");
    object->object_name = cluster_text(pod);
    object->object_namespace = SLICE("train");
    object->object_uid = slice_of(pod_uid);
    object->component = node == NULL ? SLICE("taint-eviction-controller") : SLICE("kubelet");
    object->host = cluster_text(node);
    object->count = 1;
    return object;
}

static inline struct kubernetes_object *cluster_evicted(struct cluster *cluster, double seconds,
                                                        const char *uid, const char *pod,
                                                        const char *node, const char *message) {
    return cluster_event(cluster, seconds, uid, "Evicted", pod, node, message);
}

static inline struct kubernetes_object *cluster_pod(struct cluster *cluster, double seconds,
                                                    const char *pod, const char *node) {
    static char uids[CLUSTER_EVENTS_MAX][64];
    char *uid = uids[cluster->count];
    snprintf(uid, sizeof uids[0], "uid-%.*s", (int)sizeof uids[0] - 5, pod);
    struct kubernetes_object *object = cluster_add(cluster, seconds, KUBERNETES_POD, node);
    object->name = cluster_text(pod);
    object->namespace = SLICE("train");
    object->uid = slice_of(uid);
    object->node_name = cluster_text(node);
    object->job_label = SLICE("llama-pt");
    object->has_gpu = true;
    return object;
}

// One condition of a Node or Pod, at its own time.
static inline struct kubernetes_condition *cluster_condition(struct cluster *cluster,
                                                             struct kubernetes_object *object,
                                                             const char *type, const char *status,
                                                             double seconds) {
    struct kubernetes_condition *condition = &cluster->conditions[object - cluster->objects];
    *condition = (struct kubernetes_condition){.type = cluster_text(type),
                                               .status = cluster_text(status),
                                               .reason = SLICE("KubeletHasInsufficientMemory"),
                                               .message = SLICE("kubelet has insufficient memory"),
                                               .transition_ns = cluster_time(seconds)};
    object->conditions = condition;
    object->condition_count = 1;
    return condition;
}

static inline struct kubernetes_condition *cluster_node(struct cluster *cluster, double seconds,
                                                        const char *node, const char *type,
                                                        const char *status) {
    struct kubernetes_object *object = cluster_add(cluster, seconds, KUBERNETES_NODE, node);
    object->name = cluster_text(node);
    return cluster_condition(cluster, object, type, status, seconds);
}
