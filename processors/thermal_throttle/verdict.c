// SPDX-License-Identifier: Apache-2.0
// How is a GPU that is slowed by heat told to people? Names the GPU and the node, what slows it,
// what it costs against its neighbours, and what to look at. The id hangs on node, GPU and the
// first hot sample.
#include "processors/thermal_throttle/verdict.h"

#include "base/text/human.h"
#include "processors/cluster/tables.h"

#include <inttypes.h>
#include <stdio.h>

static const char PATTERN[] = "thermal_throttle";
static const char *const KIND_NAMES[THERMAL_KIND_COUNT] = {[THERMAL_HARDWARE] = "hw_thermal",
                                                           [THERMAL_SOFTWARE] = "sw_thermal",
                                                           [THERMAL_MEMORY_HOT] = "memory_thermal",
                                                           [THERMAL_BY_COUNTER] = "thermal",
                                                           [THERMAL_NODE] = "node_cooling"};
enum { NAME_MAX_BYTES = 128 };

static enum thermal_kind find_kind(const struct thermal_window *window,
                                   const struct thermal_incident *incident) {
    uint32_t least = window->rules.min_samples;
    uint32_t bits = incident->count[PATH_BITS], hardware = incident->count[PATH_HARDWARE];
    uint32_t memory = incident->count[PATH_MEMORY];
    if (hardware > 0 && (hardware >= least || hardware * 2 >= bits) && bits >= least)
        return THERMAL_HARDWARE;
    if (memory >= least && hardware == 0 && memory * 2 >= bits)
        return THERMAL_MEMORY_HOT;
    return bits >= least ? THERMAL_SOFTWARE : THERMAL_BY_COUNTER;
}

// "0000:45:00", the UUID, or "gpu 3".
static const char *gpu_name(const struct thermal_gpu *gpu, struct arena *arena) {
    char text[PCI_TEXT_MAX];
    if (gpu->key.uuid != STRING_NONE)
        return draft_string(arena, gpu->key.uuid, NAME_MAX_BYTES);
    if (gpu->key.device >= PCI_NONE - 1 - UINT32_MAX)
        return arena_format(arena, "gpu%d", gpu->index);
    pci_format_device(gpu->key.device, text);
    return arena_text(arena, slice_of(text));
}

static const char *sample_uid(const struct thermal_gpu *gpu, enum gpu_field field, uint64_t time_ns,
                              struct arena *arena) {
    const char *uuid = draft_string(arena, gpu->uuid, NAME_MAX_BYTES);
    return arena_format(arena, "dcgm:%s:%s:%s:%" PRIu64, draft_node_uid(arena, gpu->key.node),
                        uuid == NULL ? gpu_name(gpu, arena) : uuid, gpu_field_name(field), time_ns);
}

static enum gpu_field start_field(const struct thermal_incident *incident) {
    switch (incident->start_path) {
    case PATH_MEMORY:
        return GPU_MEMORY_TEMPERATURE_C;
    case PATH_MARGIN:
        return GPU_TEMPERATURE_MARGIN_C;
    case PATH_COUNTER:
        return (enum gpu_field)incident->lost_field;
    default:
        return GPU_CLOCK_REASONS;
    }
}

// "0x48: HW_SLOWDOWN, HW_THERMAL"; bits without a name are told by number.
static const char *reasons_text(uint64_t reasons, struct arena *arena) {
    const char *text = arena_format(arena, "0x%" PRIx64, reasons);
    const char *before = ": ";
    uint64_t known = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t mask = UINT64_C(1) << bit;
        const struct throttle_bit *row = (reasons & mask) == 0 ? NULL : throttle_bit_find(mask);
        if (row == NULL)
            continue;
        text = arena_format(arena, "%s%s%s", text, before, row->dcgm_name);
        before = ", ";
        known |= mask;
    }
    if ((reasons & ~known) != 0)
        text = arena_format(arena, "%s, unknown bits 0x%" PRIx64, text, reasons & ~known);
    return text;
}

