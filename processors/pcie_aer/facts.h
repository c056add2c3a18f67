// SPDX-License-Identifier: Apache-2.0
// Gathers what is reported of PCI Express devices, and finds what went wrong with them.
//
// What is told (lines, counters, Xids) waits until an evaluation reaches it and is then taken in
// order of time, so that neither the order of lines nor the size of batches makes a difference.
// Lines of one device within `gather` are one report; counters are looked at by the minute. What
// comes of it are incidents: an uncorrectable error, a storm of corrected ones, a degraded link; at
// most one of each kind a device is open. Memory: 80 bytes for what waits, about 700 a device.
#pragma once

#include "pipeline/model/node_event.h"
#include "processors/cluster/detector.h"
#include "processors/cluster/row_bound.h"

struct aer_config {
    struct duration gather;  // from the first line of a report to its last
    struct duration outcome; // how long after a report its outcome may come
    struct duration hold;    // an uncorrectable error is over so long after the last report
    struct duration silence; // counters that were not told for so long say nothing any more
    struct duration minute;  // what corrected errors are counted over
    int64_t minutes;         // in a row that make a storm, or end one
    int64_t link_samples;
    int64_t default_limit; // a minute, where the link is not known
    int64_t max_devices, max_waiting;
    double busy_percent;
    int64_t confidence_fatal, confidence_nonfatal, confidence_storm, confidence_degraded;
    int64_t xid_bonus, port_only_penalty, counter_only_penalty;
};

// -- What waits -----------------------------------------------------------------------------------

// In the order in which things of one moment are taken.
enum aer_fact_kind {
    AER_FACT_LINE,
    AER_FACT_COUNTERS,
    AER_FACT_GPU,
    AER_FACT_OUTCOME,
    AER_FACT_XID,
    AER_FACT_VENDOR // who made it, as firmware said
};

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
    uint32_t chain; // the table's own
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
            uint16_t has;     // bits of enum aer_link_value, then of the two counters
            uint16_t spelled; // two bits each: how their fields were spelled
        } gpu;
    };
};
enum {
    FACT_MULTIPLE = 1,
    FACT_BY_PORT_DRIVER = 2,
    FACT_OF_GPU = 4, // by the name of its driver
    FACT_OF_NIC = 8,
};
// How the field of the i-th bit of `has` was spelled.
static inline uint8_t aer_spelling(const struct aer_fact *fact, unsigned i) {
    return (uint8_t)(fact->gpu.spelled >> 2 * i & 3);
}
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
    uint64_t over_since_ns;  // when that minute began
    uint32_t report_bits, over_bits;
    uint32_t over, under;  // minutes in a row
    uint32_t rate;         // of the last minute
    uint32_t top_rate;     // of those in a row over the limit
    uint32_t over_spelled; // how the field of the first of these was spelled
    uint32_t unused;
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
    bool is_gpu, is_nic, is_port;
    struct aer_report report;
    struct aer_tracker trackers[SOURCE_COUNT];
    uint64_t count[COUNT_KINDS], count_ns[COUNT_KINDS]; // nonfatal and fatal of sysfs
    uint64_t reports;                                   // corrected ones in the log
    int16_t link[LINK_VALUES];                          // -1: not known
    uint32_t bad_links, good_links;                     // samples in a row
    uint64_t bad_ns;                                    // the first of the bad ones
    uint64_t bad_since_ns;                              // the sample before it; 0: none
    uint64_t link_ns;                                   // the last that told of the link
    uint8_t bad_spelled[2]; // how width and generation were spelled in the first of the bad ones
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
    bool reported;     // as a verdict of its own
    uint64_t since_ns; // it began behind this moment, and at first_ns at the latest; 0: at first_ns
    // Uncorrectable:
    uint8_t severity; // the worst
    bool has_device_line, has_lines, xid_by_gauge;
    uint16_t xid;
    uint8_t xid_spelled; // xid_by_gauge: how the field was spelled
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
    // Storm by a counter of DCGM: how its field was spelled in the first and the last sample.
    // Degraded link: the same of width, then of generation.
    uint8_t first_spelled[2], last_spelled[2];
    // Degraded link, as it was at first:
    int16_t link[LINK_VALUES];
};

extern const struct row_type AER_FACT_ROWS, AER_DEVICE_ROWS, AER_INCIDENT_ROWS;

// Its tables are the owner's state rows.
struct aer_facts {
    const struct aer_config *config;
    bool live;                 // the input has no end
    struct table waiting;      // AER_FACT_ROWS
    struct keyed_rows devices; // AER_DEVICE_ROWS
    struct table incidents;    // AER_INCIDENT_ROWS
    uint32_t open_head;        // devices with an open report, in no order; TABLE_NO_ROW: none
    uint64_t oldest_ns;        // the first line of the oldest of them, or earlier
    uint64_t evicted;          // since the start
    uint32_t looked_at;        // of idle_rows
};

// `config` lives as long.
void aer_facts_start(struct aer_facts *facts, const struct aer_config *config);
// After a load.
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
// What is said of a device while several incidents of it are open: that of the gravest kind: an
// uncorrectable error, then a degraded link, then a storm; the others are evidence of it. NULL:
// none is open.
const struct aer_incident *aer_incident_lead(const struct aer_facts *facts,
                                             const struct aer_device *device);
// Corrected errors a minute that a healthy link may have.
uint32_t aer_limit(const struct aer_facts *facts, const struct aer_device *device);

// -- Parts (report.c, counter.c) ------------------------------------------------

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
// `gauge`: the sample that told of it; NULL: a line did.
void aer_xid_take(struct aer_facts *facts, struct aer_device *device, uint64_t time_ns,
                  uint16_t code, const struct aer_fact *gauge);
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
