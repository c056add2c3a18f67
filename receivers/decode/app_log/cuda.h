// SPDX-License-Identifier: Apache-2.0
// What PyTorch says of a GPU that ran out of memory or failed, as an exception's message.
#pragma once

#include "receivers/decode/line/reading.h"

// True: `reading` is a cuda_oom or a cuda_error with what the message says. "HIP" stands for "CUDA"
// on AMD's GPUs. The message may be all of it or its first line.
bool cuda_read(struct slice message, struct reading *reading);
// Whether lines may follow that belong to it.
bool cuda_runs_on(struct slice message);
