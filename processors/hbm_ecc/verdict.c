// SPDX-License-Identifier: Apache-2.0
// "GPU G of node N: uncorrectable memory error, held to one program": what an on-call engineer
// reads. The id hangs on the GPU and the item that the incident began with when it was first told
// of, so it stays when it turns out to be worse.
#include "processors/hbm_ecc/parts.h"
#include "processors/verdict_draft.h"

#include <inttypes.h>

static const char PATTERN[] = "hbm_ecc";
enum { STEPS_MAX = 12, CONFIDENCE_OF_ENDED = 5 };

static const char *const KINDS[] = {
    [ECC_STORM] = "corrected_storm",
    [ECC_PENDING] = "remap_pending",
    [ECC_LIMIT] = "limit_reached",
    [ECC_UNCORRECTABLE] = "uncorrectable",
    [ECC_CONTAINED] = "uncorrectable_contained",
    [ECC_UNCONTAINED] = "uncorrectable_uncontained",
    [ECC_FAILED] = "remap_failed",
};

static const char *field_words(uint32_t field) {
    static const char *const words[ECC_FIELD_COUNT] = {
        [ECC_UNCORRECTED] = "uncorrected memory errors since the driver was loaded",
        [ECC_UNCORRECTED_LIFETIME] = "uncorrected memory errors in the GPU's life",
        [ECC_CORRECTED] = "corrected memory errors since the driver was loaded",
        [ECC_CORRECTED_LIFETIME] = "corrected memory errors in the GPU's life",
        [ECC_REMAPS] = "rows remapped for uncorrectable errors",
        [ECC_REMAP_FAILED] = "failed row remaps",
        [ECC_REMAP_PENDING] = "row remaps that wait for a reset",
        [ECC_RETIRED_CORRECTED] = "pages retired for corrected errors",
        [ECC_RETIRED_UNCORRECTED] = "pages retired for uncorrectable errors",
        [ECC_RETIRED_PENDING] = "page retirements that wait for a reset",
        [ECC_BANKS_NONE] = "memory banks without spare rows",
        [ECC_SRAM_EXCEEDED] = "the mark that SRAM errors passed their limit",
    };
    return words[field];
}

static struct slice step_uid(const struct ecc_step *step, struct arena *arena) {
    return gpu_field_uid(step->node, step->uuid, step->address, ECC_FIELDS[step->field],
                         step->time_ns, arena);
}

static const char *step_description(const struct ecc_item *item, struct arena *arena) {
    const struct ecc_step *step = item->step;
    if (item->storm != 0)
        return arena_format(arena,
                            "%" PRId64
                            " corrected memory errors within the window; the "
                            "counter rose from %" PRId64 " to %" PRId64,
                            item->storm, step->from, step->to);
    return arena_format(arena, "%s rose from %" PRId64 " to %" PRId64 " since the sample before",
                        field_words(step->field), step->from, step->to);
}

static enum evidence_role role_of(const struct ecc_item *item, enum ecc_kind kind) {
    if (item->kind != ECC_NONE && (item->kind == kind || item->kind >= ECC_UNCORRECTABLE))
        return EVIDENCE_CAUSE;
    const struct xid_row *row = item->xid == NULL ? NULL : xid_find(item->xid->code);
    bool follows =
        row != NULL && row->class != XID_CLASS_INFORMATIONAL && row->class != XID_CLASS_HARDWARE;
    return follows ? EVIDENCE_CONTEXT : EVIDENCE_EFFECT;
}

