// SPDX-License-Identifier: Apache-2.0
// What torchrun and its like (accelerate, Lightning, NVIDIA's ft_launcher) log of their workers,
// one line each: a worker failed, was sent a signal; the launcher itself was told to stop; it
// starts the workers again.
#pragma once

#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_TORCHELASTIC;
// "SIGTERM", "Signals.SIGTERM" or "15" at the front; false: none that is known.
bool launcher_signal(struct slice *text, int64_t *number);
// "-9": a signal; else an exit code.
void launcher_set_exit(int64_t code, struct reading *reading);
// A whole number with its sign.
bool launcher_number(struct slice *text, int64_t *number);
