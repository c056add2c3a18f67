// SPDX-License-Identifier: Apache-2.0
// What kind of input is this, told by its first bytes.
//
// Names also what this build cannot read, so that a person learns what the file is. Nothing is
// guessed: what is not recognised stays FORMAT_UNKNOWN.
#pragma once

#include "base/slice.h"

enum format_kind {
    FORMAT_UNKNOWN,
    FORMAT_STORMLOG, // telemetry records, schema v2 to v4 or legacy
    FORMAT_GZIP,
    FORMAT_PICKLE,
    FORMAT_TAGGED_LINES,
    FORMAT_SPANS,
    FORMAT_KUBERNETES,
    FORMAT_FLIGHT_RECORDER,
    FORMAT_SIDECAR,      // a stormlog manifest, roll-up or report: no events in it
    FORMAT_METRICS_TEXT, // of dcgm-exporter
    FORMAT_KERNEL_LOG,
    FORMAT_DCGM,         // samples of GPUs as JSON
    FORMAT_AER_COUNTERS, // a counter file of sysfs
    FORMAT_RANK_MAP,
    FORMAT_APP_LOG,    // what a training process writes; only when it is named
    FORMAT_VERDICTS,   // culprit's own output
    FORMAT_QUARANTINE, // culprit's own refused records
};

enum format_layout {
    LAYOUT_LINES,   // one record a line
    LAYOUT_ARRAY,   // one JSON array of records
    LAYOUT_WRAPPER, // an object that holds the array under `events`, `telemetry_events` or `items`
    LAYOUT_OBJECT,  // one record over several lines, or several such one after another
    LAYOUT_WHOLE,   // all of it is one record
};

struct format_guess {
    bool decided; // false: more of the input is needed
    enum format_kind kind;
    enum format_layout layout;
};

enum {
    FORMAT_HEAD_MAX = 1 << 20, // no more than this of an input is looked at …
    FORMAT_LINES_MAX = 64,     // … and no more lines than this
};

// Looks at the first bytes of an input. `whole`: there are no more. With `forced` (not
// FORMAT_UNKNOWN) the records are of that kind whatever they look like, and only the layout is
// told. Always decided when `whole` is set or the head is FORMAT_HEAD_MAX long. Any thread, no
// allocation.
struct format_guess format_guess(struct slice head, bool whole, enum format_kind forced);
// For people, with its article: "a PyTorch Flight Recorder dump".
const char *format_name(enum format_kind kind);
