// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's driver and the PCIe error reporting write into the kernel log (xid.h, aer.h).
#pragma once

#include "pipeline/model/node_event.h"
#include "receivers/decode/line/reader.h"
#include "receivers/decode/line/reading.h"

extern const struct line_reader READER_NVIDIA;
extern const struct line_reader READER_AER;

// A line of which nothing is said.
#define KERNEL_LINE_EMPTY                                                                          \
    ((struct kernel_line){.address = PCI_NONE, .port = PCI_NONE, .pid = -1, .link = -1})

// READ_EVENT of a line whose slices point into `text`, or into what lives as long as the arena.
enum read_result nvidia_give(const struct kernel_line *line, struct slice text,
                             const struct frame *frame, struct reading *reading);
// A copy of a message as UTF-8, in the arena, to be read for good.
struct slice nvidia_own_text(struct slice text, struct arena *arena);
