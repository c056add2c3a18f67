// SPDX-License-Identifier: Apache-2.0
// How is a PCI Express device with errors told to people? Names the device by what it is, the node,
// the bits, what became of it, and what to do. The id hangs on node, device and the first report or
// reading.
#include "processors/pcie_aer/verdict.h"

#include "base/text/human.h"
#include "processors/cluster/tables.h"

#include <inttypes.h>

static const char PATTERN[] = "pcie_aer";
enum {
    UUID_MAX_BYTES = 128,
    NODE_MAX_BYTES = 253,
    VENDOR_NVIDIA = 0x10de,
    VENDOR_MELLANOX = 0x15b3
};

// What all parts of a verdict need.
struct telling {
    const struct aer_facts *facts;
    const struct aer_incident *incident;
    const struct aer_device *device;
    struct verdict_draft *draft;
    struct arena *arena;
    const char *function; // "0000:9b:00.0"
    const char *name;     // "0000:9b:00"; of what is no GPU with its function
    const char *kind;     // of the entity
    const char *word;     // "GPU"
    const char *node;
    bool is_suspect; // not more is known than a port said
};

static const char *address_text(pci_address address, bool with_function, struct arena *arena) {
    char text[PCI_TEXT_MAX];
    if (with_function)
        pci_format_function(address, text);
    else
        pci_format_device(address, text);
    return arena_text(arena, slice_of(text));
}

static void name_device(struct telling *telling) {
    const struct aer_device *device = telling->device;
    bool is_port = device->is_port && !device->is_gpu;
    telling->kind = "pci_device";
    telling->word = "device";
    if (is_port) {
        telling->kind = "pci_port";
        telling->word = "port";
    } else if (device->is_gpu || device->vendor == VENDOR_NVIDIA) {
        telling->kind = "gpu";
        telling->word = "GPU";
    } else if (device->vendor == VENDOR_MELLANOX) {
        telling->kind = "nic";
        telling->word = "network adapter";
    }
    telling->function = address_text(device->key.function, true, telling->arena);
    telling->name = address_text(device->key.function, telling->kind[0] != 'g', telling->arena);
    telling->node = draft_node(telling->arena, device->key.node);
    const struct aer_incident *incident = telling->incident;
    telling->is_suspect = is_port || (incident->kind == INCIDENT_UNCORRECTABLE &&
                                      incident->has_lines && !incident->has_device_line);
}

static const char *severity_word(uint8_t severity) {
    return severity == AER_FATAL ? "fatal" : severity == AER_NONFATAL ? "nonfatal" : "correctable";
}

// "RxErr, BadTLP"; bits without a name are told by number.
static const char *bits_text(enum aer_severity severity, uint32_t bits, struct arena *arena) {
    const char *text = "";
    for (uint32_t bit = 0; bit < 32; bit++) {
        if ((bits >> bit & 1) == 0)
            continue;
        const struct aer_bit *row = aer_bit_find(severity, bit);
        const char *name =
            row != NULL ? row->kernel_name : arena_format(arena, "bit %" PRIu32, bit);
        text = text[0] == '\0' ? name : arena_format(arena, "%s, %s", text, name);
    }
    return text;
}

static const char *report_uid(const struct telling *telling, uint8_t severity, uint64_t time_ns) {
    return arena_format(telling->arena, "aer:%s:%s:%s:%" PRIu64,
                        draft_node_uid(telling->arena, telling->device->key.node),
                        telling->function, severity_word(severity), time_ns);
}

static const char *counter_uid(const struct telling *telling, uint8_t severity, uint64_t time_ns) {
    return arena_format(telling->arena, "sysfs:%s:%s:aer_dev_%s:%" PRIu64,
                        draft_node_uid(telling->arena, telling->device->key.node),
                        telling->function, severity_word(severity), time_ns);
}

