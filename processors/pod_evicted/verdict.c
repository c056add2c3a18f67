// SPDX-License-Identifier: Apache-2.0
// Says what an on-call engineer reads about a pod that was taken away. Headline: pod, node, second
// and what was short. Remediation: the node first, then what to do about that resource. The id
// hangs on the pod alone, so that it stays when a condition or a second witness comes.
#include "processors/pod_evicted/verdict.h"

#include "base/hash/hash.h"
#include "base/text/rfc3339.h"
#include "processors/cluster/xid_text.h"

enum {
    HEADLINE_POD_MAX = 110,
    HEADLINE_NODE_MAX = 60,
    HEADLINE_NOTE_MAX = 60,
    REMEDIATION_NODE_MAX = 100
};
static const char PATTERN[] = "pod_evicted";

static const struct {
    const char *name, *action;
    enum severity severity;
    const char *headline;
    const char *what; // in the evidence
    const char *advice;
} KINDS[] = {
    [EVICTION_NODE_PRESSURE] = {"node_pressure", "fix_workload", SEVERITY_ERROR,
                                "Pod {pod} was evicted from {node} at {time}{short_of}",
                                "was evicted by the kubelet", NULL},
    [EVICTION_POD_LIMIT] = {"pod_limit", "fix_workload", SEVERITY_ERROR,
                            "Pod {pod} was evicted at {time}: it passed its own storage limit",
                            "was evicted by the kubelet",
                            "Its node had room; the pod passed a storage limit of its own. Raise "
                            "ephemeral-storage in its limits or the emptyDir's sizeLimit, or write "
                            "less: checkpoints and caches belong on a volume."},
    [EVICTION_TAINT] = {"taint", "monitor", SEVERITY_WARNING,
                        "Pod {pod} was taken off {node} at {time} because of a taint",
                        "was marked for deletion by the taint manager",
                        "has a taint that the pod does not tolerate, often because the node did "
                        "not answer. Find out who set it (kubectl describe node) before the pod "
                        "comes back there."},
    [EVICTION_PREEMPTED] = {"preempted", "monitor", SEVERITY_WARNING,
                            "Pod {pod} was preempted on {node} at {time} by a pod of higher "
                            "priority",
                            "was preempted",
                            "was needed by a pod of higher priority. Give the training job a "
                            "PriorityClass that others do not outrank, or capacity of its own."},
    [EVICTION_API] = {"api_eviction", "monitor", SEVERITY_WARNING,
                      "Pod {pod} was taken off {node} at {time} through the eviction API",
                      "was taken off by the eviction API",
                      "was told by somebody to let the pod go: a drain, an autoscaler, a "
                      "descheduler. The API server's audit log says who; a PodDisruptionBudget "
                      "holds such requests off."},
    [EVICTION_RECLAIMED] = {"reclaimed", "restart_app", SEVERITY_WARNING,
                            "Node {node} was taken back by its cloud at {time}, and pod {pod} "
                            "was evicted: {note}",
                            "was evicted by a controller",
                            "is a spot instance, or one that its cloud may interrupt, and was "
                            "reclaimed: nothing is broken. Start the job again on other nodes; "
                            "save checkpoints often, or use nodes that are not interrupted."},
};

// What a node can be short of; the first that is gives the advice.
static const struct {
    uint32_t bit;
    const char *words, *advice;
} PRESSURES[] = {
    {PRESSURE_MEMORY, "memory",
     "ran short of memory. Set the container's memory request to what it really uses: those above "
     "their request go first. See what else on the node grew."},
    {PRESSURE_DISK, "disk (ephemeral-storage)",
     "ran short of ephemeral-storage. Write checkpoints, data sets and logs to a volume instead of "
     "the container's own layer, set ephemeral-storage requests, and clean up unused images on the "
     "node."},
    {PRESSURE_INODES, "disk (inodes)",
     "ran out of inodes on its disk. Look for very many small files (caches, unpacked data sets, "
     "package trees) and keep them on a volume or in archives."},
    {PRESSURE_PIDS, "process ids (pids)",
     "ran out of process ids (pids). Look for data loader workers and threads that multiply, and "
     "set the kubelet's podPidsLimit."},
};
enum { PRESSURE_COUNT = sizeof PRESSURES / sizeof *PRESSURES };
static const char UNKNOWN_PRESSURE_ADVICE[] =
    "evicted the pod without saying what was short. Look at the node's MemoryPressure, "
    "DiskPressure and PIDPressure at that time (kubectl describe node).";

// "gpu-node-05", or words that say that nobody named it.
static const char *node_text(const struct eviction_finding *finding, size_t max,
                             struct arena *arena) {
    if (finding->removal->node == STRING_NONE)
        return "a node that no event names";
    return text_shown(intern_slice(finding->removal->node), max, arena);
}

