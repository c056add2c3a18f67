// SPDX-License-Identifier: Apache-2.0
// Where in a Kubernetes object each value stands that the decoder wants. Both spellings of an Event
// (v1 and events.k8s.io/v1) fill the same slots.
#pragma once

#include "receivers/decode/json/shape.h"

enum kubernetes_slot {
    // Of the line or watch event.
    SLOT_OBSERVED,
    SLOT_TIMESTAMP,
    SLOT_OBJECT,
    // Of the object.
    SLOT_KIND,
    SLOT_TYPE, // of the watch event too, which has been read by then
    SLOT_ITEMS,
    SLOT_NAME,
    SLOT_NAMESPACE,
    SLOT_UID,
    SLOT_CREATED,
    SLOT_DELETED,
    SLOT_STARVED,
    SLOT_JOBSET,
    SLOT_KUBEFLOW_JOB,
    SLOT_BATCH_JOB,
    SLOT_JOB,
    // Event
    SLOT_REASON,
    SLOT_MESSAGE,
    SLOT_EVENT_TIME,
    SLOT_SERIES_TIME,
    SLOT_LAST_TIME,
    SLOT_FIRST_TIME,
    SLOT_COUNT,
    SLOT_SERIES_COUNT,
    SLOT_ABOUT_KIND,
    SLOT_ABOUT_NAME,
    SLOT_ABOUT_NAMESPACE,
    SLOT_ABOUT_UID,
    SLOT_COMPONENT,
    SLOT_HOST,
    SLOT_CONTROLLER,
    SLOT_INSTANCE,
    // Pod, Node
    SLOT_NODE_NAME,
    SLOT_CONTAINERS,
    SLOT_INIT_CONTAINERS,
    SLOT_PHASE,
    SLOT_STATUS_REASON,
    SLOT_STATUS_MESSAGE,
    SLOT_START_TIME,
    SLOT_CONDITIONS,
    SLOT_NODE_INFO,
    SLOT_CONTAINER_STATUSES,
    SLOT_INIT_STATUSES,
    SLOT_ADDRESSES,
    SLOT_HOSTNAME, // a label
    SLOT_HOST_IP,
    // JobSet
    SLOT_RESTARTS,
    SLOT_OBJECT_COUNT
};

// How a slot's member is called in messages: "involvedObject.name"; lies in `path`.
enum { KUBERNETES_PATH_MAX = 64 };
struct slice kubernetes_slot_name(enum kubernetes_slot slot, char path[KUBERNETES_PATH_MAX]);

extern const struct json_shape kubernetes_line_shape;
extern const struct json_shape kubernetes_object_shape;

enum condition_slot {
    CONDITION_TYPE,
    CONDITION_STATUS,
    CONDITION_REASON,
    CONDITION_MESSAGE,
    CONDITION_TRANSITION,
    CONDITION_HEARTBEAT,
    CONDITION_SLOT_COUNT
};
extern const struct json_shape kubernetes_condition_shape;

// Of an item of a Node's status.addresses.
enum { ADDRESS_TYPE, ADDRESS_TEXT, ADDRESS_SLOT_COUNT };
extern const struct json_shape kubernetes_address_shape;

enum { CONTAINER_LIMITS, CONTAINER_SLOT_COUNT };
extern const struct json_shape kubernetes_container_shape;

// Of an item of status.containerStatuses.
enum container_status_slot {
    STATUS_NAME,
    STATUS_ID,
    STATUS_RESTARTS,
    STATUS_RUNNING, // state.running
    STATUS_ENDED,   // state.terminated
    STATUS_EARLIER, // lastState.terminated
    STATUS_SLOT_COUNT
};
extern const struct json_shape kubernetes_status_shape;

enum terminated_slot {
    TERMINATED_CODE,
    TERMINATED_SIGNAL,
    TERMINATED_REASON,
    TERMINATED_MESSAGE,
    TERMINATED_FINISHED,
    TERMINATED_ID,
    TERMINATED_SLOT_COUNT
};
extern const struct json_shape kubernetes_terminated_shape;
