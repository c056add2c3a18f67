// SPDX-License-Identifier: Apache-2.0
// What a training process writes to its log: the lines of NCCL's watchdog in PyTorch. All others
// are DECODE_NOTHING.
//
//     [rank3]:[E810 03:04:11.06 ProcessGroupNCCL.cpp:683] [Rank 3] Watchdog caught collective
//     operation timeout: WorkNCCL(SeqNum=…, OpType=…, NumelIn=…, NumelOut=…, Timeout(ms)=…) ran for
//     … milliseconds before timing out.
//
// and those that say which work was enqueued and completed last. Older versions leave out fields
// and prefixes. The rank in the job is that of the tagged line, else "[rank3]:" at the front, else
// the one in the brackets ("[PG ID 0 PG GUID 0(default_pg) Rank 3]") when they name no other group
// than the default one: within a group ranks are counted anew.
//
// Source: PyTorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and lines seen in public logs.
#pragma once

#include "pipeline/component/decoder.h"

// A record is one plain line. Its time: an RFC 3339 time at its front (kubectl logs --timestamps),
// else the month, day and time of its prefix, which say neither year nor zone (taken as UTC, and
// never as later than the input), else when the input was written or read.
extern const struct decoder_type decoder_app_log;

// The tagged line {"source": "app_log", "timestamp_ns": …, "rank": …, "message": …}.
enum { APP_LOG_STATE_SIZE = 0 };
enum decode_category app_log_tagged(void *state, struct slice object, struct arena *arena,
                                    struct event *event, struct decode_fault *fault);
