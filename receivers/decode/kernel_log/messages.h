// SPDX-License-Identifier: Apache-2.0
// Messages of one line that a word tells (words.h): those of the kernel, and those that programs
// write of the same matters.
#pragma once

#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_KERNEL_MESSAGES;
extern const struct line_reader READER_NODE_MESSAGES; // of programs
