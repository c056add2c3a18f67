// SPDX-License-Identifier: Apache-2.0
// From bytes to events: what a decoder of one format is. Implementations live in receivers/decode.
#pragma once

#include "base/arena.h"
#include "pipeline/model/event.h"

// Why a record was refused. The names (decode_category_name) are what counters, logs and the
// quarantine file say.
enum decode_category {
    DECODE_OK = 0,
    DECODE_BAD_JSON,
    DECODE_NOT_OBJECT,
    DECODE_WRONG_TYPE,
    DECODE_UNSUPPORTED_VERSION,
    DECODE_MISSING_FIELD,
    DECODE_UNKNOWN_FIELD,
    DECODE_EMPTY_STRING,
    DECODE_OUT_OF_RANGE,
    DECODE_EXCEEDS_TOTAL,
    DECODE_IDENTITY_CONFLICT,
    DECODE_CAPABILITY_CONFLICT,
    DECODE_MISSING_TIMESTAMP,
    DECODE_TOO_LONG, // longer than max_line_size
    DECODE_TORN,     // the input ended inside the record
    DECODE_LIMIT,    // a bound of culprit (distinct names) was reached
    DECODE_BAD_PICKLE,
    DECODE_CATEGORY_COUNT,
    DECODE_NOTHING = -1
};

enum { DECODE_FIELD_MAX = 512, DECODE_DETAIL_MAX = 160 };

struct decode_fault {
    enum decode_category category;
    char field[DECODE_FIELD_MAX]; // the field(s) named by the reference, ", " joined; "" when none
    char detail[DECODE_DETAIL_MAX]; // one clause for people: what was found, what would be right
    size_t offset;                  // where in the record, for bad JSON and pickles; else 0
    bool told; // refused, and the event tells of it: it is handed on all the same
};

// What is known of an input before its first record.
struct decoder_input {
    struct slice path;    // as the receiver names it
    uint64_t observed_ns; // when it was read or written, Unix; 0: not known
    bool is_file;         // a file of its own, not a part of a stream
    struct slice tail;    // its last bytes as they are now; only while `begin` runs; may be empty
};

struct decoder_type {
    const char *name; // "stormlog"
    size_t state_size;
    // The state is about this input; called once, before the first record. NULL: it does not
    // matter.
    void (*begin)(void *state, const struct decoder_input *input);
    // `state` is zeroed memory of state_size that belongs to one source: what was learnt of its key
    // order is kept there. The event's slices point into `record` or `arena`. Allocates nothing in
    // steady state but arena memory. One thread per state. DECODE_NOTHING: right, but nothing that
    // anybody looks for; it is counted and makes no event.
    enum decode_category (*decode)(void *state, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault);
    // Decodes a record that is one of these beyond doubt, by itself or since it is like those
    // before it: whoever has to tell what some bytes are need not look at them first. False:
    // nothing has happened, and `decode` says what is wrong. NULL: never.
    bool (*decode_plain)(void *state, struct slice record, struct arena *arena,
                         struct event *event);
};

const char *decode_category_name(enum decode_category category);
