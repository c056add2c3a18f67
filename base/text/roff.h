// SPDX-License-Identifier: Apache-2.0
// Text in a manual page, in the man(7) language that groff and mandoc read.
#pragma once

#include "base/buffer.h"

// Appends `text` so that it is shown as it stands, also at the beginning of a line and within a
// quoted argument. What stands between backticks is shown bold, without them. A newline stays one.
void roff_text(struct buffer *out, const char *text);
// The same, but backticks are characters like others: for lines of code.
void roff_code(struct buffer *out, const char *text);
// One line ".NAME "TEXT"", such as roff_macro(out, "SH", "OPTIONS").
void roff_macro(struct buffer *out, const char *name, const char *text);
