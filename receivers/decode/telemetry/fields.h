// SPDX-License-Identifier: Apache-2.0
// The top-level keys of a telemetry record, schema v2 to v4.
//
// Source: stormlog 0.4.3 telemetry event schema. The required fields come first, in the schema's
// order, in which missing ones are listed.
#pragma once

#include "receivers/decode/json/block.h"
#include "receivers/decode/json/scan.h"

enum telemetry_field {
    FIELD_SCHEMA_VERSION,
    FIELD_SESSION_ID,
    FIELD_TIMESTAMP_NS,
    FIELD_EVENT_TYPE,
    FIELD_COLLECTOR,
    FIELD_SAMPLING_INTERVAL_MS,
    FIELD_PID,
    FIELD_HOST,
    FIELD_DEVICE_ID,
    FIELD_ALLOCATED,
    FIELD_RESERVED,
    FIELD_ACTIVE,
    FIELD_INACTIVE,
    FIELD_CHANGE,
    FIELD_DEVICE_USED,
    FIELD_DEVICE_FREE,
    FIELD_DEVICE_TOTAL,
    FIELD_CONTEXT,
    FIELD_METADATA,
    FIELD_JOB_ID,
    FIELD_RANK,
    FIELD_LOCAL_RANK,
    FIELD_WORLD_SIZE,
    FIELD_COUNT,
    FIELD_UNKNOWN = FIELD_COUNT, // any other key
    FIELD_START,                 // in front of the first key
    FIELD_PLACES                 // fields and the two above
};

#define FIELD_BIT(field) (UINT32_C(1) << (field))

enum { FIELD_REQUIRED_COUNT = FIELD_JOB_ID };

extern const struct json_key telemetry_field_keys[FIELD_COUNT]; // by enum telemetry_field

// The name without quotes.
static inline struct slice telemetry_field_name(enum telemetry_field field) {
    return json_key_name(&telemetry_field_keys[field]);
}

// Which field a key names, or FIELD_UNKNOWN; escapes in the key are resolved.
enum telemetry_field telemetry_field_find(const struct token *key);
