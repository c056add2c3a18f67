// SPDX-License-Identifier: Apache-2.0
// What a Flight Recorder dump is called.
#pragma once

#include "base/slice.h"

#include <stdbool.h>

// Whether PyTorch names only dumps so: "comm_lib_trace_rank_3", older "nccl_trace_rank_3", also
// with
// ".json", ".pickle", ".pkl" or ".gz" behind it.
bool flight_dump_path(struct slice path);
