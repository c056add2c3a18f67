// SPDX-License-Identifier: Apache-2.0
// Says what happened to a GPU's memory: "GPU G of node N: uncorrectable memory error, held to one
// program". The id hangs on the GPU and the item that the incident began with when it was first
// told of, so it stays when it turns out to be worse.
#include "processors/cluster/tables.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/cluster/xid_text.h"
#include "processors/hbm_ecc/parts.h"

#include <inttypes.h>
#include <strings.h>

static const char PATTERN[] = "hbm_ecc";
enum { STEPS_MAX = 12, CONFIDENCE_OF_ENDED = 5 };

// The verdict of each kind; of a limit that only spares are used up, the row behind them.
enum { WORDS_SPARES = ECC_FAILED + 1 };
static const struct {
    const char *kind, *action;
    enum severity severity;
    const char *headline, *remediation;
} WORDS[] = {
    [ECC_STORM] = {"corrected_storm", "monitor", SEVERITY_WARNING,
                   "{gpu_of_node}: unusually many corrected memory errors{again}",
                   "Watch {gpu} of {node}; have it checked if uncorrectable errors or failed "
                   "remaps follow."},
    [ECC_PENDING] = {"remap_pending", "reset_gpu", SEVERITY_WARNING,
                     "{gpu_of_node}: a memory {row} waits for a reset to be {remapped}{again}",
                     "Reset {gpu} when {node} is free, so that the {remap} takes effect."},
    [ECC_LIMIT] = {"limit_reached", "replace_hardware", SEVERITY_ERROR,
                   "{gpu_of_node}: memory repairs reached the limit for replacement{again}",
                   "Drain {node}, run field diagnostics on {gpu} and ask for its replacement."},
    [ECC_UNCORRECTABLE] = {"uncorrectable", "reset_gpu", SEVERITY_ERROR,
                           "{gpu_of_node}: uncorrectable memory error{waits}{again}",
                           "Cordon {node} and reset {gpu} before anyone uses it again, then "
                           "restart the job. The kernel log of the node tells which programs were "
                           "hit."},
    [ECC_CONTAINED] = {"uncorrectable_contained", "restart_app", SEVERITY_ERROR,
                       "{gpu_of_node}: uncorrectable memory error, held to one "
                       "program{waits}{again}",
                       "Restart the job now; reset {gpu} when {node} is free{for_remap}."},
    [ECC_UNCONTAINED] = {"uncorrectable_uncontained", "reset_gpu", SEVERITY_CRITICAL,
                         "{gpu_of_node}: uncorrectable memory error that reached several "
                         "programs{waits}{again}",
                         "Cordon {node} and reset {gpu} before anyone uses it again; results of "
                         "all programs that ran on it are in doubt."},
    [ECC_FAILED] = {"remap_failed", "replace_hardware", SEVERITY_CRITICAL,
                    "{gpu_of_node}: a bad memory {row} could not be {remapped}{again}",
                    "Cordon and drain {node}, run field diagnostics on {gpu} and have it replaced; "
                    "do not run jobs on it before."},
    [WORDS_SPARES] = {"limit_reached", "monitor", SEVERITY_WARNING,
                      "{gpu_of_node}: a memory bank has no spare rows left{again}",
                      "Plan maintenance of {node}: the next bad row in that bank of {gpu} cannot "
                      "be remapped."},
};

