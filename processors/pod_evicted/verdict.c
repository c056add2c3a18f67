// SPDX-License-Identifier: Apache-2.0
// What does an on-call engineer read about a pod that was taken away? Headline: pod, node, second
// and what was short. Remediation: the node first, then what to do about that resource. The id
// hangs on the pod alone, so that it stays when a condition or a second witness comes.
#include "processors/pod_evicted/verdict.h"

#include "base/hash/hash.h"
#include "base/text/rfc3339.h"
#include "base/text/utf8.h"

enum {
    HEADLINE_POD_MAX = 110,
    HEADLINE_NODE_MAX = 60,
    REMEDIATION_NODE_MAX = 100,
    EVIDENCE_NODE_MAX = 253,
    CONFIDENCE_MIN = 5,
    CONFIDENCE_MAX = 97,
    EVIDENCE_ITEMS_MAX = 3,
    ATTRIBUTES_MAX = 8,
};
static const char PATTERN[] = "pod_evicted";

static const struct {
    const char *name;
    const char *action;
    enum severity severity;
} KINDS[] = {
    [EVICTION_NODE_PRESSURE] = {"node_pressure", "fix_workload", SEVERITY_ERROR},
    [EVICTION_POD_LIMIT] = {"pod_limit", "fix_workload", SEVERITY_ERROR},
    [EVICTION_TAINT] = {"taint", "monitor", SEVERITY_WARNING},
    [EVICTION_PREEMPTED] = {"preempted", "monitor", SEVERITY_WARNING},
    [EVICTION_API] = {"api_eviction", "monitor", SEVERITY_WARNING},
};

// At most `max` characters, whole ones, as a text with its zero.
static const char *cut(struct slice text, size_t max, struct arena *arena) {
    size_t at = 0;
    uint32_t code_point;
    for (size_t count = 0; count < max && at < text.size; count++) {
        size_t size = utf8_decode(text, at, &code_point);
        at += size == 0 ? 1 : size;
    }
    return arena_text(arena, (struct slice){text.data, at < text.size ? at : text.size});
}

static bool has_node(const struct eviction_finding *finding) {
    return finding->removal->node != STRING_NONE;
}

// "gpu-node-05", or words that say that nobody named it.
static const char *node_text(const struct eviction_finding *finding, size_t max,
                             struct arena *arena) {
    if (!has_node(finding))
        return "a node that no event names";
    return cut(intern_slice(finding->removal->node), max, arena);
}

// The bits of the text, or those of the condition that was joined where the text said nothing.
static uint32_t pressure_of(const struct eviction_finding *finding) {
    static const uint32_t of_condition[] = {
        [NODE_MEMORY] = PRESSURE_MEMORY, [NODE_DISK] = PRESSURE_DISK, [NODE_PIDS] = PRESSURE_PIDS};
    uint32_t pressure = finding->removal->pressure;
    if (pressure == 0 && finding->transition != NULL)
        return of_condition[finding->condition];
    return pressure;
}

// "memory", "disk (inodes)", two of them joined; "" when not known.
static const char *pressure_words(uint32_t pressure, struct arena *arena) {
    static const struct {
        uint32_t bit;
        const char *words;
    } names[] = {
        {PRESSURE_MEMORY, "memory"},
        {PRESSURE_DISK, "disk (ephemeral-storage)"},
        {PRESSURE_INODES, "disk (inodes)"},
        {PRESSURE_PIDS, "process ids (pids)"},
    };
    const char *text = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if ((pressure & names[i].bit) == 0)
            continue;
        text = text[0] == '\0' ? names[i].words
                               : arena_format(arena, "%s and %s", text, names[i].words);
    }
    return text;
}

