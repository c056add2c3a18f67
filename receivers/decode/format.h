// SPDX-License-Identifier: Apache-2.0
// Recognises the kind of an input by its first bytes.
//
// Names also what this build cannot read, so that a person learns what the file is. Nothing is
// guessed: what is not recognised stays FORMAT_UNKNOWN.
#pragma once

#include "receivers/decode/split.h"

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
    FORMAT_LOG,        // lines of any log
    FORMAT_ERROR_FILE, // of torchelastic
    FORMAT_NCCL_RAS,   // documents of NCCL's RAS, objects of its monitor
    FORMAT_NCCL_INSPECTOR,
    FORMAT_PY_SPY,     // threads of `py-spy dump --json`
    FORMAT_VERDICTS,   // culprit's own output
    FORMAT_QUARANTINE, // culprit's own refused records
    FORMAT_NVSENTINEL, // CloudEvents; only NVSentinel's are of interest
    FORMAT_PROMETHEUS, // what Prometheus' API answers to a query
    FORMAT_BINARY,     // no text, and none of the above
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
// told. Always decided when `whole` is set or the head is FORMAT_HEAD_MAX long; of a Flight
// Recorder dump, 64 KiB are enough. Any thread, no allocation.
struct format_guess format_guess(struct slice head, bool whole, enum format_kind forced);
// The same where envelopes of a site's own are known, too. `forms`: NULL: those that are built in.
struct forms;
struct format_guess format_guess_by(struct slice head, bool whole, enum format_kind forced,
                                    const struct forms *forms);
// Whether the guess says that nothing is told by the lines that were looked at: others may tell.
bool format_is_open(struct format_guess guess, struct slice head);
// The size of the lines that were looked at for such a guess.
size_t format_looked_at(struct slice head);
// How an input is packed that no reader unpacks, for people ("compressed by zstd: …"); NULL: it is
// not, as far as its first bytes say.
const char *format_packing(struct slice head);
// What a file of this name can only be, however torn it is; else FORMAT_UNKNOWN.
enum format_kind format_of_path(struct slice path);
// For people, with its article: "a PyTorch Flight Recorder dump".
const char *format_name(enum format_kind kind);
