// SPDX-License-Identifier: Apache-2.0
// Where the threads of a Python process stood: what `py-spy dump` prints, as text and with --json.
// Facts from py-spy's src/dump.rs and src/stack_trace.rs, and from its output (version 0.4).
//
// An event tells of the main thread, another one of the thread that holds the interpreter's lock
// when that is not the main thread. The dump says no time, no host and no rank.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_PY_SPY;   // the text
extern const struct decoder_type decoder_py_spy; // a thread, one of the array that --json prints