// "node gpu-node-05", to begin a sentence with.
static const char *node_named(const struct eviction_finding *finding, struct arena *arena) {
    const char *node = node_text(finding, REMEDIATION_NODE_MAX, arena);
    return finding->removal->node == STRING_NONE ? node : arena_format(arena, "node %s", node);
}

// The bits of the text, or those of the condition that was joined where the text said nothing.
static uint32_t pressure_of(const struct eviction_finding *finding) {
    static const uint32_t OF_CONDITION[] = {
        [NODE_MEMORY] = PRESSURE_MEMORY, [NODE_DISK] = PRESSURE_DISK, [NODE_PIDS] = PRESSURE_PIDS};
    uint32_t pressure = finding->removal->pressure;
    return pressure == 0 && finding->transition != NULL ? OF_CONDITION[finding->condition]
                                                        : pressure;
}

// ": short of memory", of two of them joined.
static const char *shortage(uint32_t pressure, struct arena *arena) {
    const char *text = NULL;
    for (int i = 0; i < PRESSURE_COUNT; i++)
        if ((pressure & PRESSURES[i].bit) != 0)
            text = arena_format(arena, "%s%s",
                                text == NULL ? ": short of " : arena_format(arena, "%s and ", text),
                                PRESSURES[i].words);
    return text == NULL ? "; what was short is not said" : text;
}

static const char *advice_of(const struct eviction_finding *finding) {
    if (KINDS[finding->kind].advice != NULL)
        return KINDS[finding->kind].advice;
    for (int i = 0; i < PRESSURE_COUNT; i++)
        if ((pressure_of(finding) & PRESSURES[i].bit) != 0)
            return PRESSURES[i].advice;
    return UNKNOWN_PRESSURE_ADVICE;
}

static const char *unseen_condition(const struct eviction_finding *finding) {
    if (finding->kind != EVICTION_NODE_PRESSURE || finding->transition != NULL)
        return "";
    return finding->sustained != NULL
               ? " The node had said so for longer than the time in which a cause is sought."
               : " No condition of the node was seen at that time; to be sure, let culprit watch "
                 "Node objects too.";
}

static void set_texts(const struct eviction_finding *finding, struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    const struct removal *removal = finding->removal;
    struct slice pod = slice_of(removal_pod_name(removal, arena));
    char time[RFC3339_TEXT_MAX];
    rfc3339_format_second(removal->time_ns, time);
    const struct text_field fields[] = {
        {"pod", text_shown(pod, HEADLINE_POD_MAX, arena)},
        {"node", node_text(finding, HEADLINE_NODE_MAX, arena)},
        {"its_node", node_named(finding, arena)},
        {"time", time},
        {"short_of", shortage(pressure_of(finding), arena)},
        {"note", text_shown(removal->note, HEADLINE_NOTE_MAX, arena)},
        {"advice", advice_of(finding)},
        {"unseen", unseen_condition(finding)},
        {NULL, NULL},
    };
    if (removal->moved)
        builder_texts(builder, "The removal of pod {pod} at {time} is told by another verdict",
                      "See the verdict that names the uid of pod {pod}.", fields);
    else if (finding->cancelled)
        builder_texts(builder,
                      "Pod {pod} stays on {node}: its removal, told at {time}, was called off",
                      "{Its_node} keeps the pod: nothing to mend.", fields);
    else
        builder_texts(builder, KINDS[finding->kind].headline,
                      finding->kind == EVICTION_POD_LIMIT ? "{advice}"
                                                          : "{Its_node} {advice}{unseen}",
                      fields);
}

static void add_condition(struct verdict_builder *builder, const struct eviction_finding *finding,
                          const struct transition *transition, enum node_condition condition,
                          enum evidence_role role) {
    assert(transition->is_true != 0);
    const char *name = node_condition_name(condition);
    const char *node = node_text(finding, SIZE_MAX, builder->arena);
    bool reason = transition->reason[0] != '\0', message = transition->message[0] != '\0';
    char time[RFC3339_TEXT_MAX];
    rfc3339_format(transition->time_ns, time);
    builder_evidence(builder, role, transition->time_ns,
                     arena_format(builder->arena, "node-condition:%s:%s:%s", node, name, time),
                     "%s of %s became True%s%s%s%s%s", name, node, reason || message ? " (" : "",
                     transition->reason, reason && message ? ": " : "", transition->message,
                     reason || message ? ")" : "");
}

static void add_removal(struct verdict_builder *builder, const struct eviction_finding *finding) {
    const struct removal *removal = finding->removal;
    struct slice note = removal->note;
    while (note.size > 0 && note.data[note.size - 1] == ' ')
        note.size--;
    builder_evidence(builder, EVIDENCE_EFFECT, removal->time_ns,
                     removal_evidence_uid(removal, builder->arena), "%s %s%s%.*s",
                     removal_pod_name(removal, builder->arena), KINDS[finding->kind].what,
                     note.size > 0 ? ": " : "", (int)note.size, note.data);
}

