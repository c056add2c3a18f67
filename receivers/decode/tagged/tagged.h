// SPDX-License-Identifier: Apache-2.0
// Lines of several sources in one stream: each is a JSON object that says under `source` what it
// is, and has its time, node, pod and rank beside it (json/tagged_keys.h). Members may stand in any
// order.
//
//     fr_dump, fr_entry  PyTorch's Flight Recorder (flight_recorder/)
//     k8s_watch          Kubernetes objects (kubernetes/)
//     kmsg               lines of the kernel (kernel_log/)
//     dcgm               counters of a GPU (dcgm/)
//     sysfs_aer          counters of a PCI device (sysfs_aer/)
//     rank_map           who runs where (rank_map/)
//     app_log            lines of a training process (app_log/)
//     launcher_log       lines of a launcher
//     slurm              lines of Slurm's programs (slurm/)
//     nccl_ras           documents of NCCL's RAS (nccl_ras/)
//     nccl_inspector     operations of NCCL's Inspector (nccl_inspector/)
//     ib_counters        counters and states of network cards (ib_counters/)
//     error_file         error files of torchelastic (launcher/)
//
// Another source is refused (DECODE_UNKNOWN_SOURCE) with the list of those that are known.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_tagged;

bool tagged_knows(struct slice source);
