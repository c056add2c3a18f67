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

// What follows from the counters alone: the change goes with the allocated bytes.
uint32_t metadata_infer_supported(uint32_t present);

// Reads the object whose brace is at `at`, two levels deep in the record. A key that comes twice
// counts with its last value.
const char *metadata_scan(const char *at, const char *end, const struct capability_memo *memo,
                          struct metadata_scan *scan, struct json_fault *fault);

// Sets scan->supported (bits of enum telemetry_counter) to what the block says can be measured;
// when there is none, to what follows from the counters that are not null, `present`. Refuses a
// block that breaks the schema, and a counter in `present` that is not supported.
enum decode_category metadata_check_capabilities(struct metadata_scan *scan, uint32_t present,
                                                 struct capability_memo *memo, struct arena *arena,
                                                 struct decode_fault *fault);