static void add_entities(struct verdict_builder *builder, const struct eviction_finding *finding) {
    bool by_node = finding->kind == EVICTION_NODE_PRESSURE || finding->kind == EVICTION_RECLAIMED;
    bool by_pod = finding->kind == EVICTION_POD_LIMIT;
    if (!finding->cancelled && (by_node || finding->kind == EVICTION_TAINT))
        builder_entity(builder, "node", by_node ? ROLE_CULPRIT : ROLE_SUSPECT,
                       string_or_null(finding->removal->node));
    builder_entity(builder, "pod", by_pod && !finding->cancelled ? ROLE_CULPRIT : ROLE_VICTIM,
                   removal_pod_name(finding->removal, builder->arena));
}

// The condition that was joined, else the one that the pressure means when it means only one.
static const char *condition_name(const struct eviction_finding *finding) {
    uint32_t pressure = finding->removal->pressure;
    if (finding->transition != NULL)
        return node_condition_name(finding->condition);
    if (pressure == PRESSURE_MEMORY)
        return node_condition_name(NODE_MEMORY);
    if (pressure == PRESSURE_PIDS)
        return node_condition_name(NODE_PIDS);
    bool disk = pressure != 0 && (pressure & ~(uint32_t)(PRESSURE_DISK | PRESSURE_INODES)) == 0;
    return disk ? node_condition_name(NODE_DISK) : "";
}

static void add_attributes(struct verdict_builder *builder,
                           const struct eviction_finding *finding) {
    const struct removal *removal = finding->removal;
    builder_attribute(builder, "k8s.job.name", intern_slice(finding->place->job));
    builder_attribute(builder, "k8s.namespace.name", removal->namespace);
    if (finding->kind == EVICTION_NODE_PRESSURE)
        builder_attribute(builder, "k8s.node.condition.type", slice_of(condition_name(finding)));
    builder_attribute(builder, "k8s.node.name", intern_slice(removal->node));
    builder_attribute(builder, "k8s.pod.name", removal->name);
    if (removal->cause == REMOVAL_EVICTED)
        builder_attribute(builder, "k8s.pod.status.reason", SLICE("Evicted"));
    builder_attribute(builder, "k8s.pod.uid", removal->uid);
}

static int64_t confidence_of(const struct eviction_finding *finding,
                             const struct pod_evicted_config *config) {
    if (finding->kind == EVICTION_POD_LIMIT)
        return config->confidence_pod_limit;
    if (finding->kind != EVICTION_NODE_PRESSURE)
        return config->confidence_other;
    int64_t known =
        finding->transition != NULL ? config->confidence_full : config->confidence_partial;
    return finding->removal->pressure == 0 ? known - config->unknown_pressure_penalty : known;
}

void eviction_verdict_build(const struct eviction_finding *finding,
                            const struct pod_evicted_config *config,
                            struct verdict_builder *builder) {
    assert(finding->kind <= EVICTION_RECLAIMED && finding->place != NULL);
    const struct removal *removal = finding->removal;
    builder_begin(builder, builder->arena, PATTERN, KINDS[finding->kind].name);
    builder_rate(builder, KINDS[finding->kind].severity, confidence_of(finding, config),
                 finding->cancelled ? "monitor" : KINDS[finding->kind].action);
    if (finding->kind == EVICTION_NODE_PRESSURE && finding->transition == NULL)
        builder_partial(builder, "no condition of the node was seen that explains it");
    set_texts(finding, builder);
    add_entities(builder, finding);
    if (finding->show_sustained)
        add_condition(builder, finding, finding->sustained, finding->sustained_condition,
                      EVIDENCE_CONTEXT);
    if (finding->transition != NULL)
        add_condition(builder, finding, finding->transition, finding->condition, EVIDENCE_CAUSE);
    add_removal(builder, finding);
    add_attributes(builder, finding);
    builder_finish(builder, (struct slice[]){removal->namespace, removal->name, removal->uid}, 3);
}

static uint64_t hash_text(uint64_t hash, struct slice text) {
    return hash_more(hash_more(hash, &text.size, sizeof text.size), text.data, text.size);
}

static uint64_t hash_number(uint64_t hash, uint64_t number) {
    return hash_more(hash, &number, sizeof number);
}

static uint64_t hash_transition(uint64_t hash, const struct transition *transition,
                                enum node_condition condition) {
    hash = hash_number(hash, transition == NULL ? 0 : (uint64_t)condition + 1);
    if (transition == NULL)
        return hash;
    hash = hash_number(hash, transition->time_ns);
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
