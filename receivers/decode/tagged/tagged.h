// SPDX-License-Identifier: Apache-2.0
// Lines of several sources in one stream: each is a JSON object that says under `source` what it
// is, and has its time, node, pod and rank beside it (tagged_keys.h). Members may stand in any
// order.
//
//     fr_dump, fr_entry  PyTorch's Flight Recorder   (flight.h)
//     k8s_watch          Kubernetes objects          (kubernetes.h)
//     kmsg               lines of the kernel         (kernel.h)
//     dcgm               counters of a GPU           (dcgm.h)
//     sysfs_aer          counters of a PCI device    (sysfs_aer.h)
//     rank_map           who runs where              (rank_map.h)
//     app_log            lines of a training process (app_log.h)
//
// Another source is refused (DECODE_UNKNOWN_FIELD) with the list of those that are known.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_tagged;
