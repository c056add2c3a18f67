// SPDX-License-Identifier: Apache-2.0
// What NCCL's Inspector plugin writes: an object for each operation of a communicator, one a line,
// in a file for each process. Facts from NCCL's plugins/profiler/inspector/inspector_json.cc,
// format versions up to v4.0.
//
// The time is when the object was written, which is at the end of the job unless a dump interval is
// set; the rank is that of the communicator.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_nccl_inspector;

// The tagged line {"source": "nccl_inspector", …}: the object under `document`, or its members in
// the line itself.
enum decode_category nccl_inspector_tagged(void *state, struct slice object, struct arena *arena,
                                           struct event *event, struct decode_fault *fault);
