// SPDX-License-Identifier: Apache-2.0
// What the name of a log says of who wrote it.
//
//   /var/log/pods/<namespace>_<pod>_<uid>/<container>/<n>.log        kubelet's
//   /var/log/containers/<pod>_<namespace>_<container>-<id>.log
//   …/attempt_<n>/<rank on the node>/…                               torchelastic's
//   …/worker-<id>-<job>-<pid>.err, python-core-worker-<id>_<pid>.log Ray's
//   …/workerlog.3                                                    Paddle's: rank on the node
//   …/rank_3, rank3.log, rank-3, rank.3/stderr, …; out.3 where the number of ranks is known
#pragma once

#include "receivers/decode/line/frame.h"

// Sets what is known in a frame that was cleared; slices point into `path`.
void place_read(struct slice path, uint32_t world_size, struct frame *frame);
