// SPDX-License-Identifier: Apache-2.0
// What is known of the PCI Express devices of the nodes, and what went wrong with them?
//
// What is told (lines, counters, Xids) waits until an evaluation reaches it and is then taken in
// order of time, so that neither the order of lines nor the size of batches makes a difference.
// Lines of one device within `gather_ns` are one report; counters are looked at by the minute. What
// comes of it are incidents: an uncorrectable error, a storm of corrected ones, a degraded link; at
// most one of each kind a device is open. Memory: 80 bytes for what waits, about 700 a device.
#pragma once

#include "base/arena.h"
#include "base/table/keyed_rows.h"
#include "pipeline/component/state.h"
#include "pipeline/model/event.h"
#include "pipeline/model/node_event.h"

struct aer_rules {
    uint64_t gather_ns;  // from the first line of a report to its last
    uint64_t minute_ns;  // what corrected errors are counted over
    uint64_t outcome_ns; // how long after a report its outcome may come
    uint64_t hold_ns;    // an uncorrectable error is over so long after the last report
    uint64_t silence_ns; // counters that were not told for so long say nothing any more
    uint32_t minutes;    // in a row that make a storm, or end one
    uint32_t link_samples;
    uint32_t limit; // a minute, where the link is not known
    double busy_percent;
    uint32_t max_devices;
    uint32_t max_waiting;
};

// -- What waits -----------------------------------------------------------------------------------

// In the order in which things of one moment are taken.
enum aer_fact_kind { FACT_LINE, FACT_COUNTERS, FACT_GPU, FACT_OUTCOME, FACT_XID };

enum aer_counter_kind { COUNT_CORRECTABLE, COUNT_NONFATAL, COUNT_FATAL, COUNT_KINDS };

enum aer_link_value {
    LINK_GENERATION,
    LINK_WIDTH,
    LINK_MAX_GENERATION,
    LINK_MAX_WIDTH,
    LINK_UTILIZATION,
    LINK_XID,
    LINK_VALUES
};

struct aer_fact {
    uint32_t chain;
    uint32_t live;
    string_id node, uuid, job;
    uint8_t kind; // enum aer_fact_kind
    uint8_t line; // enum aer_line
    uint8_t severity;
    uint8_t flags; // FACT_MULTIPLE …
    uint64_t time_ns;
    pci_address address, port;
    union {
        struct {
            uint32_t status, mask;
            uint32_t correctable_bits, uncorrectable_bits; // by the name that stood in the line
            uint16_t vendor;
            uint16_t code; // of an Xid
        } line_values;
        struct {
            uint64_t count[COUNT_KINDS];
            uint32_t has; // bits of enum aer_counter_kind
        } counters;
        struct {
            uint64_t replays, correctable;
            int16_t link[LINK_VALUES];
            uint16_t has; // bits of enum aer_link_value, then of the two counters
        } gpu;
    };
};
enum { FACT_MULTIPLE = 1, FACT_BY_PORT_DRIVER = 2 };
enum { GPU_HAS_REPLAYS = 1 << LINK_VALUES, GPU_HAS_CORRECTABLE = 1 << (LINK_VALUES + 1) };

// -- Devices --------------------------------------------------------------------------------------

struct aer_device_key {
    string_id node;
    pci_address function;
} __attribute__((packed, aligned(4))); // it stands right behind the row's head

// Lines that belong together, while they come.
struct aer_report {
    uint64_t first_ns; // 0: none is open
    pci_address port;
    uint32_t status, mask, fatal_bits;
    uint32_t correctable_bits, uncorrectable_bits;
    uint8_t severity;
    bool has_status, has_fatal_bits, has_port_line, has_device_line, multiple;
    uint64_t recovered_ns, failed_ns; // said while it was open; 0: not
};

enum aer_source { SOURCE_SYSFS, SOURCE_CORRECTABLE, SOURCE_REPLAYS, SOURCE_LOG, SOURCE_COUNT };

// One counter of corrected errors, minute by minute.
struct aer_tracker {
    uint64_t mark_ns, last_ns; // 0: not seen yet
    uint64_t mark_value, last_value;
    uint64_t over_ns;        // the end of the first minute over the limit of those in a row
    uint64_t over_from;      // the counter's value in front of it
    uint64_t report_ns;      // first corrected report since the mark; 0: none
    uint64_t over_report_ns; // the same of the first minute over the limit
    uint32_t report_bits, over_bits;
    uint32_t over, under; // minutes in a row
    uint32_t rate;        // of the last minute
    uint32_t top_rate;    // of those in a row over the limit
};

enum aer_incident_kind {
    INCIDENT_UNCORRECTABLE,
    INCIDENT_STORM,
    INCIDENT_DEGRADED,
    INCIDENT_KINDS
};

