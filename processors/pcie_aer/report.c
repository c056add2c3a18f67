// SPDX-License-Identifier: Apache-2.0
// Gathers kernel lines that are one report, and finds what it comes to.
//
// A report begins with any line of a device and is closed `gather_ns` later. Only bits that are set
// and not masked count. An uncorrectable one joins the device's open incident or begins one; what
// became of it (recovery, Xid 79 or 167) is looked for within `outcome_ns`.
#include "processors/pcie_aer/facts.h"

#include "processors/cluster/tables.h"

static void join_status(struct aer_report *report, const struct aer_fact *fact) {
    report->status |= fact->line_values.status;
    // A bit is masked only where every line says so.
    report->mask =
        report->has_status ? report->mask & fact->line_values.mask : fact->line_values.mask;
    report->has_status = true;
    report->has_device_line = true;
}

static void join_line(struct aer_device *device, const struct aer_fact *fact) {
    struct aer_report *report = &device->report;
    if (fact->severity > report->severity)
        report->severity = fact->severity;
    report->multiple = report->multiple || (fact->flags & FACT_MULTIPLE) != 0;
    if (fact->port != PCI_NONE)
        report->port = fact->port;
    switch ((enum aer_line)fact->line) {
    case AER_PORT:
    case AER_DPC:
        report->has_port_line = true;
        break;
    case AER_STATUS:
        join_status(report, fact);
        if (fact->line_values.vendor != 0)
            device->vendor = fact->line_values.vendor;
        break;
    case AER_FATAL_BITS:
        report->fatal_bits |= fact->line_values.status;
        report->has_fatal_bits = true;
        break;
    default:
        report->has_device_line = true;
        report->correctable_bits |= fact->line_values.correctable_bits;
        report->uncorrectable_bits |= fact->line_values.uncorrectable_bits;
    }
}

// -- What a report comes to -----------------------------------------------------------------------

static uint32_t bits_that_count(const struct aer_report *report) {
    if (report->has_status)
        return report->status & ~report->mask;
    return report->severity == AER_CORRECTABLE ? report->correctable_bits
                                               : report->uncorrectable_bits;
}

static enum aer_severity default_severity(uint32_t bits) {
    enum aer_severity worst = AER_NONFATAL;
    for (uint32_t bit = 0; bit < 32; bit++) {
        const struct aer_bit *row = (bits >> bit & 1) == 0 ? NULL : aer_bit_find(AER_FATAL, bit);
        if (row != NULL && row->default_severity == AER_FATAL)
            worst = AER_FATAL;
    }
    return worst;
}

// Lines that firmware handed on, and reports whose first lines are missing, do not say it.
static enum aer_severity find_severity(const struct aer_report *report) {
    if (report->severity != AER_SEVERITY_UNKNOWN)
        return (enum aer_severity)report->severity;
    if (report->has_fatal_bits)
        return (report->status & ~report->mask & report->fatal_bits) != 0 ? AER_FATAL
                                                                          : AER_NONFATAL;
    // Names that only one of the registers knows.
    if ((report->uncorrectable_bits & ~report->correctable_bits) != 0)
        return default_severity(report->uncorrectable_bits);
    return report->has_status || report->correctable_bits != 0 ? AER_CORRECTABLE
                                                               : AER_SEVERITY_UNKNOWN;
}

// When there is no room the newest takes the place of the one before it.
static void add_evidence(struct aer_incident *incident, const struct aer_evidence *evidence) {
    assert(incident->evidence_count <= INCIDENT_EVIDENCE_MAX);
    if (incident->evidence_count < INCIDENT_EVIDENCE_MAX)
        incident->evidence_count++;
    incident->evidence[incident->evidence_count - 1] = *evidence;
}

static struct aer_incident *find_incident(struct aer_facts *facts, struct aer_device *device,
                                          uint64_t time_ns) {
    struct aer_incident *incident = aer_incident_of(facts, device, INCIDENT_UNCORRECTABLE);
    if (incident != NULL && time_ns > incident->last_ns &&
        time_ns - incident->last_ns > duration_ns(facts->config->hold)) {
        aer_incident_end(facts, device, INCIDENT_UNCORRECTABLE);
        incident = NULL;
    }
    if (incident == NULL)
        incident = aer_incident_open(facts, device, INCIDENT_UNCORRECTABLE);
    if (incident->first_ns == 0 || time_ns < incident->first_ns)
        incident->first_ns = time_ns;
    if (time_ns > incident->last_ns)
        incident->last_ns = time_ns;
    return incident;
}

