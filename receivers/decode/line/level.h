// SPDX-License-Identifier: Apache-2.0
// How grave a line is, as loggers and what carries logs write it.
#pragma once

#include "receivers/decode/forms/rows.h"
#include "receivers/decode/line/frame.h"

// "ERROR", "err", "Critical", "ERROR2": in letters of any size. LEVEL_NOT_SAID: it is no level.
enum frame_level level_of_word(struct slice word);
// The same of a word, or of a number on a row's scale.
enum frame_level level_of_text(struct slice text, enum form_scale scale);
