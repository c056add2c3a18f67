// SPDX-License-Identifier: Apache-2.0
// Inside the template: one record on its way through it.
//
// The walk itself is built once for each level of base/simd.h from walk_common.h. All read exactly
// the record's bytes and give the same answers.
#pragma once

#include "receivers/decode/telemetry/record.h"

enum value_class {
    CLASS_NEVER, // a change is left to the general way
    CLASS_NUMBER,
    CLASS_RANK,
    CLASS_NAME,
    CLASS_CONTEXT,
    CLASS_METADATA,
};

// How the changing value of a field is read.
struct value_rule {
    uint8_t class;    // enum value_class
    uint8_t nullable; // 4: only in schema 4; 1: always
    uint8_t name;     // enum name_memo
    uint16_t offset;  // in struct telemetry
    uint32_t counter; // enum telemetry_counter
    int64_t min;
};

extern const struct value_rule telemetry_value_rules[FIELD_COUNT]; // by enum telemetry_field

// A walk looks at this many bytes at once, at most; shorter records do not fit.
enum { WALK_RECORD_MIN = 64 };

// One record on its way through the template.
struct replay {
    struct telemetry_state *state;
    struct arena *arena;
    struct telemetry *telemetry;
    const char *begin, *end;
    const char *run_starts[FIELD_COUNT + 1]; // where each run begins in the record
    struct token names[NAME_MEMO_COUNT];     // texts that get their numbers at the end
    uint64_t hashes[NAME_MEMO_COUNT];        // of those that are expected
    uint32_t expected;                       // names whose memory was asked for; bits by memo
    uint32_t known;                          // names that were the last one of their kind
    bool metadata_read;
};

// Compares the runs with the record and reads the values between them; true when the record ends
// with the last run. The record has at least WALK_RECORD_MIN bytes.
bool telemetry_walk_baseline(struct replay *replay);
bool telemetry_walk_avx2(struct replay *replay);
bool telemetry_walk_avx512(struct replay *replay);
