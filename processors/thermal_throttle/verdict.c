// SPDX-License-Identifier: Apache-2.0
// Says how a GPU, or a node, is slowed by heat: names it, what slows it, what it costs against its
// neighbours, and what to look at. The id hangs on node, GPU and the first hot sample.
#include "processors/thermal_throttle/verdict.h"

#include "processors/cluster/tables.h"
#include "processors/cluster/xid_text.h"

#include <inttypes.h>

static const char PATTERN[] = "thermal_throttle";

enum thermal_kind {
    THERMAL_HARDWARE,
    THERMAL_SOFTWARE,
    THERMAL_MEMORY_HOT,
    THERMAL_BY_COUNTER,
};

static const struct {
    const char *name;
    enum severity severity;
    const char *more; // to do
} KINDS[] = {
    [THERMAL_HARDWARE] = {"hw_thermal", SEVERITY_ERROR, ""},
    [THERMAL_SOFTWARE] = {"sw_thermal", SEVERITY_WARNING, ""},
    [THERMAL_MEMORY_HOT] = {"memory_thermal", SEVERITY_ERROR,
                            " The core is cool enough: look at the contact between cooler and "
                            "memory, too."},
    [THERMAL_BY_COUNTER] = {"thermal", SEVERITY_WARNING, ""},
};
static const char COLLECT_REASONS[] =
    " To learn what slows it, let the exporter collect DCGM_FI_DEV_CLOCKS_EVENT_REASONS.";

// The field that a sample is hot by; that of PATH_COUNTER stands in the incident.
static const enum gpu_field PATH_FIELDS[PATH_COUNT] = {
    [PATH_BITS] = GPU_CLOCK_REASONS,
    [PATH_HARDWARE] = GPU_CLOCK_REASONS,
    [PATH_MEMORY] = GPU_MEMORY_TEMPERATURE_C,
    [PATH_MARGIN] = GPU_TEMPERATURE_MARGIN_C,
};

static enum thermal_kind find_kind(const struct thermal_window *window,
                                   const struct thermal_incident *incident) {
    int64_t least = window->config->min_samples;
    uint32_t bits = incident->count[PATH_BITS], hardware = incident->count[PATH_HARDWARE];
    uint32_t memory = incident->count[PATH_MEMORY];
    if (hardware > 0 && (hardware >= least || hardware * 2 >= bits) && bits >= least)
        return THERMAL_HARDWARE;
    if (memory >= least && hardware == 0 && memory * 2 >= bits)
        return THERMAL_MEMORY_HOT;
    return bits >= least ? THERMAL_SOFTWARE : THERMAL_BY_COUNTER;
}

// Memory that is hot without a reason for the clock is known as well as the counter is.
static int64_t confidence_of(const struct thermal_config *config, enum thermal_kind kind) {
    const int64_t of[] = {[THERMAL_HARDWARE] = config->confidence_hw,
                          [THERMAL_SOFTWARE] = config->confidence_sw,
                          [THERMAL_MEMORY_HOT] = config->confidence_memory,
                          [THERMAL_BY_COUNTER] = config->confidence_counter};
    return of[kind];
}

static bool has_address(const struct thermal_gpu *gpu) {
    return gpu->key.device < PCI_NONE - 1 - UINT32_MAX;
}

// "0000:45:00", the UUID, or "gpu3".
static const char *gpu_name(const struct thermal_gpu *gpu, struct arena *arena) {
    if (gpu->key.uuid != STRING_NONE)
        return intern_slice(gpu->key.uuid).data;
    return has_address(gpu) ? pci_text(gpu->key.device, false, arena)
                            : arena_format(arena, "gpu%d", gpu->index);
}

static const char *sample_uid(const struct thermal_gpu *gpu, enum gpu_field field, uint64_t time_ns,
                              struct arena *arena) {
    const char *uuid = string_or_null(gpu->uuid);
    return dcgm_uid(gpu->key.node, uuid == NULL ? gpu_name(gpu, arena) : uuid, field, time_ns,
                    arena);
}

