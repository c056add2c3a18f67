// SPDX-License-Identifier: Apache-2.0
// Tables only. Source: the API references of core/v1 Event, Pod, Node and events.k8s.io/v1 Event.
#include "receivers/decode/kubernetes/shape.h"

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
    ROW("reportingComponent", SLOT_CONTROLLER),
    ROW("reportingController", SLOT_CONTROLLER),
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

static const struct json_shape_row resource_rows[] = {ROW("limits", CONTAINER_LIMITS)};
static const struct json_shape resources = JSON_SHAPE(resource_rows);
static const struct json_shape_row container_rows[] = {INNER("resources", resources)};
const struct json_shape kubernetes_container_shape = JSON_SHAPE(container_rows);

struct slice kubernetes_slot_name(enum kubernetes_slot slot) {
    static const char *const names[SLOT_OBJECT_COUNT] = {
        [SLOT_OBSERVED] = "observed_time_ns",
        [SLOT_TIMESTAMP] = "timestamp_ns",
        [SLOT_OBJECT] = "object",
        [SLOT_KIND] = "kind",
        [SLOT_TYPE] = "type",
        [SLOT_ITEMS] = "items",
        [SLOT_NAME] = "metadata.name",
        [SLOT_NAMESPACE] = "metadata.namespace",
        [SLOT_UID] = "metadata.uid",
        [SLOT_CREATED] = "metadata.creationTimestamp",
        [SLOT_DELETED] = "metadata.deletionTimestamp",
        [SLOT_STARVED] = "metadata.annotations.starved_resource",
        [SLOT_JOBSET] = "metadata.labels.jobset.sigs.k8s.io/jobset-name",
        [SLOT_KUBEFLOW_JOB] = "metadata.labels.training.kubeflow.org/job-name",
        [SLOT_BATCH_JOB] = "metadata.labels.batch.kubernetes.io/job-name",
        [SLOT_JOB] = "metadata.labels.job-name",
        [SLOT_REASON] = "reason",
        [SLOT_MESSAGE] = "message",
        [SLOT_EVENT_TIME] = "eventTime",
        [SLOT_SERIES_TIME] = "series.lastObservedTime",
        [SLOT_LAST_TIME] = "lastTimestamp",
        [SLOT_FIRST_TIME] = "firstTimestamp",
        [SLOT_COUNT] = "count",
        [SLOT_SERIES_COUNT] = "series.count",
        [SLOT_ABOUT_KIND] = "involvedObject.kind",
        [SLOT_ABOUT_NAME] = "involvedObject.name",
        [SLOT_ABOUT_NAMESPACE] = "involvedObject.namespace",
        [SLOT_ABOUT_UID] = "involvedObject.uid",
        [SLOT_COMPONENT] = "source.component",
        [SLOT_HOST] = "source.host",
        [SLOT_CONTROLLER] = "reportingController",
        [SLOT_INSTANCE] = "reportingInstance",
        [SLOT_NODE_NAME] = "spec.nodeName",
        [SLOT_CONTAINERS] = "spec.containers",
        [SLOT_INIT_CONTAINERS] = "spec.initContainers",
        [SLOT_PHASE] = "status.phase",
        [SLOT_STATUS_REASON] = "status.reason",
        [SLOT_STATUS_MESSAGE] = "status.message",
        [SLOT_START_TIME] = "status.startTime",
        [SLOT_CONDITIONS] = "status.conditions",
        [SLOT_NODE_INFO] = "status.nodeInfo",
    };
    return slice_of(names[slot]);
}
