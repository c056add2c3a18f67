// SPDX-License-Identifier: Apache-2.0
// A stormlog telemetry record (schema v2, v3, v4, or legacy v1), in the normalised v4 form.
//
// Field rules: docs of stormlog 0.4.3 (telemetry event schema); what culprit accepts is exactly
// what its loader accepts, within the integer ranges below. Byte counters fit int64, timestamps
// uint64.
#pragma once

#include "base/intern.h"

#include <stdbool.h>
#include <stdint.h>

enum telemetry_type {
    TELEMETRY_OTHER,       // start, stop, peak, warning, …: any other text
    TELEMETRY_SAMPLE,      // event_type case-folds to "sample" (ASCII, and U+017F for s)
    TELEMETRY_PHASE_ENTER, // exactly "phase_enter"
    TELEMETRY_PHASE_EXIT,  // exactly "phase_exit"
};

// Bits of `null_counters`: the record holds null for this counter (the field is then 0).
enum telemetry_counter {
    COUNTER_ALLOCATED = 1 << 0,
    COUNTER_RESERVED = 1 << 1,
    COUNTER_ACTIVE = 1 << 2,
    COUNTER_INACTIVE = 1 << 3,
    COUNTER_CHANGE = 1 << 4,
    COUNTER_DEVICE_USED = 1 << 5,
    COUNTER_DEVICE_FREE = 1 << 6,
    COUNTER_DEVICE_TOTAL = 1 << 7,
};

// metadata.phase_scope of a boundary that the reference's replay would accept (facts: non-blank
// name, path with at least one non-empty text, texts and integers of the right types).
struct phase_scope {
    string_id label;       // non-empty path parts joined by " / "
    uint32_t depth;        // number of those parts
    struct slice scope_id; // may be empty
    int64_t thread_id;
    int64_t sequence;
    bool thread_id_is_bool; // JSON true/false: counts as 1/0, printed back as written
    bool sequence_is_bool;
    string_id thread_name; // may be the empty string
};

// What a legacy record says under an old tracker's own keys, without the defaults and the other
// places that the normalised form is filled from: for the export of tracking runs.
enum tracker_field {
    TRACKER_ALLOCATED,    // memory_allocated, else allocator_allocated_bytes
    TRACKER_RESERVED,     // memory_reserved, else allocator_reserved_bytes
    TRACKER_CHANGE,       // memory_change, else allocator_change_bytes
    TRACKER_DEVICE_USED,  // device_used, else device_used_bytes
    TRACKER_DEVICE_TOTAL, // device_total, else device_total_bytes
    TRACKER_COUNTERS,
    TRACKER_RANK = TRACKER_COUNTERS, // present: telemetry.rank is the record's own; so the others
    TRACKER_JOB,
    TRACKER_CONTEXT,
};

struct tracker_record {
    double timestamp_s; // "timestamp"; NaN when it is absent or no number
    uint32_t present;   // 1 << field: stands there, and a counter is an integer of int64
    int64_t counters[TRACKER_COUNTERS];
};

struct telemetry {
    uint64_t timestamp_ns;
    enum telemetry_type type;
    uint32_t null_counters; // enum telemetry_counter bits
    int32_t schema_version; // as it came: 1 (legacy), 2, 3 or 4
    int32_t rank;
    int32_t local_rank;
    int32_t world_size;
    string_id event_type;
    string_id collector;
    string_id host;
    string_id job; // STRING_NONE: null or absent
    // STRING_NONE: no usable one in the record, so its id is stormlog's synthetic one, shared only
    // by records that agree in timestamp, host and pid.
    string_id session;
    int64_t pid; // -1 unknown
    int64_t device_id;
    int64_t sampling_interval_ms;
    int64_t allocated_bytes;
    int64_t reserved_bytes;
    int64_t active_bytes;
    int64_t inactive_bytes;
    int64_t change_bytes;
    int64_t device_used_bytes;
    int64_t device_free_bytes;
    int64_t device_total_bytes;
    struct slice context; // decoded text; data NULL when null
    struct slice
        metadata; // raw JSON of the metadata object; for legacy without its metadata_X keys
    const struct phase_scope *scope;      // NULL when this is no boundary or not a valid one
    const struct tracker_record *tracker; // legacy records only; NULL for v2 to v4
};
