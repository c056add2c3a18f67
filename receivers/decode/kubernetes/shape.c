// SPDX-License-Identifier: Apache-2.0
// Tables only. Source: the API references of core/v1 Event, Pod, Node, events.k8s.io/v1 Event,
// batch/v1 Job and JobSet.
#include "receivers/decode/kubernetes/shape.h"

#include <assert.h>

#define ROW(key, slot)                                                                             \
    { {(key), sizeof(key) - 1}, (slot), NULL }
#define INNER(key, shape)                                                                          \
    { {(key), sizeof(key) - 1}, JSON_NO_SLOT, &(shape) }

static const struct json_shape_row line_rows[] = {
    ROW("observed_time_ns", SLOT_OBSERVED),
    ROW("timestamp_ns", SLOT_TIMESTAMP),
    ROW("type", SLOT_TYPE),
    ROW("object", SLOT_OBJECT),
    ROW("kind", SLOT_KIND),
};
const struct json_shape kubernetes_line_shape = JSON_SHAPE(line_rows);

static const struct json_shape_row annotation_rows[] = {ROW("starved_resource", SLOT_STARVED)};
static const struct json_shape annotations = JSON_SHAPE(annotation_rows);

static const struct json_shape_row label_rows[] = {
    ROW("jobset.sigs.k8s.io/jobset-name", SLOT_JOBSET),
    ROW("training.kubeflow.org/job-name", SLOT_KUBEFLOW_JOB),
    ROW("batch.kubernetes.io/job-name", SLOT_BATCH_JOB),
    ROW("job-name", SLOT_JOB),
    ROW("kubernetes.io/hostname", SLOT_HOSTNAME),
};
static const struct json_shape labels = JSON_SHAPE(label_rows);

static const struct json_shape_row metadata_rows[] = {
    ROW("name", SLOT_NAME),
    ROW("namespace", SLOT_NAMESPACE),
    ROW("uid", SLOT_UID),
    ROW("creationTimestamp", SLOT_CREATED),
    ROW("deletionTimestamp", SLOT_DELETED),
    INNER("annotations", annotations),
    INNER("labels", labels),
};
static const struct json_shape metadata = JSON_SHAPE(metadata_rows);

static const struct json_shape_row about_rows[] = {
    ROW("kind", SLOT_ABOUT_KIND),
    ROW("name", SLOT_ABOUT_NAME),
    ROW("namespace", SLOT_ABOUT_NAMESPACE),
    ROW("uid", SLOT_ABOUT_UID),
};
static const struct json_shape about = JSON_SHAPE(about_rows);

static const struct json_shape_row source_rows[] = {
    ROW("component", SLOT_COMPONENT),
    ROW("host", SLOT_HOST),
};
static const struct json_shape source = JSON_SHAPE(source_rows);

static const struct json_shape_row series_rows[] = {
    ROW("lastObservedTime", SLOT_SERIES_TIME),
    ROW("count", SLOT_SERIES_COUNT),
};
static const struct json_shape series = JSON_SHAPE(series_rows);

static const struct json_shape_row spec_rows[] = {
    ROW("nodeName", SLOT_NODE_NAME),
    ROW("containers", SLOT_CONTAINERS),
    ROW("initContainers", SLOT_INIT_CONTAINERS),
};
static const struct json_shape spec = JSON_SHAPE(spec_rows);

static const struct json_shape_row status_rows[] = {
    ROW("phase", SLOT_PHASE),
    ROW("reason", SLOT_STATUS_REASON),
    ROW("message", SLOT_STATUS_MESSAGE),
    ROW("startTime", SLOT_START_TIME),
    ROW("conditions", SLOT_CONDITIONS),
    ROW("nodeInfo", SLOT_NODE_INFO),
    ROW("containerStatuses", SLOT_CONTAINER_STATUSES),
    ROW("initContainerStatuses", SLOT_INIT_STATUSES),
    ROW("addresses", SLOT_ADDRESSES),
    ROW("hostIP", SLOT_HOST_IP),
    ROW("restarts", SLOT_RESTARTS),
};
static const struct json_shape status = JSON_SHAPE(status_rows);