static const char *sample_uid(const struct telling *telling, enum gpu_field field,
                              uint64_t time_ns) {
    const char *uuid = draft_string(telling->arena, telling->device->uuid, UUID_MAX_BYTES);
    return arena_format(telling->arena, "dcgm:%s:%s:%s:%" PRIu64,
                        draft_node_uid(telling->arena, telling->device->key.node),
                        uuid == NULL ? telling->name : uuid, gpu_field_name(field), time_ns);
}

static const char *human_time(uint64_t duration_ns, struct arena *arena) {
    char text[HUMAN_MAX];
    human_duration(duration_ns, text);
    return arena_text(arena, slice_of(text));
}

// -- Uncorrectable errors -------------------------------------------------------------------------

static const char *outcome_text(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    const char *recovery = incident->failed_ns != 0      ? "; recovery failed"
                           : incident->recovered_ns != 0 ? "; it was recovered"
                                                         : "";
    if (incident->xid_ns == 0)
        return recovery;
    return arena_format(telling->arena, "%s; the GPU was lost %s after it (Xid %u)", recovery,
                        human_time(incident->xid_ns - incident->first_ns, telling->arena),
                        incident->xid);
}

static void add_report(const struct telling *telling, const struct aer_evidence *evidence) {
    struct arena *arena = telling->arena;
    const struct aer_incident *incident = telling->incident;
    const char *severity = severity_word(evidence->severity);
    if (evidence->by_counter || evidence->confirms) {
        verdict_draft_evidence(
            telling->draft, evidence->confirms ? EVIDENCE_CONTEXT : EVIDENCE_CAUSE,
            evidence->time_ns, counter_uid(telling, evidence->severity, evidence->time_ns),
            arena_format(arena, "the counter of %s errors rose by %" PRIu64, severity,
                         evidence->count));
        return;
    }
    const char *bits = bits_text((enum aer_severity)evidence->severity, evidence->bits, arena);
    bool is_last = evidence->time_ns == incident->last_ns;
    const char *recovery = !is_last                      ? ""
                           : incident->failed_ns != 0    ? "; recovery failed"
                           : incident->recovered_ns != 0 ? "; recovery was successful"
                                                         : "";
    verdict_draft_evidence(telling->draft, EVIDENCE_CAUSE, evidence->time_ns,
                           report_uid(telling, evidence->severity, evidence->time_ns),
                           arena_format(arena, "%s%s error%s: %s%s",
                                        evidence->multiple ? "multiple " : "", severity,
                                        evidence->multiple ? "s" : "",
                                        bits[0] == '\0' ? "no details" : bits, recovery));
}

static void add_xid(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    if (incident->xid_ns == 0)
        return;
    const char *uid =
        incident->xid_by_gauge
            ? sample_uid(telling, GPU_XID, incident->xid_ns)
            : arena_format(telling->arena, "xid:%s:%s:%u:%" PRIu64,
                           draft_node_uid(telling->arena, telling->device->key.node),
                           address_text(telling->device->key.function, false, telling->arena),
                           incident->xid, incident->xid_ns);
    verdict_draft_evidence(telling->draft, EVIDENCE_EFFECT, incident->xid_ns, uid,
                           arena_format(telling->arena, "Xid %u: the GPU is gone", incident->xid));
}

static const char *uncorrectable_advice(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    bool is_gpu = telling->kind[0] == 'g';
    if (incident->xid_ns != 0 || incident->failed_ns != 0)
        return arena_format(
            telling->arena,
            "Drain %s: %s %s is not usable until the node is restarted. If it comes "
            "back and errs again, reseat or replace it, its riser or its cable.",
            telling->node, telling->word, telling->name);
    if (incident->recovered_ns != 0)
        return arena_format(telling->arena,
                            "Nothing to do now: the link of %s %s on %s was reset and works. Watch "
                            "it; when it errs again, check its seat, riser and cable.",
                            telling->word, telling->name, telling->node);
    return arena_format(telling->arena,
                        "Check the link of %s %s on %s: seat, riser, cable, and the port in front "
                        "of it.%s",
                        telling->word, telling->name, telling->node,
                        telling->is_suspect
                            ? " Only the port told of it, so the fault may be on either side; look "
                              "at lspci -vvv of both."
                        : is_gpu ? " Until then do not trust work that ran on it."
                                 : "");
}

