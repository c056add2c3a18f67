// SPDX-License-Identifier: Apache-2.0
// The decoder of Kubernetes objects: both shapes of an Event, Pods, Nodes, watch events, what is
// passed over and what is refused.
#include "pipeline/model/observation.h"
#include "receivers/decode/kubernetes/kubernetes.h"
#include "tests/receivers/decode/decode_record.h"

static struct decoded decoded;
static const uint64_t START = UINT64_C(1794992400000000000); // 2026-11-18T09:00:00Z
static const uint64_t SECOND = 1000000000;

static void setup(void) {
    decoded = decoded_open(&decoder_kubernetes, 0);
}

static void teardown(void) {
    decoded_close(&decoded);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static const struct kubernetes_object *object(const char *record) {
    decoded_ok(&decoded, record);
    ck_assert_int_eq(decoded.event.kind, EVENT_KUBERNETES);
    ck_assert_int_eq(decoded.event.rank, RANK_NONE);
    return decoded.event.kubernetes;
}

static const char *node(void) {
    return decoded.event.node == STRING_NONE ? "" : intern_slice(decoded.event.node).data;
}

static const char V1_EVENT[] =
    "{\"source\":\"k8s_watch\",\"observed_time_ns\":1794992712250000000,\"type\":\"ADDED\","
    "\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"w-2.df\","
    "\"namespace\":\"train\",\"uid\":\"e-1\",\"creationTimestamp\":\"2026-11-18T09:00:01Z\","
    "\"annotations\":{\"starved_resource\":\"memory\",\"offending_containers\":\"trainer\"}},"
    "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"w-2\",\"namespace\":"
    "\"train\",\"uid\":\"p-1\"},\"reason\":\"Evicted\",\"message\":\"The node was low on resource: "
    "memory. \",\"source\":{\"component\":\"kubelet\",\"host\":\"gpu-node-05\"},"
    "\"firstTimestamp\":\"2026-11-18T09:05:10Z\",\"lastTimestamp\":\"2026-11-18T09:05:12Z\","
    "\"count\":3,\"type\":\"Warning\",\"eventTime\":null,\"reportingComponent\":\"kubelet\","
    "\"reportingInstance\":\"gpu-node-05\"}}";

START_TEST(event_of_v1) {
    const struct kubernetes_object *event = object(V1_EVENT);
    ck_assert_int_eq(event->kind, KUBERNETES_EVENT);
    ck_assert_int_eq(event->watch, WATCH_ADDED);
    ck_assert_uint_eq(event->observed_ns, UINT64_C(1794992712250000000));
    ck_assert_uint_eq(event->event_ns, START + 312 * SECOND);
    ck_assert_uint_eq(decoded.event.time_ns, event->event_ns);
    ck_assert(event->whole_seconds);
    decoded_text(event->name, "w-2.df");
    decoded_text(event->uid, "e-1");
    decoded_text(event->reason, "Evicted");
    decoded_text(event->message, "The node was low on resource: memory. ");
    decoded_text(event->type, "Warning");
    decoded_text(event->object_kind, "Pod");
    decoded_text(event->object_name, "w-2");
    decoded_text(event->object_namespace, "train");
    decoded_text(event->object_uid, "p-1");
    decoded_text(event->component, "kubelet");
    decoded_text(event->host, "gpu-node-05");
    decoded_text(event->starved_resource, "memory");
    ck_assert_int_eq(event->count, 3);
    ck_assert_str_eq(node(), "gpu-node-05");
}
END_TEST

START_TEST(event_of_events_k8s_io) {
    const struct kubernetes_object *event = object(
        "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"w-2.df\","
        "\"namespace\":\"train\",\"uid\":\"e-1\"},\"eventTime\":\"2026-11-18T09:05:12.123456Z\","
        "\"series\":{\"count\":7,\"lastObservedTime\":\"2026-11-18T09:06:00.000000Z\"},"
        "\"reportingController\":\"kubelet\",\"reportingInstance\":\"gpu-node-05\",\"action\":"
        "\"Evict\",\"reason\":\"Evicted\",\"regarding\":{\"kind\":\"Pod\",\"namespace\":\"train\","
        "\"name\":\"w-2\",\"uid\":\"p-1\"},\"note\":\"The node had condition: [DiskPressure]. \","
        "\"type\":\"Warning\",\"deprecatedSource\":{},\"deprecatedFirstTimestamp\":null,"
        "\"deprecatedLastTimestamp\":null,\"deprecatedCount\":0}");
    ck_assert_int_eq(event->watch, WATCH_NONE);
    ck_assert_uint_eq(event->event_ns, START + 312 * SECOND + 123456000);
    ck_assert(!event->whole_seconds);
    decoded_text(event->message, "The node had condition: [DiskPressure]. ");
    decoded_text(event->object_uid, "p-1");
    decoded_text(event->component, "kubelet");
    decoded_text(event->host, "gpu-node-05");
    ck_assert_int_eq(event->count, 7);
    ck_assert_str_eq(node(), "gpu-node-05");
}
END_TEST

static const struct {
    const char *members;
    uint64_t seconds;
    bool whole;
} TIMES[] = {
    {"\"eventTime\":\"2026-11-18T09:00:05.000000Z\",\"series\":{\"lastObservedTime\":"
     "\"2026-11-18T09:00:04Z\"},\"lastTimestamp\":\"2026-11-18T09:00:03Z\"",
     5, false},
    {"\"eventTime\":null,\"series\":{\"lastObservedTime\":\"2026-11-18T09:00:04.000000Z\"},"
     "\"lastTimestamp\":\"2026-11-18T09:00:03Z\"",
     4, false},
    {"\"series\":null,\"lastTimestamp\":\"2026-11-18T09:00:03Z\",\"firstTimestamp\":"
     "\"2026-11-18T09:00:02Z\"",
     3, true},
    {"\"lastTimestamp\":null,\"firstTimestamp\":\"2026-11-18T09:00:02Z\"", 2, true},
    {"\"lastTimestamp\":\"0001-01-01T00:00:00Z\",\"firstTimestamp\":\"\"", 1, true},
    {"\"deprecatedLastTimestamp\":\"2026-11-18T11:00:09+02:00\"", 9, true},
    {"\"deprecatedFirstTimestamp\":\"2026-11-18T09:00:08Z\"", 8, true},
};

START_TEST(time_of_an_event) {
    char record[1024];
    snprintf(record, sizeof record,
             "{\"kind\":\"Event\",\"metadata\":{\"creationTimestamp\":\"2026-11-18T09:00:01Z\"},"
             "\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"w\"},%s}",
             TIMES[_i].members);
    const struct kubernetes_object *event = object(record);
    ck_assert_uint_eq(event->event_ns, START + TIMES[_i].seconds * SECOND);
    ck_assert_int_eq(event->whole_seconds, TIMES[_i].whole);
}
END_TEST

START_TEST(events_of_controllers_name_no_node) {
    const struct kubernetes_object *event = object(
        "{\"kind\":\"Event\",\"metadata\":{},\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"w\"},"
        "\"source\":{\"component\":\"taint-eviction-controller\",\"host\":\"control-1\"},"
        "\"lastTimestamp\":\"2026-11-18T09:00:03Z\",\"reportingInstance\":\"control-1\"}");
    decoded_text(event->host, "control-1");
    ck_assert_str_eq(node(), "");
    event = object(
        "{\"kind\":\"Event\",\"metadata\":{},\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"w\"},"
        "\"source\":{\"component\":\"default-scheduler\"},\"reportingInstance\":\"scheduler-1\","
        "\"lastTimestamp\":\"2026-11-18T09:00:03Z\"}");
    decoded_text(event->host, NULL);
    ck_assert_str_eq(node(), "");
}
END_TEST

static const char POD[] =
    "{\n  \"type\": \"MODIFIED\",\n  \"object\": {\n    \"kind\": \"Pod\",\n    \"metadata\": "
    "{\"name\": \"w-2\", \"namespace\": \"train\", \"uid\": \"p-1\", \"creationTimestamp\": "
    "\"2026-11-18T08:00:00Z\", \"deletionTimestamp\": \"2026-11-18T10:00:00Z\", \"labels\": "
    "{\"job-name\": \"llama\", \"batch.kubernetes.io/job-name\": \"llama-b\"}},\n    \"spec\": "
    "{\"nodeName\": \"n5\", \"initContainers\": [{\"name\": \"i\"}], \"containers\": [{\"name\": "
    "\"a\"}, {\"name\": \"b\", \"resources\": {\"limits\": {\"cpu\": \"2\", \"nvidia.com/gpu\": "
    "\"8\"}}}]},\n    \"status\": {\"phase\": \"Failed\", \"reason\": \"Evicted\", \"message\": "
    "\"low\", \"conditions\": [{\"type\": \"DisruptionTarget\", \"status\": \"True\", \"reason\": "
    "\"TerminationByKubelet\", \"message\": \"m\", \"lastTransitionTime\": "
    "\"2026-11-18T09:05:12Z\"}, {\"type\": \"Ready\", \"status\": \"False\", "
    "\"lastTransitionTime\": null}]}\n  }\n}";

START_TEST(a_pod) {
    const struct kubernetes_object *pod = object(POD);
    ck_assert_int_eq(pod->kind, KUBERNETES_POD);
    ck_assert_int_eq(pod->watch, WATCH_MODIFIED);
    decoded_text(pod->name, "w-2");
    decoded_text(pod->namespace, "train");
    decoded_text(pod->uid, "p-1");
    decoded_text(pod->node_name, "n5");
    decoded_text(pod->phase, "Failed");
    decoded_text(pod->status_reason, "Evicted");
    decoded_text(pod->status_message, "low");
    decoded_text(pod->job_label, "llama-b");
    ck_assert(pod->has_gpu);
    ck_assert_uint_eq(pod->deletion_ns, START + 3600 * SECOND);
    ck_assert_uint_eq(pod->condition_count, 2);
    decoded_text(pod->conditions[0].type, "DisruptionTarget");
    decoded_text(pod->conditions[0].status, "True");
    decoded_text(pod->conditions[0].reason, "TerminationByKubelet");
    decoded_text(pod->conditions[0].message, "m");
    decoded_text(pod->conditions[0].transition_text, "2026-11-18T09:05:12Z");
    ck_assert_uint_eq(pod->conditions[0].transition_ns, START + 312 * SECOND);
    ck_assert_uint_eq(pod->conditions[1].transition_ns, 0);
    ck_assert_uint_eq(decoded.event.time_ns, START + 312 * SECOND); // the newest it tells of
    ck_assert_str_eq(node(), "n5");
}
END_TEST

static const struct {
    const char *spec;
    bool gpu;
} GPUS[] = {
    {"{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":1}}}]}", true},
    {"{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"0\"}}}]}", false},
    {"{\"containers\":[{\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"1\"}}}]}", false},
    {"{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/mig-1g.10gb\":\"1\"}}}]}", true},
    {"{\"initContainers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}", true},
    {"{\"containers\":[{\"resources\":{\"limits\":null}},{\"resources\":null},null,7]}", false},
    {"{\"containers\":null}", false},
    {"{\"containers\":[]}", false},
    {"null", false},
};

