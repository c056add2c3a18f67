// SPDX-License-Identifier: Apache-2.0
// Inside the telemetry decoder: the keys that are read in a record without schema_version.
#pragma once

#include "receivers/decode/json/scan.h"

enum legacy_key {
    LEGACY_TIMESTAMP_NS,
    LEGACY_TIMESTAMP,
    LEGACY_DEVICE_ID,
    LEGACY_DEVICE,
    LEGACY_ALLOCATED,
    LEGACY_MEMORY_ALLOCATED,
    LEGACY_MEMORY_MB,
    LEGACY_RESERVED,
    LEGACY_MEMORY_RESERVED,
    LEGACY_CHANGE,
    LEGACY_MEMORY_CHANGE,
    LEGACY_ACTIVE,
    LEGACY_INACTIVE,
    LEGACY_DEVICE_USED_BYTES,
    LEGACY_DEVICE_TOTAL_BYTES,
    LEGACY_DEVICE_FREE_BYTES,
    LEGACY_TOTAL_MEMORY,
    LEGACY_DEVICE_TOTAL,
    LEGACY_TOTAL_BYTES,
    LEGACY_DEVICE_USED,
    LEGACY_EVENT_TYPE,
    LEGACY_TYPE,
    LEGACY_SAMPLING_INTERVAL_MS,
    LEGACY_PID,
    LEGACY_HOST,
    LEGACY_COLLECTOR,
    LEGACY_BACKEND,
    LEGACY_JOB_ID,
    LEGACY_RANK,
    LEGACY_LOCAL_RANK,
    LEGACY_WORLD_SIZE,
    LEGACY_SESSION_ID,
    LEGACY_CONTEXT,
    LEGACY_MESSAGE,
    LEGACY_METADATA,
    LEGACY_CAPABILITIES,
    LEGACY_SCOPE,
    LEGACY_SAMPLING_SOURCE,
    LEGACY_KEY_COUNT
};

// The values of one object by key; TOKEN_NONE where there is none.
struct legacy_values {
    struct token tokens[LEGACY_KEY_COUNT];
};

const char *legacy_key_name(enum legacy_key key);
// Every member of `object`, which was scanned before. Those of metadata_X keys go to `prefixed` as
// X when it is not NULL.
void legacy_values_read(struct slice object, struct legacy_values *values,
                        struct legacy_values *prefixed);
