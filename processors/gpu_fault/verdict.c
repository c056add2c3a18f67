// SPDX-License-Identifier: Apache-2.0
// Says which GPU failed: "GPU G of node N failed: Xid 119 (no answer from the GPU system
// processor)". The id hangs on the GPU and the time at which the fault began when it was first
// found, so it stays when worse of it becomes known.
#include "pipeline/model/observation.h"
#include "processors/cluster/tables.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/cluster/xid_text.h"
#include "processors/gpu_fault/parts.h"

#include <inttypes.h>

static const char PATTERN[] = "gpu_fault";
enum { CONFIDENCE_OF_ENDED = 5, XID_RECOVERY = 154 };

static const char *const KINDS[] = {[FAULT_APPLICATION] = "application_xid",
                                    [FAULT_ERROR] = "gpu_error",
                                    [FAULT_LOST] = "gpu_lost"};

// What to do, for each action of the table; the last row for all others.
static const struct {
    const char *action, *words;
} ADVICE[] = {
    {"drain_node",
     "Cordon and drain {node} and reboot it; if {gpu} fails again, have the GPU, its "
     "slot and its power checked."},
    {"reset_gpu",
     "Cordon {node} and reset {gpu} before anyone uses it again, then restart the "
     "job; if it fails again, run field diagnostics."},
    {"replace_hardware",
     "Drain {node}, run field diagnostics on {gpu} and have it replaced if "
     "they fail."},
    {"check_link",
     "Drain {node} and check the NVLink connections of {gpu}; reset all GPUs of the "
     "node afterwards."},
    {"contact_support",
     "Cordon {node} and ask the support of the GPU's maker about {what} on "
     "{gpu}, with the output of nvidia-bug-report.sh."},
    {"fix_workload",
     "Look for the error in the program; if it comes on {gpu} of {node} only, run "
     "field diagnostics."},
    {NULL, "Restart the job; watch {node} and move the job off it if {what} comes back on {gpu}."},
};

static const char *advice_for(const char *action) {
    size_t at = 0;
    while (ADVICE[at].action != NULL && strcmp(ADVICE[at].action, action) != 0)
        at++;
    return ADVICE[at].words;
}

// "Xid 79 (the driver cannot reach the GPU over PCIe)", "a hang".
static const char *what_of(const struct fault_item *item, bool with_meaning, struct arena *arena) {
    if (item->xid != NULL && with_meaning)
        return arena_format(arena, "Xid %" PRIu32 " (%s)", item->xid->code,
                            arena_text(arena, xid_meaning(item->xid->code)));
    if (item->xid != NULL)
        return arena_format(arena, "Xid %" PRIu32, item->xid->code);
    if (item->amd->failed != 0)
        return "a reset that did not succeed";
    if (item->amd->kind == OBSERVATION_GPU_RESET)
        return "its driver began a GPU reset, and nothing says that it ended";
    return item->amd->kind == OBSERVATION_GPU_HANG ? "a hang" : "uncorrectable hardware errors";
}

static const char *describe_amd(const struct amd_line *line, struct arena *arena) {
    const char *code = line->code[0] == '\0' ? "" : arena_format(arena, " (%s)", line->code);
    const char *gpu = pci_text(line->address, false, arena);
    if (line->kind == OBSERVATION_GPU_HANG && line->over != 0)
        return arena_format(arena, "amdgpu %s: what hung was reset alone and is over", gpu);
    if (line->kind == OBSERVATION_GPU_HANG)
        return arena_format(arena, "amdgpu %s: work on the GPU did not end in time%s", gpu, code);
    if (line->kind == OBSERVATION_GPU_RESET)
        return arena_format(arena, "amdgpu %s: %s%s", gpu,
                            line->failed != 0 ? "the driver reset the GPU, which failed"
                            : line->over != 0 ? "the driver reset the GPU, which succeeded"
                                              : "the driver began to reset the GPU",
                            code);
    if (line->errors > 0)
        return arena_format(arena, "amdgpu %s: %" PRId64 " uncorrectable hardware errors%s", gpu,
                            line->errors, code);
    return arena_format(arena, "amdgpu %s: uncorrectable hardware error%s", gpu, code);
}

static bool is_gauge(const struct fault_item *item) {
    return item->xid != NULL && item->xid->source == XID_FROM_GAUGE;
}

static enum evidence_role role_of(const struct fault_burst *burst, const struct fault_item *item) {
    if (is_gauge(item) && !is_gauge(burst->anchor))
        return EVIDENCE_CONTEXT;
    bool says = item->kind == burst->anchor->kind || item->kind >= FAULT_ERROR;
    return says ? EVIDENCE_CAUSE : EVIDENCE_CONTEXT;
}