static const struct json_shape_row object_rows[] = {
    ROW("kind", SLOT_KIND),
    ROW("type", SLOT_TYPE),
    ROW("items", SLOT_ITEMS),
    INNER("metadata", metadata),
    ROW("reason", SLOT_REASON),
    ROW("message", SLOT_MESSAGE),
    ROW("note", SLOT_MESSAGE),
    ROW("eventTime", SLOT_EVENT_TIME),
    INNER("series", series),
    ROW("lastTimestamp", SLOT_LAST_TIME),
    ROW("deprecatedLastTimestamp", SLOT_LAST_TIME),
    ROW("firstTimestamp", SLOT_FIRST_TIME),
    ROW("deprecatedFirstTimestamp", SLOT_FIRST_TIME),
    ROW("count", SLOT_COUNT),
    ROW("deprecatedCount", SLOT_COUNT),
    INNER("involvedObject", about),
    INNER("regarding", about),
    INNER("source", source),
    INNER("deprecatedSource", source),
    ROW("reportingController", SLOT_CONTROLLER),
    ROW("reportingComponent", SLOT_CONTROLLER),
    ROW("reportingInstance", SLOT_INSTANCE),
    INNER("spec", spec),
    INNER("status", status),
};
const struct json_shape kubernetes_object_shape = JSON_SHAPE(object_rows);

static const struct json_shape_row condition_rows[] = {
    ROW("type", CONDITION_TYPE),
    ROW("status", CONDITION_STATUS),
    ROW("reason", CONDITION_REASON),
    ROW("message", CONDITION_MESSAGE),
    ROW("lastTransitionTime", CONDITION_TRANSITION),
    ROW("lastHeartbeatTime", CONDITION_HEARTBEAT),
};
const struct json_shape kubernetes_condition_shape = JSON_SHAPE(condition_rows);

static const struct json_shape_row address_rows[] = {
    ROW("type", ADDRESS_TYPE),
    ROW("address", ADDRESS_TEXT),
};
const struct json_shape kubernetes_address_shape = JSON_SHAPE(address_rows);

static const struct json_shape_row resource_rows[] = {ROW("limits", CONTAINER_LIMITS)};
static const struct json_shape resources = JSON_SHAPE(resource_rows);
static const struct json_shape_row container_rows[] = {INNER("resources", resources)};
const struct json_shape kubernetes_container_shape = JSON_SHAPE(container_rows);

static const struct json_shape_row state_rows[] = {
    ROW("running", STATUS_RUNNING),
    ROW("terminated", STATUS_ENDED),
};
static const struct json_shape state = JSON_SHAPE(state_rows);
static const struct json_shape_row last_state_rows[] = {ROW("terminated", STATUS_EARLIER)};
static const struct json_shape last_state = JSON_SHAPE(last_state_rows);

static const struct json_shape_row container_status_rows[] = {
    ROW("name", STATUS_NAME),       ROW("containerID", STATUS_ID),        INNER("state", state),
    INNER("lastState", last_state), ROW("restartCount", STATUS_RESTARTS),
};
const struct json_shape kubernetes_status_shape = JSON_SHAPE(container_status_rows);

static const struct json_shape_row terminated_rows[] = {
    ROW("exitCode", TERMINATED_CODE),       ROW("signal", TERMINATED_SIGNAL),
    ROW("reason", TERMINATED_REASON),       ROW("message", TERMINATED_MESSAGE),
    ROW("finishedAt", TERMINATED_FINISHED), ROW("containerID", TERMINATED_ID),
};
const struct json_shape kubernetes_terminated_shape = JSON_SHAPE(terminated_rows);

// Appends the path of the slot below `shape` to `path`, of which `size` bytes are used; 0: it is
// not there. The shapes are ours and three deep, so that recursion is bounded.
static size_t path_append(const struct json_shape *shape, enum kubernetes_slot slot,
                          char path[KUBERNETES_PATH_MAX], size_t size) {
    for (uint32_t i = 0; i < shape->count; i++) {
        const struct json_shape_row *row = &shape->rows[i];
        size_t end = size + row->key.size;
        assert(end < KUBERNETES_PATH_MAX);
        memcpy(path + size, row->key.data, row->key.size);
        if (row->slot == (int32_t)slot)
            return end;
        path[end] = '.';
        size_t found = row->inner == NULL ? 0 : path_append(row->inner, slot, path, end + 1);
        if (found > 0)
            return found;
    }
    return 0;
}

struct slice kubernetes_slot_name(enum kubernetes_slot slot, char path[KUBERNETES_PATH_MAX]) {
    size_t size = path_append(&kubernetes_object_shape, slot, path, 0);
    if (size == 0)
        size = path_append(&kubernetes_line_shape, slot, path, 0);
    assert(size > 0);
    return (struct slice){path, size};
}
