// SPDX-License-Identifier: Apache-2.0
// The decoder of torchelastic's error files (TORCHELASTIC_ERROR_FILE): one JSON document that a
// worker writes when it ends by an exception.
//
// {"message": {"message": "RuntimeError: …", "extraInfo": {"py_callstack": …, "timestamp": "…"}}},
// copies with "errorCode", or "message" as a plain text. No rank, host or pid stands in it: the
// attempt and the local rank are those of the path (…/attempt_1/3/error.json). One that breaks off
// is DECODE_TRUNCATED; an object that is none of these is DECODE_NOTHING.
#pragma once

#include "pipeline/component/decoder.h"

extern const struct decoder_type decoder_error_file;

// The tagged line {"source": "error_file", "path": …, "document": …}: the document is the file, as
// an object or as a text. The line's time, node and rank stand for what it does not say.
enum decode_category error_file_tagged(void *state, struct slice object, struct arena *arena,
                                       struct event *event, struct decode_fault *fault);

// Whether a file of this name can be nothing else: error.json in a folder that is a number.
bool error_file_path(struct slice path);
