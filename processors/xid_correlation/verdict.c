// SPDX-License-Identifier: Apache-2.0
// Says what an on-call engineer reads: "Pod A was evicted from node N 36 s after Xid 79 on GPU G".
// The id hangs on the pod alone, so it stays when a better Xid, or more of its burst, becomes
// known.
#include "processors/cluster/pod_map.h"
#include "processors/cluster/tables.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/cluster/xid_text.h"
#include "processors/xid_correlation/parts.h"

#include <inttypes.h>

static const char PATTERN[] = "xid_correlation", KIND[] = "xid_then_eviction";
enum { CONFIDENCE_WITHDRAWN = 5, POD_IN_TEXT_MAX = 90 };

static int64_t confidence_of(const struct xid_config *config, const struct xid_finding *finding) {
    assert(config->gap_step.ns > 0);
    const struct xid_choice *choice = finding->choice;
    bool gauge = choice->anchor->source == XID_FROM_GAUGE;
    int64_t confidence = gauge ? config->gauge_confidence : config->confidence;
    if (choice->judgement.anchor == XID_ANCHOR_LOW)
        confidence -= config->low_penalty;
    if (finding->place->gpu == POD_GPU_NONE)
        confidence -= config->no_gpu_penalty;
    uint64_t removed_ns = finding->removal->time_ns, xid_ns = choice->anchor->time_ns;
    uint64_t gap_ns = removed_ns > xid_ns ? removed_ns - xid_ns : 0;
    uint64_t free_ns = duration_ns(config->gap_free), most = (uint64_t)config->gap_penalty_max;
    uint64_t steps = gap_ns > free_ns ? (gap_ns - free_ns) / duration_ns(config->gap_step) : 0;
    return confidence - (int64_t)(steps < most ? steps : most);
}

static const char *const REMOVED_HOW[REMOVAL_CAUSE_COUNT] = {
    [REMOVAL_EVICTED] = "evicted by the kubelet",
    [REMOVAL_TAINT] = "marked for deletion by the taint manager",
    [REMOVAL_PREEMPTED] = "preempted",
    [REMOVAL_API] = "evicted through the API",
    [REMOVAL_COLLECTED] = "deleted by the pod garbage collector",
};

// What to do, for each action of the table; the last row for all others.
static const struct {
    const char *action, *words;
} ADVICE[] = {
    {"drain_node",
     "Cordon and drain {node} and reboot it; if Xid {code} comes back on GPU {pci}, "
     "have the GPU, its slot and its power checked."},
    {"reset_gpu",
     "Cordon {node} and reset GPU {pci} before a pod uses it again; if Xid {code} "
     "comes back, run field diagnostics."},
    {"replace_hardware",
     "Drain {node}, run field diagnostics on GPU {pci} and have it replaced "
     "if they fail."},
    {"check_link",
     "Drain {node} and check the NVLink connections of GPU {pci}; reset all GPUs of "
     "the node afterwards."},
    {"contact_support",
     "Cordon {node} and ask NVIDIA's support about Xid {code} on GPU {pci}, "
     "with the output of nvidia-bug-report.sh."},
    {NULL,
     "Restart the job; watch {node} and move the job off it if Xid {code} comes back on GPU "
     "{pci}."},
};

static const char *advice_for(const char *action) {
    assert(action != NULL);
    size_t at = 0;
    while (ADVICE[at].action != NULL && strcmp(ADVICE[at].action, action) != 0)
        at++;
    return ADVICE[at].words;
}

static const char *pod_in_text(const struct removal *removal, struct arena *arena) {
    struct slice pod = slice_of(removal_pod_name(removal, arena));
    return text_shown(pod, POD_IN_TEXT_MAX, arena);
}

static void set_texts(struct verdict_builder *builder, const struct xid_finding *finding) {
    const struct xid_choice *choice = finding->choice;
    const struct xid_entry *anchor = choice->anchor;
    const struct removal *removal = finding->removal;
    struct arena *arena = builder->arena;
    bool later = removal->time_ns > anchor->time_ns;
    const char *gap = later ? duration_text(removal->time_ns - anchor->time_ns, arena) : "";
    const char *asked = choice->recovery == RECOVERY_REBOOT  ? "a reboot"
                        : choice->recovery == RECOVERY_RESET ? "a reset"
                                                             : NULL;
    const struct text_field fields[] = {
        {"pod", pod_in_text(removal, arena)},
        {"node", node_spoken(removal->node, arena)},
        {"when", later ? arena_format(arena, "%s after", gap) : "in the second of"},
        {"code", arena_format(arena, "%" PRIu32, anchor->code)},
        {"pci", pci_text(anchor->address, false, arena)},
        {"meaning", arena_text(arena, xid_meaning(anchor->code))},
        {NULL, NULL},
    };
    const char *advice = arena_format(
        arena, "%s%s%s%s%s%s", advice_for(builder->verdict.action),
        asked == NULL ? "" : " The driver itself asks for ", asked == NULL ? "" : asked,
        asked == NULL ? "" : " (Xid 154).",
        choice->judgement.anchor == XID_ANCHOR_LOW
            ? " Check the program as well: it can cause this Xid."
            : "",
        anchor->source == XID_FROM_GAUGE ? " Let culprit read the kernel log to be surer." : "");
    builder_texts(builder,
                  "Pod {pod} was evicted from {node} {when} Xid {code} on GPU {pci} ({meaning})",
                  advice, fields);
}

