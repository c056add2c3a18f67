// SPDX-License-Identifier: Apache-2.0
// Finds in an old record the values that are asked for.
//
// One walk over an object compares each key with the 38 known ones; values stay where they are. The
// last of a repeated key counts.
#include "receivers/decode/telemetry/legacy_values.h"

#include "receivers/decode/json/shape.h"
#include "receivers/decode/json/text.h"

#include <assert.h>

static const char *const legacy_names[LEGACY_KEY_COUNT] = {
    [LEGACY_TIMESTAMP_NS] = "timestamp_ns",
    [LEGACY_TIMESTAMP] = "timestamp",
    [LEGACY_DEVICE_ID] = "device_id",
    [LEGACY_DEVICE] = "device",
    [LEGACY_ALLOCATED] = "allocator_allocated_bytes",
    [LEGACY_MEMORY_ALLOCATED] = "memory_allocated",
    [LEGACY_MEMORY_MB] = "memory_mb",
    [LEGACY_RESERVED] = "allocator_reserved_bytes",
    [LEGACY_MEMORY_RESERVED] = "memory_reserved",
    [LEGACY_CHANGE] = "allocator_change_bytes",
    [LEGACY_MEMORY_CHANGE] = "memory_change",
    [LEGACY_ACTIVE] = "allocator_active_bytes",
    [LEGACY_INACTIVE] = "allocator_inactive_bytes",
    [LEGACY_DEVICE_USED_BYTES] = "device_used_bytes",
    [LEGACY_DEVICE_TOTAL_BYTES] = "device_total_bytes",
    [LEGACY_DEVICE_FREE_BYTES] = "device_free_bytes",
    [LEGACY_TOTAL_MEMORY] = "total_memory",
    [LEGACY_DEVICE_TOTAL] = "device_total",
    [LEGACY_TOTAL_BYTES] = "total_bytes",
    [LEGACY_DEVICE_USED] = "device_used",
    [LEGACY_EVENT_TYPE] = "event_type",
    [LEGACY_TYPE] = "type",
    [LEGACY_SAMPLING_INTERVAL_MS] = "sampling_interval_ms",
    [LEGACY_PID] = "pid",
    [LEGACY_HOST] = "host",
    [LEGACY_COLLECTOR] = "collector",
    [LEGACY_BACKEND] = "backend",
    [LEGACY_JOB_ID] = "job_id",
    [LEGACY_RANK] = "rank",
    [LEGACY_LOCAL_RANK] = "local_rank",
    [LEGACY_WORLD_SIZE] = "world_size",
    [LEGACY_SESSION_ID] = "session_id",
    [LEGACY_CONTEXT] = "context",
    [LEGACY_MESSAGE] = "message",
    [LEGACY_METADATA] = "metadata",
    [LEGACY_CAPABILITIES] = "memory_capabilities",
    [LEGACY_SCOPE] = "phase_scope",
    [LEGACY_SAMPLING_SOURCE] = "sampling_source",
};

static void keep_value(struct legacy_values *values, const struct token *key,
                       const struct token *value) {
    for (size_t i = 0; i < LEGACY_KEY_COUNT; i++) {
        if (token_equals(key, slice_of(legacy_names[i])))
            values->tokens[i] = *value;
    }
}

// The key of `metadata_X` without its first nine characters. In an escaped key each may be written
// in six bytes.
static struct token without_prefix(const struct token *key, struct slice prefix) {
    const char *at = key->text;
    for (size_t i = 0; i < prefix.size; i++)
        at += *at != '\\' ? 1 : at[1] == 'u' ? 6 : 2;
    struct token rest = *key;
    rest.text = at;
    rest.size = (size_t)(key->text + key->size - at);
    return rest;
}

const char *legacy_key_name(enum legacy_key key) {
    assert((size_t)key < LEGACY_KEY_COUNT);
    return legacy_names[key];
}

void legacy_values_read(struct slice object, struct legacy_values *values,
                        struct legacy_values *prefixed) {
    static const struct slice prefix = {"metadata_", 9};
    struct json_pairs pairs = json_pairs_of(object);
    for (struct token key, value; json_pairs_next(&pairs, &key, &value);) {
        keep_value(values, &key, &value);
        if (prefixed != NULL && token_starts_with(&key, prefix)) {
            key = without_prefix(&key, prefix);
            keep_value(prefixed, &key, &value);
        }
    }
}
