// SPDX-License-Identifier: Apache-2.0
// What analyze says at its end, to standard error: what was read, what was refused and why, what
// was left out.
#pragma once

#include "pipeline/runtime/service.h"

// Text from files is made harmless for a terminal.
void closing_words_append(struct buffer *out, const struct report *report);
// The exit code for what was read: 0 when an event was, or the input is empty; 65 when records were
// refused or nothing in the files is known; 66 when no file matched or none could be opened, 77
// when that was for want of permission. Without `ignore_missing` also 66 when one of several inputs
// is not there, and 77 when one may not be read.
int closing_exit_code(const struct report *report, bool ignore_missing);
