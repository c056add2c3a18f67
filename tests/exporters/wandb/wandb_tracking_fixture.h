// SPDX-License-Identifier: Apache-2.0
// A tracking run that is noted event by event, and what was said of it.
#pragma once

#include "base/memory.h"
#include "exporters/wandb/tracking/parts.h"
#include "exporters/wandb/tracking/tracking.h"
#include "tests/exporters/scratch.h"

#include <math.h>

enum { SAID_MAX = 512 };
static const char page_text[] = "<!doctype html><html><head></head><body>page</body></html>";

static struct wandb_config config;
static struct wandb_tracking *tracking;
static struct buffer said_bytes;
static struct wandb_record said[SAID_MAX];
static uint32_t said_count;

// A path in the scratch folder that stays as it is.
static inline const char *kept_path(const char *name) {
    static char paths[32][160];
    static int next;
    char *path = paths[next++ % 32];
    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
    return path;
}

static inline void tracking_setup(void) {
    scratch_make();
    config = (struct wandb_config){
        .project = "stormlog",
        .content = WANDB_TRACKING,
        .log_tables = true,
        .tracking = {.command_name = "gpumemprof-track", .max_events = 1000000},
    };
    tracking = NULL;
    buffer_init(&said_bytes, 256 << 20);
    said_count = 0;
}

static inline void tracking_teardown(void) {
    wandb_tracking_close(tracking);
    buffer_release(&said_bytes);
    scratch_remove();
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static inline void tracking_open(void) {
    struct error error = {0};
    ck_assert_msg(wandb_tracking_open(&tracking, &config, "exporter/wandb/test", &error) ==
                      STATUS_OK,
                  "%s", error.message);
}

static inline void note(struct telemetry *telemetry) {
    struct event event = {
        .time_ns = telemetry->timestamp_ns,
        .kind = EVENT_TELEMETRY,
        .job = telemetry->job,
        .rank = telemetry->rank,
        .telemetry = telemetry,
    };
    wandb_tracking_note(tracking, &event);
}

// A sample of schema 3 at `seconds`, with 100 bytes more each second.
static inline struct telemetry sample_at(uint64_t seconds) {
    return (struct telemetry){
        .timestamp_ns = 1767225600000000000 + seconds * 1000000000,
        .type = TELEMETRY_SAMPLE,
        .schema_version = 3,
        .rank = 3,
        .world_size = 8,
        .event_type = intern(SLICE("sample")),
        .collector = intern(SLICE("stormlog.cuda_tracker")),
        .job = intern(SLICE("job")),
        .allocated_bytes = (int64_t)(100 * seconds),
        .reserved_bytes = (int64_t)(100 * seconds + 50),
        .change_bytes = 100,
        .device_used_bytes = (int64_t)(100 * seconds + 80),
        .device_total_bytes = 1000000,
    };
}

static inline void note_at(uint64_t seconds, const char *event_type) {
    struct telemetry telemetry = sample_at(seconds);
    telemetry.event_type = intern(slice_of(event_type));
    note(&telemetry);
}

static inline void say(void) {
    uint64_t sequence = 0, row = 0;
    struct wandb_writer writer = {
        .out = &said_bytes,
        .sequence = &sequence,
        .row = &row,
        .run = SLICE("abcd1234"),
        .time_ns = 1767225700000000000,
    };
    wandb_tracking_say(tracking, SLICE(page_text), &writer);
    ck_assert(!said_bytes.failed);
    struct slice bytes = buffer_slice(&said_bytes);
    while (bytes.size > 0) {
        ck_assert_uint_lt(said_count, SAID_MAX);
        ck_assert(wandb_record_read(&bytes, &said[said_count]));
        ck_assert_uint_eq(said[said_count].sequence, said_count + 1);
        said_count++;
    }
    ck_assert_int_eq(said[0].kind, WANDB_RUN);
    ck_assert_int_eq(said[said_count - 1].kind, WANDB_FINISH);
}

static inline uint32_t count_said(enum wandb_record_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < said_count; i++)
        count += said[i].kind == kind;
    return count;
}

