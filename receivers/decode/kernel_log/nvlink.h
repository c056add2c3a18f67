// SPDX-License-Identifier: Apache-2.0
// What the text behind the number of an Xid or SXid says of links and units.
//
// Sources: NVIDIA's Xid catalog; kernel logs as shown by leptonai/gpud.
#pragma once

#include "pipeline/model/node_event.h"

// From `detail`, by `code`: `link`, `fatal`, `unit`, `action`, `caused_by`; those that are not said
// to their empty values. Slices point into `detail`. Any bytes, no allocation, O(size).
void nvlink_read_xid(struct kernel_line *line);
// "Fatal, Link 41 …", "Non-fatal, Link 19 …"; of a switch's controller, its heat and its modules
// there is no word on severity. False: it tells more of the SXid before.
bool nvlink_read_sxid(struct kernel_line *line);