static enum gpu_field field_of(const struct thermal_incident *incident, unsigned path) {
    assert(path <= PATH_COUNT);
    return path < PATH_COUNT ? PATH_FIELDS[path] : (enum gpu_field)incident->lost_field;
}

// The field as the first or the last sample of the path spelled it.
static const char *path_field(const struct thermal_incident *incident, unsigned path,
                              const uint8_t spelled[PATH_COUNT + 1], struct arena *arena) {
    return field_text(field_of(incident, path), spelled[path], arena);
}

static const char *start_uid(const struct thermal_gpu *gpu, const struct thermal_incident *incident,
                             struct arena *arena) {
    return sample_uid(gpu, field_of(incident, incident->start_path), incident->start_ns, arena);
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

// -- Evidence -------------------------------------------------------------------------------------

static void add_paths(struct verdict_builder *builder, const struct thermal_gpu *gpu,
                      const struct thermal_incident *incident) {
    struct arena *arena = builder->arena;
    const uint8_t *first = incident->first_spelled;
    uint64_t memory_ns = incident->first_ns[PATH_MEMORY],
             margin_ns = incident->first_ns[PATH_MARGIN];
    if (incident->reasons_ns != 0)
        builder_evidence(
            builder, EVIDENCE_CAUSE, incident->reasons_ns,
            sample_uid(gpu, GPU_CLOCK_REASONS, incident->reasons_ns, arena),
            "clock reasons (%s) %s; thermal ones in %" PRIu32 " of %" PRIu32 " samples since",
            path_field(incident, PATH_BITS, first, arena), reasons_text(incident->reasons, arena),
            incident->count[PATH_BITS], incident->samples);
    if (incident->count[PATH_MEMORY] > 0)
        builder_evidence(builder, EVIDENCE_CAUSE, memory_ns,
                         sample_uid(gpu, GPU_MEMORY_TEMPERATURE_C, memory_ns, arena),
                         "memory (%s) at its limit of %.0f C (up to %.0f C) while the core had "
                         "room, in %" PRIu32 " samples",
                         path_field(incident, PATH_MEMORY, first, arena),
                         (double)incident->memory_limit_c, (double)incident->memory_max_c,
                         incident->count[PATH_MEMORY]);
    if (incident->count[PATH_MARGIN] > 0)
        builder_evidence(builder, EVIDENCE_CAUSE, margin_ns,
                         sample_uid(gpu, GPU_TEMPERATURE_MARGIN_C, margin_ns, arena),
                         "margin to slowdown (%s) used up (down to %.0f C) in %" PRIu32 " samples",
                         path_field(incident, PATH_MARGIN, first, arena),
                         (double)incident->margin_min_c, incident->count[PATH_MARGIN]);
    if (incident->clock_ns != 0)
        builder_evidence(builder, EVIDENCE_EFFECT, incident->clock_ns,
                         sample_uid(gpu, GPU_SM_CLOCK_MHZ, incident->clock_ns, arena),
                         "SM clock (%s) %.0f MHz, the median of the node's other GPUs is %.0f MHz",
                         field_text(GPU_SM_CLOCK_MHZ, incident->clock_spelled, arena),
                         (double)incident->clock_mhz, (double)incident->others_mhz);
}

static void add_counter(struct verdict_builder *builder, const struct thermal_gpu *gpu,
                        const struct thermal_incident *incident) {
    struct arena *arena = builder->arena;
    bool began_it = incident->start_path == PATH_COUNTER;
    enum gpu_field field = (enum gpu_field)incident->lost_field;
    if (incident->lost_first_ns == 0)
        return;
    if (began_it)
        builder_evidence(builder, EVIDENCE_CAUSE, incident->lost_first_ns,
                         sample_uid(gpu, field, incident->lost_first_ns, arena),
                         "the counter of time lost to heat (%s) began to grow",
                         path_field(incident, PATH_COUNTER, incident->first_spelled, arena));
    uint64_t since = incident->lost_from_ns != 0 ? incident->lost_from_ns : incident->lost_first_ns;
    uint64_t over = incident->lost_last_ns - since;
    const char *share = over == 0 ? ""
                                  : arena_format(arena, ", %.0f %% of it",
                                                 100 * (double)incident->lost_ns / (double)over);
    builder_evidence(builder, began_it ? EVIDENCE_CAUSE : EVIDENCE_EFFECT, incident->lost_last_ns,
                     sample_uid(gpu, field, incident->lost_last_ns, arena),
                     "%s lost to heat (%s) in %s%s", duration_text(incident->lost_ns, arena),
                     path_field(incident, PATH_COUNTER, incident->last_spelled, arena),
                     duration_text(over, arena), share);
}

// The last sample in which heat slowed it, where no other evidence is as new: so that the verdict's
// times say how long it lasted.
static void add_last_hot(struct verdict_builder *builder, const struct thermal_gpu *gpu,
                         const struct thermal_incident *incident) {
    unsigned path = 0;
    while (path < PATH_COUNT && incident->last_path_ns[path] != incident->last_ns)
        path++;
    for (uint32_t i = 0; i < builder->verdict.evidence_count; i++)
        if (builder->verdict.evidence[i].time_ns >= incident->last_ns)
            return;
    builder_evidence(builder, EVIDENCE_CONTEXT, incident->last_ns,
                     sample_uid(gpu, field_of(incident, path), incident->last_ns, builder->arena),
                     "GPU %s: the last sample slowed by heat (%s)", gpu_name(gpu, builder->arena),
                     path_field(incident, path, incident->last_spelled, builder->arena));
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

static const char *const GPU_TEXTS[] = {
    [THERMAL_STANDS] = "GPU {gpu} on {node} is slowed by heat ({cause}){clock}",
    [THERMAL_COOL] =
        "GPU {gpu} on {node} was slowed by heat for {time} ({cause}) and has "
        "recovered",
    [THERMAL_UNKNOWN] =
        "GPU {gpu} on {node} was slowed by heat for {time} ({cause}); no later "
        "sample says whether it has recovered",
};

static void set_texts(struct verdict_builder *builder, const struct thermal_gpu *gpu,
                      const struct thermal_incident *incident, enum thermal_kind kind) {
    struct arena *arena = builder->arena;
    bool by_counter = kind == THERMAL_BY_COUNTER && !incident->has_reasons;
    const struct text_field fields[] = {
        {"gpu", gpu_name(gpu, arena)},
        {"node", node_spoken(gpu->key.node, arena)},
        {"cause", cause_text(kind, incident, arena)},
        {"time", duration_text(incident->last_ns - incident->start_ns, arena)},
        {"clock",
         incident->clock_ns == 0
             ? ""
             : arena_format(arena, "; SM clock %.0f MHz against %.0f MHz of its neighbours",
                            (double)incident->clock_mhz, (double)incident->others_mhz)},
        {"more", by_counter ? COLLECT_REASONS : KINDS[kind].more},
        {NULL, NULL},
    };
    builder_texts(builder, GPU_TEXTS[incident->ended],
                  "Check the cooling of {node}: fans, filters, inlet temperature or coolant flow, "
                  "and the cooler of GPU {gpu}. Until it is mended, ranks on it hold up the "
                  "others; move them or take the GPU out.{more}",
                  fields);
}

static void add_attributes(struct verdict_builder *builder, const struct thermal_gpu *gpu,
                           const struct thermal_incident *incident) {
    if (incident->reasons_ns != 0)
        builder_attribute_format(builder, "culprit.clocks_event_reasons", "0x%" PRIx64,
                                 incident->all_reasons);
    if (incident->core_max_c > 0)
        builder_attribute_format(builder, "culprit.core_temperature_max_celsius", "%.0f",
                                 (double)incident->core_max_c);
    if (incident->lost_ns > 0)
        builder_attribute_format(builder, "culprit.lost_ns", "%" PRIu64, incident->lost_ns);
    if (incident->clock_ns != 0) {
        builder_attribute_format(builder, "culprit.sm_clock_median_mhz", "%.0f",
                                 (double)incident->others_mhz);
        builder_attribute_format(builder, "culprit.sm_clock_mhz", "%.0f",
                                 (double)incident->clock_mhz);
    }
    builder_attribute(builder, "hw.id", intern_slice(gpu->uuid));
    builder_attribute(builder, "hw.model", intern_slice(gpu->model));
    builder_attribute(builder, "k8s.namespace.name", intern_slice(gpu->namespace));
    builder_attribute(builder, "k8s.node.name", intern_slice(gpu->key.node));
    builder_attribute(builder, "k8s.pod.name", intern_slice(gpu->pod));
    if (has_address(gpu))
        builder_attribute(builder, "pci.address",
                          slice_of(pci_text(gpu->key.device, true, builder->arena)));
}

static void add_entities(struct verdict_builder *builder, const struct thermal_gpu *gpu) {
    struct arena *arena = builder->arena;
    const char *pod = string_or_null(gpu->pod), *namespace = string_or_null(gpu->namespace);
    builder_entity(builder, "gpu", ROLE_CULPRIT,
                   on_node(gpu->key.node, gpu_name(gpu, arena), arena));
    builder_entity(builder, "node", ROLE_SUSPECT, string_or_null(gpu->key.node));
    if (pod != NULL && namespace != NULL)
        pod = arena_format(arena, "%s/%s", namespace, pod);
    builder_entity(builder, "pod", ROLE_VICTIM, pod);
}

static void finish(struct verdict_builder *builder, const struct thermal_gpu *gpu,
                   const struct thermal_incident *incident, const char *name) {
    const char *node = node_in_uid(gpu->key.node, builder->arena);
    const char *anchor = start_uid(gpu, incident, builder->arena);
    builder_finish(builder, (struct slice[]){slice_of(node), slice_of(name), slice_of(anchor)}, 3);
    // A sample tells of what began at some time after the one before.
    if (builder->verdict.start_ns == incident->start_ns)
        builder->verdict.after_ns = incident->since_ns;
}

void thermal_verdict_gpu(const struct thermal_window *window,
                         const struct thermal_incident *incident, struct verdict_builder *builder) {
    assert(incident->live != 0 && incident->start_ns <= incident->last_ns);
    const struct thermal_gpu *gpu = thermal_gpu_at(window, incident->gpu);
    enum thermal_kind kind = find_kind(window, incident);
    builder_begin(builder, builder->arena, PATTERN, KINDS[kind].name);
    struct verdict *verdict = &builder->verdict;
    verdict->job = gpu->job;
    if (!incident->has_reasons)
        builder_partial(builder, "the reasons why its clocks are low are not exported");
    builder_rate(builder, KINDS[kind].severity,
                 confidence_of(window->config, verdict->partial ? THERMAL_BY_COUNTER : kind),
                 "check_cooling");
    add_entities(builder, gpu);
    add_paths(builder, gpu, incident);
    add_counter(builder, gpu, incident);
    add_last_hot(builder, gpu, incident);
    add_attributes(builder, gpu, incident);
    set_texts(builder, gpu, incident, kind);
    finish(builder, gpu, incident, gpu_name(gpu, builder->arena));
}

// -- A node ---------------------------------------------------------------------------------------

static const char *const NODE_TEXTS[] = {
    [THERMAL_STANDS] = "{hot} of {gpus} GPUs of {node} are slowed by heat, all within {within}",
    [THERMAL_COOL] =
        "{hot} of {gpus} GPUs of {node} were slowed by heat, all within {within}; "
        "they have recovered",
    [THERMAL_UNKNOWN] =
        "{hot} of {gpus} GPUs of {node} were slowed by heat, all within {within}; "
        "no later sample says whether all have recovered",
};

static void set_node_texts(struct verdict_builder *builder, string_id node, uint64_t spread_ns,
                           uint32_t hot, uint32_t gpus, enum thermal_end ended) {
    struct arena *arena = builder->arena;
    const struct text_field fields[] = {
        {"hot", arena_format(arena, "%" PRIu32, hot)},
        {"gpus", arena_format(arena, "%" PRIu32, gpus)},
        {"node", node_spoken(node, arena)},
        {"within", duration_text(spread_ns, arena)},
        {NULL, NULL},
    };
    builder_attribute(builder, "culprit.hot_gpus", slice_of(fields[0].value));
    builder_attribute(builder, "culprit.node_gpus", slice_of(fields[1].value));
    builder_texts(builder, NODE_TEXTS[ended],
                  "The cooling of {node} itself fails, not one GPU's: check fans, inlet "
                  "temperature, coolant flow and the rack around it. Move the job off {node} until "
                  "it is cool.",
                  fields);
}

// Of all of them: one that is hot is enough, and so is one of which nothing is known.
static enum thermal_end end_of(const struct thermal_window *window, const uint32_t *members,
                               uint32_t member_count) {
    enum thermal_end end = THERMAL_COOL;
    for (uint32_t i = 0; i < member_count; i++) {
        enum thermal_end own = (enum thermal_end)thermal_incident_at(window, members[i])->ended;
        if (own == THERMAL_STANDS)
            return own;
        end = own == THERMAL_UNKNOWN ? own : end;
    }
    return end;
}

void thermal_verdict_node(const struct thermal_window *window, const uint32_t *members,
                          uint32_t member_count, struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    assert(member_count > 0);
    const struct thermal_incident *first = thermal_incident_at(window, members[0]);
    const struct thermal_incident *newest = thermal_incident_at(window, members[member_count - 1]);
    const struct thermal_incident *last = first; // whose last hot sample is the newest
    const struct thermal_gpu *anchor = thermal_gpu_at(window, first->gpu);
    string_id node = anchor->key.node;
    builder_begin(builder, arena, PATTERN, "node_cooling");
    struct verdict *verdict = &builder->verdict;
    verdict->job = anchor->job;
    builder_rate(builder, SEVERITY_ERROR, window->config->confidence_node, "check_cooling");
    bool has_reasons = false;
    builder_entity(builder, "node", ROLE_CULPRIT,
                   node == STRING_NONE ? "an unnamed node" : intern_slice(node).data);
    for (uint32_t i = 0; i < member_count; i++) {
        const struct thermal_incident *incident = thermal_incident_at(window, members[i]);
        const struct thermal_gpu *gpu = thermal_gpu_at(window, incident->gpu);
        const char *name = gpu_name(gpu, arena);
        has_reasons = has_reasons || incident->has_reasons;
        builder_entity(builder, "gpu", ROLE_SUSPECT, on_node(node, name, arena));
        builder_evidence(
            builder, EVIDENCE_CAUSE, incident->start_ns, start_uid(gpu, incident, arena),
            "GPU %s: %s (%s)", name, cause_text(find_kind(window, incident), incident, arena),
            path_field(incident, incident->start_path, incident->first_spelled, arena));
        last = incident->last_ns >= last->last_ns ? incident : last;
    }
    if (!has_reasons)
        builder_partial(builder, "the reasons why their clocks are low are not exported");
    add_last_hot(builder, thermal_gpu_at(window, last->gpu), last);
    builder_attribute(builder, "k8s.node.name", intern_slice(node));
    set_node_texts(builder, node, newest->start_ns - first->start_ns, member_count,
                   thermal_node_gpus(window, node), end_of(window, members, member_count));
    finish(builder, anchor, first, "");
}
