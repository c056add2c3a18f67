// SPDX-License-Identifier: Apache-2.0
// Which kinds of evidence came, and which of those that were missing would have said more.
//
// A few bits; nothing is allocated.
#pragma once

#include "pipeline/model/batch.h"

struct seen {
    uint32_t kinds;      // 1 << enum event_kind
    uint32_t kubernetes; // 1 << enum kubernetes_kind
    uint64_t gpu_fields; // 1 << enum gpu_field: any GPU had it
};

// Whether anything came beside what training processes and schedulers of tasks say of themselves.
static inline bool seen_nodes(const struct seen *seen) {
    return seen != NULL && (seen->kinds & ~(1u << EVENT_TELEMETRY | 1u << EVENT_SPAN)) != 0;
}
void seen_note(struct seen *seen, const struct batch *batch);
// What was absent, and how to switch it on, one text after another; NULL behind the last. Nothing
// when there was only telemetry of processes: then nobody looks at nodes.
const char *seen_absent(const struct seen *seen, uint32_t index);
