// SPDX-License-Identifier: Apache-2.0
// Says what is wrong with a PCI Express device: names it by what it is, the node, the bits, what
// became of it, and what to do. The id hangs on node, device and the first report or reading.
#include "processors/pcie_aer/verdict.h"

#include "processors/cluster/tables.h"
#include "processors/cluster/xid_text.h"

#include <inttypes.h>

static const char PATTERN[] = "pcie_aer";
enum { VENDOR_NVIDIA = 0x10de, VENDOR_MELLANOX = 0x15b3 };

// What a device is, as an entity and in words.
struct device_kind {
    const char *entity, *word;
};
static const struct device_kind DEVICE = {"pci_device", "device"}, PORT = {"pci_port", "port"},
                                GPU = {"gpu", "GPU"}, NIC = {"nic", "network adapter"};

// What all parts of a verdict need.
struct telling {
    const struct aer_config *config;
    const struct aer_incident *incident;
    const struct aer_device *device;
    struct verdict_builder *builder;
    struct arena *arena;
    const struct device_kind *kind;
    const char *function; // "0000:9b:00.0"
    const char *name;     // "0000:9b:00"; of what is no GPU with its function
    const char *node;
    bool is_suspect; // not more is known than a port said
};

static const struct device_kind *kind_of(const struct aer_device *device) {
    if (device->is_port && !device->is_gpu)
        return &PORT;
    if (device->is_gpu || (device->vendor == VENDOR_NVIDIA && !device->is_nic))
        return &GPU;
    return device->is_nic || device->vendor == VENDOR_MELLANOX ? &NIC : &DEVICE;
}

