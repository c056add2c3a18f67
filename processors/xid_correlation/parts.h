// SPDX-License-Identifier: Apache-2.0
// The parts of xid_correlation: its rules, the choice of an Xid for a removal, the verdict.
#pragma once

#include "processors/cluster/detector.h"
#include "processors/cluster/pod_removal.h"
#include "processors/cluster/tables.h"
#include "processors/cluster/xid_log.h"
#include "processors/cluster/xid_text.h"

struct xid_config {
    struct duration window; // how long before the removal an Xid may be
    struct duration skew;   // and how long after it
    struct duration burst;  // Xids with no longer gap between them are one burst
    struct duration gap_free, gap_step;
    int64_t confidence, gauge_confidence;
    int64_t low_penalty, gap_penalty_max, no_gpu_penalty;
    int64_t max_xids, max_pods, max_removals, max_gpus, max_samples;
};

enum { XID_CONTEXT_MAX = 8 };

// The Xid that a removal is joined with.
struct xid_choice {
    const struct xid_entry *anchor;
    struct xid_judgement judgement;
    const struct xid_entry *context[XID_CONTEXT_MAX]; // of the same burst, ascending
    uint32_t context_count;
    enum recovery recovery; // what Xid 154 of the same GPU asks for; UNKNOWN: nothing
};

// Codes that matter here: those that can be an anchor, and those that go with one.
bool xid_correlation_wants(uint32_t code);
// False when no Xid of the node in the window can have led to a removal at `time_ns`. `entries` are
// sorted by xid_log_sort; those after `now_ns` are not there yet.
bool xid_choose(const struct xid_config *config, const struct xid_entry *const *entries,
                uint32_t count, string_id node, uint64_t time_ns, uint64_t now_ns,
                struct xid_choice *choice);

// One removal and what is known of it; `choice` NULL: it was joined with an Xid, but that no longer
// holds (the deletion was cancelled, or something else explains it).
struct xid_finding {
    const struct removal *removal;
    const struct pod_place *place;
    const struct xid_choice *choice;
    string_id uuid; // of the GPU; STRING_NONE: not known
};
void xid_verdict_build(const struct xid_config *config, const struct xid_finding *finding,
                       struct verdict_builder *builder);