START_TEST(gpus_of_a_pod) {
    char record[1024];
    snprintf(record, sizeof record,
             "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"w\",\"creationTimestamp\":"
             "\"2026-11-18T09:00:01Z\"},\"spec\":%s}",
             GPUS[_i].spec);
    ck_assert_int_eq(object(record)->has_gpu, GPUS[_i].gpu);
}
END_TEST

static const struct {
    const char *labels, *job;
} LABELS[] = {
    {"{\"job-name\":\"a\"}", "a"},
    {"{\"batch.kubernetes.io/job-name\":\"b\",\"job-name\":\"a\"}", "b"},
    {"{\"training.kubeflow.org/job-name\":\"c\",\"batch.kubernetes.io/job-name\":\"b\"}", "c"},
    {"{\"jobset.sigs.k8s.io/jobset-name\":\"d\",\"training.kubeflow.org/job-name\":\"c\"}", "d"},
    {"{\"app\":\"x\"}", NULL},
    {"null", NULL},
};

START_TEST(job_of_a_pod) {
    char record[1024];
    snprintf(record, sizeof record,
             "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"w\",\"creationTimestamp\":"
             "\"2026-11-18T09:00:01Z\",\"labels\":%s}}",
             LABELS[_i].labels);
    decoded_text(object(record)->job_label, LABELS[_i].job);
}
END_TEST

