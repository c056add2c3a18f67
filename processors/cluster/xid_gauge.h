// SPDX-License-Identifier: Apache-2.0
// The metric of the last Xid, DCGM_FI_DEV_XID_ERRORS: a change of it is an Xid that is told of.
//
// Samples wait until all that came before them is there; a new code then goes into the log of Xids
// (xid_log.h). The first sample of a GPU is what was there before. Not thread-safe.
#pragma once

#include "processors/cluster/gpu_names.h"
#include "processors/cluster/sample_queue.h"
#include "processors/cluster/xid_log.h"

extern const struct row_type XID_GAUGE_SAMPLE_ROWS, XID_GAUGE_ROWS;

// Its tables are the owner's state rows.
struct xid_gauges {
    struct sample_queue samples; // rows: XID_GAUGE_SAMPLE_ROWS
    struct keyed_rows rows;      // XID_GAUGE_ROWS
    struct row_bound bound;
    struct xid_log *log;
    const struct gpu_names *names;
    bool (*wanted)(uint32_t code);
};

// `log`, `names`: where Xids go, and what addresses are looked up in; they live as long.
void xid_gauges_start(struct xid_gauges *gauges, struct xid_log *log, const struct gpu_names *names,
                      bool (*wanted)(uint32_t code), uint32_t max_gpus, uint32_t max_samples);
// An EVENT_GPU_SAMPLE.
static inline void xid_gauges_take(struct xid_gauges *gauges, const struct event *event,
                                   struct arena *scratch) {
    sample_queue_take(&gauges->samples, event, scratch);
}
// Looks at the samples up to and with `now_ns`.
static inline void xid_gauges_read(struct xid_gauges *gauges, uint64_t now_ns,
                                   struct arena *scratch) {
    sample_queue_read(&gauges->samples, now_ns, scratch);
}