// Steps first, so that a flood of Xids does not push them out; the order is made afterwards.
static void add_evidence(struct verdict_draft *draft, const struct ecc_burst *burst) {
    struct arena *arena = draft->arena;
    uint32_t steps = 0;
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct ecc_item *item = burst->items[i];
        if (item->step == NULL)
            continue;
        if (steps++ == STEPS_MAX) {
            draft->verdict.evidence_dropped += 1;
            steps--;
            continue;
        }
        verdict_draft_evidence(draft, role_of(item, burst->kind), item->time_ns,
                               step_uid(item->step, arena).data, step_description(item, arena));
    }
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct ecc_item *item = burst->items[i];
        if (item->xid == NULL)
            continue;
        if (draft->verdict.evidence_count == DRAFT_EVIDENCE)
            draft->verdict.evidence_dropped += 1;
        else
            verdict_draft_evidence(draft, role_of(item, burst->kind), item->time_ns,
                                   xid_entry_uid(item->xid, arena).data,
                                   xid_entry_description(item->xid, arena).data);
    }
}

static bool is_xid_evidence(const struct evidence *evidence) {
    return evidence->uid.size > 4 && memcmp(evidence->uid.data, "xid:", 4) == 0;
}

// Xids by time, then steps by time.
static void order_evidence(struct verdict *verdict) {
    for (uint32_t i = 1; i < verdict->evidence_count; i++)
        for (uint32_t at = i; at > 0 && is_xid_evidence(&verdict->evidence[at]) &&
                              !is_xid_evidence(&verdict->evidence[at - 1]);
             at--) {
            struct evidence other = verdict->evidence[at];
            verdict->evidence[at] = verdict->evidence[at - 1];
            verdict->evidence[at - 1] = other;
        }
}

static bool has_item(const struct ecc_burst *burst, enum ecc_field field) {
    for (uint32_t i = 0; i < burst->count; i++)
        if (burst->items[i]->step != NULL && burst->items[i]->step->field == field)
            return true;
    return false;
}

static bool has_code(const struct ecc_burst *burst, uint32_t code) {
    for (uint32_t i = 0; i < burst->count; i++)
        if (burst->items[i]->xid != NULL && burst->items[i]->xid->code == code)
            return true;
    return false;
}

static bool waits_for_reset(const struct ecc_burst *burst) {
    return has_item(burst, ECC_REMAP_PENDING) || has_item(burst, ECC_RETIRED_PENDING) ||
           has_code(burst, 63);
}

// A limit from which the GPU is to be replaced, and not only spare rows that run out.
static bool is_worn_out(const struct ecc_burst *burst) {
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct ecc_step *step = burst->items[i]->step;
        if (step != NULL && step->is_limit != 0 && step->field != ECC_BANKS_NONE)
            return true;
    }
    return false;
}

static const char *headline(enum ecc_kind kind, const struct ecc_incident *incident,
                            const struct ecc_burst *burst, const char *gpu, struct arena *arena) {
    const char *again = "";
    if (incident->number > 1)
        again =
            arena_format(arena, " (repeat: incident %" PRIu32 " of this GPU)", incident->number);
    const char *waits = waits_for_reset(burst) ? "; a row waits for a reset to be remapped" : "";
    switch (kind) {
    case ECC_FAILED:
        return arena_format(arena, "%s: a bad memory row could not be remapped%s", gpu, again);
    case ECC_UNCONTAINED:
        return arena_format(arena,
                            "%s: uncorrectable memory error that reached several programs%s%s", gpu,
                            waits, again);
    case ECC_CONTAINED:
        return arena_format(arena, "%s: uncorrectable memory error, held to one program%s%s", gpu,
                            waits, again);
    case ECC_UNCORRECTABLE:
        return arena_format(arena, "%s: uncorrectable memory error%s%s", gpu, waits, again);
    case ECC_LIMIT:
        return arena_format(arena, "%s: %s%s", gpu,
                            is_worn_out(burst) ? "memory repairs reached the limit for replacement"
                                               : "a memory bank has no spare rows left",
                            again);
    case ECC_PENDING:
        return arena_format(arena, "%s: a memory row waits for a reset to be remapped%s", gpu,
                            again);
    default:
        return arena_format(arena, "%s: unusually many corrected memory errors%s", gpu, again);
    }
}

