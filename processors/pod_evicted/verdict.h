// SPDX-License-Identifier: Apache-2.0
// From what is known of one pod's removal to the verdict that people read.
#pragma once

#include "processors/cluster/detector.h"
#include "processors/cluster/pod_removal.h"
#include "processors/cluster/verdict_builder.h"
#include "processors/pod_evicted/node_conditions.h"

enum eviction_kind {
    EVICTION_NODE_PRESSURE,
    EVICTION_POD_LIMIT,
    EVICTION_TAINT,
    EVICTION_PREEMPTED,
    EVICTION_API,
    EVICTION_RECLAIMED, // a controller empties a node that its cloud takes back
};

struct pod_evicted_config {
    struct duration window, skew, retention;
    bool sustained, taint, preempted, api_eviction;
    int64_t confidence_full, confidence_partial, confidence_pod_limit, confidence_other;
    int64_t unknown_pressure_penalty;
    int64_t max_removals, max_pods, max_conditions;
};

struct eviction_finding {
    const struct removal *removal; // located
    const struct pod_place *place;
    enum eviction_kind kind;
    bool cancelled; // the removal was taken back: the verdict ends
    // Of the node, at the moment; NULL: none.
    const struct transition *transition;
    enum node_condition condition; // of `transition`
    // Where there is none in the window: one that is older and still held.
    const struct transition *sustained;
    enum node_condition sustained_condition;
    bool show_sustained; // as evidence, for context
};

void eviction_verdict_build(const struct eviction_finding *finding,
                            const struct pod_evicted_config *config,
                            struct verdict_builder *builder);
// Changes when anything does that the verdict is made of; never 0.
uint64_t eviction_finding_hash(const struct eviction_finding *finding);