static const char *duration_text(uint64_t duration_ns, struct arena *arena) {
    char text[HUMAN_MAX];
    human_duration(duration_ns, text);
    return arena_text(arena, slice_of(text));
}

// -- Evidence -------------------------------------------------------------------------------------

static void add_paths(const struct thermal_gpu *gpu, const struct thermal_incident *incident,
                      struct verdict_draft *draft) {
    struct arena *arena = draft->arena;
    if (incident->reasons_ns != 0)
        verdict_draft_evidence(draft, EVIDENCE_CAUSE, incident->reasons_ns,
                               sample_uid(gpu, GPU_CLOCK_REASONS, incident->reasons_ns, arena),
                               arena_format(arena,
                                            "clock reasons %s; thermal ones in %" PRIu32
                                            " of %" PRIu32 " samples since",
                                            reasons_text(incident->reasons, arena),
                                            incident->count[PATH_BITS], incident->samples));
    if (incident->count[PATH_MEMORY] > 0)
        verdict_draft_evidence(
            draft, EVIDENCE_CAUSE, incident->first_ns[PATH_MEMORY],
            sample_uid(gpu, GPU_MEMORY_TEMPERATURE_C, incident->first_ns[PATH_MEMORY], arena),
            arena_format(arena,
                         "memory at its limit of %.0f C (up to %.0f C) while the core had "
                         "room, in %" PRIu32 " samples",
                         (double)incident->memory_limit_c, (double)incident->memory_max_c,
                         incident->count[PATH_MEMORY]));
    if (incident->count[PATH_MARGIN] > 0)
        verdict_draft_evidence(
            draft, EVIDENCE_CAUSE, incident->first_ns[PATH_MARGIN],
            sample_uid(gpu, GPU_TEMPERATURE_MARGIN_C, incident->first_ns[PATH_MARGIN], arena),
            arena_format(arena,
                         "margin to slowdown used up (down to %.0f C) in %" PRIu32 " samples",
                         (double)incident->margin_min_c, incident->count[PATH_MARGIN]));
}

static void add_counter(const struct thermal_gpu *gpu, const struct thermal_incident *incident,
                        struct verdict_draft *draft) {
    struct arena *arena = draft->arena;
    if (incident->lost_first_ns == 0)
        return;
    enum gpu_field field = (enum gpu_field)incident->lost_field;
    if (incident->start_path == PATH_COUNTER)
        verdict_draft_evidence(draft, EVIDENCE_CAUSE, incident->lost_first_ns,
                               sample_uid(gpu, field, incident->lost_first_ns, arena),
                               "the counter of time lost to heat began to grow");
    uint64_t since = incident->lost_from_ns != 0 ? incident->lost_from_ns : incident->lost_first_ns;
    uint64_t over = incident->lost_last_ns - since;
    const char *share = over == 0 ? ""
                                  : arena_format(arena, ", %.0f %% of it",
                                                 100 * (double)incident->lost_ns / (double)over);
    verdict_draft_evidence(
        draft, incident->start_path == PATH_COUNTER ? EVIDENCE_CAUSE : EVIDENCE_EFFECT,
        incident->lost_last_ns, sample_uid(gpu, field, incident->lost_last_ns, arena),
        arena_format(arena, "%s lost to heat in %s%s", duration_text(incident->lost_ns, arena),
                     duration_text(over, arena), share));
}

static void add_clock(const struct thermal_gpu *gpu, const struct thermal_incident *incident,
                      struct verdict_draft *draft) {
    if (incident->clock_ns == 0)
        return;
    struct arena *arena = draft->arena;
    verdict_draft_evidence(
        draft, EVIDENCE_EFFECT, incident->clock_ns,
        sample_uid(gpu, GPU_SM_CLOCK_MHZ, incident->clock_ns, arena),
        arena_format(arena, "SM clock %.0f MHz, the median of the node's other GPUs is %.0f MHz",
                     (double)incident->clock_mhz, (double)incident->others_mhz));
}