static void tell_uncorrectable(const struct telling *telling,
                               const struct aer_confidence *confidence) {
    const struct aer_incident *incident = telling->incident;
    struct verdict_draft *draft = telling->draft;
    bool is_fatal = incident->severity == AER_FATAL;
    bool is_lost = incident->xid_ns != 0 || incident->failed_ns != 0;
    verdict_draft_begin(draft, telling->arena, PATTERN,
                        is_fatal ? "uncorrectable_fatal" : "uncorrectable_nonfatal");
    struct verdict *verdict = &draft->verdict;
    verdict->severity = is_fatal || is_lost ? SEVERITY_CRITICAL : SEVERITY_ERROR;
    verdict->confidence = (is_fatal ? confidence->fatal : confidence->nonfatal) +
                          (incident->xid_ns != 0 ? confidence->with_xid : 0) -
                          (telling->is_suspect ? confidence->port_only : 0) -
                          (incident->has_lines ? 0 : confidence->by_counter);
    verdict->partial = !incident->has_device_line;
    verdict->action = is_lost                       ? "drain_node"
                      : incident->recovered_ns != 0 ? "monitor"
                                                    : "check_link";
    for (uint32_t i = 0; i < incident->evidence_count; i++)
        add_report(telling, &incident->evidence[i]);
    add_xid(telling);
    const char *bits = bits_text(AER_FATAL, incident->bits, telling->arena);
    verdict_draft_text(draft,
                       arena_format(telling->arena, "%s PCIe error of %s %s on %s (%s)%s",
                                    is_fatal ? "Fatal" : "Non-fatal", telling->word, telling->name,
                                    telling->node, bits[0] == '\0' ? "no details" : bits,
                                    outcome_text(telling)),
                       uncorrectable_advice(telling));
    verdict_draft_attribute(draft, "culprit.aer_bits", bits);
    verdict_draft_attribute(draft, "culprit.reports",
                            arena_format(telling->arena, "%" PRIu32, incident->report_count));
    if (incident->xid_ns != 0)
        verdict_draft_attribute(draft, "nvidia.xid.code",
                                arena_format(telling->arena, "%u", incident->xid));
}

// The first report or reading: later ones do not move it.
static const char *uncorrectable_anchor(const struct telling *telling) {
    const struct aer_evidence *first = &telling->incident->evidence[0];
    return first->by_counter ? counter_uid(telling, first->severity, first->time_ns)
                             : report_uid(telling, first->severity, first->time_ns);
}

// -- Storms ---------------------------------------------------------------------------------------

static const char *reading_uid(const struct telling *telling, uint64_t time_ns) {
    switch ((enum aer_source)telling->incident->source) {
    case SOURCE_CORRECTABLE:
        return sample_uid(telling, GPU_PCIE_CORRECTABLE, time_ns);
    case SOURCE_REPLAYS:
        return sample_uid(telling, GPU_PCIE_REPLAYS, time_ns);
    case SOURCE_LOG:
        return report_uid(telling, AER_CORRECTABLE, time_ns);
    default:
        return counter_uid(telling, AER_CORRECTABLE, time_ns);
    }
}