static void take_uncorrectable(struct aer_facts *facts, struct aer_device *device,
                               const struct aer_report *report) {
    assert(report->severity == AER_NONFATAL || report->severity == AER_FATAL);
    struct aer_incident *incident = find_incident(facts, device, report->first_ns);
    uint32_t bits = bits_that_count(report);
    incident->report_count++;
    incident->has_lines = true;
    if (report->first_ns <= incident->first_ns)
        incident->since_ns = 0;
    incident->has_device_line = incident->has_device_line || (report->has_device_line && bits != 0);
    if (report->severity > incident->severity)
        incident->severity = report->severity;
    incident->bits |= bits;
    if (incident->port == PCI_NONE)
        incident->port = report->port;
    incident->recovered_ns = report->recovered_ns; // of an earlier one it says nothing any more
    if (report->failed_ns != 0)
        incident->failed_ns = report->failed_ns;
    add_evidence(incident, &(struct aer_evidence){.time_ns = report->first_ns,
                                                  .bits = bits,
                                                  .severity = report->severity,
                                                  .multiple = report->multiple});
}

static void close_report(struct aer_facts *facts, struct aer_device *device) {
    assert(device->report.first_ns != 0);
    struct aer_report report = device->report;
    device->report = (struct aer_report){0};
    uint32_t *link = &facts->open_head;
    while (*link != device->self)
        link = &aer_device_at(facts, *link)->next_open;
    *link = device->next_open;
    report.severity = (uint8_t)find_severity(&report);
    if (report.port != PCI_NONE)
        device->port = report.port;
    bool masked = report.has_status && report.status != 0 && bits_that_count(&report) == 0;
    if (masked || report.severity == AER_SEVERITY_UNKNOWN)
        return;
    if (report.severity == AER_CORRECTABLE)
        aer_corrected_take(facts, device, report.first_ns, bits_that_count(&report));
    else
        take_uncorrectable(facts, device, &report);
}

void aer_report_link(struct aer_facts *facts, struct aer_device *device) {
    assert(device->report.first_ns != 0);
    device->next_open = facts->open_head;
    if (facts->open_head == TABLE_NO_ROW || device->report.first_ns < facts->oldest_ns)
        facts->oldest_ns = device->report.first_ns;
    facts->open_head = device->self;
}

void aer_reports_close(struct aer_facts *facts, uint64_t now_ns) {
    uint64_t gather_ns = duration_ns(facts->config->gather), oldest_ns = UINT64_MAX;
    if (now_ns < facts->oldest_ns || now_ns - facts->oldest_ns <= gather_ns)
        return;
    for (uint32_t row = facts->open_head; row != TABLE_NO_ROW;) {
        struct aer_device *device = aer_device_at(facts, row);
        uint64_t first_ns = device->report.first_ns;
        row = device->next_open;
        if (now_ns > first_ns && now_ns - first_ns > gather_ns)
            close_report(facts, device);
        else if (first_ns < oldest_ns)
            oldest_ns = first_ns;
    }
    facts->oldest_ns = oldest_ns;
}

void aer_report_take(struct aer_facts *facts, struct aer_device *device,
                     const struct aer_fact *fact) {
    assert(fact->kind == AER_FACT_LINE);
    struct aer_report *report = &device->report;
    if (report->first_ns != 0 &&
        (fact->time_ns < report->first_ns ||
         fact->time_ns - report->first_ns > duration_ns(facts->config->gather)))
        close_report(facts, device);
    if (report->first_ns == 0) {
        *report = (struct aer_report){.first_ns = fact->time_ns, .port = PCI_NONE};
        aer_report_link(facts, device);
    }
    if ((fact->flags & FACT_BY_PORT_DRIVER) != 0 && fact->port == PCI_NONE)
        device->is_port = true;
    if (fact->port == fact->address)
        device->is_port = true;
    device->is_gpu = device->is_gpu || (fact->flags & FACT_OF_GPU) != 0;
    device->is_nic = device->is_nic || (fact->flags & FACT_OF_NIC) != 0;
    join_line(device, fact);
}