static const char *const FIELD_WORDS[ECC_FIELD_COUNT] = {
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

static enum evidence_role role_of(const struct ecc_item *item, const struct ecc_burst *burst) {
    enum ecc_kind kind = burst->kind;
    // It stood for an hour or more: when the graver thing began it does not say.
    if (burst->has_storm && item->kind == ECC_STORM)
        return EVIDENCE_CONTEXT;
    if (item->kind != ECC_NONE && (item->kind == kind || item->kind >= ECC_UNCORRECTABLE))
        return EVIDENCE_CAUSE;
    const struct xid_row *row = item->xid == NULL ? NULL : xid_find(item->xid->code);
    bool follows =
        row != NULL && row->class != XID_CLASS_INFORMATIONAL && row->class != XID_CLASS_HARDWARE;
    return follows ? EVIDENCE_CONTEXT : EVIDENCE_EFFECT;
}

static const char *step_uid(const struct ecc_step *step, struct arena *arena) {
    assert(step->field < ECC_FIELD_COUNT);
    return gpu_field_uid(step->node, step->uuid, step->address, ECC_FIELDS[step->field],
                         step->time_ns, arena);
}

static const char *step_field(const struct ecc_step *step, struct arena *arena) {
    return field_text(ECC_FIELDS[step->field], step->spelling, arena);
}

static void add_rise(struct verdict_builder *builder, const struct ecc_item *item,
                     enum evidence_role role) {
    const struct ecc_step *step = item->step;
    builder_evidence(builder, role, item->time_ns, step_uid(step, builder->arena),
                     "%s (%s) rose from %" PRId64 " to %" PRId64 " since the sample before",
                     FIELD_WORDS[step->field], step_field(step, builder->arena), step->from,
                     step->to);
}

static void add_step(struct verdict_builder *builder, const struct ecc_item *item,
                     enum evidence_role role) {
    assert(item->step != NULL);
    const struct ecc_step *step = item->step;
    if (item->storm != 0)
        builder_evidence(builder, role, item->time_ns, step_uid(step, builder->arena),
                         "%" PRId64
                         " corrected memory errors within the window; %s rose from %" PRId64
                         " to %" PRId64,
                         item->storm, step_field(step, builder->arena), step->from, step->to);
    else
        add_rise(builder, item, role);
}

// Steps first, so that a flood of Xids does not push them out; the order is made afterwards.
static void add_evidence(struct verdict_builder *builder, const struct ecc_burst *burst) {
    uint32_t steps = 0;
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct ecc_item *item = burst->items[i];
        if (item->step == NULL)
            continue;
        if (steps == STEPS_MAX) {
            builder->verdict.evidence_dropped++;
            continue;
        }
        steps++;
        enum evidence_role role = role_of(item, burst);
        if (item->storm_first != NULL && item->storm_first != item &&
            (burst->kind == ECC_STORM || burst->has_storm))
            add_rise(builder, item->storm_first, role);
        add_step(builder, item, role);
    }
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct ecc_item *item = burst->items[i];
        if (item->xid == NULL)
            continue;
        if (builder->verdict.evidence_count == builder->evidence_max)
            builder->verdict.evidence_dropped++;
        else
            builder_evidence(builder, role_of(item, burst), item->time_ns,
                             xid_entry_uid(item->xid, builder->arena), "%s",
                             xid_entry_description(item->xid, builder->arena));
    }
}

static bool is_xid_evidence(const struct evidence *evidence) {
    return evidence->uid.size > 4 && memcmp(evidence->uid.data, "xid:", 4) == 0;
}