static void tell_storm(const struct telling *telling, const struct aer_confidence *confidence) {
    const struct aer_incident *incident = telling->incident;
    struct verdict_draft *draft = telling->draft;
    struct arena *arena = telling->arena;
    bool by_log = incident->source == SOURCE_LOG;
    verdict_draft_begin(draft, arena, PATTERN, "correctable_storm");
    struct verdict *verdict = &draft->verdict;
    verdict->severity = SEVERITY_WARNING;
    verdict->confidence = confidence->storm - (telling->is_suspect ? confidence->port_only : 0);
    verdict->partial = by_log;
    verdict->action = "check_link";
    const char *bits = bits_text(AER_CORRECTABLE, incident->bits, arena);
    const char *what = incident->source == SOURCE_REPLAYS ? "replays" : "corrected errors";
    if (incident->report_ns != 0)
        verdict_draft_evidence(draft, EVIDENCE_CAUSE, incident->report_ns,
                               report_uid(telling, AER_CORRECTABLE, incident->report_ns),
                               arena_format(arena, "first report in the log: %s",
                                            bits[0] == '\0' ? "no details" : bits));
    verdict_draft_evidence(
        draft, EVIDENCE_CAUSE, incident->first_ns, reading_uid(telling, incident->first_ns),
        arena_format(arena, "first minute with more than %" PRIu32 " %s", incident->limit, what));
    verdict_draft_evidence(
        draft, EVIDENCE_CAUSE, incident->last_ns, reading_uid(telling, incident->last_ns),
        arena_format(arena, "%s%" PRIu32 " %s a minute, %" PRIu64 " in all",
                     by_log ? "at least " : "", incident->rate, what, incident->count));
    verdict_draft_text(
        draft,
        arena_format(
            arena,
            "PCIe link of %s %s on %s %s %s%" PRIu32 " %s a minute%s%s%s; a healthy one has "
            "at most %" PRIu32,
            telling->word, telling->name, telling->node, incident->ended ? "had" : "has",
            by_log ? "at least " : "", incident->top_rate, what, bits[0] == '\0' ? "" : " (", bits,
            bits[0] == '\0' ? "" : ")", incident->limit),
        arena_format(
            arena,
            "All of them were corrected, but the link of %s %s on %s is poor: check its "
            "seat, riser, retimer and cable before it fails; clean or reseat it at the next "
            "maintenance.",
            telling->word, telling->name, telling->node));
    verdict_draft_attribute(draft, "culprit.aer_bits", bits);
    verdict_draft_attribute(draft, "culprit.errors",
                            arena_format(arena, "%" PRIu64, incident->count));
    verdict_draft_attribute(draft, "culprit.errors_per_minute",
                            arena_format(arena, "%" PRIu32, incident->top_rate));
    verdict_draft_attribute(draft, "culprit.limit_per_minute",
                            arena_format(arena, "%" PRIu32, incident->limit));
}

// -- Degraded links -------------------------------------------------------------------------------

static bool is_narrow(const struct aer_incident *incident) {
    return incident->link[LINK_WIDTH] < incident->link[LINK_MAX_WIDTH];
}

static void tell_degraded(const struct telling *telling, const struct aer_confidence *confidence) {
    const struct aer_incident *incident = telling->incident;
    struct verdict_draft *draft = telling->draft;
    struct arena *arena = telling->arena;
    bool narrow = is_narrow(incident);
    enum gpu_field field = narrow ? GPU_PCIE_LINK_WIDTH : GPU_PCIE_LINK_GENERATION;
    const char *state =
        narrow ? arena_format(arena, "%d of %d lanes", incident->link[LINK_WIDTH],
                              incident->link[LINK_MAX_WIDTH])
               : arena_format(arena, "generation %d of %d", incident->link[LINK_GENERATION],
                              incident->link[LINK_MAX_GENERATION]);
    verdict_draft_begin(draft, arena, PATTERN, "link_degraded");
    struct verdict *verdict = &draft->verdict;
    verdict->severity = SEVERITY_WARNING;
    verdict->confidence = confidence->degraded;
    verdict->action = "check_link";
    verdict_draft_evidence(draft, EVIDENCE_CAUSE, incident->first_ns,
                           sample_uid(telling, field, incident->first_ns),
                           arena_format(arena, "the link runs with %s", state));
    verdict_draft_evidence(draft, EVIDENCE_CAUSE, incident->last_ns,
                           sample_uid(telling, field, incident->last_ns), "still so");
    verdict_draft_text(
        draft,
        arena_format(arena, "PCIe link of %s %s on %s %s with %s", telling->word, telling->name,
                     telling->node, incident->ended ? "ran" : "runs", state),
        arena_format(arena,
                     "Ranks that use %s %s on %s get their data more slowly than the others. Check "
                     "its seat, riser and cable, and retrain the link; compare with lspci -vv.",
                     telling->word, telling->name, telling->node));
    verdict_draft_attribute(draft, "pci.link.generation",
                            arena_format(arena, "%d", incident->link[LINK_GENERATION]));
    verdict_draft_attribute(draft, "pci.link.width",
                            arena_format(arena, "%d", incident->link[LINK_WIDTH]));
}