START_TEST(node_with_conditions) {
    const struct kubernetes_object *read = object(
        "{\"source\":\"k8s_watch\",\"timestamp_ns\":1794992410000000000,\"type\":\"DELETED\","
        "\"object\":{\"kind\":\"Node\",\"metadata\":{\"name\":\"n5\",\"uid\":\"u\"},\"status\":"
        "{\"conditions\":[{\"type\":\"MemoryPressure\",\"status\":\"True\",\"lastHeartbeatTime\":"
        "\"2026-11-18T09:00:11Z\",\"lastTransitionTime\":\"2026-11-18T11:00:10+02:00\",\"reason\":"
        "\"r\",\"message\":\"\"},{\"status\":\"True\"}]}}}");
    ck_assert_int_eq(read->kind, KUBERNETES_NODE);
    ck_assert_int_eq(read->watch, WATCH_DELETED);
    ck_assert_uint_eq(read->condition_count, 1); // one without a type is none
    decoded_text(read->conditions[0].transition_text, "2026-11-18T11:00:10+02:00");
    ck_assert_uint_eq(read->conditions[0].transition_ns, START + 10 * SECOND);
    decoded_text(read->conditions[0].message, NULL);
    ck_assert_str_eq(node(), "n5");
    ck_assert_uint_eq(decoded.event.time_ns, START + 10 * SECOND);
}
END_TEST