// -- What became of it ----------------------------------------------------------------------------

static bool is_in_time(const struct aer_facts *facts, uint64_t report_ns, uint64_t time_ns) {
    return time_ns >= report_ns && time_ns - report_ns <= duration_ns(facts->config->outcome);
}

static void set_outcome(uint8_t line, uint64_t time_ns, uint64_t *recovered_ns,
                        uint64_t *failed_ns) {
    uint64_t *place = line == AER_FAILED ? failed_ns : recovered_ns;
    if (*place == 0)
        *place = time_ns;
}

static bool concerns(const struct aer_facts *facts, uint32_t device_row, pci_address port,
                     const struct aer_fact *fact) {
    const struct aer_device *device = aer_device_at(facts, device_row);
    return device->key.node == fact->node &&
           (device->key.function == fact->address || port == fact->address);
}

// The port tells what became of the devices behind it; a device speaks for itself.
void aer_outcome_take(struct aer_facts *facts, const struct aer_fact *fact) {
    assert(fact->kind == AER_FACT_OUTCOME);
    for (uint32_t row = 0; row < facts->incidents.used; row++) {
        struct aer_incident *incident = aer_incident_at(facts, row);
        if (incident->live != 0 && !incident->ended && incident->kind == INCIDENT_UNCORRECTABLE &&
            is_in_time(facts, incident->last_ns, fact->time_ns) &&
            concerns(facts, incident->device, incident->port, fact))
            set_outcome(fact->line, fact->time_ns, &incident->recovered_ns, &incident->failed_ns);
    }
    for (uint32_t next = facts->open_head; next != TABLE_NO_ROW;) {
        struct aer_device *device = aer_device_at(facts, next);
        next = device->next_open;
        if (concerns(facts, device->self, device->report.port, fact))
            set_outcome(fact->line, fact->time_ns, &device->report.recovered_ns,
                        &device->report.failed_ns);
    }
}

void aer_xid_take(struct aer_facts *facts, struct aer_device *device, uint64_t time_ns,
                  uint16_t code, const struct aer_fact *gauge) {
    bool by_gauge = gauge != NULL;
    if (device->report.first_ns != 0)
        close_report(facts, device);
    struct aer_incident *incident = aer_incident_of(facts, device, INCIDENT_UNCORRECTABLE);
    if (incident == NULL || !is_in_time(facts, incident->last_ns, time_ns))
        return;
    // The kernel's line says when; the gauge only when it was read.
    if (incident->xid_ns != 0 && (by_gauge || !incident->xid_by_gauge))
        return;
    incident->xid_ns = time_ns;
    incident->xid = code;
    incident->xid_by_gauge = by_gauge;
    incident->xid_spelled = by_gauge ? aer_spelling(gauge, LINK_XID) : 0;
}

void aer_report_count(struct aer_facts *facts, struct aer_device *device,
                      enum aer_severity severity, uint64_t count, uint64_t since_ns,
                      uint64_t time_ns) {
    assert(count > 0);
    if (device->report.first_ns != 0)
        close_report(facts, device);
    struct aer_incident *incident = aer_incident_of(facts, device, INCIDENT_UNCORRECTABLE);
    bool confirms = incident != NULL && incident->has_lines &&
                    incident->last_ns + duration_ns(facts->config->gather) >= since_ns;
    struct aer_evidence evidence = {.time_ns = time_ns,
                                    .severity = (uint8_t)severity,
                                    .by_counter = !confirms,
                                    .confirms = confirms,
                                    .count = count};
    if (!confirms) {
        incident = find_incident(facts, device, time_ns);
        if (incident->report_count++ == 0)
            incident->since_ns = since_ns;
    }
    if (severity > incident->severity)
        incident->severity = (uint8_t)severity;
    add_evidence(incident, &evidence);
}