static const char *remediation(enum ecc_kind kind, const struct ecc_burst *burst, const char *node,
                               const char *gpu, struct arena *arena) {
    switch (kind) {
    case ECC_FAILED:
        return arena_format(arena,
                            "Cordon and drain %s, run field diagnostics on %s and have it "
                            "replaced; do not run jobs on it before.",
                            node, gpu);
    case ECC_UNCONTAINED:
        return arena_format(arena,
                            "Cordon %s and reset %s before anyone uses it again; results of "
                            "all programs that ran on it are in doubt.",
                            node, gpu);
    case ECC_CONTAINED:
        return arena_format(arena, "Restart the job now; reset %s when %s is free%s.", gpu, node,
                            waits_for_reset(burst) ? ", so that the remap takes effect" : "");
    case ECC_UNCORRECTABLE:
        return arena_format(arena,
                            "Cordon %s and reset %s before anyone uses it again, then "
                            "restart the job. The kernel log of the node tells which "
                            "programs were hit.",
                            node, gpu);
    case ECC_LIMIT:
        if (is_worn_out(burst))
            return arena_format(arena,
                                "Drain %s, run field diagnostics on %s and ask for its "
                                "replacement.",
                                node, gpu);
        return arena_format(arena,
                            "Plan maintenance of %s: the next bad row in that bank of %s "
                            "cannot be remapped.",
                            node, gpu);
    case ECC_PENDING:
        return arena_format(arena, "Reset %s when %s is free, so that the remap takes effect.", gpu,
                            node);
    default:
        return arena_format(arena,
                            "Watch %s of %s; have it checked if uncorrectable errors or "
                            "failed remaps follow.",
                            gpu, node);
    }
}

static enum severity severity_of(enum ecc_kind kind, const struct ecc_incident *incident,
                                 const struct ecc_burst *burst) {
    switch (kind) {
    case ECC_FAILED:
    case ECC_UNCONTAINED:
        return SEVERITY_CRITICAL;
    case ECC_CONTAINED:
        return SEVERITY_ERROR;
    case ECC_UNCORRECTABLE:
        return incident->seen_dbe != 0 ? SEVERITY_CRITICAL : SEVERITY_ERROR;
    case ECC_LIMIT:
        return is_worn_out(burst) ? SEVERITY_ERROR : SEVERITY_WARNING;
    default:
        return SEVERITY_WARNING;
    }
}

static const char *action_of(enum ecc_kind kind, const struct ecc_burst *burst) {
    switch (kind) {
    case ECC_FAILED:
        return "replace_hardware";
    case ECC_CONTAINED:
        return "restart_app";
    case ECC_LIMIT:
        return is_worn_out(burst) ? "replace_hardware" : "monitor";
    case ECC_STORM:
        return "monitor";
    default:
        return "reset_gpu";
    }
}

static int confidence_of(enum ecc_kind kind, const struct ecc_rules *rules,
                         const struct ecc_incident *incident) {
    if (kind == ECC_STORM)
        return rules->confidence_storm;
    if (incident->seen_xid != 0 && incident->seen_counter != 0)
        return rules->confidence_both;
    return incident->seen_xid != 0 ? rules->confidence_xid : rules->confidence_counter;
}

static void add_entities(struct verdict_draft *draft, const struct ecc_incident *incident,
                         string_id uuid) {
    verdict_draft_entity(
        draft, "gpu", ROLE_CULPRIT,
        gpu_entity_name(incident->node, uuid, incident->address, draft->arena).data);
    verdict_draft_entity(draft, "node", ROLE_SUSPECT,
                         draft_string(draft->arena, incident->node, 253));
}

static void add_attributes(struct verdict_draft *draft, const struct ecc_incident *incident,
                           string_id uuid) {
    char pci[PCI_TEXT_MAX];
    verdict_draft_attribute(draft, "k8s.node.name",
                            draft_string(draft->arena, incident->node, 1024));
    verdict_draft_attribute(draft, "hw.id", draft_string(draft->arena, uuid, 1024));
    if (incident->address == PCI_NONE)
        return;
    pci_format_device(incident->address, pci);
    verdict_draft_attribute(draft, "pci.address", arena_text(draft->arena, slice_of(pci)));
}