// The last sample in which heat slowed it, where no other evidence is as new: so that the verdict's
// times say how long it lasted.
static void add_last_hot(const struct thermal_gpu *gpu, const struct thermal_incident *incident,
                         struct verdict_draft *draft) {
    static const enum gpu_field fields[PATH_COUNT] = {
        [PATH_BITS] = GPU_CLOCK_REASONS,
        [PATH_HARDWARE] = GPU_CLOCK_REASONS,
        [PATH_MEMORY] = GPU_MEMORY_TEMPERATURE_C,
        [PATH_MARGIN] = GPU_TEMPERATURE_MARGIN_C,
    };
    int path = 0;
    while (path < PATH_COUNT && incident->last_path_ns[path] != incident->last_ns)
        path++;
    for (uint32_t i = 0; i < draft->verdict.evidence_count; i++)
        if (draft->evidence[i].time_ns >= incident->last_ns)
            return;
    enum gpu_field field = path < PATH_COUNT ? fields[path] : (enum gpu_field)incident->lost_field;
    verdict_draft_evidence(draft, EVIDENCE_CONTEXT, incident->last_ns,
                           sample_uid(gpu, field, incident->last_ns, draft->arena),
                           arena_format(draft->arena, "GPU %s: the last sample slowed by heat",
                                        gpu_name(gpu, draft->arena)));
}

// -- One GPU --------------------------------------------------------------------------------------

static const char *cause_text(enum thermal_kind kind, const struct thermal_incident *incident,
                              struct arena *arena) {
    switch (kind) {
    case THERMAL_HARDWARE:
        return "hardware thermal slowdown";
    case THERMAL_SOFTWARE:
        return "software thermal slowdown";
    case THERMAL_MEMORY_HOT:
        return arena_format(arena, "its memory reached %.0f C", (double)incident->memory_max_c);
    default:
        return incident->lost_ns > 0 ? arena_format(arena, "%s lost by the counter",
                                                    duration_text(incident->lost_ns, arena))
                                     : "its margin to slowdown is used up";
    }
}

static void set_texts(const struct thermal_gpu *gpu, const struct thermal_incident *incident,
                      enum thermal_kind kind, struct verdict_draft *draft) {
    struct arena *arena = draft->arena;
    const char *node = draft_node(arena, gpu->key.node), *name = gpu_name(gpu, arena);
    const char *clock =
        incident->clock_ns == 0
            ? ""
            : arena_format(arena, "; SM clock %.0f MHz against %.0f MHz of its neighbours",
                           (double)incident->clock_mhz, (double)incident->others_mhz);
    const char *cause = cause_text(kind, incident, arena);
    const char *headline =
        incident->ended
            ? arena_format(arena, "GPU %s on %s was slowed by heat for %s (%s) and has recovered",
                           name, node, duration_text(incident->last_ns - incident->start_ns, arena),
                           cause)
            : arena_format(arena, "GPU %s on %s is slowed by heat (%s)%s", name, node, cause,
                           clock);
    const char *more = kind == THERMAL_MEMORY_HOT
                           ? " The core is cool enough: look at the contact between cooler and "
                             "memory, too."
                       : kind == THERMAL_BY_COUNTER && !incident->has_reasons
                           ? " To learn what slows it, let the exporter collect "
                             "DCGM_FI_DEV_CLOCKS_EVENT_REASONS."
                           : "";
    verdict_draft_text(
        draft, headline,
        arena_format(
            arena,
            "Check the cooling of %s: fans, filters, inlet temperature or coolant flow, "
            "and the cooler of GPU %s. Until it is mended, ranks on it hold up the others; "
            "move them or take the GPU out.%s",
            node, name, more));
}

