// SPDX-License-Identifier: Apache-2.0
// Who runs where: one JSON object a line for each rank, with its node, pod, GPU and process.
//
//     {"rank": 6, "local_rank": 2, "k8s.node.name": "gpu-node-02", "k8s.pod.name": "worker-1",
//      "k8s.namespace.name": "train", "gpu": "2", "UUID": "GPU-…", "pci_bus_id":
//      "00000000:45:00.0", "process.pid": 41006, "observed_time_ns": 1794992400000000000}
//
// Only `rank` must be there; node is host.name where there is no k8s.node.name, and `gpu` may be
// text or number. Other members are passed over.
#pragma once

#include "pipeline/component/decoder.h"

// Without a time in the line its time is when the input was written or read.
extern const struct decoder_type decoder_rank_map;

// The tagged line with `source` "rank_map".
enum decode_category rank_map_tagged(void *state, struct slice object, struct arena *arena,
                                     struct event *event, struct decode_fault *fault);