static struct telling telling_of(const struct aer_facts *facts, const struct aer_incident *incident,
                                 struct verdict_builder *builder) {
    const struct aer_device *device = aer_device_at(facts, incident->device);
    const struct device_kind *kind = kind_of(device);
    struct arena *arena = builder->arena;
    return (struct telling){
        .config = facts->config,
        .incident = incident,
        .device = device,
        .builder = builder,
        .arena = arena,
        .kind = kind,
        .function = pci_text(device->key.function, true, arena),
        .name = pci_text(device->key.function, kind != &GPU, arena),
        .node = node_spoken(device->key.node, arena),
        // An Xid that says that the GPU is gone speaks against it, not against the port.
        .is_suspect =
            kind == &PORT || (incident->kind == INCIDENT_UNCORRECTABLE && incident->has_lines &&
                              !incident->has_device_line && incident->xid_ns == 0),
    };
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

static const char *or_no_details(const char *bits) {
    return bits[0] == '\0' ? "no details" : bits;
}

static const char *report_uid(const struct telling *telling, uint8_t severity, uint64_t time_ns) {
    return arena_format(telling->arena, "aer:%s:%s:%s:%" PRIu64,
                        node_in_uid(telling->device->key.node, telling->arena), telling->function,
                        severity_word(severity), time_ns);
}

static const char *counter_uid(const struct telling *telling, uint8_t severity, uint64_t time_ns) {
    return arena_format(telling->arena, "sysfs:%s:%s:aer_dev_%s:%" PRIu64,
                        node_in_uid(telling->device->key.node, telling->arena), telling->function,
                        severity_word(severity), time_ns);
}

static const char *sample_uid(const struct telling *telling, enum gpu_field field,
                              uint64_t time_ns) {
    const char *uuid = string_or_null(telling->device->uuid);
    return dcgm_uid(telling->device->key.node, uuid == NULL ? telling->name : uuid, field, time_ns,
                    telling->arena);
}

// " (DCGM_FI_DEV_XID_ERRORS)"
static const char *in_field(enum gpu_field field, uint8_t spelling, struct arena *arena) {
    return arena_format(arena, " (%s)", field_text(field, spelling, arena));
}

static void begin(const struct telling *telling, const char *kind, enum severity severity,
                  const char *action, int64_t confidence) {
    builder_begin(telling->builder, telling->arena, PATTERN, kind);
    builder_rate(telling->builder, severity, confidence, action);
}

// -- Uncorrectable errors -------------------------------------------------------------------------

static const char *recovery_text(const struct aer_incident *incident, const char *recovered) {
    return incident->failed_ns != 0      ? "; recovery failed"
           : incident->recovered_ns != 0 ? recovered
                                         : "";
}

static void add_report(const struct telling *telling, const struct aer_evidence *evidence) {
    const char *severity = severity_word(evidence->severity);
    if (evidence->by_counter || evidence->confirms) {
        builder_evidence(telling->builder, evidence->confirms ? EVIDENCE_CONTEXT : EVIDENCE_CAUSE,
                         evidence->time_ns,
                         counter_uid(telling, evidence->severity, evidence->time_ns),
                         "the counter of %s errors rose by %" PRIu64, severity, evidence->count);
        return;
    }
    const char *bits =
        bits_text((enum aer_severity)evidence->severity, evidence->bits, telling->arena);
    bool is_last = evidence->time_ns == telling->incident->last_ns;
    builder_evidence(telling->builder, EVIDENCE_CAUSE, evidence->time_ns,
                     report_uid(telling, evidence->severity, evidence->time_ns),
                     "%s%s error%s: %s%s", evidence->multiple ? "multiple " : "", severity,
                     evidence->multiple ? "s" : "", or_no_details(bits),
                     is_last ? recovery_text(telling->incident, "; recovery was successful") : "");
}

static void add_xid(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    const struct aer_device *device = telling->device;
    builder_evidence(
        telling->builder, EVIDENCE_EFFECT, incident->xid_ns,
        incident->xid_by_gauge ? sample_uid(telling, GPU_XID, incident->xid_ns)
                               : xid_uid(device->key.node, device->key.function, incident->xid,
                                         incident->xid_ns, telling->arena),
        "Xid %u%s: the GPU is gone", incident->xid,
        incident->xid_by_gauge ? in_field(GPU_XID, incident->xid_spelled, telling->arena) : "");
    builder_attribute_format(telling->builder, "nvidia.xid.code", "%u", incident->xid);
}

static const char *uncorrectable_advice(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    if (incident->xid_ns != 0 || incident->failed_ns != 0)
        return "Drain {node}: {word} {name} is not usable until the node is restarted. If it comes "
               "back and errs again, reseat or replace it, its riser or its cable.";
    if (incident->recovered_ns != 0)
        return "Nothing to do now: the link of {word} {name} on {node} was reset and works. Watch "
               "it; when it errs again, check its seat, riser and cable.";
    return "Check the link of {word} {name} on {node}: seat, riser, cable, and the port in front "
           "of it.{doubt}";
}

static void tell_uncorrectable(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    const struct aer_config *config = telling->config;
    struct verdict_builder *builder = telling->builder;
    struct arena *arena = telling->arena;
    bool is_fatal = incident->severity == AER_FATAL, has_xid = incident->xid_ns != 0;
    bool is_lost = has_xid || incident->failed_ns != 0;
    begin(telling, is_fatal ? "uncorrectable_fatal" : "uncorrectable_nonfatal",
          is_fatal || is_lost ? SEVERITY_CRITICAL : SEVERITY_ERROR,
          is_lost                       ? "drain_node"
          : incident->recovered_ns != 0 ? "monitor"
                                        : "check_link",
          (is_fatal ? config->confidence_fatal : config->confidence_nonfatal) +
              (has_xid ? config->xid_bonus : 0) -
              (telling->is_suspect ? config->port_only_penalty : 0) -
              (incident->has_lines ? 0 : config->counter_only_penalty));
    if (!incident->has_device_line)
        builder_partial(builder, incident->has_lines ? "no line of the device itself tells of it"
                                                     : "no line of a kernel log tells of it");
    for (uint32_t i = 0; i < incident->evidence_count; i++)
        add_report(telling, &incident->evidence[i]);
    if (has_xid)
        add_xid(telling);
    const char *bits = bits_text(AER_FATAL, incident->bits, arena);
    const char *lost = "";
    if (has_xid)
        lost = arena_format(arena, "; the GPU was lost %s after it (Xid %u)",
                            duration_text((__int128)(incident->xid_ns - incident->first_ns), arena),
                            incident->xid);
    const struct text_field fields[] = {
        {"word", telling->kind->word},
        {"name", telling->name},
        {"node", telling->node},
        {"fatal", is_fatal ? "Fatal" : "Non-fatal"},
        {"bits", or_no_details(bits)},
        {"recovery", recovery_text(incident, "; it was recovered")},
        {"lost", lost},
        {"doubt", telling->is_suspect
                      ? " Only the port told of it, so the fault may be on either side; look at "
                        "lspci -vvv of both."
                  : telling->kind == &GPU ? " Until then do not trust work that ran on it."
                                          : ""},
        {NULL, NULL},
    };
    builder_texts(builder, "{fatal} PCIe error of {word} {name} on {node} ({bits}){recovery}{lost}",
                  uncorrectable_advice(telling), fields);
    builder_attribute(builder, "culprit.aer_bits", slice_of(bits));
    builder_attribute_format(builder, "culprit.reports", "%" PRIu32, incident->report_count);
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

static bool is_by_log(const struct aer_incident *incident) {
    return incident->source == SOURCE_LOG;
}

static const char *counted(const struct aer_incident *incident) {
    return incident->source == SOURCE_REPLAYS ? "replays" : "corrected errors";
}

// The counter that was read, where it is one of DCGM's.
static const char *storm_field(const struct telling *telling, uint8_t spelling) {
    enum aer_source source = (enum aer_source)telling->incident->source;
    if (source != SOURCE_CORRECTABLE && source != SOURCE_REPLAYS)
        return "";
    return in_field(source == SOURCE_REPLAYS ? GPU_PCIE_REPLAYS : GPU_PCIE_CORRECTABLE, spelling,
                    telling->arena);
}

static void add_storm(const struct telling *telling, enum evidence_role role) {
    const struct aer_incident *incident = telling->incident;
    const char *bits = bits_text(AER_CORRECTABLE, incident->bits, telling->arena);
    if (incident->report_ns != 0)
        builder_evidence(telling->builder, role, incident->report_ns,
                         report_uid(telling, AER_CORRECTABLE, incident->report_ns),
                         "first report in the log: %s", or_no_details(bits));
    builder_evidence(telling->builder, role, incident->first_ns,
                     reading_uid(telling, incident->first_ns),
                     "first minute with more than %" PRIu32 " %s%s", incident->limit,
                     counted(incident), storm_field(telling, incident->first_spelled[0]));
    builder_evidence(telling->builder, role, incident->last_ns,
                     reading_uid(telling, incident->last_ns),
                     "%s%" PRIu32 " %s a minute, %" PRIu64 " in all%s",
                     is_by_log(incident) ? "at least " : "", incident->rate, counted(incident),
                     incident->count, storm_field(telling, incident->last_spelled[0]));
}

static void tell_storm(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    struct verdict_builder *builder = telling->builder;
    struct arena *arena = telling->arena;
    bool by_log = is_by_log(incident);
    const char *bits = bits_text(AER_CORRECTABLE, incident->bits, arena);
    const struct text_field fields[] = {
        {"word", telling->kind->word},
        {"name", telling->name},
        {"node", telling->node},
        {"has", incident->ended ? "had" : "has"},
        {"at_least", by_log ? "at least " : ""},
        {"rate", arena_format(arena, "%" PRIu32, incident->top_rate)},
        {"what", counted(incident)},
        {"bits", bits[0] == '\0' ? "" : arena_format(arena, " (%s)", bits)},
        {"limit", arena_format(arena, "%" PRIu32, incident->limit)},
        {NULL, NULL},
    };
    begin(telling, "correctable_storm", SEVERITY_WARNING, "check_link",
          telling->config->confidence_storm -
              (telling->is_suspect ? telling->config->port_only_penalty : 0));
    if (by_log)
        builder_partial(builder,
                        "no counter of its errors was read, and the kernel leaves lines out");
    add_storm(telling, EVIDENCE_CAUSE);
    builder_texts(builder,
                  "PCIe link of {word} {name} on {node} {has} {at_least}{rate} {what} a "
                  "minute{bits}; a healthy one has at most {limit}",
                  "All of them were corrected, but the link of {word} {name} on {node} is poor: "
                  "check its seat, riser, retimer and cable before it fails; clean or reseat it at "
                  "the next maintenance.",
                  fields);
    builder_attribute(builder, "culprit.aer_bits", slice_of(bits));
    builder_attribute_format(builder, "culprit.errors", "%" PRIu64, incident->count);
    builder_attribute_format(builder, "culprit.errors_per_minute", "%" PRIu32, incident->top_rate);
    builder_attribute_format(builder, "culprit.limit_per_minute", "%" PRIu32, incident->limit);
}

// -- Degraded links -------------------------------------------------------------------------------

static bool is_narrow(const struct aer_incident *incident) {
    return incident->link[LINK_WIDTH] < incident->link[LINK_MAX_WIDTH];
}

static enum gpu_field link_field(const struct telling *telling) {
    return is_narrow(telling->incident) ? GPU_PCIE_LINK_WIDTH : GPU_PCIE_LINK_GENERATION;
}

static const char *link_uid(const struct telling *telling, uint64_t time_ns) {
    return sample_uid(telling, link_field(telling), time_ns);
}

static const char *link_state_text(const struct aer_incident *incident, struct arena *arena) {
    const int16_t *link = incident->link;
    if (is_narrow(incident))
        return arena_format(arena, "%d of %d lanes", link[LINK_WIDTH], link[LINK_MAX_WIDTH]);
    return arena_format(arena, "generation %d of %d", link[LINK_GENERATION],
                        link[LINK_MAX_GENERATION]);
}

static void add_degraded(const struct telling *telling, enum evidence_role role) {
    const struct aer_incident *incident = telling->incident;
    unsigned which = is_narrow(incident) ? 0 : 1;
    builder_evidence(telling->builder, role, incident->first_ns,
                     link_uid(telling, incident->first_ns), "the link runs with %s%s",
                     link_state_text(incident, telling->arena),
                     in_field(link_field(telling), incident->first_spelled[which], telling->arena));
    builder_evidence(telling->builder, role, incident->last_ns,
                     link_uid(telling, incident->last_ns), "still so%s",
                     in_field(link_field(telling), incident->last_spelled[which], telling->arena));
}

static void tell_degraded(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    const int16_t *link = incident->link;
    struct verdict_builder *builder = telling->builder;
    struct arena *arena = telling->arena;
    const char *state = link_state_text(incident, arena);
    const struct text_field fields[] = {
        {"word", telling->kind->word},
        {"name", telling->name},
        {"node", telling->node},
        {"runs", incident->ended ? "ran" : "runs"},
        {"state", state},
        {NULL, NULL},
    };
    begin(telling, "link_degraded", SEVERITY_WARNING, "check_link",
          telling->config->confidence_degraded);
    add_degraded(telling, EVIDENCE_CAUSE);
    builder_texts(builder, "PCIe link of {word} {name} on {node} {runs} with {state}",
                  "Ranks that use {word} {name} on {node} get their data more slowly than the "
                  "others. Check its seat, riser and cable, and retrain the link; compare with "
                  "lspci -vv.",
                  fields);
    builder_attribute_format(builder, "pci.link.generation", "%d", link[LINK_GENERATION]);
    builder_attribute_format(builder, "pci.link.width", "%d", link[LINK_WIDTH]);
}

// -- All ------------------------------------------------------------------------------------------

static void add_entities(const struct telling *telling) {
    struct verdict_builder *builder = telling->builder;
    string_id node = telling->device->key.node;
    pci_address port = telling->incident->port;
    builder_entity(builder, telling->kind->entity,
                   telling->is_suspect ? ROLE_SUSPECT : ROLE_CULPRIT,
                   on_node(node, telling->name, telling->arena));
    if (port != PCI_NONE && port != telling->device->key.function &&
        telling->incident->kind == INCIDENT_UNCORRECTABLE)
        builder_entity(builder, "pci_port", ROLE_SUSPECT,
                       on_node(node, pci_text(port, true, telling->arena), telling->arena));
    builder_entity(builder, "node", ROLE_SUSPECT, string_or_null(node));
    builder_attribute(builder, "hw.id", intern_slice(telling->device->uuid));
    builder_attribute(builder, "k8s.node.name", intern_slice(node));
    builder_attribute(builder, "pci.address", slice_of(telling->function));
}

// What else stands of the device. It is no evidence of when this began.
static void add_lesser(const struct telling *telling, const struct aer_facts *facts) {
    struct telling other = *telling;
    other.incident = aer_incident_of(facts, telling->device, INCIDENT_DEGRADED);
    if (other.incident != NULL && other.incident != telling->incident)
        add_degraded(&other, EVIDENCE_CONTEXT);
    other.incident = aer_incident_of(facts, telling->device, INCIDENT_STORM);
    if (other.incident != NULL && other.incident != telling->incident)
        add_storm(&other, EVIDENCE_CONTEXT);
}

// The first report or reading: later ones do not move it.
static const char *anchor_of(const struct telling *telling) {
    const struct aer_incident *incident = telling->incident;
    const struct aer_evidence *first = &incident->evidence[0];
    if (incident->kind == INCIDENT_STORM)
        return reading_uid(telling, incident->first_ns);
    if (incident->kind == INCIDENT_DEGRADED)
        return link_uid(telling, incident->first_ns);
    return first->by_counter ? counter_uid(telling, first->severity, first->time_ns)
                             : report_uid(telling, first->severity, first->time_ns);
}

void aer_verdict_build(const struct aer_facts *facts, const struct aer_incident *incident,
                       struct verdict_builder *builder) {
    static void (*const TELL[INCIDENT_KINDS])(const struct telling *) = {
        [INCIDENT_UNCORRECTABLE] = tell_uncorrectable,
        [INCIDENT_STORM] = tell_storm,
        [INCIDENT_DEGRADED] = tell_degraded,
    };
    assert(incident->live != 0 && incident->kind < INCIDENT_KINDS);
    struct telling telling = telling_of(facts, incident, builder);
    TELL[incident->kind](&telling);
    if (aer_incident_lead(facts, telling.device) == incident)
        add_lesser(&telling, facts);
    builder->verdict.job = telling.device->job;
    add_entities(&telling);
    const struct slice key[] = {slice_of(node_in_uid(telling.device->key.node, builder->arena)),
                                slice_of(telling.function), slice_of(anchor_of(&telling))};
    builder_finish(builder, key, 3);
    if (builder->verdict.start_ns == incident->first_ns)
        builder->verdict.after_ns = incident->since_ns;
}