static void add_attributes(const struct thermal_gpu *gpu, const struct thermal_incident *incident,
                           struct verdict_draft *draft) {
    struct arena *arena = draft->arena;
    if (incident->reasons_ns != 0)
        verdict_draft_attribute(draft, "culprit.clocks_event_reasons",
                                arena_format(arena, "0x%" PRIx64, incident->all_reasons));
    if (incident->core_max_c > 0)
        verdict_draft_attribute(draft, "culprit.core_temperature_max_celsius",
                                arena_format(arena, "%.0f", (double)incident->core_max_c));
    if (incident->lost_ns > 0)
        verdict_draft_attribute(draft, "culprit.lost_ns",
                                arena_format(arena, "%" PRIu64, incident->lost_ns));
    if (incident->clock_ns != 0) {
        verdict_draft_attribute(draft, "culprit.sm_clock_median_mhz",
                                arena_format(arena, "%.0f", (double)incident->others_mhz));
        verdict_draft_attribute(draft, "culprit.sm_clock_mhz",
                                arena_format(arena, "%.0f", (double)incident->clock_mhz));
    }
    verdict_draft_attribute(draft, "hw.id", draft_string(arena, gpu->uuid, NAME_MAX_BYTES));
    verdict_draft_attribute(draft, "hw.model", draft_string(arena, gpu->model, NAME_MAX_BYTES));
    verdict_draft_attribute(draft, "k8s.namespace.name", draft_string(arena, gpu->namespace, 253));
    verdict_draft_attribute(draft, "k8s.node.name", draft_string(arena, gpu->key.node, 253));
    verdict_draft_attribute(draft, "k8s.pod.name", draft_string(arena, gpu->pod, 253));
    if (gpu->key.device < PCI_NONE - 1 - UINT32_MAX) {
        char text[PCI_TEXT_MAX];
        pci_format_function(gpu->key.device, text);
        verdict_draft_attribute(draft, "pci.address", arena_text(arena, slice_of(text)));
    }
}

static void add_pod(const struct thermal_gpu *gpu, struct verdict_draft *draft) {
    if (gpu->pod == STRING_NONE)
        return;
    struct arena *arena = draft->arena;
    const char *pod = draft_string(arena, gpu->pod, NAME_MAX_BYTES - 4);
    const char *namespace = draft_string(arena, gpu->namespace, NAME_MAX_BYTES - 4);
    verdict_draft_entity(draft, "pod", ROLE_VICTIM,
                         namespace == NULL ? pod : arena_format(arena, "%s/%s", namespace, pod));
}

static void set_id(struct verdict_draft *draft, const char *node, const char *name,
                   const char *anchor) {
    const struct slice key[] = {slice_of(node), slice_of(name), slice_of(anchor)};
    verdict_set_id(&draft->verdict, PATTERN, key, sizeof key / sizeof *key);
}

static int cut_confidence(int confidence) {
    return confidence < 5 ? 5 : confidence > 97 ? 97 : confidence;
}

void thermal_verdict_gpu(const struct thermal_window *window,
                         const struct thermal_incident *incident,
                         const struct thermal_confidence *confidence, struct verdict_draft *draft) {
    struct arena *arena = draft->arena;
    const struct thermal_gpu *gpu = thermal_gpu_at(window, incident->gpu);
    enum thermal_kind kind = find_kind(window, incident);
    verdict_draft_begin(draft, arena, PATTERN, KIND_NAMES[kind]);
    struct verdict *verdict = &draft->verdict;
    verdict->job = gpu->job;
    verdict->severity =
        kind == THERMAL_HARDWARE || kind == THERMAL_MEMORY_HOT ? SEVERITY_ERROR : SEVERITY_WARNING;
    verdict->partial = !incident->has_reasons;
    // Memory that is hot without a reason for the clock is known as well as the counter is.
    int least = confidence->of[THERMAL_BY_COUNTER];
    verdict->confidence = cut_confidence(verdict->partial ? least : confidence->of[kind]);
    verdict->action = "check_cooling";
    const char *name = gpu_name(gpu, arena);
    verdict_draft_entity(draft, "gpu", ROLE_CULPRIT, draft_on_node(arena, gpu->key.node, name));
    verdict_draft_entity(draft, "node", ROLE_SUSPECT, draft_string(arena, gpu->key.node, 253));
    add_pod(gpu, draft);
    add_paths(gpu, incident, draft);
    add_clock(gpu, incident, draft);
    add_counter(gpu, incident, draft);
    add_last_hot(gpu, incident, draft);
    add_attributes(gpu, incident, draft);
    set_texts(gpu, incident, kind, draft);
    verdict_draft_finish(draft);
    set_id(draft, draft_node_uid(arena, gpu->key.node), name,
           sample_uid(gpu, start_field(incident), incident->start_ns, arena));
}

