// SPDX-License-Identifier: Apache-2.0
// The readers of messages, in the order in which they are asked.
#pragma once

#include "receivers/decode/line/reader.h"

extern const struct line_reader *const KERNEL_READERS[];  // the kernel's words
extern const struct line_reader *const NODE_READERS[];    // what programs say in kernel logs
extern const struct line_reader *const PROGRAM_READERS[]; // those of processes and launchers