// The first line of a file in tests/golden/kubernetes_api that holds `part`.
static const char *recorded(const char *path, const char *part) {
    static char line[1 << 16];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    do
        ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    while (strstr(line, part) == NULL);
    fclose(file);
    return line;
}

START_TEST(other_names_of_a_node) {
    static const char path[] = TESTS_DIR "/golden/kubernetes_api/watch_nodes.jsonl";
    const struct kubernetes_object *read = object(recorded(path, "InternalIP"));
    decoded_text(read->name, "gpu-node-7");
    ck_assert_uint_eq(read->alias_count, 3);
    decoded_text(read->aliases[0], "gpu-node-7"); // the label
    decoded_text(read->aliases[1], "10.1.0.7");
    decoded_text(read->aliases[2], "gpu-node-7");
}
END_TEST

#define OF_NODE(status)                                                                            \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"creationTimestamp\":"                       \
    "\"2026-11-18T09:00:01Z\"},\"status\":" status "}"
#define OF_POD(spec, status)                                                                       \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"w\",\"creationTimestamp\":"                        \
    "\"2026-11-18T09:00:01Z\"},\"spec\":" spec ",\"status\":" status "}"

static const struct {
    const char *record, *aliases;
} ALIASES[] = {
    {OF_NODE(
         "{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"},{\"type\":"
         "\"ExternalIP\",\"address\":\"192.0.2.1\"},{\"type\":\"InternalDNS\",\"address\":\"a.b\"},"
         "{\"type\":\"ExternalDNS\",\"address\":\"c.d\"},{\"type\":\"Hostname\",\"address\":\"e\"},"
         "{\"type\":\"Other\",\"address\":\"f\"}]}"),
     "10.0.0.1 192.0.2.1 a.b c.d e"},
    // Names that each node has, and none at all.
    {OF_NODE("{\"addresses\":[{\"type\":\"Hostname\",\"address\":\"localhost\"},{\"type\":"
             "\"InternalIP\",\"address\":\"127.0.0.1\"},{\"type\":\"InternalIP\",\"address\":\"\"},"
             "{\"type\":\"InternalIP\"},{\"address\":\"10.0.0.2\"},{\"type\":\"InternalIP\","
             "\"address\":\"fd00::1\"}]}"),
     "fd00::1"},
    {OF_NODE("{\"addresses\":null}"), ""},
    {OF_NODE("{\"addresses\":[]}"), ""},
    {OF_POD("{\"nodeName\":\"n\"}", "{\"hostIP\":\"10.0.0.1\",\"podIP\":\"10.2.0.1\"}"),
     "10.0.0.1"},
    {OF_POD("{\"nodeName\":\"n\"}", "{}"), ""},
    {OF_POD("{}", "{\"hostIP\":\"10.0.0.1\"}"), ""}, // of which node?
};

