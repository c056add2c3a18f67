// SPDX-License-Identifier: Apache-2.0
// Ports of network cards as the infiniband collector of Prometheus' node_exporter writes them, line
// by line: one port for each card, port, node and time.
//
// Kept are the two states and the counters of errors of a link (those of traffic, discards and
// waiting are passed over: nobody reads them). Names are those of the files in sysfs. Source:
// node_exporter, collector/infiniband_linux.go; procfs, sysfs/class_infiniband.go; states: Linux,
// drivers/infiniband/core/sysfs.c.
#pragma once

#include "base/buffer.h"
#include "pipeline/component/decoder.h"

enum { IB_EXPOSED_COUNTERS = 7, IB_EXPOSED_PORTS_MAX = 4096 };

struct ib_port {
    uint64_t time_ns;
    struct slice device, node; // node empty: no label says it
    uint32_t number;
    int32_t state, physical; // as sysfs numbers them; -1: not said
    uint32_t present;        // bits, by counter
    uint64_t counters[IB_EXPOSED_COUNTERS];
};

// To be zeroed but for what stands first; everything it finds lies in `arena`.
struct ib_reading {
    struct arena *arena;
    struct decode_fault *fault; // of a line that is refused
    uint64_t observed_ns;       // time of series that say none
    struct slice node_label;    // label that names the node; empty: `node`

    struct ib_port *ports;
    uint32_t count, capacity;
    uint32_t *index; // port + 1, 0: free; twice the capacity
};
// Whether series of this name are kept.
bool ib_reading_keeps(struct slice metric);
// One line that is neither blank nor a comment, without its end. DECODE_NOTHING: a metric that is
// not kept.
enum decode_category ib_reading_take(struct ib_reading *reading, struct slice line);

// Appends the tagged line (ib_counters.h) of a port, without a line end.
void ib_port_write(const struct ib_port *port, struct slice node, struct buffer *out);
