// SPDX-License-Identifier: Apache-2.0
// Which kinds of evidence came, how much of it, and what its absence leaves unchecked.
//
// A few bits and counts; nothing is allocated.
#pragma once

#include "pipeline/model/batch.h"

// What else tells of something than the kind of event that is asked for.
enum seen_evidence { SEEN_HANG, SEEN_KERNEL_LOG };

// Zeroed before the first batch.
struct seen {
    bool failed;         // a log told of ranks that failed
    bool unread;         // a log told of what no processor of the pipeline takes
    uint32_t evidence;   // 1 << enum seen_evidence: such came, and is looked at
    uint64_t gpu_fields; // 1 << enum gpu_field: any GPU had it
    uint32_t kinds;      // 1 << enum event_kind
    uint32_t kubernetes; // 1 << enum kubernetes_kind
    uint64_t event_count;
    uint64_t first_ns, last_ns; // of the events that have a time of their own; both 0: none has
};

// What was not checked for want of evidence.
struct absence {
    const char *what;   // "hangs (no Flight Recorder dumps)"
    const char *advice; // how to switch that evidence on: sentences
};

enum { SEEN_ABSENT_MAX = 10 };

// Whether anything came beside the reports of training processes and of task schedulers.
static inline bool seen_nodes(const struct seen *seen) {
    return (seen->kinds & ~(1u << EVENT_TELEMETRY | 1u << EVENT_SPAN)) != 0;
}
// Whether it is of a log, and of a kind that no processor of the batch's pipeline takes.
bool seen_is_unread(const struct batch *batch, const struct event *event);
void seen_note(struct seen *seen, const struct batch *batch);
// Fills `absent`, and returns how many there are.
uint32_t seen_absent(const struct seen *seen, const struct absence *absent[SEEN_ABSENT_MAX]);