static const char *headline(const struct eviction_finding *finding, struct arena *arena) {
    const struct removal *removal = finding->removal;
    const char *pod = cut(removal_pod_name(removal, arena), HEADLINE_POD_MAX, arena);
    const char *node = node_text(finding, HEADLINE_NODE_MAX, arena);
    char time[RFC3339_TEXT_MAX];
    rfc3339_format_second(removal->time_ns, time);
    if (finding->cancelled)
        return arena_format(arena, "Pod %s stays on %s: its removal, told at %s, was called off",
                            pod, node, time);
    switch (finding->kind) {
    case EVICTION_POD_LIMIT:
        return arena_format(arena,
                            "Pod %s was evicted from %s at %s: it passed its own storage limit",
                            pod, node, time);
    case EVICTION_TAINT:
        return arena_format(arena, "Pod %s was taken off %s at %s because of a taint", pod, node,
                            time);
    case EVICTION_PREEMPTED:
        return arena_format(arena, "Pod %s was preempted on %s at %s by a pod of higher priority",
                            pod, node, time);
    case EVICTION_API:
        return arena_format(arena, "Pod %s was taken off %s at %s through the eviction API", pod,
                            node, time);
    default:
        break;
    }
    const char *words = pressure_words(pressure_of(finding), arena);
    if (words[0] == '\0')
        return arena_format(arena, "Pod %s was evicted from %s at %s; what was short is not said",
                            pod, node, time);
    return arena_format(arena, "Pod %s was evicted from %s at %s: short of %s", pod, node, time,
                        words);
}

// What to do about a node that is short of the resource; of several the first.
static const char *pressure_advice(uint32_t pressure) {
    if ((pressure & PRESSURE_MEMORY) != 0)
        return "ran short of memory. Set the container's memory request to what it really uses: "
               "those above their request go first. See what else on the node grew.";
    if ((pressure & PRESSURE_DISK) != 0)
        return "ran short of ephemeral-storage. Write checkpoints, data sets and logs to a volume "
               "instead of the container's own layer, set ephemeral-storage requests, and clean "
               "up unused images on the node.";
    if ((pressure & PRESSURE_INODES) != 0)
        return "ran out of inodes on its disk. Look for very many small files (caches, unpacked "
               "data sets, package trees) and keep them on a volume or in archives.";
    if ((pressure & PRESSURE_PIDS) != 0)
        return "ran out of process ids (pids). Look for data loader workers and threads that "
               "multiply, and set the kubelet's podPidsLimit.";
    return "evicted the pod without saying what was short. Look at the node's MemoryPressure, "
           "DiskPressure and PIDPressure at that time (kubectl describe node).";
}

static const char *advice(const struct eviction_finding *finding) {
    switch (finding->kind) {
    case EVICTION_POD_LIMIT:
        return "had room; the pod passed a storage limit of its own. Raise ephemeral-storage in "
               "its limits or the emptyDir's sizeLimit, or write less: checkpoints and caches "
               "belong on a volume.";
    case EVICTION_TAINT:
        return "has a taint that the pod does not tolerate, often because the node did not answer. "
               "Find out who set it (kubectl describe node) before the pod comes back there.";
    case EVICTION_PREEMPTED:
        return "was needed by a pod of higher priority. Give the training job a PriorityClass "
               "that others do not outrank, or capacity of its own.";
    case EVICTION_API:
        return "was told by somebody to let the pod go: a drain, an autoscaler, a descheduler. "
               "The API server's audit log says who; a PodDisruptionBudget holds such requests "
               "off.";
    default:
        return pressure_advice(pressure_of(finding));
    }
}

static const char *remediation(const struct eviction_finding *finding, struct arena *arena) {
    const char *node = node_text(finding, REMEDIATION_NODE_MAX, arena);
    if (finding->cancelled)
        return arena_format(arena, "%s keeps the pod: nothing to mend.", node);
    const char *unseen = "";
    if (finding->kind == EVICTION_NODE_PRESSURE && finding->transition == NULL)
        unseen = finding->sustained != NULL
                     ? " The node had said so for longer than the time in which a cause is sought."
                     : " No condition of the node was seen at that time; to be sure, let "
                       "culprit watch Node objects too.";
    return arena_format(arena, "%s %s%s", node, advice(finding), unseen);
}

static void add_evidence(struct verdict *out, struct evidence evidence) {
    uint32_t at = out->evidence_count++;
    evidence.has_time = true;
    while (at > 0 && (out->evidence[at - 1].time_ns > evidence.time_ns ||
                      (out->evidence[at - 1].time_ns == evidence.time_ns &&
                       slice_compare(out->evidence[at - 1].uid, evidence.uid) > 0))) {
        out->evidence[at] = out->evidence[at - 1];
        at--;
    }
    out->evidence[at] = evidence;
}