// Xids by time, then steps by time.
static void order_evidence(struct verdict *verdict, struct arena *arena) {
    struct evidence *ordered = arena_take(arena, (verdict->evidence_count + 1) * sizeof *ordered);
    uint32_t count = 0;
    for (int xids = 1; xids >= 0; xids--)
        for (uint32_t i = 0; i < verdict->evidence_count; i++)
            if (is_xid_evidence(&verdict->evidence[i]) == (xids == 1))
                ordered[count++] = verdict->evidence[i];
    verdict->evidence = ordered;
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

// Letters in any case.
static bool says_page(struct slice text) {
    for (size_t i = 0; i + 4 <= text.size; i++)
        if (strncasecmp(text.data + i, "page", 4) == 0)
            return true;
    return false;
}

// Older GPUs retire pages where newer ones remap rows; the codes are the same, so the line says
// which: "Dynamic Page Retirement: New page retired, …".
static bool is_of_pages(const struct ecc_burst *burst) {
    if (has_item(burst, ECC_REMAPS) || has_item(burst, ECC_REMAP_PENDING) ||
        has_item(burst, ECC_REMAP_FAILED))
        return false;
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct xid_entry *xid = burst->items[i]->xid;
        if (xid == NULL || (xid->code != 63 && xid->code != 64))
            continue;
        if (says_page(xid_entry_detail(xid)))
            return true;
    }
    return has_item(burst, ECC_RETIRED_PENDING);
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

static int64_t confidence_of(enum ecc_kind kind, const struct ecc_config *config,
                             const struct ecc_incident *incident) {
    if (kind == ECC_STORM)
        return config->confidence_storm;
    if (incident->seen_xid != 0 && incident->seen_counter != 0)
        return config->confidence_both;
    return incident->seen_xid != 0 ? config->confidence_xid : config->confidence_counter;
}

// The Xid that decides the kind, of equally bad ones the first.
static void add_xid_attribute(struct verdict_builder *builder, const struct ecc_burst *burst) {
    const struct ecc_item *worst = NULL;
    for (uint32_t i = 0; i < burst->count; i++) {
        const struct ecc_item *item = burst->items[i];
        if (item->xid != NULL && item->kind != ECC_NONE &&
            (worst == NULL || item->kind > worst->kind))
            worst = item;
    }
    if (worst != NULL)
        builder_attribute_format(builder, "nvidia.xid.code", "%" PRIu32, worst->xid->code);
}

static const char *anchor_uid(const struct ecc_incident *incident, struct arena *arena) {
    assert(incident->anchor_code != 0 || incident->anchor_field < ECC_FIELD_COUNT);
    if (incident->anchor_code != 0)
        return xid_uid(incident->node, incident->address, incident->anchor_code,
                       incident->anchor_ns, arena);
    return gpu_field_uid(incident->node, incident->anchor_uuid, incident->address,
                         ECC_FIELDS[incident->anchor_field], incident->anchor_ns, arena);
}

// Over, or part of another incident.
static void add_end(struct verdict_builder *builder, const struct ecc_incident *incident,
                    const char *why, const char *gpu) {
    const struct text_field fields[] = {{"gpu", gpu}, {"why", why}, {NULL, NULL}};
    builder_rate(builder, SEVERITY_INFO, CONFIDENCE_OF_ENDED, "monitor");
    builder_partial(builder, "only what it began with is told here");
    builder_texts(builder, "{gpu}: {why}", "Nothing to do.", fields);
    builder_evidence(builder, EVIDENCE_CAUSE, incident->anchor_ns,
                     anchor_uid(incident, builder->arena), "what the incident began with");
}

static void add_burst(struct verdict_builder *builder, const struct ecc_config *config,
                      const struct ecc_incident *incident, const struct ecc_burst *burst,
                      const char *gpu_of_node, string_id uuid) {
    struct arena *arena = builder->arena;
    enum ecc_kind kind = (enum ecc_kind)incident->kind;
    int words = kind == ECC_LIMIT && !is_worn_out(burst) ? WORDS_SPARES : (int)kind;
    bool waits = waits_for_reset(burst), is_page = is_of_pages(burst);
    const struct text_field fields[] = {
        {"gpu_of_node", gpu_of_node},
        {"gpu", gpu_spoken_name(STRING_NONE, uuid, incident->address, arena)},
        {"node", node_spoken(incident->node, arena)},
        {"row", is_page ? "page" : "row"},
        {"remapped", is_page ? "retired" : "remapped"},
        {"remap", is_page ? "retirement" : "remap"},
        {"waits", !waits    ? ""
                  : is_page ? "; a page waits for a reset to be retired"
                            : "; a row waits for a reset to be remapped"},
        {"for_remap", !waits    ? ""
                      : is_page ? ", so that the retirement takes effect"
                                : ", so that the remap takes effect"},
        {"again", incident->number <= 1
                      ? ""
                      : arena_format(arena, " (repeat: incident %" PRIu32 " of this GPU)",
                                     incident->number)},
        {NULL, NULL},
    };
    bool double_bit = kind == ECC_UNCORRECTABLE && incident->seen_dbe != 0;
    builder_rate(builder, double_bit ? SEVERITY_CRITICAL : WORDS[words].severity,
                 confidence_of(kind, config, incident), WORDS[words].action);
    if (kind != ECC_STORM && incident->seen_xid == 0)
        builder_partial(builder, "no line of a kernel log tells of it");
    builder_texts(builder, WORDS[words].headline, WORDS[words].remediation, fields);
    add_evidence(builder, burst);
    add_xid_attribute(builder, burst);
}

// A storm is told of from its first error on; beside something graver that counts.
static const struct ecc_item *began_with(const struct ecc_burst *burst) {
    const struct ecc_item *first = NULL;
    if (!burst->has_storm)
        return burst->anchor->storm_first != NULL ? burst->anchor->storm_first : burst->anchor;
    for (uint32_t i = 0; i < burst->count; i++)
        if (burst->items[i]->kind > ECC_STORM &&
            (first == NULL || burst->items[i]->time_ns < first->time_ns))
            first = burst->items[i];
    return first;
}

void ecc_verdict_build(const struct ecc_config *config, const struct ecc_incident *incident,
                       const struct ecc_burst *burst, const char *why, string_id uuid,
                       struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    struct verdict *verdict = &builder->verdict;
    const char *gpu = gpu_spoken_name(incident->node, uuid, incident->address, arena);
    assert(incident->kind != ECC_NONE && (burst == NULL) == (why != NULL));
    builder_begin(builder, arena, PATTERN, WORDS[incident->kind].kind);
    if (burst != NULL)
        add_burst(builder, config, incident, burst, gpu, uuid);
    else
        add_end(builder, incident, why, gpu);
    builder_gpu(builder, incident->node, uuid, incident->address, ROLE_SUSPECT);
    const char *name = gpu_entity_name(incident->node, incident->uuid, incident->address, arena);
    builder_finish(builder, (struct slice[]){slice_of(name), slice_of(anchor_uid(incident, arena))},
                   2);
    order_evidence(verdict, arena);
    if (burst != NULL && !burst->has_storm && incident->first_ns < verdict->start_ns)
        verdict->start_ns = incident->first_ns;
    // Counters alone do not say when: somewhere behind the sample before.
    const struct ecc_item *anchor = burst == NULL ? NULL : began_with(burst);
    if (anchor != NULL && incident->seen_xid == 0 && verdict->start_ns == anchor->time_ns)
        verdict->after_ns = anchor->since_ns;
}
