// SPDX-License-Identifier: Apache-2.0
// "Pod A was evicted from node N 36 s after Xid 79 on GPU G": what an on-call engineer reads of it.
// The id hangs on the pod alone, so it stays when a better Xid, or more of its burst, becomes
// known.
#include "base/text/human.h"
#include "processors/verdict_draft.h"
#include "processors/xid_correlation/parts.h"

#include <inttypes.h>

static const char PATTERN[] = "xid_correlation", KIND[] = "xid_then_eviction";
enum { CONFIDENCE_MIN = 5, CONFIDENCE_MAX = 97, POD_IN_TEXT_MAX = 90 };

static int confidence_of(const struct xid_rules *rules, const struct xid_finding *finding) {
    const struct xid_choice *choice = finding->choice;
    bool gauge = choice->anchor->source == XID_FROM_GAUGE;
    int confidence = gauge ? rules->confidence_gauge : rules->confidence;
    if (choice->judgement.anchor == XID_ANCHOR_LOW)
        confidence -= rules->penalty_low;
    if (finding->place->gpu == POD_GPU_NONE)
        confidence -= rules->penalty_no_gpu;
    uint64_t removed_ns = finding->removal->time_ns, xid_ns = choice->anchor->time_ns;
    uint64_t gap_ns = removed_ns > xid_ns ? removed_ns - xid_ns : 0;
    if (gap_ns > rules->gap_free_ns) {
        uint64_t steps = (gap_ns - rules->gap_free_ns) / rules->gap_step_ns;
        confidence -=
            steps > (uint64_t)rules->penalty_gap_max ? rules->penalty_gap_max : (int)steps;
    }
    return confidence < CONFIDENCE_MIN   ? CONFIDENCE_MIN
           : confidence > CONFIDENCE_MAX ? CONFIDENCE_MAX
                                         : confidence;
}

static const char *removed_how(enum removal_cause cause) {
    static const char *const words[REMOVAL_CAUSE_COUNT] = {
        [REMOVAL_EVICTED] = "evicted by the kubelet",
        [REMOVAL_TAINT] = "marked for deletion by the taint manager",
        [REMOVAL_PREEMPTED] = "preempted",
        [REMOVAL_API] = "evicted through the API",
        [REMOVAL_COLLECTED] = "deleted by the pod garbage collector",
    };
    return words[cause];
}

static const char *pod_in_text(const struct removal *removal, struct arena *arena) {
    return arena_text(arena, text_cut_at(removal_pod_name(removal, arena), POD_IN_TEXT_MAX));
}

static const char *headline(const struct xid_finding *finding, struct arena *arena) {
    const struct xid_entry *anchor = finding->choice->anchor;
    const char *pod = pod_in_text(finding->removal, arena);
    const char *node = draft_node(arena, finding->removal->node);
    struct slice meaning = xid_meaning(anchor->code);
    char pci[PCI_TEXT_MAX], gap[HUMAN_MAX];
    pci_format_device(anchor->address, pci);
    if (finding->removal->time_ns <= anchor->time_ns)
        return arena_format(
            arena, "Pod %s was evicted from %s in the second of Xid %" PRIu32 " on GPU %s (%.*s)",
            pod, node, anchor->code, pci, (int)meaning.size, meaning.data);
    human_duration(finding->removal->time_ns - anchor->time_ns, gap);
    return arena_format(arena,
                        "Pod %s was evicted from %s %s after Xid %" PRIu32 " on GPU %s (%.*s)", pod,
                        node, gap, anchor->code, pci, (int)meaning.size, meaning.data);
}

// What to do, for each action of the table.
static const char *what_to_do(const char *action, const char *node, const char *pci, uint32_t code,
                              struct arena *arena) {
    if (strcmp(action, "drain_node") == 0)
        return arena_format(arena,
                            "Cordon and drain %s and reboot it; if Xid %" PRIu32
                            " comes back on GPU %s, have the GPU, its slot and its power "
                            "checked.",
                            node, code, pci);
    if (strcmp(action, "reset_gpu") == 0)
        return arena_format(arena,
                            "Cordon %s and reset GPU %s before a pod uses it again; if Xid "
                            "%" PRIu32 " comes back, run field diagnostics.",
                            node, pci, code);
    if (strcmp(action, "replace_hardware") == 0)
        return arena_format(arena,
                            "Drain %s, run field diagnostics on GPU %s and have it replaced "
                            "if they fail.",
                            node, pci);
    if (strcmp(action, "check_link") == 0)
        return arena_format(arena,
                            "Drain %s and check the NVLink connections of GPU %s; reset all "
                            "GPUs of the node afterwards.",
                            node, pci);
    if (strcmp(action, "contact_support") == 0)
        return arena_format(arena,
                            "Cordon %s and ask NVIDIA's support about Xid %" PRIu32
                            " on GPU %s, with the output of nvidia-bug-report.sh.",
                            node, code, pci);
    return arena_format(arena,
                        "Restart the job; watch %s and move the job off it if Xid %" PRIu32
                        " comes back on GPU %s.",
                        node, code, pci);
}

