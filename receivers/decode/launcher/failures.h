// SPDX-License-Identifier: Apache-2.0
// The line in which NVIDIA's ft_launcher tells of all workers that failed: an event for each. What
// torchrun and its like write of one worker is read by rows (forms/rows/torchelastic.forms).
#pragma once

#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_FAILURES;
