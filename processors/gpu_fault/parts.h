// SPDX-License-Identifier: Apache-2.0
// The parts of gpu_fault: what GPUs said (amd.c, and the log of Xids), which of it is one
// fault (burst.c), which GPUs were lost together (together.c), the verdict (verdict.c).
#pragma once

#include "processors/cluster/detector.h"
#include "processors/cluster/gpu_names.h"
#include "processors/cluster/row_bound.h"
#include "processors/cluster/tables.h"
#include "processors/cluster/xid_gauge.h"
#include "processors/cluster/xid_log.h"

struct gpu_fault_config {
    struct duration burst;    // what a GPU says with no longer gap is one fault
    struct duration together; // GPUs of one node that are lost within it are one fault
    struct duration remember; // how long another detector may still tell of it
    bool application;         // Xids of programs, too
    int64_t confidence, gauge_confidence, low_penalty;
    int64_t max_xids, max_amd, max_gpus, max_samples, max_faults;
};

// -- What AMD's driver says -----------------------------------------------------------------------

enum { AMD_CODE_MAX = 48 };

struct amd_line {
    struct row_head head;
    string_id node; // the key: up to `kind`
    uint64_t address;
    uint64_t time_ns;
    uint32_t kind;   // enum observation_kind
    uint32_t failed; // a reset that did not succeed
    uint32_t over;   // a reset that did; of a hang: that it is over
    uint32_t count;  // of the lines of one key
    int64_t errors;  // uncorrectable ones; 0: not said
    char code[AMD_CODE_MAX];
};

extern const struct row_type AMD_LINE_ROWS;

struct amd_log {
    struct keyed_rows rows; // AMD_LINE_ROWS
    struct row_bound bound;
};

// Observations of other kinds, and those without an address, are passed over. O(1).
void amd_log_take(struct amd_log *log, const struct event *event, struct arena *scratch);
const char *amd_line_uid(const struct amd_line *line, struct arena *arena);

// -- Faults ---------------------------------------------------------------------------------------

// From light to grave.
enum gpu_fault_kind { FAULT_NONE, FAULT_APPLICATION, FAULT_ERROR, FAULT_LOST };

// An Xid or a line of AMD's driver; exactly one of both.
struct fault_item {
    const struct xid_entry *xid;
    const struct amd_line *amd;
    uint64_t address; // the GPU: up to `node`
    string_id node;
    enum gpu_fault_kind kind; // what it says alone; FAULT_NONE: it goes with others
    uint64_t time_ns;
    struct xid_judgement judgement;
    const char *uid; // or NULL: nobody asked for it yet
};

const char *fault_item_uid(const struct fault_item *item, struct arena *arena);

struct fault_burst {
    const struct fault_item *items; // of one GPU, ascending by time
    uint32_t count;
    const struct fault_item *anchor; // names it: of the gravest the first
    uint64_t first_ns, last_ns;      // of what says something alone
};

struct fault_bursts {
    struct fault_burst *items; // by time, node, address
    uint32_t count;
};

// What all of gpu_fault keeps.
struct gpu_fault {
    struct detector_base base;
    struct gpu_fault_config config;
    struct xid_log xids;
    struct amd_log amd;
    struct gpu_names names;
    struct xid_gauges gauges;
    struct keyed_rows faults; // struct told_fault
    struct row_bound fault_bound;
};

bool gpu_fault_wants(uint32_t code);
// What was said up to `now_ns`, as faults; all in the arena. O(rows · log).
struct fault_bursts gpu_fault_find(const struct gpu_fault *self, uint64_t now_ns,
                                   struct arena *arena);

// A fault that was found: by node, GPU and the time it began when it was first found.
struct told_fault {
    struct row_head head;
    string_id node; // the key: up to `anchor_ns`
    uint64_t address;
    uint64_t anchor_ns;
    uint64_t first_ns, last_ns;
    // Of the fault whose id the verdict of several has that this one is part of; 0: of none.
    uint64_t with_ns, with_address;
    uint32_t told;                 // a verdict of ours stands
    uint32_t seen;                 // of the evaluation under way
    char told_by[VERDICT_ID_SIZE]; // the verdict of another detector that tells of it; "": none
};

// -- GPUs that were lost together (together.c) ----------------------------------------------------

// A burst, and the fault that it is.
struct judged_burst {
    const struct fault_burst *burst;
    struct told_fault *fault;
    uint64_t anchor_ns;       // of the fault: its row may go while others are made
    struct loss_group *group; // NULL: it is told alone
    bool is_stale;            // some of what was said of it is forgotten
};

// GPUs of one node that were lost at once.
struct loss_group {
    struct judged_burst **members; // in order of the losses
    uint32_t count;                // 1: the others are forgotten
    bool is_told;                  // at this evaluation
};

// Sets `group` of each; all in the arena. O(n log n).
void gpu_fault_group(const struct gpu_fault_config *config, struct judged_burst *judged,
                     uint32_t count, struct arena *arena);
// Whose id the verdict of the group has; NULL: of one that is forgotten.
struct told_fault *gpu_fault_group_first(const struct loss_group *group);

// -- Verdicts -------------------------------------------------------------------------------------

// `told_by`: the verdict that tells of it now; "": this one.
void gpu_fault_verdict(const struct gpu_fault *self, const struct told_fault *fault,
                       const struct fault_burst *burst, const char *told_by,
                       struct verdict_builder *builder);
// Of the group, with the id of the fault `first`.
void gpu_fault_together_verdict(const struct gpu_fault *self, const struct loss_group *group,
                                const struct told_fault *first, struct verdict_builder *builder);