START_TEST(aliases) {
    const struct kubernetes_object *read = object(ALIASES[_i].record);
    char text[256] = "";
    for (uint32_t i = 0; i < read->alias_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s", i == 0 ? "" : " ",
                 (int)read->aliases[i].size, read->aliases[i].data);
    ck_assert_str_eq(text, ALIASES[_i].aliases);
}
END_TEST

START_TEST(aliases_are_bounded) {
    static char list[8192];
    size_t size = 0;
    for (int i = 0; i < 100; i++)
        size += (size_t)snprintf(list + size, sizeof list - size,
                                 "%s{\"type\":\"InternalIP\",\"address\":\"10.0.0.%d\"}",
                                 i == 0 ? "" : ",", i);
    char record[sizeof list + 256];
    snprintf(record, sizeof record,
             "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"creationTimestamp\":"
             "\"2026-11-18T09:00:01Z\"},\"status\":{\"addresses\":[%s]}}",
             list);
    ck_assert_uint_eq(object(record)->alias_count, ALIASES_MAX);
}
END_TEST

START_TEST(wrong_addresses_are_refused) {
    decoded_refused(&decoded, OF_NODE("{\"addresses\":7}"), DECODE_WRONG_TYPE, "status.addresses",
                    "an array");
    decoded_refused(&decoded, OF_NODE("{\"addresses\":[7]}"), DECODE_WRONG_TYPE, "status.addresses",
                    "objects");
}
END_TEST

START_TEST(conditions_are_bounded) {
    static char record[16384];
    size_t size = (size_t)snprintf(record, sizeof record,
                                   "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"status\":{"
                                   "\"conditions\":[");
    for (int i = 0; i < 100; i++)
        size += (size_t)snprintf(record + size, sizeof record - size,
                                 "%s{\"type\":\"T%d\",\"status\":\"True\",\"lastTransitionTime\":"
                                 "\"2026-11-18T09:00:10Z\"}",
                                 i == 0 ? "" : ",", i);
    snprintf(record + size, sizeof record - size, "]}}");
    ck_assert_uint_eq(object(record)->condition_count, CONDITIONS_MAX);
}
END_TEST

START_TEST(time_of_a_state) {
    static const char bare[] = "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"w\"}}";
    decoded_refused(&decoded, bare, DECODE_MISSING_TIMESTAMP, "observed_time_ns", "no time");
    struct decoder_input input = {.observed_ns = START};
    decoder_kubernetes.begin(decoded.state, &input);
    object(bare);
    ck_assert_uint_eq(decoded.event.time_ns, START);
    object(
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"w\",\"creationTimestamp\":"
        "\"2026-11-18T08:59:00Z\"}}");
    ck_assert_uint_eq(decoded.event.time_ns, START - 60 * SECOND);
    ck_assert_uint_eq(decoded.event.kubernetes->observed_ns, START);
    object(
        "{\"observed_time_ns\":7,\"kind\":\"Pod\",\"metadata\":{\"name\":\"w\","
        "\"creationTimestamp\":\"2026-11-18T08:59:00Z\"}}");
    ck_assert_uint_eq(decoded.event.time_ns, 7);
}
END_TEST