static void add_condition(const struct eviction_finding *finding,
                          const struct transition *transition, enum node_condition condition,
                          enum evidence_role role, struct arena *arena, struct verdict *out) {
    if (transition == NULL)
        return;
    const char *name = node_condition_name(condition);
    const char *node = node_text(finding, EVIDENCE_NODE_MAX, arena);
    const char *between =
        transition->reason[0] != '\0' && transition->message[0] != '\0' ? ": " : "";
    char time[RFC3339_TEXT_MAX];
    rfc3339_format(transition->time_ns, time);
    bool told = transition->reason[0] != '\0' || transition->message[0] != '\0';
    add_evidence(
        out, (struct evidence){
                 .uid = slice_of(arena_format(arena, "node-condition:%s:%s:%s", node, name, time)),
                 .description = slice_of(arena_format(
                     arena, "%s of %s became True%s%s%s%s%s", name, node, told ? " (" : "",
                     transition->reason, between, transition->message, told ? ")" : "")),
                 .time_ns = transition->time_ns,
                 .role = role});
}

static const char *removal_words(const struct eviction_finding *finding) {
    switch (finding->kind) {
    case EVICTION_TAINT:
        return "was marked for deletion by the taint manager";
    case EVICTION_PREEMPTED:
        return "was preempted";
    case EVICTION_API:
        return "was taken off by the eviction API";
    default:
        return "was evicted by the kubelet";
    }
}

static void add_removal(const struct eviction_finding *finding, struct arena *arena,
                        struct verdict *out) {
    const struct removal *removal = finding->removal;
    const char *pod = removal_pod_name(removal, arena).data;
    struct slice note = removal->note;
    while (note.size > 0 && note.data[note.size - 1] == ' ')
        note.size--;
    const char *text = arena_text(arena, note);
    add_evidence(out, (struct evidence){.uid = removal_evidence_uid(removal, arena),
                                        .description = slice_of(arena_format(
                                            arena, "%s %s%s%s", pod, removal_words(finding),
                                            note.size > 0 ? ": " : "", text)),
                                        .time_ns = removal->time_ns,
                                        .role = EVIDENCE_EFFECT});
}

static void add_entities(const struct eviction_finding *finding, struct arena *arena,
                         struct verdict *out) {
    bool own_fault = finding->kind == EVICTION_POD_LIMIT;
    bool node_fault = finding->kind == EVICTION_NODE_PRESSURE;
    out->entities = arena_take(arena, 2 * sizeof *out->entities);
    if (has_node(finding) && !finding->cancelled && (node_fault || finding->kind == EVICTION_TAINT))
        out->entities[out->entity_count++] =
            (struct entity){.kind = "node",
                            .name = intern_slice(finding->removal->node),
                            .role = node_fault ? ROLE_CULPRIT : ROLE_SUSPECT};
    out->entities[out->entity_count++] =
        (struct entity){.kind = "pod",
                        .name = removal_pod_name(finding->removal, arena),
                        .role = own_fault && !finding->cancelled ? ROLE_CULPRIT : ROLE_VICTIM};
    verdict_sort_entities(out);
}

static void add_attribute(struct verdict *out, const char *key, struct slice value) {
    if (value.size > 0)
        out->attributes[out->attribute_count++] = (struct attribute){key, value};
}

// The condition that was joined, else the one that the pressure means when it means only one.
static const char *condition_name(const struct eviction_finding *finding) {
    if (finding->transition != NULL)
        return node_condition_name(finding->condition);
    uint32_t pressure = finding->removal->pressure;
    if (pressure == PRESSURE_MEMORY)
        return node_condition_name(NODE_MEMORY);
    if (pressure == PRESSURE_PIDS)
        return node_condition_name(NODE_PIDS);
    bool disk = pressure != 0 && (pressure & ~(uint32_t)(PRESSURE_DISK | PRESSURE_INODES)) == 0;
    return disk ? node_condition_name(NODE_DISK) : "";
}