static void add_xid(struct verdict_builder *builder, enum evidence_role role,
                    const struct xid_entry *xid) {
    builder_evidence(builder, role, xid->time_ns, xid_entry_uid(xid, builder->arena), "%s",
                     xid_entry_description(xid, builder->arena));
}

static void accuse(struct verdict_builder *builder, const struct xid_config *config,
                   const struct xid_finding *finding) {
    assert(finding->choice != NULL && finding->choice->anchor != NULL);
    const struct xid_choice *choice = finding->choice;
    const struct xid_entry *anchor = choice->anchor;
    builder_rate(builder, choice->judgement.severity, confidence_of(config, finding),
                 action_graver(choice->judgement.action, recovery_action(choice->recovery)));
    if (anchor->source == XID_FROM_GAUGE)
        builder_partial(builder, "no line of a kernel log tells of the Xid");
    set_texts(builder, finding);
    builder_gpu(builder, finding->removal->node, finding->uuid, anchor->address, ROLE_CULPRIT);
    builder_attribute_format(builder, "nvidia.xid.code", "%" PRIu32, anchor->code);
    if (anchor->pid >= 0)
        builder_attribute_format(builder, "process.pid", "%" PRId64, anchor->pid);
    add_xid(builder, EVIDENCE_CAUSE, anchor);
    for (uint32_t i = 0; i < choice->context_count; i++)
        add_xid(builder, EVIDENCE_CONTEXT, choice->context[i]);
}

// What stood and no longer holds.
static void withdraw(struct verdict_builder *builder, const struct xid_finding *finding) {
    const struct text_field fields[] = {{"pod", pod_in_text(finding->removal, builder->arena)},
                                        {NULL, NULL}};
    builder_rate(builder, SEVERITY_INFO, CONFIDENCE_WITHDRAWN, "monitor");
    builder_partial(builder, "only that it no longer holds is told here");
    if (finding->removal->moved)
        builder_texts(builder, "The removal of pod {pod} is told by another verdict",
                      "See the verdict that names the uid of pod {pod}.", fields);
    else
        builder_texts(builder, "The removal of pod {pod} is no longer laid to an Xid",
                      "The deletion was cancelled, or something else explains it: nothing to do.",
                      fields);
    builder_attribute(builder, "k8s.node.name", intern_slice(finding->removal->node));
}

// The Xid first, then the rest by time. A change of the metric began behind the sample before.
static void put_first(struct verdict *verdict, const struct xid_entry *anchor,
                      struct arena *arena) {
    struct slice uid = slice_of(xid_entry_uid(anchor, arena));
    for (uint32_t i = 0; i < verdict->evidence_count; i++) {
        if (!slice_equal(verdict->evidence[i].uid, uid))
            continue;
        struct evidence first = verdict->evidence[i];
        memmove(&verdict->evidence[1], &verdict->evidence[0], i * sizeof first);
        verdict->evidence[0] = first;
    }
    if (anchor->source == XID_FROM_GAUGE && verdict->start_ns == anchor->time_ns)
        verdict->after_ns = anchor->since_ns;
}

void xid_verdict_build(const struct xid_config *config, const struct xid_finding *finding,
                       struct verdict_builder *builder) {
    const struct removal *removal = finding->removal;
    struct arena *arena = builder->arena;
    const char *pod = removal_pod_name(removal, arena);
    builder_begin(builder, arena, PATTERN, KIND);
    if (finding->choice != NULL)
        accuse(builder, config, finding);
    else
        withdraw(builder, finding);
    builder->verdict.job = finding->place->job;
    builder_entity(builder, "pod", ROLE_VICTIM, pod);
    bool noted = removal->note.size > 0;
    builder_evidence(builder, EVIDENCE_EFFECT, removal->time_ns,
                     removal_evidence_uid(removal, arena), "pod %s was %s%s%s",
                     pod_in_text(removal, arena), REMOVED_HOW[removal->cause], noted ? ": " : "",
                     noted ? removal->note.data : "");
    builder_attribute(builder, "k8s.pod.name", removal->name);
    builder_attribute(builder, "k8s.pod.uid", removal->uid);
    builder_attribute(builder, "k8s.namespace.name", removal->namespace);
    builder_finish(builder, (struct slice[]){slice_of(pod), removal->uid}, 2);
    if (finding->choice != NULL)
        put_first(&builder->verdict, finding->choice->anchor, arena);
}