static void add_item(struct verdict_builder *builder, const struct fault_burst *burst,
                     const struct fault_item *item) {
    builder_evidence(builder, role_of(burst, item), item->time_ns,
                     fault_item_uid(item, builder->arena), "%s",
                     item->xid != NULL ? xid_entry_description(item->xid, builder->arena)
                                       : describe_amd(item->amd, builder->arena));
}

// All but the one that names it, which is there already.
static void add_others(struct verdict_builder *builder, const struct fault_burst *burst) {
    for (uint32_t i = 0; i < burst->count; i++) {
        if (&burst->items[i] == burst->anchor)
            continue;
        if (builder->verdict.evidence_count == builder->evidence_max)
            builder->verdict.evidence_dropped++;
        else
            add_item(builder, burst, &burst->items[i]);
    }
}

// What the driver asks for behind the fault, of several the last.
static enum recovery recovery_of(const struct fault_burst *burst) {
    enum recovery recovery = RECOVERY_UNKNOWN;
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct xid_entry *xid = burst->items[i].xid;
        if (xid != NULL && xid->code == XID_RECOVERY && xid->time_ns >= burst->first_ns &&
            xid->recovery != RECOVERY_UNKNOWN)
            recovery = (enum recovery)xid->recovery;
    }
    return recovery;
}

static void accuse(const struct gpu_fault *self, const struct told_fault *fault,
                   const struct fault_burst *burst, struct verdict_builder *builder) {
    const struct fault_item *anchor = burst->anchor;
    const struct gpu_fault_config *config = &self->config;
    struct arena *arena = builder->arena;
    bool low = anchor->judgement.anchor == XID_ANCHOR_LOW, own = anchor->kind == FAULT_APPLICATION;
    enum recovery recovery = own ? RECOVERY_UNKNOWN : recovery_of(burst);
    string_id uuid = gpu_names_uuid(&self->names, fault->node, fault->address);
    const char *action = own ? "fix_workload" : anchor->judgement.action;
    const struct text_field fields[] = {
        {"gpu_of_node", gpu_spoken_name(fault->node, uuid, fault->address, arena)},
        {"gpu", gpu_spoken_name(STRING_NONE, uuid, fault->address, arena)},
        {"node", node_spoken(fault->node, arena)},
        {"what", what_of(anchor, false, arena)},
        {"what_it_means", what_of(anchor, true, arena)},
        {NULL, NULL},
    };
    builder_rate(builder, own ? SEVERITY_INFO : anchor->judgement.severity,
                 (is_gauge(anchor) ? config->gauge_confidence : config->confidence) -
                     (low || own ? config->low_penalty : 0),
                 action_graver(action, recovery_action(recovery)));
    const char *advice =
        arena_format(arena, "%s%s%s%s", advice_for(builder->verdict.action),
                     recovery == RECOVERY_REBOOT ? " The driver itself asks for a reboot (Xid 154)."
                     : recovery == RECOVERY_RESET ? " The driver itself asks for a reset (Xid 154)."
                                                  : "",
                     low ? " Check the program as well: it can cause this." : "",
                     is_gauge(anchor) ? " Let culprit read the kernel log to be surer." : "");
    builder_texts(builder,
                  own ? "A program failed on {gpu_of_node}: {what_it_means}"
                  : anchor->kind == FAULT_LOST ? "{gpu_of_node} was lost: {what_it_means}"
                                               : "{gpu_of_node} failed: {what_it_means}",
                  advice, fields);
    if (anchor->xid != NULL)
        builder_attribute_format(builder, "nvidia.xid.code", "%" PRIu32, anchor->xid->code);
    if (anchor->xid != NULL && anchor->xid->pid >= 0)
        builder_attribute_format(builder, "process.pid", "%" PRId64, anchor->xid->pid);
}

static void hand_over(const char *told_by, const char *gpu, struct verdict_builder *builder) {
    const struct text_field fields[] = {{"gpu", gpu}, {"id", told_by}, {NULL, NULL}};
    builder_rate(builder, SEVERITY_INFO, CONFIDENCE_OF_ENDED, "monitor");
    builder_texts(builder, "{gpu}: what happened is told by another verdict",
                  "See the verdict {id}.", fields);
}

// A sample tells of what happened at some time after the one before.
static void set_after(struct verdict_builder *builder, const struct fault_item *anchor) {
    if (is_gauge(anchor) && builder->verdict.start_ns == anchor->time_ns)
        builder->verdict.after_ns = anchor->xid->since_ns;
}

static void finish(struct verdict_builder *builder, const struct told_fault *fault) {
    struct arena *arena = builder->arena;
    const char *name = gpu_entity_name(fault->node, STRING_NONE, fault->address, arena);
    builder_finish(builder,
                   (struct slice[]){slice_of(name),
                                    slice_of(arena_format(arena, "%" PRIu64, fault->anchor_ns))},
                   2);
}

