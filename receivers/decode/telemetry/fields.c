// SPDX-License-Identifier: Apache-2.0
// Finds the field that a key names.
//
// A hash without collisions over the 23 names (length, first and middle character) leaves one name
// to compare. Keys with escapes are compared with each name.
#include "receivers/decode/telemetry/fields.h"

#include "receivers/decode/json/block.h"
#include "receivers/decode/json/text.h"

const struct json_key telemetry_field_keys[FIELD_COUNT] = {
    [FIELD_SCHEMA_VERSION] = JSON_KEY("schema_version"),
    [FIELD_SESSION_ID] = JSON_KEY("session_id"),
    [FIELD_TIMESTAMP_NS] = JSON_KEY("timestamp_ns"),
    [FIELD_EVENT_TYPE] = JSON_KEY("event_type"),
    [FIELD_COLLECTOR] = JSON_KEY("collector"),
    [FIELD_SAMPLING_INTERVAL_MS] = JSON_KEY("sampling_interval_ms"),
    [FIELD_PID] = JSON_KEY("pid"),
    [FIELD_HOST] = JSON_KEY("host"),
    [FIELD_DEVICE_ID] = JSON_KEY("device_id"),
    [FIELD_ALLOCATED] = JSON_KEY("allocator_allocated_bytes"),
    [FIELD_RESERVED] = JSON_KEY("allocator_reserved_bytes"),
    [FIELD_ACTIVE] = JSON_KEY("allocator_active_bytes"),
    [FIELD_INACTIVE] = JSON_KEY("allocator_inactive_bytes"),
    [FIELD_CHANGE] = JSON_KEY("allocator_change_bytes"),
    [FIELD_DEVICE_USED] = JSON_KEY("device_used_bytes"),
    [FIELD_DEVICE_FREE] = JSON_KEY("device_free_bytes"),
    [FIELD_DEVICE_TOTAL] = JSON_KEY("device_total_bytes"),
    [FIELD_CONTEXT] = JSON_KEY("context"),
    [FIELD_METADATA] = JSON_KEY("metadata"),
    [FIELD_JOB_ID] = JSON_KEY("job_id"),
    [FIELD_RANK] = JSON_KEY("rank"),
    [FIELD_LOCAL_RANK] = JSON_KEY("local_rank"),
    [FIELD_WORLD_SIZE] = JSON_KEY("world_size"),
};

// Field + 1 by hash; a new field needs new multipliers when its place is taken.
static const uint8_t field_of_hash[64] = {
    [5] = FIELD_INACTIVE + 1,
    [9] = FIELD_SCHEMA_VERSION + 1,
    [10] = FIELD_ALLOCATED + 1,
    [12] = FIELD_TIMESTAMP_NS + 1,
    [13] = FIELD_DEVICE_FREE + 1,
    [16] = FIELD_HOST + 1,
    [17] = FIELD_DEVICE_ID + 1,
    [23] = FIELD_CHANGE + 1,
    [25] = FIELD_DEVICE_USED + 1,
    [26] = FIELD_CONTEXT + 1,
    [27] = FIELD_ACTIVE + 1,
    [29] = FIELD_RESERVED + 1,
    [30] = FIELD_RANK + 1,
    [31] = FIELD_PID + 1,
    [35] = FIELD_EVENT_TYPE + 1,
    [36] = FIELD_JOB_ID + 1,
    [37] = FIELD_METADATA + 1,
    [38] = FIELD_DEVICE_TOTAL + 1,
    [40] = FIELD_COLLECTOR + 1,
    [42] = FIELD_LOCAL_RANK + 1,
    [47] = FIELD_SAMPLING_INTERVAL_MS + 1,
    [49] = FIELD_SESSION_ID + 1,
    [53] = FIELD_WORLD_SIZE + 1,
};

static enum telemetry_field find_escaped(const struct token *key) {
    for (unsigned field = 0; field < FIELD_COUNT; field++) {
        if (token_equals(key, telemetry_field_name(field)))
            return field;
    }
    return FIELD_UNKNOWN;
}

enum telemetry_field telemetry_field_find(const struct token *key) {
    if (key->escaped)
        return find_escaped(key);
    if (key->size == 0)
        return FIELD_UNKNOWN;
    unsigned first = (unsigned char)key->text[0];
    unsigned middle = (unsigned char)key->text[key->size / 2];
    unsigned found = field_of_hash[((unsigned)key->size + first + middle * 12) % 64];
    if (found == 0 || !slice_equal(token_slice(key), telemetry_field_name(found - 1)))
        return FIELD_UNKNOWN;
    return found - 1;
}