START_TEST(members_in_any_order_with_escapes_and_repeats) {
    const struct kubernetes_object *event = object(
        "{\"object\":{\"\\u0072eason\":\"Killing\",\"reason\":\"Ev\\u0069cted\",\"kind\":"
        "\"Event\",\"regarding\":{\"name\":\"w\",\"kind\":\"P\\u006fd\"},\"x\":[{\"reason\":"
        "1}],\"eventTime\":\"2026-11-18T09:00:05Z\"},\"type\":\"ADDED\"}");
    decoded_text(event->reason, "Evicted");
    ck_assert_int_eq(event->watch, WATCH_ADDED);
}
END_TEST

static const char *const NOTHING[] = {
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Deployment\",\"metadata\":{}}}",
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"metadata\":{},\"code\":410}}",
    "{\"kind\":\"Deployment\",\"metadata\":{\"name\":5}}",
    "{\"kind\":\"EventList\",\"metadata\":{}}", // nothing is in it
    ("{\"kind\":\"Event\",\"metadata\":{},\"involvedObject\":{\"kind\":\"Node\",\"name\":\"n\"},"
     "\"eventTime\":\"2026-11-18T09:00:05Z\"}"),
};

START_TEST(nothing) {
    decoded_nothing(&decoded, NOTHING[_i]);
}
END_TEST

// What controllers of queues say of a job that they stop.
static const struct {
    const char *kind, *reason, *message, *cause; // NULL: nothing
} STOPS[] = {
    {"Workload", "EvictedDueToPreempted", "Preempted to accommodate a workload", "preempted"},
    {"Workload", "Preempted", "Preempted to accommodate a workload", "preempted"},
    {"PyTorchJob", "Stopped", "Preempted to accommodate a workload", "preempted"},
    {"PodGroup", "Evict", "Evict by preempt", "preempted"},
    {"Job", "DeadlineExceeded", "Job was active longer than specified deadline", "time_limit"},
    {"PyTorchJob", "Stopped", "No matching Workload; restoring pod templates", NULL},
    {"Workload", "QuotaReserved", "Quota reserved in ClusterQueue", NULL},
    {"Node", "Preempted", "x", NULL},
};

START_TEST(jobs_that_are_stopped) {
    char record[512];
    struct slice cause, name;
    snprintf(
        record, sizeof record,
        "{\"kind\":\"Event\",\"metadata\":{\"name\":\"x\"},\"involvedObject\":{\"kind\":\"%s\","
        "\"name\":\"llama\",\"namespace\":\"train\"},\"reason\":\"%s\",\"message\":\"%s\","
        "\"lastTimestamp\":\"2026-11-18T09:00:03Z\"}",
        STOPS[_i].kind, STOPS[_i].reason, STOPS[_i].message);
    if (STOPS[_i].cause == NULL) {
        decoded_nothing(&decoded, record);
        return;
    }
    decoded_ok(&decoded, record);
    ck_assert_int_eq(decoded.event.kind, EVENT_OBSERVATION);
    ck_assert_uint_eq(decoded.event.time_ns, START + 3 * SECOND);
    const struct observation *said = decoded.event.observation;
    ck_assert_int_eq(said->kind, OBSERVATION_JOB_STOPPED);
    ck_assert(observation_text(said, FACT_CAUSE, &cause));
    decoded_text(cause, STOPS[_i].cause);
    ck_assert(observation_text(said, FACT_JOB, &name));
    decoded_text(name, "train/llama");
}
END_TEST