// Keys in order of their bytes.
static void add_attributes(const struct eviction_finding *finding, struct arena *arena,
                           struct verdict *out) {
    const struct removal *removal = finding->removal;
    out->attributes = arena_take(arena, ATTRIBUTES_MAX * sizeof *out->attributes);
    add_attribute(out, "k8s.job.name", intern_slice(finding->place->job));
    add_attribute(out, "k8s.namespace.name", removal->namespace);
    if (finding->kind == EVICTION_NODE_PRESSURE)
        add_attribute(out, "k8s.node.condition.type", slice_of(condition_name(finding)));
    add_attribute(out, "k8s.node.name", intern_slice(removal->node));
    add_attribute(out, "k8s.pod.name", removal->name);
    if (removal->cause == REMOVAL_EVICTED)
        add_attribute(out, "k8s.pod.status.reason", SLICE("Evicted"));
    add_attribute(out, "k8s.pod.uid", removal->uid);
}

static int confidence_of(const struct eviction_finding *finding,
                         const struct eviction_confidence *confidence) {
    int64_t value = confidence->other;
    if (finding->kind == EVICTION_POD_LIMIT)
        value = confidence->pod_limit;
    if (finding->kind == EVICTION_NODE_PRESSURE) {
        value = finding->transition != NULL ? confidence->full : confidence->partial;
        if (finding->removal->pressure == 0)
            value -= confidence->unknown_pressure;
    }
    return (int)(value < CONFIDENCE_MIN   ? CONFIDENCE_MIN
                 : value > CONFIDENCE_MAX ? CONFIDENCE_MAX
                                          : value);
}

void eviction_verdict_build(const struct eviction_finding *finding,
                            const struct eviction_confidence *confidence, struct arena *arena,
                            struct verdict *out) {
    const struct removal *removal = finding->removal;
    *out = (struct verdict){
        .pattern = PATTERN,
        .kind = KINDS[finding->kind].name,
        .job = STRING_NONE,
        .severity = KINDS[finding->kind].severity,
        .action = finding->cancelled ? "monitor" : KINDS[finding->kind].action,
        .partial = finding->kind == EVICTION_NODE_PRESSURE && finding->transition == NULL,
        .confidence = confidence_of(finding, confidence),
    };
    struct slice key[] = {removal->namespace, removal->name, removal->uid};
    verdict_set_id(out, PATTERN, key, 3);
    out->headline = slice_of(headline(finding, arena));
    out->remediation = slice_of(remediation(finding, arena));
    add_entities(finding, arena, out);
    out->evidence = arena_take(arena, EVIDENCE_ITEMS_MAX * sizeof *out->evidence);
    if (finding->show_sustained)
        add_condition(finding, finding->sustained, finding->sustained_condition, EVIDENCE_CONTEXT,
                      arena, out);
    add_condition(finding, finding->transition, finding->condition, EVIDENCE_CAUSE, arena, out);
    add_removal(finding, arena, out);
    verdict_set_times(out);
    add_attributes(finding, arena, out);
}

static uint64_t hash_number(uint64_t hash, uint64_t number) {
    return hash_more(hash, &number, sizeof number);
}

static uint64_t hash_text(uint64_t hash, struct slice text) {
    return hash_more(hash_number(hash, text.size), text.data, text.size);
}

static uint64_t hash_transition(uint64_t hash, const struct transition *transition,
                                enum node_condition condition) {
    if (transition == NULL)
        return hash_number(hash, 0);
    hash = hash_number(hash_number(hash, (uint64_t)condition + 1), transition->time_ns);
    hash = hash_text(hash, slice_of(transition->reason));
    return hash_text(hash, slice_of(transition->message));
}

uint64_t eviction_finding_hash(const struct eviction_finding *finding) {
    const struct removal *removal = finding->removal;
    uint64_t hash = hash_number(HASH_START, (uint64_t)finding->kind);
    hash = hash_number(hash, (uint64_t)removal->source);
    hash = hash_number(hash, removal->time_ns);
    hash = hash_number(hash, removal->pressure);
    hash = hash_text(hash, intern_slice(removal->node));
    hash = hash_text(hash, removal->event_uid);
    hash = hash_text(hash, removal->note);
    hash = hash_text(hash, intern_slice(finding->place->job));
    hash = hash_transition(hash, finding->transition, finding->condition);
    hash = hash_transition(hash, finding->sustained, finding->sustained_condition);
    return hash | 1;
}
