// SPDX-License-Identifier: Apache-2.0
// The reader of what stands in rows (receivers/decode/forms): single lines, and those that `then`
// gathers.
#pragma once

#include "receivers/decode/line/reader.h"

extern const struct line_reader READER_FORMS;
// The same, and the rows of the kernel's lines.
extern const struct line_reader READER_KERNEL_FORMS;
// Of lines that say whose a traceback is (exception.h: OWNER_READERS).
extern const struct line_reader READER_OWNERS;
