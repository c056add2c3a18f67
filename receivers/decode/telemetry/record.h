// SPDX-License-Identifier: Apache-2.0
// Inside the telemetry decoder: one record's values as they were scanned, and what a source's
// earlier records taught.
#pragma once

#include "base/intern.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/telemetry_event.h"
#include "receivers/decode/telemetry/fields.h"
#include "receivers/decode/telemetry/metadata.h"

// The strings of a record that get a number; each remembers the last one of its kind.
enum name_memo {
    NAME_SESSION,
    NAME_EVENT_TYPE,
    NAME_COLLECTOR,
    NAME_HOST,
    NAME_JOB,
    NAME_MEMO_COUNT
};

// An interned string that was found not blank.
struct known_name {
    struct slice text; // the interned bytes; NULL when none yet
    string_id id;
};

enum { TEMPLATE_TEXT_MAX = 1280 };

// Where the value of a field stands that does not change.
struct template_place {
    uint16_t run;
    uint16_t offset; // from the start of the run
    uint16_t size;
};

struct telemetry_template {
    bool ready;
    bool session_from_metadata; // the record has no session_id of its own
    bool inferred;              // there is no capability block
    uint8_t run_count;
    uint32_t seen;      // fields of the record; 0: nothing was learnt
    uint32_t changing;  // fields that were seen to change; only grows
    uint32_t supported; // counters that the capability block allows
    int32_t score;      // of its success so far
    uint32_t delay;     // records that will pass before learning after the next failure
    uint32_t countdown; // records to pass before learning
    struct telemetry values;
    struct template_place places[FIELD_COUNT];
    struct template_run runs[FIELD_COUNT + 1];
    char text[TEMPLATE_TEXT_MAX + RUN_TEXT_ROOM];
};

// One source's memory between records, about 4 KB. All zeroes at first.
struct telemetry_state {
    // By field: the field that came after it last time. Zero means schema_version, which is as good
    // a first guess as any.
    uint8_t next_field[FIELD_PLACES];
    uint8_t colon_gap; // 1 when a space follows each colon, or 0
    uint8_t comma_gap; // the same for commas
    struct known_name names[NAME_MEMO_COUNT];
    const struct intern_entry *next_names[NAME_MEMO_COUNT]; // guesses; NULL: none
    struct capability_memo capabilities;
    struct metadata_plan plan;
    // The record at hand: tokens are only valid where `seen` has the field's bit.
    uint32_t seen;
    struct token tokens[FIELD_PLACES];
    struct metadata_scan metadata;
    struct telemetry_template template;
};

// Reads the whole record into state->seen, tokens and metadata. DECODE_BAD_JSON, DECODE_NOT_OBJECT
// or DECODE_OK.
enum decode_category telemetry_record_scan(struct telemetry_state *state, struct slice record,
                                           struct decode_fault *fault);
// Lists the keys of a scanned record that are in none of the `known` fields: DECODE_UNKNOWN_FIELD.
enum decode_category telemetry_record_unknown(struct slice record, uint32_t known,
                                              struct arena *arena, struct decode_fault *fault);

// Checks a scanned record of schema 2 to 4 in the reference's order and fills `telemetry`.
enum decode_category telemetry_check(struct telemetry_state *state, struct slice record,
                                     struct arena *arena, struct telemetry *telemetry,
                                     struct decode_fault *fault);
// Converts a scanned record without schema_version.
enum decode_category telemetry_legacy(struct telemetry_state *state, struct slice record,
                                      struct arena *arena, struct telemetry *telemetry,
                                      struct decode_fault *fault);

// Shared by the two: the id of a text. DECODE_LIMIT when no more distinct ones are taken.
enum decode_category telemetry_name(struct telemetry_state *state, enum name_memo memo,
                                    struct slice text, struct slice field, string_id *id,
                                    struct decode_fault *fault);
// rank and local_rank against world_size, which are all in range.
enum decode_category telemetry_check_identity(const struct telemetry *telemetry,
                                              struct decode_fault *fault);
// Ranges of the allocator counters, then of the device's, then the device's against its total.
enum decode_category telemetry_check_allocator(const struct telemetry *telemetry,
                                               struct decode_fault *fault);
enum decode_category telemetry_check_device(const struct telemetry *telemetry,
                                            struct decode_fault *fault);
// event_type's meaning, and with it the phase boundary in the metadata.
enum decode_category telemetry_read_phase(struct telemetry *telemetry, struct slice event_type,
                                          const struct metadata_scan *metadata, struct arena *arena,
                                          struct decode_fault *fault);

#define COUNTERS_ALL                                                                               \
    ((uint32_t)(COUNTER_ALLOCATED | COUNTER_RESERVED | COUNTER_ACTIVE | COUNTER_INACTIVE |         \
                COUNTER_CHANGE | COUNTER_DEVICE_USED | COUNTER_DEVICE_FREE |                       \
                COUNTER_DEVICE_TOTAL))

// Texts of the limits, for faults.
#define LIMIT_INT64  "integers from -9223372036854775808 to 9223372036854775807"
#define LIMIT_UINT64 "timestamps up to 18446744073709551615"
#define LIMIT_RANK   "ranks and world sizes up to 2147483646"
