// SPDX-License-Identifier: Apache-2.0
// What flows: one thing that happened, decoded once.
//
// The header is common to all kinds; the payload of a kind lies in the batch's arena or points into
// the receiver's own buffer. Both are gone when the batch has been consumed: a stage that wants to
// keep something copies it into its tables.
#pragma once

#include "base/intern.h"

#include <stdbool.h>
#include <stdint.h>

enum { RANK_NONE = -1 };

// Largest rank and world size that are accepted; a record beyond it is refused with its reason.
#define RANK_MAX INT32_C(2147483646)

enum event_kind {
    EVENT_TELEMETRY, // struct telemetry: what a training process says of its memory and phases
    // Those of node_event.h:
    EVENT_FLIGHT,
    EVENT_KERNEL,
    EVENT_GPU_SAMPLE,
    EVENT_AER_COUNTERS,
    EVENT_KUBERNETES,
    EVENT_RANK_MAP,
    EVENT_APP_LINE,
    EVENT_SPAN,        // struct span_event
    EVENT_OBSERVATION, // struct observation: what else logs, counters and the cluster say
    EVENT_KIND_COUNT
};

struct telemetry;
struct flight_dump;
struct kernel_line;
struct gpu_scrape;
struct aer_counters;
struct kubernetes_object;
struct rank_place;
struct app_line;
struct span_event;
struct observation;
struct decoder_type;

// What the sender of a forwarded event knew that its receiver may not have seen.
struct carried {
    uint64_t first_sample_ns; // of this rank's current generation; 0: unknown
    uint32_t generation;      // of the rank, from 1; 0: unknown
    string_id path;           // of the input that it stood in; STRING_NONE: unknown
};

// Whose time it is where nobody wrote one.
enum time_of {
    TIME_OF_EVENT,       // its own
    TIME_OF_LINE_BEFORE, // of the last line before it in its file that has one: it came after
    TIME_OF_FILE,        // when the file was written last: it came before
    TIME_OF_RECEIPT      // when it was received
};

struct event {
    uint64_t time_ns;  // when it happened, Unix nanoseconds
    uint64_t position; // 1-based line or item in its source
    string_id source;  // path of its source; STRING_REFUSED when there were too many names
    string_id job;     // STRING_NONE when it names none
    string_id node;    // the host that the process reported; STRING_NONE when unknown
    int32_t rank;      // or RANK_NONE
    enum event_kind kind;
    // It has no timestamp of its own but that of something else: it does not move the time on.
    bool timeless;
    enum time_of time_of; // … of what, where it is read from a line; says nothing where it has one
    // Lines of its source that it was made of and that no other event counts; 0 for the second
    // event of one line.
    uint32_t lines;
    const struct decoder_type *decoder; // that made it: what format `raw` is
    struct slice raw;                   // the record as it came, for those who pass it on
    const struct carried *carried;      // NULL unless it came through another culprit
    union {
        const struct telemetry *telemetry; // EVENT_TELEMETRY
        const struct flight_dump *flight;
        const struct kernel_line *kernel;
        const struct gpu_scrape *gpus;
        const struct aer_counters *aer;
        const struct kubernetes_object *kubernetes;
        const struct rank_place *place;
        const struct app_line *line;
        const struct span_event *span;
        const struct observation *observation;
    };
};
