// SPDX-License-Identifier: Apache-2.0
// What programs' loggers say of an exception: how grave it is, whether the process goes on with it,
// and the exception itself where it stands behind a head in one line.
//
// "2026-11-20 10:10:18 ERROR trainer: step 501 failed: RuntimeError: CUDA out of memory" says that
// a process may have ended, as a traceback does that was logged. A line below ERROR, and one that
// says that the process tries again or does without, says nothing of the kind. Where no level is
// said, a head alone ("[Rank 3] "), or words of an end ("training failed: ") must stand in front.
#pragma once

#include "receivers/decode/app_log/traceback.h"
#include "receivers/decode/line/frame.h"

// Whether the text holds a level of ERROR or WARNING, as a word of its own.
bool logged_has_level(struct slice text);
// Whether it says that the process goes on with what failed.
bool logged_goes_on(struct slice text);
// The same, and that it was one of several tries: of a line in which an exception stands.
bool logged_is_tried_again(struct slice line);
// The exception that a line says, behind a head of `front`. `level`: said beside the line.
bool logged_raised(struct slice line, enum frame_level level, struct raised *raised,
                   struct slice *front);