struct aer_device {
    struct row_head head;
    struct aer_device_key key;
    uint32_t self;
    uint32_t open[INCIDENT_KINDS]; // incidents; TABLE_NO_ROW: none
    uint32_t incident_count;
    uint32_t next_open;
    string_id uuid, job;
    uint64_t seen_ns;
    pci_address port; // that told of it
    uint16_t vendor;
    bool is_gpu, is_port;
    struct aer_report report;
    struct aer_tracker trackers[SOURCE_COUNT];
    uint64_t count[COUNT_KINDS], count_ns[COUNT_KINDS]; // nonfatal and fatal of sysfs
    uint64_t reports;                                   // corrected ones in the log
    int16_t link[LINK_VALUES];                          // -1: not known
    uint32_t bad_links, good_links;                     // samples in a row
    uint64_t bad_ns;                                    // the first of the bad ones
};

// -- Incidents ------------------------------------------------------------------------------------

struct aer_evidence {
    uint64_t time_ns;
    uint32_t bits; // 0: no details
    uint8_t severity;
    bool by_counter; // a counter of sysfs grew and no line told of it
    bool confirms;   // a counter grew as lines had told
    bool multiple;
    uint64_t count; // by_counter, confirms: by how much
};

enum { INCIDENT_EVIDENCE_MAX = 12 };

struct aer_incident {
    uint32_t chain;
    uint32_t live;
    uint32_t device;
    uint8_t kind; // enum aer_incident_kind
    bool ended;
    // Uncorrectable:
    uint8_t severity; // the worst
    bool has_device_line, has_lines, xid_by_gauge;
    uint16_t xid;
    uint32_t bits;
    uint32_t report_count;
    uint32_t evidence_count;
    struct aer_evidence evidence[INCIDENT_EVIDENCE_MAX];
    pci_address port;
    uint64_t first_ns, last_ns; // reports; of the others: first and last sample
    uint64_t recovered_ns, failed_ns, xid_ns;
    // Storm:
    uint8_t source; // enum aer_source
    uint32_t limit, rate, top_rate;
    uint64_t report_ns, count;
    // Degraded link, as it was at first:
    int16_t link[LINK_VALUES];
};

struct aer_facts {
    struct aer_rules rules;
    struct table waiting;
    struct keyed_rows devices;
    struct table incidents;
    uint32_t open_head; // devices with an open report, in no order; TABLE_NO_ROW: none
    uint64_t oldest_ns; // the first line of the oldest of them, or earlier
    uint64_t evicted;
    uint32_t looked_at; // with fewer devices there is no use in looking for ones to forget
};

void aer_facts_init(struct aer_facts *facts, const struct aer_rules *rules);
void aer_facts_release(struct aer_facts *facts);
void aer_facts_state(struct aer_facts *facts, struct state_list *list);
void aer_facts_restored(struct aer_facts *facts);

// Keeps what an event says; events of other kinds are passed over. O(1), but that what waits is
// taken early when there is too much of it.
void aer_facts_add(struct aer_facts *facts, const struct event *event, struct arena *arena);
// Takes what happened up to `now_ns`. `last`: no line comes after, so open reports are whole.
void aer_facts_advance(struct aer_facts *facts, uint64_t now_ns, bool last, struct arena *arena);

static inline struct aer_device *aer_device_at(const struct aer_facts *facts, uint32_t row) {
    return table_row(&facts->devices.table, row);
}
static inline struct aer_incident *aer_incident_at(const struct aer_facts *facts, uint32_t row) {
    return table_row(&facts->incidents, row);
}
// After it has ended and was put out.
void aer_incident_forget(struct aer_facts *facts, uint32_t row);
// Corrected errors a minute that a healthy link may have.
uint32_t aer_limit(const struct aer_facts *facts, const struct aer_device *device);

// -- Parts (pcie_aer_report.c, pcie_aer_counter.c) ------------------------------------------------

struct aer_incident *aer_incident_open(struct aer_facts *facts, struct aer_device *device,
                                       enum aer_incident_kind kind);
void aer_incident_end(struct aer_facts *facts, struct aer_device *device,
                      enum aer_incident_kind kind);
// The incident of that kind that is open, or NULL.
struct aer_incident *aer_incident_of(const struct aer_facts *facts, const struct aer_device *device,
                                     enum aer_incident_kind kind);

void aer_report_take(struct aer_facts *facts, struct aer_device *device,
                     const struct aer_fact *fact);
void aer_report_link(struct aer_facts *facts, struct aer_device *device);
// Closes reports whose lines have all come by `now_ns`.
void aer_reports_close(struct aer_facts *facts, uint64_t now_ns);
void aer_outcome_take(struct aer_facts *facts, const struct aer_fact *fact);
void aer_xid_take(struct aer_facts *facts, struct aer_device *device, uint64_t time_ns,
                  uint16_t code, bool by_gauge);
// A counter of uncorrectable errors grew by `count`; `since_ns`: when it was read before.
void aer_report_count(struct aer_facts *facts, struct aer_device *device,
                      enum aer_severity severity, uint64_t count, uint64_t since_ns,
                      uint64_t time_ns);
void aer_counters_take(struct aer_facts *facts, struct aer_device *device,
                       const struct aer_fact *fact);
void aer_gpu_take(struct aer_facts *facts, struct aer_device *device, const struct aer_fact *fact);
// One corrected report came to its end.
void aer_corrected_take(struct aer_facts *facts, struct aer_device *device, uint64_t time_ns,
                        uint32_t bits);