static const char *remediation(const struct xid_finding *finding, const char *action,
                               struct arena *arena) {
    const struct xid_choice *choice = finding->choice;
    char pci[PCI_TEXT_MAX];
    pci_format_device(choice->anchor->address, pci);
    const char *text = what_to_do(action, draft_node(arena, finding->removal->node), pci,
                                  choice->anchor->code, arena);
    if (choice->recovery == RECOVERY_REBOOT)
        text = arena_format(arena, "%s The driver itself asks for a reboot (Xid 154).", text);
    else if (choice->recovery == RECOVERY_RESET)
        text = arena_format(arena, "%s The driver itself asks for a reset (Xid 154).", text);
    if (choice->judgement.anchor == XID_ANCHOR_LOW)
        text = arena_format(arena, "%s Check the program as well: it can cause this Xid.", text);
    if (choice->anchor->source == XID_FROM_GAUGE)
        text = arena_format(arena, "%s Let culprit read the kernel log to be surer.", text);
    return text;
}

static void add_evidence(struct verdict_draft *draft, const struct xid_finding *finding) {
    const struct removal *removal = finding->removal;
    const struct xid_choice *choice = finding->choice;
    struct arena *arena = draft->arena;
    if (choice != NULL) {
        verdict_draft_evidence(draft, EVIDENCE_CAUSE, choice->anchor->time_ns,
                               xid_entry_uid(choice->anchor, arena).data,
                               xid_entry_description(choice->anchor, arena).data);
        for (uint32_t i = 0; i < choice->context_count; i++)
            verdict_draft_evidence(draft, EVIDENCE_CONTEXT, choice->context[i]->time_ns,
                                   xid_entry_uid(choice->context[i], arena).data,
                                   xid_entry_description(choice->context[i], arena).data);
    }
    const char *note =
        removal->note.size > 0 ? arena_format(arena, ": %s", removal->note.data) : "";
    const char *description = arena_format(arena, "pod %s was %s%s", pod_in_text(removal, arena),
                                           removed_how(removal->cause), note);
    verdict_draft_evidence(draft, EVIDENCE_EFFECT, removal->time_ns,
                           removal_evidence_uid(removal, arena).data, description);
}

static void add_attributes(struct verdict_draft *draft, const struct xid_finding *finding) {
    const struct removal *removal = finding->removal;
    struct arena *arena = draft->arena;
    verdict_draft_attribute(draft, "k8s.pod.name", removal->name.data);
    verdict_draft_attribute(draft, "k8s.pod.uid", removal->uid.data);
    verdict_draft_attribute(draft, "k8s.namespace.name", removal->namespace.data);
    verdict_draft_attribute(draft, "k8s.node.name", draft_string(arena, removal->node, 1024));
    verdict_draft_attribute(draft, "hw.id", draft_string(arena, finding->uuid, 1024));
    if (finding->choice == NULL)
        return;
    char pci[PCI_TEXT_MAX];
    pci_format_device(finding->choice->anchor->address, pci);
    verdict_draft_attribute(draft, "pci.address", arena_text(arena, slice_of(pci)));
    verdict_draft_attribute(draft, "nvidia.xid.code",
                            arena_format(arena, "%" PRIu32, finding->choice->anchor->code));
    if (finding->choice->anchor->pid >= 0)
        verdict_draft_attribute(draft, "process.pid",
                                arena_format(arena, "%" PRId64, finding->choice->anchor->pid));
}

// What stood and no longer holds.
static void withdraw(struct verdict_draft *draft, const struct xid_finding *finding) {
    const char *pod = pod_in_text(finding->removal, draft->arena);
    draft->verdict.severity = SEVERITY_INFO;
    draft->verdict.confidence = CONFIDENCE_MIN;
    draft->verdict.partial = true;
    verdict_draft_text(
        draft, arena_format(draft->arena, "The removal of pod %s is no longer laid to an Xid", pod),
        "The deletion was cancelled, or something else explains it: nothing to do.");
}

static void accuse(struct verdict_draft *draft, const struct xid_rules *rules,
                   const struct xid_finding *finding) {
    const struct xid_choice *choice = finding->choice;
    struct arena *arena = draft->arena;
    draft->verdict.severity = choice->judgement.severity;
    draft->verdict.confidence = confidence_of(rules, finding);
    draft->verdict.partial = choice->anchor->source == XID_FROM_GAUGE;
    draft->verdict.action =
        action_graver(choice->judgement.action, recovery_action(choice->recovery));
    verdict_draft_entity(
        draft, "gpu", ROLE_CULPRIT,
        gpu_entity_name(finding->removal->node, finding->uuid, choice->anchor->address, arena)
            .data);
    verdict_draft_entity(draft, "node", ROLE_CULPRIT,
                         draft_string(arena, finding->removal->node, 253));
    verdict_draft_text(draft, headline(finding, arena),
                       remediation(finding, draft->verdict.action, arena));
}

void xid_verdict_build(const struct xid_rules *rules, const struct xid_finding *finding,
                       struct arena *arena, struct verdict *out) {
    struct verdict_draft draft;
    const struct removal *removal = finding->removal;
    struct slice pod = removal_pod_name(removal, arena);
    verdict_draft_begin(&draft, arena, PATTERN, KIND);
    if (finding->choice != NULL)
        accuse(&draft, rules, finding);
    else
        withdraw(&draft, finding);
    verdict_draft_entity(&draft, "pod", ROLE_VICTIM, arena_text(arena, pod));
    add_evidence(&draft, finding);
    add_attributes(&draft, finding);
    verdict_draft_finish(&draft);
    *out = draft.verdict;
    out->job = finding->place->job;
    struct slice key[] = {pod, removal->uid};
    verdict_set_id(out, PATTERN, key, 2);
}
