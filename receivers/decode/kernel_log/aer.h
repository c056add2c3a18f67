// SPDX-License-Identifier: Apache-2.0
// Lines of the kernel log about PCI Express errors: AER reports, DPC, recovery.
//
// Source: Linux drivers/pci/pcie/aer.c, err.c and dpc.c in their wordings from 3.10 to 6.16.
#pragma once

#include "base/slice.h"
#include "pipeline/model/node_event.h"

// Whether `text` (without the transport's time and level) is such a line. If so, `kind`, `aer`,
// `address`, `port`, `severity`, `multiple`, `status`, `mask`, `vendor`, `device`, `bit`, `layer`,
// `driver` and, for AER_BIT, `detail` (the bit's name as written) are set, those that the line does
// not say to their empty values; the slices point into `text`. All else in `line` is left alone,
// and everything when it is false. Any bytes, any thread, no allocation, O(size).
bool kernel_aer_parse(struct slice text, struct kernel_line *line);