// The nth record of its kind, from 0; NULL: so many were not said.
static inline const struct wandb_record *nth_said(enum wandb_record_kind kind, uint32_t nth) {
    for (uint32_t i = 0; i < said_count; i++)
        if (said[i].kind == kind && nth-- == 0)
            return &said[i];
    return NULL;
}

static inline const struct wandb_record *said_under(enum wandb_record_kind kind, const char *key) {
    for (uint32_t i = 0; i < said_count; i++)
        if (said[i].kind == kind && slice_equal(said[i].key, slice_of(key)))
            return &said[i];
    return NULL;
}

// -- JSON -----------------------------------------------------------------------------------------

static inline json_t *json_of(struct slice text) {
    json_error_t fault;
    json_t *json = json_loadb(text.data, text.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &fault);
    ck_assert_msg(json != NULL, "%s at %d in %.*s", fault.text, fault.position,
                  text.size > 300 ? 300 : (int)text.size, text.data);
    return json;
}

// A bare NaN, which must not stand in a string here, as {"$float": "NaN"}.
static inline json_t *json_with_nan(struct slice text) {
    struct buffer strict;
    buffer_init(&strict, 64 << 20);
    for (size_t i = 0; i < text.size; i++) {
        if (text.size - i >= 3 && memcmp(text.data + i, "NaN", 3) == 0) {
            buffer_append_text(&strict, "{\"$float\":\"NaN\"}");
            i += 2;
        } else {
            buffer_append_char(&strict, text.data[i]);
        }
    }
    json_t *json = json_of(buffer_slice(&strict));
    buffer_release(&strict);
    return json;
}

static inline json_t *json_members(struct slice members) {
    struct buffer object;
    buffer_init(&object, 64 << 20);
    buffer_append_char(&object, '{');
    buffer_append(&object, members);
    buffer_append_char(&object, '}');
    json_t *json = json_with_nan(buffer_slice(&object));
    buffer_release(&object);
    return json;
}

static inline json_t *json_file(const char *path) {
    json_error_t fault;
    json_t *json = json_load_file(path, 0, &fault);
    ck_assert_msg(json != NULL, "%s: %s", path, fault.text);
    return json;
}

static bool same_json(const json_t *a, const json_t *b);

static inline bool same_object(const json_t *a, const json_t *b) {
    const char *key;
    json_t *value;
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach((json_t *)(uintptr_t)a, key, value) {
        if (!same_json(value, json_object_get(b, key)))
            return false;
    }
    return true;
}

// 1 is the same as 1.0, nothing else is the same as something of another type.
static bool same_json(const json_t *a, const json_t *b) {
    if (a == NULL || b == NULL)
        return false;
    if (json_is_integer(a) && json_is_integer(b))
        return json_integer_value(a) == json_integer_value(b);
    if (json_is_number(a) && json_is_number(b))
        return !(json_number_value(a) < json_number_value(b)) &&
               !(json_number_value(a) > json_number_value(b));
    if (json_is_object(a) && json_is_object(b))
        return same_object(a, b);
    if (!json_is_array(a) || !json_is_array(b))
        return json_equal(a, b) == 1;
    if (json_array_size(a) != json_array_size(b))
        return false;
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!same_json(json_array_get(a, i), json_array_get(b, i)))
            return false;
    return true;
}

// Takes both.
static inline void ck_assert_same_json(json_t *got, json_t *wanted, const char *what) {
    char *seen = json_dumps(got, JSON_ENCODE_ANY | JSON_SORT_KEYS);
    char *hoped = json_dumps(wanted, JSON_ENCODE_ANY | JSON_SORT_KEYS);
    ck_assert_msg(same_json(got, wanted), "%s: got %.2000s\nexpected %.2000s", what, seen, hoped);
    memory_give(seen);
    memory_give(hoped);
    json_decref(got);
    json_decref(wanted);
}