START_TEST(items_of_a_list_need_no_kind) {
    ck_assert_int_eq(object("{\"metadata\":{\"name\":\"x\"},\"involvedObject\":{\"kind\":\"Pod\","
                            "\"name\":\"w\"},\"lastTimestamp\":\"2026-11-18T09:00:03Z\"}")
                         ->kind,
                     KUBERNETES_EVENT);
    ck_assert_int_eq(object("{\"metadata\":{\"name\":\"w\",\"creationTimestamp\":"
                            "\"2026-11-18T09:00:03Z\"},\"spec\":{\"containers\":[]}}")
                         ->kind,
                     KUBERNETES_POD);
    ck_assert_int_eq(object("{\"metadata\":{\"name\":\"n\",\"creationTimestamp\":"
                            "\"2026-11-18T09:00:03Z\"},\"status\":{\"nodeInfo\":{}}}")
                         ->kind,
                     KUBERNETES_NODE);
}
END_TEST

START_TEST(time_of_nothing) {
    decoded_nothing(&decoded,
                    "{\"observed_time_ns\":5,\"type\":\"ADDED\",\"object\":{\"kind\":"
                    "\"Job\",\"metadata\":{\"creationTimestamp\":"
                    "\"2026-11-18T09:00:00Z\"}}}");
    ck_assert_uint_eq(decoded.event.time_ns, 5);
    decoded_nothing(&decoded,
                    "{\"kind\":\"Job\",\"metadata\":{\"creationTimestamp\":"
                    "\"2026-11-18T09:00:00Z\"}}");
    ck_assert_uint_eq(decoded.event.time_ns, START);
}
END_TEST

#define EVENT(members)                                                                             \
    "{\"kind\":\"Event\",\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"w\"}," members "}"
static const struct {
    const char *record;
    enum decode_category category;
    const char *field, *words;
} REFUSED[] = {
    {"", DECODE_NOT_OBJECT, "", "not a JSON object"},
    {"[]", DECODE_NOT_OBJECT, "", "not a JSON object"},
    {"{", DECODE_BAD_JSON, "", "not JSON"},
    {"{} x", DECODE_BAD_JSON, "", "more than white space"},
    {"{}", DECODE_MISSING_FIELD, "kind", "says its kind"},
    {"{\"kind\":5}", DECODE_WRONG_TYPE, "kind", "the integer 5, expected a text"},
    {"{\"type\":\"ADDED\",\"object\":7}", DECODE_WRONG_TYPE, "object", "the integer 7"},
    {"{\"type\":\"ADDED\",\"object\":{}}", DECODE_MISSING_FIELD, "kind", "says its kind"},
    {"{\"kind\":\"EventList\",\"items\":[{}]}", DECODE_WRONG_TYPE, "kind", "one by one"},
    {"{\"kind\":\"List\",\"items\":[]}", DECODE_WRONG_TYPE, "kind", "found List"},
    {"{\"kind\":\"Pod\",\"metadata\":{}}", DECODE_MISSING_FIELD, "metadata.name", "no such name"},
    {"{\"kind\":\"Event\",\"eventTime\":\"2026-11-18T09:00:05Z\"}", DECODE_MISSING_FIELD,
     "involvedObject.name", "no such name"},
    {EVENT("\"eventTime\":\"yesterday\""), DECODE_WRONG_TYPE, "eventTime",
     "the text \"yesterday\", expected a time such as"},
    {EVENT("\"lastTimestamp\":5"), DECODE_WRONG_TYPE, "lastTimestamp", "the integer 5"},
    {EVENT("\"message\":[]"), DECODE_WRONG_TYPE, "message", "an array"},
    {EVENT("\"count\":\"3\",\"eventTime\":\"2026-11-18T09:00:05Z\""), DECODE_WRONG_TYPE, "count",
     "the text \"3\", expected an integer"},
    {EVENT("\"reason\":\"x\""), DECODE_MISSING_TIMESTAMP, "observed_time_ns", "no time"},
    {"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"status\":{\"conditions\":{}}}",
     DECODE_WRONG_TYPE, "status.conditions", "expected an array"},
    {"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"status\":{\"conditions\":[7]}}",
     DECODE_WRONG_TYPE, "status.conditions", "the integer 7"},
    {"{\"observed_time_ns\":-1,\"kind\":\"Pod\"}", DECODE_OUT_OF_RANGE, "observed_time_ns", "-1"},
    {"{\"observed_time_ns\":\"1\",\"kind\":\"Pod\"}", DECODE_WRONG_TYPE, "observed_time_ns",
     "the text"},
};

