// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's driver says in the kernel log: Xid, lost GPUs, the UUID of a GPU, NVSwitch SXid.
//
// Sources of the shapes: NVIDIA's Xid documentation; kernel logs as shown by leptonai/gpud and
// NVIDIA/NVSentinel.
#pragma once

#include "pipeline/model/node_event.h"

enum kernel_xid_parse {
    KERNEL_XID_NONE,   // another line, or a broken one
    KERNEL_XID_LINE,   // one of them: `line` is filled
    KERNEL_XID_FIRST,  // the first of the three lines that tell of a lost GPU: `address` is filled
    KERNEL_XID_CUT,    // begins like an Xid or SXid, and ends before its number
    KERNEL_XID_DETAIL, // tells more of the SXid before it
    KERNEL_XID_LAST,   // the last of them: KERNEL_GPU_LOST, whose address the first one said
};

// `text` is without prefixes of the transport. On KERNEL_XID_LINE and _LAST sets kind, address and
// what belongs to the kind; slices point into `text`. Any bytes, no allocation, any thread.
enum kernel_xid_parse kernel_xid_parse(struct slice text, struct kernel_line *line);