// The Xid that decides the kind, of equally bad ones the first.
static void add_xid_attribute(struct verdict_draft *draft, const struct ecc_burst *burst) {
    const struct ecc_item *worst = NULL;
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct ecc_item *item = burst->items[i];
        if (item->xid != NULL && item->kind != ECC_NONE &&
            (worst == NULL || item->kind > worst->kind))
            worst = item;
    }
    if (worst != NULL)
        verdict_draft_attribute(draft, "nvidia.xid.code",
                                arena_format(draft->arena, "%" PRIu32, worst->xid->code));
}

static struct slice anchor_uid(const struct ecc_incident *incident, struct arena *arena) {
    if (incident->anchor_code != 0)
        return xid_uid(incident->node, incident->address, incident->anchor_code,
                       incident->anchor_ns, arena);
    return gpu_field_uid(incident->node, incident->anchor_uuid, incident->address,
                         ECC_FIELDS[incident->anchor_field], incident->anchor_ns, arena);
}

static void set_id(struct verdict *verdict, const struct ecc_incident *incident,
                   struct arena *arena) {
    struct slice key[] = {gpu_entity_name(incident->node, incident->uuid, incident->address, arena),
                          anchor_uid(incident, arena)};
    verdict_set_id(verdict, PATTERN, key, 2);
}

void ecc_verdict_build(const struct ecc_rules *rules, const struct ecc_incident *incident,
                       const struct ecc_burst *burst, string_id uuid, struct arena *arena,
                       struct verdict *out) {
    struct verdict_draft draft;
    enum ecc_kind kind = (enum ecc_kind)incident->kind;
    const char *gpu = gpu_spoken_name(incident->node, uuid, incident->address, arena).data;
    const char *bare = gpu_spoken_name(STRING_NONE, uuid, incident->address, arena).data;
    const char *node = draft_node(arena, incident->node);
    verdict_draft_begin(&draft, arena, PATTERN, KINDS[kind]);
    draft.verdict.severity = severity_of(kind, incident, burst);
    draft.verdict.action = action_of(kind, burst);
    draft.verdict.confidence = confidence_of(kind, rules, incident);
    draft.verdict.partial = kind != ECC_STORM && incident->seen_xid == 0;
    verdict_draft_text(&draft, headline(kind, incident, burst, gpu, arena),
                       remediation(kind, burst, node, bare, arena));
    add_entities(&draft, incident, uuid);
    add_evidence(&draft, burst);
    add_attributes(&draft, incident, uuid);
    add_xid_attribute(&draft, burst);
    verdict_draft_finish(&draft);
    *out = draft.verdict;
    order_evidence(out);
    out->start_ns = incident->first_ns < out->start_ns ? incident->first_ns : out->start_ns;
    set_id(out, incident, arena);
}

void ecc_verdict_end(const struct ecc_incident *incident, const char *why, string_id uuid,
                     struct arena *arena, struct verdict *out) {
    struct verdict_draft draft;
    const char *gpu = gpu_spoken_name(incident->node, uuid, incident->address, arena).data;
    verdict_draft_begin(&draft, arena, PATTERN, KINDS[incident->kind]);
    draft.verdict.severity = SEVERITY_INFO;
    draft.verdict.confidence = CONFIDENCE_OF_ENDED;
    draft.verdict.partial = true;
    verdict_draft_text(&draft, arena_format(arena, "%s: %s", gpu, why), "Nothing to do.");
    add_entities(&draft, incident, uuid);
    verdict_draft_evidence(&draft, EVIDENCE_CAUSE, incident->anchor_ns,
                           anchor_uid(incident, arena).data, "what the incident began with");
    add_attributes(&draft, incident, uuid);
    verdict_draft_finish(&draft);
    *out = draft.verdict;
    set_id(out, incident, arena);
}
