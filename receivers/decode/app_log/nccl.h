// SPDX-License-Identifier: Apache-2.0
// What NCCL writes: its own warnings, and the errors that PyTorch shows with NCCL's last words.
//
//     node-07:41207:41390 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from …
//     … NCCL error: remote process exited or there was a network error, NCCL version 2.27.3
//     ncclRemoteError: A call failed possibly due to a network error or …
//     Last error:
//     NET/IB: Got completion from peer …
#pragma once

#include "receivers/decode/app_log/rank_words.h"
#include "receivers/decode/line/reading.h"

enum read_result nccl_warning(struct said *said, struct reading *reading);
enum read_result nccl_error(struct said *said, struct reading *reading);
// The message holds the first line of such an error.
enum read_result nccl_error_begin(struct reading *reading);
