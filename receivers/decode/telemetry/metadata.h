// SPDX-License-Identifier: Apache-2.0
// What the decoder reads of a record's metadata object; the rest stays raw JSON.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/json/scan.h"

// Bits of metadata_scan.seen.
enum metadata_key {
    METADATA_CAPABILITIES = 1 << 0,    // memory_capabilities
    METADATA_SCOPE = 1 << 1,           // phase_scope
    METADATA_SESSION = 1 << 2,         // session_id
    METADATA_SAMPLING_SOURCE = 1 << 3, // sampling_source
};

struct metadata_scan {
    struct slice text;  // the object as written
    uint32_t seen;      // which of the tokens below are there
    uint32_t supported; // counters, set when the capabilities were checked
    // With METADATA_CAPABILITIES: the block is byte for byte one that was checked before.
    bool capabilities_known;
    struct token capabilities;
    struct token scope;
    struct token session;
    struct token sampling_source;
};

// The capability block of an earlier record, which a source repeats on every line.
struct capability_memo {
    uint32_t size; // 0: none yet
    uint32_t supported;
    char text[768];
};

// Text that stays from record to record, and what changes behind it.
struct template_run {
    uint16_t start; // in the text of its owner
    uint16_t size;
    uint8_t field;  // enum telemetry_field, FIELD_UNKNOWN behind the last one
    bool is_number; // the value of the field
    uint16_t width; // of the value that stood there last, for a guess
    // Where in struct telemetry a number goes that may be anything from 0 on, or RUN_NO_OFFSET.
    uint16_t offset;
};
enum { RUN_NO_OFFSET = UINT16_MAX };
enum { RUN_TEXT_ROOM = 64 }; // behind texts of runs: they are compared in blocks

enum { METADATA_PLAN_RUNS = 12, METADATA_PLAN_TEXT = 320, METADATA_PLAN_END = UINT8_MAX };

// The members that a source's metadata had last time: the text before each value.
struct metadata_plan {
    uint8_t run_count; // 0: none
    uint8_t wait;      // objects that do not fit to pass before the plan is made anew
    uint8_t delay;     // how many that will be next time
    // A run's field: enum metadata_key of the value behind it, 0 for one that nobody reads, or
    // METADATA_PLAN_END.
    struct template_run runs[METADATA_PLAN_RUNS];
    char text[METADATA_PLAN_TEXT + RUN_TEXT_ROOM];
};

// What follows from the counters alone: the change goes with the allocated bytes.
uint32_t metadata_infer_supported(uint32_t present);

// Reads the object whose brace is at `at`, two levels deep in the record. A key that comes twice
// counts with its last value.
const char *metadata_scan(const char *at, const char *end, const struct capability_memo *memo,
                          struct metadata_scan *scan, struct json_fault *fault);

// The value at `at` of the key `bit` (enum metadata_key), as metadata_scan reads it.
const char *metadata_read_value(const char *at, const char *end, uint32_t bit,
                                const struct capability_memo *memo, struct metadata_scan *scan,
                                struct json_fault *fault);
// metadata_scan of an object that is not like `plan`, which follows it if it was not made lately.
const char *metadata_scan_anew(struct metadata_plan *plan, const char *at, const char *end,
                               const struct capability_memo *memo, struct metadata_scan *scan);

// Sets scan->supported (bits of enum telemetry_counter) to what the block says can be measured;
// when there is none, to what follows from the counters that are not null, `present`. Refuses a
// block that breaks the schema, and a counter in `present` that is not supported.
enum decode_category metadata_check_capabilities(struct metadata_scan *scan, uint32_t present,
                                                 struct capability_memo *memo, struct arena *arena,
                                                 struct decode_fault *fault);