START_TEST(refused) {
    decoded_refused(&decoded, REFUSED[_i].record, REFUSED[_i].category, REFUSED[_i].field,
                    REFUSED[_i].words);
}
END_TEST

START_TEST(long_names_are_refused) {
    static char record[2048];
    char name[300];
    memset(name, 'n', sizeof name);
    name[254] = '\0';
    snprintf(record, sizeof record,
             "{\"observed_time_ns\":5,\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"}}", name);
    decoded_refused(&decoded, record, DECODE_OUT_OF_RANGE, "metadata.name", "253 bytes");
    name[253] = '\0';
    snprintf(record, sizeof record,
             "{\"observed_time_ns\":5,\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"}}", name);
    object(record);
}
END_TEST

START_TEST(a_refused_record_adds_no_name) {
    string_id before = intern_count();
    decoded_refused(&decoded,
                    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"never-seen\"},\"status\":"
                    "{\"conditions\":7}}",
                    DECODE_WRONG_TYPE, "status.conditions", "7");
    ck_assert_uint_eq(intern_count(), before);
}
END_TEST

START_TEST(tagged_lines_are_the_same) {
    struct event event = {0};
    struct decode_fault fault;
    ck_assert_int_eq(
        kubernetes_tagged(decoded.state, slice_of(V1_EVENT), &decoded.arena, &event, &fault),
        DECODE_OK);
    decoded_text(event.kubernetes->object_name, "w-2");
    ck_assert_uint_eq(event.time_ns, START + 312 * SECOND);
    ck_assert_int_eq(kubernetes_tagged(decoded.state, SLICE("{\"source\":\"k8s_watch\"}"),
                                       &decoded.arena, &event, &fault),
                     DECODE_MISSING_FIELD);
}
END_TEST

START_TEST(broken_records_are_survived) {
    decoded_torture(&decoded, _i == 0 ? V1_EVENT : POD);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("decode_kubernetes");
    TCase *cases = tcase_create("decode_kubernetes");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, event_of_v1);
    tcase_add_test(cases, event_of_events_k8s_io);
    tcase_add_loop_test(cases, time_of_an_event, 0, sizeof TIMES / sizeof *TIMES);
    tcase_add_test(cases, events_of_controllers_name_no_node);
    tcase_add_test(cases, a_pod);
    tcase_add_loop_test(cases, gpus_of_a_pod, 0, sizeof GPUS / sizeof *GPUS);
    tcase_add_loop_test(cases, job_of_a_pod, 0, sizeof LABELS / sizeof *LABELS);
    tcase_add_test(cases, node_with_conditions);
    tcase_add_test(cases, other_names_of_a_node);
    tcase_add_loop_test(cases, aliases, 0, sizeof ALIASES / sizeof *ALIASES);
    tcase_add_test(cases, aliases_are_bounded);
    tcase_add_test(cases, wrong_addresses_are_refused);
    tcase_add_test(cases, conditions_are_bounded);
    tcase_add_test(cases, time_of_a_state);
    tcase_add_test(cases, members_in_any_order_with_escapes_and_repeats);
    tcase_add_loop_test(cases, nothing, 0, sizeof NOTHING / sizeof *NOTHING);
    tcase_add_loop_test(cases, jobs_that_are_stopped, 0, sizeof STOPS / sizeof *STOPS);
    tcase_add_test(cases, items_of_a_list_need_no_kind);
    tcase_add_test(cases, time_of_nothing);
    tcase_add_loop_test(cases, refused, 0, sizeof REFUSED / sizeof *REFUSED);
    tcase_add_test(cases, long_names_are_refused);
    tcase_add_test(cases, a_refused_record_adds_no_name);
    tcase_add_test(cases, tagged_lines_are_the_same);
    tcase_add_loop_test(cases, broken_records_are_survived, 0, 2);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