// -- A node ---------------------------------------------------------------------------------------

static void set_node_texts(const struct thermal_window *window, string_id id,
                           const struct thermal_incident *first,
                           const struct thermal_incident *newest, uint32_t count, bool ended,
                           struct verdict_draft *draft) {
    struct arena *arena = draft->arena;
    const char *node = draft_node(arena, id);
    const char *within = duration_text(newest->start_ns - first->start_ns, arena);
    verdict_draft_text(
        draft,
        arena_format(arena,
                     "%" PRIu32 " of %" PRIu32 " GPUs of %s %s slowed by heat, all within %s%s",
                     count, thermal_node_gpus(window, id), node, ended ? "were" : "are", within,
                     ended ? "; they have recovered" : ""),
        arena_format(
            arena,
            "The cooling of %s itself fails, not one GPU's: check fans, inlet temperature, "
            "coolant flow and the rack around it. Move the job off %s until it is cool.",
            node, node));
}

void thermal_verdict_node(const struct thermal_window *window, const uint32_t *members,
                          uint32_t member_count, bool ended,
                          const struct thermal_confidence *confidence,
                          struct verdict_draft *draft) {
    struct arena *arena = draft->arena;
    const struct thermal_incident *first = thermal_incident_at(window, members[0]);
    const struct thermal_incident *newest = thermal_incident_at(window, members[member_count - 1]);
    const struct thermal_gpu *anchor = thermal_gpu_at(window, first->gpu);
    string_id node = anchor->key.node;
    uint32_t last = members[0]; // whose last hot sample is the newest
    verdict_draft_begin(draft, arena, PATTERN, KIND_NAMES[THERMAL_NODE]);
    struct verdict *verdict = &draft->verdict;
    verdict->job = anchor->job;
    verdict->severity = SEVERITY_ERROR;
    verdict->action = "check_cooling";
    verdict->confidence = cut_confidence(confidence->of[THERMAL_NODE]);
    verdict->partial = true;
    const char *node_name = draft_string(arena, node, 253);
    verdict_draft_entity(draft, "node", ROLE_CULPRIT,
                         node_name == NULL ? "an unnamed node" : node_name);
    for (uint32_t i = 0; i < member_count; i++) {
        const struct thermal_incident *incident = thermal_incident_at(window, members[i]);
        const struct thermal_gpu *gpu = thermal_gpu_at(window, incident->gpu);
        const char *name = gpu_name(gpu, arena);
        verdict->partial = verdict->partial && !incident->has_reasons;
        verdict_draft_entity(draft, "gpu", ROLE_SUSPECT, draft_on_node(arena, node, name));
        verdict_draft_evidence(
            draft, EVIDENCE_CAUSE, incident->start_ns,
            sample_uid(gpu, start_field(incident), incident->start_ns, arena),
            arena_format(arena, "GPU %s: %s", name,
                         cause_text(find_kind(window, incident), incident, arena)));
        if (incident->last_ns >= thermal_incident_at(window, last)->last_ns)
            last = members[i];
    }
    const struct thermal_incident *last_incident = thermal_incident_at(window, last);
    add_last_hot(thermal_gpu_at(window, last_incident->gpu), last_incident, draft);
    verdict_draft_attribute(draft, "culprit.hot_gpus",
                            arena_format(arena, "%" PRIu32, member_count));
    verdict_draft_attribute(draft, "culprit.node_gpus",
                            arena_format(arena, "%" PRIu32, thermal_node_gpus(window, node)));
    verdict_draft_attribute(draft, "k8s.node.name", node_name);
    set_node_texts(window, node, first, newest, member_count, ended, draft);
    verdict_draft_finish(draft);
    set_id(draft, draft_node_uid(arena, node), "",
           sample_uid(anchor, start_field(first), first->start_ns, arena));
}
