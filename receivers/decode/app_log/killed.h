// SPDX-License-Identifier: Apache-2.0
// How a process ended, in the words of the shell, of Python's faulthandler, of a handler of fatal
// signals, or of the parent that lost a child.
#pragma once

#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_FAULTHANDLER; // "Fatal Python error: …", several lines
extern const struct line_reader READER_KILLED;       // "Killed", "Aborted (core dumped)", …

// The message of an exception that tells of a DataLoader's worker: true, and `reading` is a
// worker_killed.
bool killed_child_read(struct slice message, struct reading *reading);