// -- All ------------------------------------------------------------------------------------------

static void add_entities(const struct telling *telling) {
    struct verdict_draft *draft = telling->draft;
    string_id node = telling->device->key.node;
    verdict_draft_entity(draft, telling->kind, telling->is_suspect ? ROLE_SUSPECT : ROLE_CULPRIT,
                         draft_on_node(telling->arena, node, telling->name));
    pci_address port = telling->incident->port;
    if (port != PCI_NONE && port != telling->device->key.function &&
        telling->incident->kind == INCIDENT_UNCORRECTABLE)
        verdict_draft_entity(
            draft, "pci_port", ROLE_SUSPECT,
            draft_on_node(telling->arena, node, address_text(port, true, telling->arena)));
    verdict_draft_entity(draft, "node", ROLE_SUSPECT,
                         draft_string(telling->arena, node, NODE_MAX_BYTES));
}

static const char *anchor_of(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    if (incident->kind == INCIDENT_UNCORRECTABLE)
        return uncorrectable_anchor(telling);
    if (incident->kind == INCIDENT_STORM)
        return reading_uid(telling, incident->first_ns);
    return sample_uid(telling, is_narrow(incident) ? GPU_PCIE_LINK_WIDTH : GPU_PCIE_LINK_GENERATION,
                      incident->first_ns);
}

void aer_verdict(const struct aer_facts *facts, const struct aer_incident *incident,
                 const struct aer_confidence *confidence, struct verdict_draft *draft) {
    struct telling telling = {.facts = facts,
                              .incident = incident,
                              .device = aer_device_at(facts, incident->device),
                              .draft = draft,
                              .arena = draft->arena};
    name_device(&telling);
    if (incident->kind == INCIDENT_UNCORRECTABLE)
        tell_uncorrectable(&telling, confidence);
    else if (incident->kind == INCIDENT_STORM)
        tell_storm(&telling, confidence);
    else
        tell_degraded(&telling, confidence);
    struct verdict *verdict = &draft->verdict;
    verdict->job = telling.device->job;
    verdict->confidence = verdict->confidence < 5 ? 5 : verdict->confidence;
    verdict->confidence = verdict->confidence > 97 ? 97 : verdict->confidence;
    add_entities(&telling);
    verdict_draft_attribute(draft, "hw.id",
                            draft_string(telling.arena, telling.device->uuid, UUID_MAX_BYTES));
    verdict_draft_attribute(draft, "k8s.node.name",
                            draft_string(telling.arena, telling.device->key.node, NODE_MAX_BYTES));
    verdict_draft_attribute(draft, "pci.address", telling.function);
    verdict_draft_finish(draft);
    const struct slice key[] = {slice_of(draft_node_uid(telling.arena, telling.device->key.node)),
                                slice_of(telling.function), slice_of(anchor_of(&telling))};
    verdict_set_id(verdict, PATTERN, key, sizeof key / sizeof *key);
}
