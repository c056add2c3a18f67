// SPDX-License-Identifier: Apache-2.0
// Counters and states of network cards, as Linux shows them below /sys/class/infiniband and
// /sys/class/net: lines of a path and a value, as `grep . FILES` prints them, and tagged lines.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/line/reader.h"

// "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:3"
extern const struct line_reader READER_IB_COUNTERS;

// The tagged line {"source": "ib_counters", "device": "mlx5_0", "port": 1, "pci_bus_id": …,
// "state": "4: ACTIVE", "phys_state": "5: LinkUp", "counters": {name: number},
// "hw_counters": {name: number}}: an event for the state, and one for each counter.
enum { IB_COUNTERS_STATE_SIZE = 256 };
enum decode_category ib_counters_tagged(void *state, struct slice object, struct arena *arena,
                                        struct event *event, struct decode_fault *fault);
enum decode_category ib_counters_next(void *state, struct arena *arena, struct event *event,
                                      struct decode_fault *fault);
