// SPDX-License-Identifier: Apache-2.0
// PyTorch Flight Recorder dumps: what each rank's recorder of collective operations says.
//
// A dump is one record, the whole file. Who wrote it stands nowhere in it: the rank is the number
// at the end of the file's name ("comm_lib_trace_rank_3", also with an extension such as ".json" or
// ".gz" behind it), or `rank` of a tagged line. Both encodings give the same struct flight_dump.
// Formats 2.0 to 2.10 are known; unknown keys are passed over, absent ones and null are "not said".
// Source: PyTorch, torch/csrc/distributed/c10d/FlightRecorder.hpp.
#pragma once

#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"

extern const struct decoder_type decoder_flight_json;   // "flight_recorder"
extern const struct decoder_type decoder_flight_pickle; // "pickle"

enum { FLIGHT_STATE_SIZE = 512 };

// One tagged line: a whole dump under `dump` (source fr_dump) or one entry of the recorder as it
// changes under `entry` (fr_entry). `state` is FLIGHT_STATE_SIZE zeroed bytes of one source,
// aligned as a pointer is.
enum decode_category flight_tagged(void *state, struct slice object, struct arena *arena,
                                   struct event *event, struct decode_fault *fault);
// As decoder_type.tell_refused, of a tagged line with a whole dump that breaks off, or is no JSON:
// what stands before the fault is known. False: the rank does not.
bool flight_tagged_tell_refused(struct slice start, struct slice why, struct arena *arena,
                                struct event *event);
