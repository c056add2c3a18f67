// SPDX-License-Identifier: Apache-2.0
// The parts of hbm_ecc: what counters did (hbm_ecc_counters.c), which items are one incident and
// how bad it is (hbm_ecc_burst.c), the verdict (hbm_ecc_verdict.c).
#pragma once

#include "processors/cluster/gpu_names.h"
#include "processors/cluster/sample_queue.h"
#include "processors/cluster/xid_log.h"

struct ecc_rules {
    uint64_t burst_ns;
    uint64_t storm_window_ns;
    int64_t storm_errors; // more corrected errors than this in the window
    int64_t remaps_max;   // uncorrectable remaps from which the GPU is to be replaced
    int64_t retired_uncorrected_max;
    int64_t retired_max;
    int confidence_both, confidence_xid, confidence_counter, confidence_storm;
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
    uint32_t is_limit; // a limit was passed with it
    uint64_t since_ns; // of the sample before
    int64_t from, to;
};

struct ecc_counters {
    struct sample_queue samples;
    struct keyed_rows gpus;
    struct keyed_rows steps;
    uint32_t max_gpus, max_steps;
    uint64_t evicted;
    uint64_t horizon_ns; // steps of before may have gone
};

void ecc_counters_init(struct ecc_counters *counters, uint32_t max_samples, uint32_t max_gpus,
                       uint32_t max_steps);
void ecc_counters_release(struct ecc_counters *counters);
void ecc_counters_state(struct ecc_counters *counters, struct state_list *list);
void ecc_counters_restored(struct ecc_counters *counters);
// An event of kind EVENT_GPU_SAMPLE.
void ecc_counters_take(struct ecc_counters *counters, const struct ecc_rules *rules,
                       const struct event *event, struct arena *scratch);
// Reads the samples up to `until_ns` in order of time and notes which counters rose.
void ecc_counters_read(struct ecc_counters *counters, const struct ecc_rules *rules,
                       uint64_t until_ns, struct arena *scratch);
void ecc_counters_expire(struct ecc_counters *counters, uint64_t before_ns);
// The value of the newest sample that has the field; false when none has.
bool ecc_counters_value(const struct ecc_counters *counters, string_id node, string_id uuid,
                        pci_address address, enum ecc_field field, int64_t *value);

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
    uint32_t burst;     // set by ecc_bursts: its number, or NO_BURST
};

struct ecc_burst {
    const struct ecc_item **items; // of one GPU, ascending by time: Xids, then steps
    uint32_t count;
    const struct ecc_item *anchor; // the first that says something alone
    enum ecc_kind kind;
    uint64_t last_ns;
};

struct ecc_bursts {
    struct ecc_burst *items; // by time of the anchor, node, address
    uint32_t count;
};

// What the Xids and steps up to `now_ns` come to; all in the arena.
struct ecc_bursts ecc_find_bursts(const struct ecc_rules *rules, const struct xid_log *xids,
                                  const struct ecc_counters *counters,
                                  const struct gpu_names *names, uint64_t now_ns,
                                  struct arena *arena);

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
    uint32_t seen;     // of the evaluation under way
};

// Corrected errors of the GPU within the window before `now_ns`. O(steps).
int64_t ecc_counters_corrected(const struct ecc_counters *counters, const struct gpu_names *names,
                               const struct ecc_incident *incident, uint64_t window_ns,
                               uint64_t now_ns);
void ecc_verdict_build(const struct ecc_rules *rules, const struct ecc_incident *incident,
                       const struct ecc_burst *burst, string_id uuid, struct arena *arena,
                       struct verdict *out);
// What is said of an incident that is over, or that turned out to be part of another one.
void ecc_verdict_end(const struct ecc_incident *incident, const char *why, string_id uuid,
                     struct arena *arena, struct verdict *out);
