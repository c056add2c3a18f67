// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS subsystem says of a job: the answer to STATUS as text or as a JSON document, and
// the stream of MONITOR, likewise. Facts from NCCL's src/ras/client_support.cc and its user guide,
// "RAS", versions 2.24 to 2.30.
//
// Ranks are those of a communicator, hosts are addresses, times are local and say no zone.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_RAS_REPORT;  // the answer to STATUS, from its errors on
extern const struct line_reader READER_RAS_MONITOR; // "[2026-03-14 01:50:17] PEER_DEAD: …"

// The JSON document, also without the comma that 2.28.7 and 2.28.9 leave out; objects of the
// monitor. A document gives an event for each rank.
extern const struct decoder_type decoder_nccl_ras;

// The tagged line {"source": "nccl_ras", …}: the document under `document`, as an object or as the
// text of one, or a whole answer in text, or the members of a document in the line itself.
enum { NCCL_RAS_STATE_SIZE = 512 };
enum decode_category nccl_ras_tagged(void *state, struct slice object, struct arena *arena,
                                     struct event *event, struct decode_fault *fault);
enum decode_category nccl_ras_next(void *state, struct arena *arena, struct event *event,
                                   struct decode_fault *fault);
void nccl_ras_release(void *state);
