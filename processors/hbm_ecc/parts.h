// SPDX-License-Identifier: Apache-2.0
// The parts of hbm_ecc: what counters did (counters.c), which items are one incident and
// how bad it is (burst.c), the verdict (verdict.c).
#pragma once

#include "pipeline/model/node_event.h"
#include "processors/cluster/detector.h"
#include "processors/cluster/gpu_names.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/sample_queue.h"
#include "processors/cluster/xid_log.h"

struct ecc_config {
    struct duration burst, storm_window;
    int64_t storm_errors;            // more corrected errors than this in the window
    int64_t remaps_max;              // uncorrectable remaps from which the GPU is to be replaced
    int64_t retired_uncorrected_max; // the same of retired pages
    int64_t retired_max;
    int64_t confidence_both, confidence_xid, confidence_counter, confidence_storm;
    int64_t max_xids, max_steps, max_gpus, max_incidents, max_samples;
};

// -- Counters -------------------------------------------------------------------------------------

// In the order of evidence at one moment of one GPU is that of their DCGM names.
enum ecc_field {
    ECC_UNCORRECTED, // since the driver was loaded
    ECC_UNCORRECTED_LIFETIME,
    ECC_CORRECTED,
    ECC_CORRECTED_LIFETIME,
    ECC_REMAPS,
    ECC_REMAP_FAILED,
    ECC_REMAP_PENDING,
    ECC_RETIRED_CORRECTED,
    ECC_RETIRED_UNCORRECTED,
    ECC_RETIRED_PENDING,
    ECC_BANKS_NONE,
    ECC_SRAM_EXCEEDED,
    ECC_FIELD_COUNT
};
extern const enum gpu_field ECC_FIELDS[ECC_FIELD_COUNT];

// A counter that rose from one sample to the next; found by node, GPU, time and field.
struct ecc_step {
    struct row_head head;
    string_id node;   // the key: up to `field`
    uint64_t address; // as the samples say it, or PCI_NONE
    uint64_t time_ns;
    string_id uuid; // or STRING_NONE
    uint32_t field;
    uint16_t is_limit; // a limit was passed with it
    uint16_t spelling; // of the field in the sample
    uint64_t since_ns; // of the sample before
    int64_t from, to;
};

extern const struct row_type ECC_SAMPLE_ROWS, ECC_GPU_ROWS, ECC_STEP_ROWS;

struct ecc_counters {
    const struct ecc_config *config;
    struct sample_queue samples; // rows: ECC_SAMPLE_ROWS
    struct keyed_rows gpus;      // ECC_GPU_ROWS
    struct keyed_rows steps;     // ECC_STEP_ROWS
    struct row_bound gpu_bound, step_bound;
};

// Its tables are made; `config` lives as long.
void ecc_counters_start(struct ecc_counters *counters, const struct ecc_config *config);
void ecc_counters_expire(struct ecc_counters *counters, uint64_t before_ns);
// The value of the newest sample that has the field; false when none has.
bool ecc_counters_value(const struct ecc_counters *counters, string_id node, string_id uuid,
                        pci_address address, enum ecc_field field, int64_t *value);
// When the newest sample of the GPU that counts corrected errors was taken; 0: there is none.
uint64_t ecc_corrected_told(const struct ecc_counters *counters, string_id node, string_id uuid,
                            pci_address address);

// -- Incidents ------------------------------------------------------------------------------------

// From bad to worse.
enum ecc_kind {
    ECC_NONE,
    ECC_STORM,
    ECC_PENDING,
    ECC_LIMIT,
    ECC_UNCORRECTABLE,
    ECC_CONTAINED,
    ECC_UNCONTAINED,
    ECC_FAILED,
};

// An Xid or a step of a counter; exactly one of both.
struct ecc_item {
    const struct xid_entry *xid;
    const struct ecc_step *step;
    string_id node;
    string_id uuid;   // STRING_NONE unless the address is not known
    uint64_t address; // PCI_NONE: not known, it is `uuid`'s
    uint64_t time_ns;
    uint64_t since_ns;  // it happened between then and time_ns
    enum ecc_kind kind; // what it says alone; ECC_NONE: it goes with others
    int64_t storm;      // of ECC_STORM by counter: corrected errors within the window; else 0
    const struct ecc_item *storm_first; // the first of these
    uint64_t storm_until_ns;            // of ECC_STORM: when there are too few of them; else 0
    uint32_t burst;                     // set by ecc_bursts: its number, or NO_BURST
};

struct ecc_burst {
    const struct ecc_item **items; // of one GPU, ascending by time: Xids, then steps
    uint32_t count;
    const struct ecc_item *anchor; // the first that says something alone
    enum ecc_kind kind;
    bool has_storm; // a storm that stood at the time was taken into it
    uint64_t last_ns;
};

struct ecc_bursts {
    struct ecc_burst *items; // by time of the anchor, node, address
    uint32_t count;
};

// What all of hbm_ecc keeps.
struct hbm_ecc {
    struct detector_base base;
    struct ecc_config config;
    struct xid_log xids;
    struct ecc_counters counters;
    struct gpu_names names;
    struct keyed_rows incidents; // struct ecc_incident
    struct row_bound incident_bound;
};

// What the Xids and steps up to `now_ns` come to; all in the arena.
struct ecc_bursts ecc_find_bursts(const struct hbm_ecc *self, uint64_t now_ns, struct arena *arena);

// -- Verdict --------------------------------------------------------------------------------------

// An incident that was told of: found by node, GPU and the time of its anchor.
struct ecc_incident {
    struct row_head head;
    string_id node; // the key: up to `uuid`
    uint64_t address;
    uint64_t anchor_ns;
    string_id uuid; // STRING_NONE unless the address is not known
    uint32_t ended;
    uint64_t first_ns, last_ns;
    uint32_t anchor_code;  // an Xid's, or
    uint32_t anchor_field; // a counter's, where the code is 0
    string_id anchor_uuid;
    uint32_t kind;     // enum ecc_kind, the worst that it was
    uint32_t number;   // of the GPU's incidents, from 1
    uint32_t seen_xid; // an Xid told of it
    uint32_t seen_counter;
    uint32_t seen_dbe; // Xid 48
    uint32_t storm;    // a storm is part of it, and stands
    uint32_t seen;     // of the evaluation under way
};

// Corrected errors of the GPU within storm_window before `now_ns`. O(steps).
int64_t ecc_corrected_errors(const struct hbm_ecc *self, const struct ecc_incident *incident,
                             uint64_t now_ns);
// `burst` NULL: the incident is over, or turned out to be part of another one, as `why` says.
void ecc_verdict_build(const struct ecc_config *config, const struct ecc_incident *incident,
                       const struct ecc_burst *burst, const char *why, string_id uuid,
                       struct verdict_builder *builder);
