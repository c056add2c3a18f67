// SPDX-License-Identifier: Apache-2.0
// What a condition of a Node or an Event about one means, by the rows of forms (docs/forms.md).
// Each is made into one line, so that a row of a user's own reads it as well:
//
//     node condition SysLogsXIDError=True, SysLogsXIDErrorIsNotHealthy: ErrorCode:79 PCI:0000:9b:00
//     node event KernelOops from kernel-monitor: BUG: unable to handle page fault for address: 0x8
#pragma once

#include "receivers/decode/line/reading.h"

struct kubernetes_condition;
struct kubernetes_object;

// Where a row knows the condition or the Event; `forms` NULL: those that are built in. The line
// lies in the reading's arena. False: no row does, and the reading is cleared.
bool kubernetes_read_condition(const struct forms *forms, const struct kubernetes_condition *said,
                               struct reading *reading, struct slice *line);
bool kubernetes_read_event(const struct forms *forms, const struct kubernetes_object *event,
                           struct reading *reading, struct slice *line);