static void tell_not_seen(struct verdict_builder *builder, const struct told_fault *fault,
                          const struct fault_item *anchor, bool is_told_elsewhere) {
    if (fault->node == STRING_NONE)
        builder_partial(builder, "nothing says on which node it is");
    if (is_told_elsewhere)
        builder_partial(builder, "the rest is told by another verdict");
    if (is_gauge(anchor))
        builder_partial(builder, "no line of a kernel log tells of the Xid");
}

void gpu_fault_verdict(const struct gpu_fault *self, const struct told_fault *fault,
                       const struct fault_burst *burst, const char *told_by,
                       struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    string_id uuid = gpu_names_uuid(&self->names, fault->node, fault->address);
    builder_begin(builder, arena, PATTERN, KINDS[burst->anchor->kind]);
    if (told_by[0] == '\0')
        accuse(self, fault, burst, builder);
    else
        hand_over(told_by, gpu_spoken_name(fault->node, uuid, fault->address, arena), builder);
    tell_not_seen(builder, fault, burst->anchor, told_by[0] != '\0');
    builder_gpu(builder, fault->node, uuid, fault->address,
                burst->anchor->kind == FAULT_APPLICATION ? ROLE_VICTIM : ROLE_SUSPECT);
    // What names it first, so that a flood does not push it out; the order is made afterwards.
    add_item(builder, burst, burst->anchor);
    add_others(builder, burst);
    finish(builder, fault);
    set_after(builder, burst->anchor);
}

// -- several GPUs ---------------------------------------------------------------------------------

static void relate(struct verdict_builder *builder, const struct loss_group *group) {
    struct related *related = arena_take(builder->arena, group->count * sizeof *related);
    uint32_t found = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const char *by = group->members[i]->fault->told_by;
        bool is_known = by[0] == '\0';
        for (uint32_t j = 0; j < found && !is_known; j++)
            is_known = strcmp(related[j].id, by) == 0;
        if (is_known)
            continue;
        memcpy(related[found].id, by, sizeof related[found].id);
        // A removal of pods follows from the loss, an error of the link or the memory led to it.
        bool follows = strncmp(by, "xid_correlation:", 16) == 0;
        related[found++].relation = follows ? RELATION_CAUSES : RELATION_CAUSED_BY;
    }
    builder->verdict.related = related;
    builder->verdict.related_count = found;
}

static void name_gpus(const struct gpu_fault *self, const struct loss_group *group,
                      struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    string_id node = group->members[0]->fault->node;
    builder_entity(builder, "node", ROLE_CULPRIT, string_or_null(node));
    for (uint32_t i = 0; i < group->count; i++) {
        const struct judged_burst *judged = group->members[i];
        uint64_t address = judged->fault->address;
        string_id uuid = gpu_names_uuid(&self->names, node, address);
        builder_entity(builder, "gpu", ROLE_SUSPECT, gpu_entity_name(node, uuid, address, arena));
        // Each loss first, so that a flood of other lines does not push one out.
        add_item(builder, judged->burst, judged->burst->anchor);
    }
    for (uint32_t i = 0; i < group->count; i++)
        add_others(builder, group->members[i]->burst);
}

// GPUs, not losses: one that came back may have been lost twice.
static uint32_t count_gpus(const struct loss_group *group) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        uint32_t before = 0;
        while (before < i &&
               group->members[before]->fault->address != group->members[i]->fault->address)
            before++;
        count += before == i;
    }
    return count;
}

void gpu_fault_together_verdict(const struct gpu_fault *self, const struct loss_group *group,
                                const struct told_fault *first, struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    const struct fault_item *anchor = group->members[0]->burst->anchor;
    const struct text_field fields[] = {
        {"count", arena_number(arena, count_gpus(group))},
        {"node", node_spoken(first->node, arena)},
        {"what_it_means", what_of(anchor, true, arena)},
        {NULL, NULL},
    };
    builder_begin(builder, arena, PATTERN, "gpus_lost");
    bool by_line = false;
    for (uint32_t i = 0; i < group->count; i++)
        by_line |= !is_gauge(group->members[i]->burst->anchor);
    builder_rate(builder, SEVERITY_CRITICAL,
                 by_line ? self->config.confidence : self->config.gauge_confidence, "drain_node");
    builder_texts(builder, "{count} GPUs of {node} were lost together: {what_it_means}",
                  "Cordon and drain {node} and reboot it; look for what these GPUs share: a PCIe "
                  "switch, their power, the driver.",
                  fields);
    if (!by_line)
        builder_partial(builder, "no line of a kernel log tells of any of the Xids");
    name_gpus(self, group, builder);
    builder_attribute(builder, "k8s.node.name", intern_slice(first->node));
    if (anchor->xid != NULL)
        builder_attribute_format(builder, "nvidia.xid.code", "%" PRIu32, anchor->xid->code);
    relate(builder, group);
    finish(builder, first);
    set_after(builder, anchor);
}
