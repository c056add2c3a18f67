// SPDX-License-Identifier: Apache-2.0
// The summary that torchrun prints when a worker failed: one event for each failure that it lists.
// The first of them is what the launcher noticed first, which need not be the cause.
#pragma once

#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_SUMMARY;
// "-9": a signal; else an exit code.
void launcher_set_exit(int64_t code, struct reading *reading);
// A whole number with its sign.
bool launcher_number(struct slice *text, int64_t *number);
