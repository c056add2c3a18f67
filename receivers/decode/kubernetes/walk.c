// SPDX-License-Identifier: Apache-2.0
// Goes through the arrays of a status, item by item. Facts from the API references of core/v1 Pod
// and Node, batch/v1 Job and JobSet, the configuration files of node-problem-detector, and
// pkg/reasons/reasons.yaml of aws/eks-node-monitoring-agent.
#include "receivers/decode/kubernetes/walk.h"

#include "base/text/cut.h"
#include "base/text/rfc3339.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/kubernetes/by_rows.h"
#include "receivers/decode/kubernetes/last_words.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

// Times in a status have whole seconds.
enum { SECOND_NS = 1000000000 };
enum { SIGNAL_BASE = 128, SIGNAL_MAX = 64, SIGNAL_TERM = 15, XID_DIGITS = 4 };

bool kubernetes_is_job(struct slice kind) {
    static const char *const kinds[] = {"Job",        "JobSet",    "PyTorchJob", "MPIJob",  "TFJob",
                                        "XGBoostJob", "PaddleJob", "JAXJob",     "TrainJob"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (slice_equal(kind, slice_of(kinds[i])))
            return true;
    return false;
}

void kubernetes_walk_begin(struct kubernetes_walk *walk, enum kubernetes_walk_kind kind,
                           const struct token *slots, uint64_t state_ns,
                           const struct forms *forms) {
    static const enum kubernetes_slot arrays[WALK_ARRAYS] = {SLOT_CONTAINER_STATUSES,
                                                             SLOT_INIT_STATUSES, SLOT_CONDITIONS};
    assert(kind < WALK_KIND_COUNT);
    *walk = (struct kubernetes_walk){
        .forms = forms,
        .kind = kind,
        .open = true,
        .status_told = kind != WALK_POD,
        .state_ns = state_ns,
        .name = slots[SLOT_NAME],
        .namespace = slots[SLOT_NAMESPACE],
        .uid = slots[SLOT_UID],
        .node_name = slots[kind == WALK_NODE ? SLOT_NAME : SLOT_NODE_NAME],
        .restarts = slots[SLOT_RESTARTS],
        .status_reason = slots[SLOT_STATUS_REASON],
        .status_message = slots[SLOT_STATUS_MESSAGE],
    };
    for (size_t i = 0; i < WALK_ARRAYS; i++)
        if (kind == WALK_POD || arrays[i] == SLOT_CONDITIONS)
            walk->arrays[i] = slots[arrays[i]];
}

// -- values -------------------------------------------------------------------------------------

static struct slice text_of(const struct token *token, struct arena *arena) {
    if (token->kind != TOKEN_STRING)
        return (struct slice){NULL, 0};
    return token_decode(token, arena);
}

// 0: not said, or Go's zero time.
static uint64_t time_of(const struct token *token, struct arena *arena) {
    uint64_t time_ns = 0;
    struct slice text = text_of(token, arena);
    if (text.size == 0 || rfc3339_parse(text, &time_ns, NULL) != RFC3339_OK)
        return 0;
    return time_ns;
}

static void put_text(struct reading *reading, enum fact_key key, struct slice text) {
    if (text.size > 0)
        reading_text(reading, key, text);
}

static void put_token(struct reading *reading, enum fact_key key, const struct token *token) {
    put_text(reading, key, text_of(token, reading->arena));
}

// "ml/trainer-2"
static struct slice full_name(const struct kubernetes_walk *walk, struct arena *arena) {
    struct slice name = text_of(&walk->name, arena);
    struct slice namespace = text_of(&walk->namespace, arena);
    if (namespace.size == 0 || name.size == 0)
        return name;
    char *both = arena_take(arena, namespace.size + 1 + name.size);
    memcpy(both, namespace.data, namespace.size);
    both[namespace.size] = '/';
    memcpy(both + namespace.size + 1, name.data, name.size);
    return (struct slice){both, namespace.size + 1 + name.size};
}

static void begin_about_pod(const struct kubernetes_walk *walk, struct reading *reading,
                            enum observation_kind what) {
    reading_begin(reading, what);
    put_text(reading, FACT_POD, full_name(walk, reading->arena));
    put_token(reading, FACT_UNIT_UID, &walk->uid);
}

// -- containers ---------------------------------------------------------------------------------

// "containerd://4be1…" without what made it.
static struct slice container_id(const struct token *token, struct arena *arena) {
    struct slice text = text_of(token, arena), id;
    return text_find(text, SLICE("://"), &id) ? id : text;
}

static void put_message(struct reading *reading, const struct token *token) {
    struct slice message = text_trim(text_of(token, reading->arena)), type, words;
    if (last_words_find(message, &type, &words)) {
        put_text(reading, FACT_EXCEPTION, type);
        put_text(reading, FACT_MESSAGE, words);
        return;
    }
    put_text(reading, FACT_MESSAGE, message);
}

// Runtimes put 128 and the signal into the exit code, and seldom the signal beside it.
static void put_end(struct reading *reading, const struct token *ended, struct slice reason) {
    const struct token *code = &ended[TERMINATED_CODE], *said = &ended[TERMINATED_SIGNAL];
    bool unknown = slice_equal(reason, SLICE("ContainerStatusUnknown"));
    int64_t signal = said->kind == TOKEN_INTEGER ? said->integer : 0;
    if (code->kind == TOKEN_INTEGER) {
        reading_number(reading, FACT_EXIT_CODE, code->integer);
        if (signal <= 0 && code->integer > SIGNAL_BASE)
            signal = code->integer - SIGNAL_BASE;
    }
    if (unknown || signal <= 0 || signal > SIGNAL_MAX)
        return;
    reading_number(reading, FACT_SIGNAL, signal);
    if (signal == SIGNAL_TERM)
        reading_yes_no(reading, FACT_VICTIM, true);
}

static void put_restarts(struct reading *reading, const struct token *status, bool earlier) {
    const struct token *count = &status[STATUS_RESTARTS];
    if (count->kind != TOKEN_INTEGER)
        return;
    // The run before the present one; while none runs, what ended last is still the present one.
    bool runs =
        status[STATUS_RUNNING].kind == TOKEN_OBJECT || status[STATUS_ENDED].kind == TOKEN_OBJECT;
    bool before = earlier && runs && count->integer > 0;
    reading_number(reading, FACT_RESTARTS, count->integer - before);
}

static void read_terminated(const struct token *object, struct token *slots) {
    struct json_fault fault;
    memset(slots, 0, TERMINATED_SLOT_COUNT * sizeof *slots);
    json_shape_read(&kubernetes_terminated_shape, object->text, object->text + object->size, 0,
                    slots, &fault);
}

static bool tell_end(const struct kubernetes_walk *walk, const struct token *object,
                     struct reading *reading) {
    struct token ended[TERMINATED_SLOT_COUNT];
    read_terminated(object, ended);
    struct slice reason = text_of(&ended[TERMINATED_REASON], reading->arena);
    const struct token *code = &ended[TERMINATED_CODE];
    bool completed = reason.size == 0 || slice_equal(reason, SLICE("Completed"));
    if (completed && code->kind == TOKEN_INTEGER && code->integer == 0)
        return false;
    begin_about_pod(walk, reading, OBSERVATION_CONTAINER_TERMINATED);
    put_token(reading, FACT_CONTAINER, &walk->status[STATUS_NAME]);
    bool earlier = object == &walk->status[STATUS_EARLIER];
    const struct token *id = &ended[TERMINATED_ID];
    if (id->kind != TOKEN_STRING && !earlier)
        id = &walk->status[STATUS_ID];
    put_text(reading, FACT_CONTAINER_ID, container_id(id, reading->arena));
    put_text(reading, FACT_REASON, reason);
    put_end(reading, ended, reason);
    put_message(reading, &ended[TERMINATED_MESSAGE]);
    put_restarts(reading, walk->status, earlier);
    reading->time_ns = time_of(&ended[TERMINATED_FINISHED], reading->arena);
    reading->slack_ns = SECOND_NS;
    return true;
}

// Whether state and lastState tell of the same end.
static bool is_same_end(const struct token *one, const struct token *other) {
    struct token now[TERMINATED_SLOT_COUNT], earlier[TERMINATED_SLOT_COUNT];
    if (one->kind != TOKEN_OBJECT || other->kind != TOKEN_OBJECT)
        return false;
    read_terminated(one, now);
    read_terminated(other, earlier);
    enum terminated_slot slot =
        now[TERMINATED_ID].kind == TOKEN_STRING ? TERMINATED_ID : TERMINATED_FINISHED;
    return now[slot].kind == TOKEN_STRING && earlier[slot].kind == TOKEN_STRING &&
           slice_equal(token_slice(&now[slot]), token_slice(&earlier[slot]));
}

static bool tell_container(struct kubernetes_walk *walk, const struct token *item,
                           struct reading *reading) {
    struct json_fault fault;
    memset(walk->status, 0, sizeof walk->status);
    json_shape_read(&kubernetes_status_shape, item->text, item->text + item->size, 0, walk->status,
                    &fault);
    const struct token *now = &walk->status[STATUS_ENDED];
    const struct token *earlier = &walk->status[STATUS_EARLIER];
    walk->has_earlier = earlier->kind == TOKEN_OBJECT && !is_same_end(now, earlier);
    return now->kind == TOKEN_OBJECT && tell_end(walk, now, reading);
}

// -- the pod's own status -----------------------------------------------------------------------

// Of `status.reason`: what the kubelet says when it does not take a pod, and when it gives it up.
// `Evicted` is not here: the condition beside it tells more.
static const struct {
    const char *reason; // a beginning
    enum observation_kind what;
} POD_REASONS[] = {
    {"UnexpectedAdmissionError", OBSERVATION_POD_REJECTED},
    {"OutOf", OBSERVATION_POD_REJECTED}, // "OutOfnvidia.com/gpu"
    {"NodeAffinity", OBSERVATION_POD_REJECTED},
    {"TopologyAffinityError", OBSERVATION_POD_REJECTED},
    {"NodeLost", OBSERVATION_POD_DISRUPTION},
    {"NodeShutdown", OBSERVATION_POD_DISRUPTION},
    {"Terminated", OBSERVATION_POD_DISRUPTION},
    {"Preempting", OBSERVATION_POD_DISRUPTION},
};

static bool tell_pod_status(const struct kubernetes_walk *walk, struct reading *reading) {
    struct slice reason = text_of(&walk->status_reason, reading->arena);
    for (size_t i = 0; reason.size > 0 && i < sizeof POD_REASONS / sizeof *POD_REASONS; i++) {
        if (!text_begins(reason, slice_of(POD_REASONS[i].reason)))
            continue;
        begin_about_pod(walk, reading, POD_REASONS[i].what);
        put_text(reading, FACT_REASON, reason);
        put_token(reading, FACT_MESSAGE, &walk->status_message);
        return true;
    }
    return false;
}

// -- conditions ---------------------------------------------------------------------------------

struct condition {
    struct slice type, status, reason;
    const struct token *message;
    uint64_t time_ns;
};

static void put_condition(struct reading *reading, const struct condition *condition) {
    put_text(reading, FACT_REASON, condition->reason);
    put_token(reading, FACT_MESSAGE, condition->message);
    reading->time_ns = condition->time_ns;
    reading->slack_ns = SECOND_NS;
}

static bool tell_pod_condition(const struct kubernetes_walk *walk,
                               const struct condition *condition, struct reading *reading) {
    if (!slice_equal(condition->type, SLICE("DisruptionTarget")) ||
        !slice_equal(condition->status, SLICE("True")))
        return false;
    begin_about_pod(walk, reading, OBSERVATION_POD_DISRUPTION);
    put_condition(reading, condition);
    return true;
}

// Which status of a node's condition is bad.
static const struct {
    const char *type;
    const char *bad;
} NODE_CONDITIONS[] = {
    {"Ready", "False"},
    {"MemoryPressure", "True"},
    {"DiskPressure", "True"},
    {"PIDPressure", "True"},
    {"NetworkUnavailable", "True"},
    // node-problem-detector, as GKE has it too
    {"KernelDeadlock", "True"},
    {"XfsShutdown", "True"},
    {"CperHardwareErrorFatal", "True"},
    {"ReadonlyFilesystem", "True"},
    {"CorruptDockerOverlay2", "True"},
    {"KubeletUnhealthy", "True"},
    {"ContainerRuntimeUnhealthy", "True"},
    {"FrequentKubeletRestart", "True"},
    {"FrequentDockerRestart", "True"},
    {"FrequentContainerdRestart", "True"},
    {"FrequentUnregisterNetDevice", "True"},
    {"NTPProblem", "True"},
    {"DiskBadBlock", "True"},
    {"KubeProxyUnhealthy", "True"},
    // AKS
    {"GPUMissing", "True"},
    {"NVLinkStatusInactive", "True"},
    {"IBLinkFlapping", "True"},
    {"FilesystemCorruptionProblem", "True"},
    {"KubeletProblem", "True"},
    {"ContainerRuntimeProblem", "True"},
    // GKE's device plugin: the reason holds the Xids
    {"XidCriticalError", "True"},
    // EKS
    {"AcceleratedHardwareReady", "False"},
    {"KernelReady", "False"},
    {"NetworkingReady", "False"},
    {"StorageReady", "False"},
    {"ContainerRuntimeReady", "False"},
    // Nebius
    {"NebiusGPUError", "True"},
    {"NebiusBootDiskIOError", "True"},
    {"NebiusContainerRuntimeError", "True"},
};

// Reasons that say nothing bad of the node: IMEX is not ready where nobody uses it, which DCGM's
// health check counts as error 122 (aws/eks-node-monitoring-agent#63, NVIDIA/NVSentinel#1471).
static const char *const HARMLESS_REASONS[] = {"DCGMHealthCode122"};

enum judgement { CONDITION_GOOD, CONDITION_BAD, CONDITION_OPEN };

// `Unknown` is bad of Ready (the kubelet has gone silent) and says nothing of the others.
static enum judgement judge(const struct condition *condition) {
    for (size_t i = 0; i < sizeof HARMLESS_REASONS / sizeof *HARMLESS_REASONS; i++)
        if (slice_equal(condition->reason, slice_of(HARMLESS_REASONS[i])))
            return CONDITION_OPEN;
    for (size_t i = 0; i < sizeof NODE_CONDITIONS / sizeof *NODE_CONDITIONS; i++) {
        if (!slice_equal(condition->type, slice_of(NODE_CONDITIONS[i].type)))
            continue;
        bool silent = i == 0 && slice_equal(condition->status, SLICE("Unknown"));
        bool bad = slice_equal(condition->status, slice_of(NODE_CONDITIONS[i].bad));
        return bad || silent ? CONDITION_BAD : CONDITION_GOOD;
    }
    return CONDITION_OPEN;
}

// The number in "NvidiaXID79Error".
static bool xid_in(struct slice reason, uint64_t *xid) {
    struct slice behind;
    if (!text_find(reason, SLICE("XID"), &behind) && !text_find(reason, SLICE("Xid"), &behind))
        return false;
    return text_take_number(&behind, 1, XID_DIGITS, xid);
}

// Where a row knows it, that says what it means.
static bool tell_by_row(const struct kubernetes_walk *walk, const struct condition *condition,
                        struct reading *reading, struct slice *line) {
    const struct kubernetes_condition said = {.type = condition->type,
                                              .status = condition->status,
                                              .reason = condition->reason,
                                              .message =
                                                  text_of(condition->message, reading->arena)};
    if (!kubernetes_read_condition(walk->forms, &said, reading, line))
        return false;
    if (reading->what == OBSERVATION_NODE_FAULT)
        reading->what = OBSERVATION_NODE_CONDITION;
    reading->time_ns = condition->time_ns;
    reading->slack_ns = SECOND_NS;
    return true;
}

// What kind of condition it is, also of one whose meaning a row has told.
static void put_state(struct reading *reading, const struct condition *condition, bool is_bad) {
    uint64_t xid;
    put_text(reading, FACT_CONDITION, condition->type);
    put_text(reading, FACT_STATUS, condition->status);
    put_text(reading, FACT_REASON, condition->reason);
    if (is_bad)
        reading_yes_no(reading, FACT_BAD, true);
    if (xid_in(condition->reason, &xid))
        reading_number(reading, FACT_XID, (int64_t)xid);
}

static bool tell_node_condition(const struct kubernetes_walk *walk,
                                const struct condition *condition, struct reading *reading,
                                struct slice *line) {
    enum judgement judgement = judge(condition);
    if (judgement == CONDITION_GOOD)
        return false;
    if (tell_by_row(walk, condition, reading, line)) {
        if (reading->what == OBSERVATION_NODE_CONDITION)
            put_state(reading, condition, true);
        return true;
    }
    *line = (struct slice){NULL, 0};
    reading_begin(reading, OBSERVATION_NODE_CONDITION);
    put_state(reading, condition, judgement == CONDITION_BAD);
    put_condition(reading, condition);
    return true;
}

static bool tell_job_condition(const struct kubernetes_walk *walk,
                               const struct condition *condition, struct reading *reading) {
    static const char *const types[] = {"Failed", "FailureTarget", "Restarting", "Suspended"};
    bool wanted = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        wanted = wanted || slice_equal(condition->type, slice_of(types[i]));
    if (!wanted || !slice_equal(condition->status, SLICE("True")))
        return false;
    reading_begin(reading, OBSERVATION_JOB_CONDITION);
    put_text(reading, FACT_JOB, full_name(walk, reading->arena));
    put_text(reading, FACT_CONDITION, condition->type);
    put_condition(reading, condition);
    if (walk->restarts.kind == TOKEN_INTEGER)
        reading_number(reading, FACT_RESTARTS, walk->restarts.integer);
    return true;
}

static bool tell_condition(const struct kubernetes_walk *walk, const struct token *item,
                           struct reading *reading, struct slice *line) {
    struct token slots[CONDITION_SLOT_COUNT] = {0};
    struct json_fault fault;
    struct arena *arena = reading->arena;
    json_shape_read(&kubernetes_condition_shape, item->text, item->text + item->size, 0, slots,
                    &fault);
    struct condition condition = {.type = text_of(&slots[CONDITION_TYPE], arena),
                                  .status = text_of(&slots[CONDITION_STATUS], arena),
                                  .reason = text_of(&slots[CONDITION_REASON], arena),
                                  .message = &slots[CONDITION_MESSAGE],
                                  .time_ns = time_of(&slots[CONDITION_TRANSITION], arena)};
    if (condition.type.size == 0)
        return false;
    switch (walk->kind) {
    case WALK_POD:
        return tell_pod_condition(walk, &condition, reading);
    case WALK_NODE:
        return tell_node_condition(walk, &condition, reading, line);
    case WALK_JOB:
    case WALK_KIND_COUNT:
        break;
    }
    return tell_job_condition(walk, &condition, reading);
}

// -- the walk -----------------------------------------------------------------------------------

// The next item of the arrays; false: there is none.
static bool next_item(struct kubernetes_walk *walk, struct token *item) {
    for (; walk->array < WALK_ARRAYS; walk->array++, walk->in_array = false) {
        const struct token *array = &walk->arrays[walk->array];
        if (array->kind != TOKEN_ARRAY)
            continue;
        if (!walk->in_array)
            walk->items = json_items_of(array);
        walk->in_array = true;
        while (json_items_next(&walk->items, item))
            if (item->kind == TOKEN_OBJECT)
                return true;
    }
    return false;
}

// One step: true when something is to be told. `line`: what a row read, where one did. The walk is
// over when nothing is left.
static bool step(struct kubernetes_walk *walk, struct reading *reading, struct slice *line) {
    struct token item;
    if (walk->has_earlier) {
        walk->has_earlier = false;
        return tell_end(walk, &walk->status[STATUS_EARLIER], reading);
    }
    if (!walk->status_told) {
        walk->status_told = true;
        return tell_pod_status(walk, reading);
    }
    if (!next_item(walk, &item)) {
        walk->open = false;
        return false;
    }
    bool is_container = walk->array < WALK_ARRAYS - 1;
    return is_container ? tell_container(walk, &item, reading)
                        : tell_condition(walk, &item, reading, line);
}

enum decode_category kubernetes_walk_next(struct kubernetes_walk *walk, struct arena *arena,
                                          struct event *event, struct decode_fault *fault) {
    struct reading reading = {.arena = arena};
    struct slice message = {NULL, 0};
    bool told = false;
    while (walk->open && !told)
        told = step(walk, &reading, &message);
    if (!told)
        return DECODE_END;
    struct frame frame;
    for (uint32_t i = 0; message.data == NULL && i < reading.fact_count; i++)
        if (reading.facts[i].key == FACT_MESSAGE)
            message = reading.facts[i].text;
    frame_clear(&frame, message, event->position);
    frame.host = text_of(&walk->node_name, arena);
    struct decoder_input input = {.observed_ns = walk->state_ns};
    enum decode_category category = reading_finish(&reading, &frame, &input, message, event, fault);
    walk->open = walk->open && category == DECODE_OK;
    return category;
}
