// SPDX-License-Identifier: Apache-2.0
// In which zone were kernel logs written whose times say none? Only for inputs that end, where all
// else has been read before them.
//
// Two kinds of evidence, and none is guessed from less:
// - The same fact in the log and in counters: an Xid of a GPU (DCGM) or that it fell off the bus
//   (its samples end, those of its node go on), errors of a PCI device (AER).
//   Two samples say between which moments it came, and the log's time lies a whole number of
//   quarters of an hour from there. All such pairs must agree; one that fits without any shift
//   proves UTC. A single pair counts for whole hours only.
// - All of the logs together are about as long as all other inputs together and lie within these in
//   exactly one zone, which is not UTC. A log that goes back days, to the boot, never fits.
//
// Cost: a look into a hash for each sample. Bounds: ZONE_COUNTERS_MAX, ZONE_CHANGES_MAX; what
// is beyond is no evidence.
#pragma once

#include "base/table/row_index.h"
#include "base/table/table.h"
#include "pipeline/component/local_times.h"
#include "pipeline/component/node_names.h"
#include "pipeline/model/batch.h"

enum { ZONE_COUNTERS_MAX = 65536, ZONE_CHANGES_MAX = 4096 };

struct zone_evidence {
    struct table counters;  // what the newest sample of each device said
    struct row_index index; // … by node and address
    struct table changes;   // a sample says other than the one before it
};

struct zone_finding {
    int32_t quarters; // of an hour, ahead of UTC; 0: UTC, or not known
    bool by_facts;    // else by how long the inputs are
};

void zone_evidence_init(struct zone_evidence *evidence);
void zone_evidence_release(struct zone_evidence *evidence);
// Samples of GPUs and of AER's counters in the batch, which have their nodes' keys.
void zone_evidence_note(struct zone_evidence *evidence, const struct batch *batch);

// The last time that any of them says, without those that stand alone; 0: none. O(sources).
uint64_t zone_latest_ns(const struct table *clocks);
// `clocks` (struct source_clock) are those of the other inputs. Whether zone_settle may find a
// zone, whatever the times are. O(sources).
bool zone_may_settle(const struct zone_evidence *evidence, struct table *clocks);
// O(changes · facts + sources).
struct zone_finding zone_settle(const struct zone_evidence *evidence, struct table *clocks,
                                const struct node_names *names, const struct local_times *times);
