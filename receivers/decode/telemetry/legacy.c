// SPDX-License-Identifier: Apache-2.0
// Reads a record without schema_version.
//
// Old trackers wrote other keys, and each value is looked for in several places. A second walk over
// the record, whose JSON was found right before, collects the values (legacy_values.c);
// then they are converted one by one in the order of stormlog 0.4.3's legacy conversion, and the
// result is checked as a v4 record. Unknown keys are ignored. A cold path: one more pass, and arena
// memory for decoded texts and numbers with a point.
#include "base/text/cut.h"
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/telemetry/legacy_values.h"
#include "receivers/decode/telemetry/record.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

struct legacy {
    struct legacy_values record;
    struct legacy_values metadata; // the object's, overruled by the record's metadata_X keys
    struct telemetry_state *state;
    struct arena *arena;
    struct telemetry *telemetry;
    struct decode_fault *fault;
    enum decode_category category; // of the first fault; nothing is looked at behind it
    struct slice event_type;
    struct slice collector;
    struct slice host;
    struct slice job;
    double seconds;    // "timestamp"; NaN: it has none
    bool before_epoch; // the timestamp is below zero
};

static const struct token *own(const struct legacy *legacy, enum legacy_key key) {
    const struct token *token = &legacy->record.tokens[key];
    return token->kind == TOKEN_NONE ? NULL : token;
}

static const struct token *meta(const struct legacy *legacy, enum legacy_key key) {
    const struct token *token = &legacy->metadata.tokens[key];
    return token->kind == TOKEN_NONE ? NULL : token;
}

static struct slice name_of(enum legacy_key key) {
    return slice_of(legacy_key_name(key));
}

// Only for the first fault: the words of a second one would take its place.
static void refuse(struct legacy *legacy, enum decode_category category) {
    assert(legacy->category == DECODE_OK);
    legacy->category = category;
}

// *value stays when the token is NULL.
static void take_integer(struct legacy *legacy, enum legacy_key key, const struct token *token,
                         int64_t *value) {
    if (token == NULL || legacy->category != DECODE_OK)
        return;
    *value = token->integer;
    if (token->kind == TOKEN_INTEGER)
        return;
    refuse(legacy, token_is_integer(token)
                       ? fault_limit(legacy->fault, name_of(key), token, LIMIT_INT64)
                       : fault_type(legacy->fault, name_of(key), token, "an integer"));
}

// Under `key`, or under `other` when that is not there.
static void take_either(struct legacy *legacy, enum legacy_key key, enum legacy_key other,
                        int64_t *value) {
    if (own(legacy, key) == NULL)
        key = other;
    take_integer(legacy, key, own(legacy, key), value);
}

static bool is_number(const struct token *token) {
    return token != NULL && (token_is_integer(token) || token->kind == TOKEN_DECIMAL);
}

// The nearest double, as Python's float() gives it: an integer is rounded once as well. strtod
// reads no locale here, because culprit never sets one.
static double to_double(const struct legacy *legacy, const struct token *token) {
    return strtod(arena_text(legacy->arena, token_slice(token)), NULL);
}

// A timestamp below zero is refused later, in the check of the whole.
static void take_timestamp_ns(struct legacy *legacy, const struct token *token) {
    struct slice name = name_of(LEGACY_TIMESTAMP_NS);
    legacy->telemetry->timestamp_ns = (uint64_t)token->integer;
    legacy->before_epoch = token->kind == TOKEN_INTEGER && token->integer < 0;
    if (token->kind == TOKEN_HUGE)
        refuse(legacy, fault_limit(legacy->fault, name, token, LIMIT_UINT64));
    else if (!token_is_integer(token))
        refuse(legacy, fault_type(legacy->fault, name, token, "an integer"));
}

static void take_timestamp(struct legacy *legacy) {
    const struct token *seconds = own(legacy, LEGACY_TIMESTAMP);
    struct slice name = name_of(LEGACY_TIMESTAMP);
    legacy->seconds = is_number(seconds) ? to_double(legacy, seconds) : NAN;
    if (own(legacy, LEGACY_TIMESTAMP_NS) != NULL) {
        take_timestamp_ns(legacy, own(legacy, LEGACY_TIMESTAMP_NS));
        return;
    }
    double time_ns = legacy->seconds * 1e9;
    legacy->before_epoch = time_ns <= -1.0;
    if (!is_number(seconds))
        refuse(legacy, fault_set(legacy->fault, DECODE_MISSING_TIMESTAMP, name,
                                 "expected timestamp_ns, or timestamp as a number of seconds"));
    else if (!isfinite(time_ns))
        refuse(legacy, fault_set(legacy->fault, DECODE_OUT_OF_RANGE, name,
                                 "expected a number of seconds that is finite as nanoseconds"));
    else if (time_ns >= 0x1p64)
        refuse(legacy, fault_set(legacy->fault, DECODE_OUT_OF_RANGE, name,
                                 "found %g seconds, culprit takes " LIMIT_UINT64, legacy->seconds));
    else
        legacy->telemetry->timestamp_ns = legacy->before_epoch ? 0 : (uint64_t)time_ns;
}

static bool contains_cpu(struct slice text) {
    for (size_t i = 0; i + 3 <= text.size; i++) {
        if ((text.data[i] | 0x20) == 'c' && (text.data[i + 1] | 0x20) == 'p' &&
            (text.data[i + 2] | 0x20) == 'u')
            return true;
    }
    return false;
}

// The digits behind the last colon: "cuda:3" → "3"; empty when there are none or something else.
// ASCII digits only: the reference takes those of other scripts too.
static struct slice device_digits(struct slice device) {
    size_t start = device.size;
    while (start > 0 && device.data[start - 1] >= '0' && device.data[start - 1] <= '9')
        start--;
    if (start == 0 || device.data[start - 1] != ':')
        return SLICE("");
    return (struct slice){device.data + start, device.size - start};
}

static void take_device(struct legacy *legacy) {
    int64_t *device_id = &legacy->telemetry->device_id;
    const struct token *token = own(legacy, LEGACY_DEVICE);
    *device_id = own(legacy, LEGACY_MEMORY_MB) != NULL ? 0 : -1;
    take_integer(legacy, LEGACY_DEVICE_ID, own(legacy, LEGACY_DEVICE_ID), device_id);
    if (own(legacy, LEGACY_DEVICE_ID) != NULL || token == NULL || token->kind != TOKEN_STRING ||
        legacy->category != DECODE_OK)
        return;
    struct slice device = token_decode(token, legacy->arena);
    struct slice digits = device_digits(device);
    uint64_t number;
    if (contains_cpu(device)) {
        *device_id = -1;
    } else if (digits.size > 0) {
        bool fits = text_number(digits, digits.size, &number) && number <= INT64_MAX;
        *device_id = fits ? (int64_t)number : 0;
        if (!fits)
            refuse(legacy, fault_limit(legacy->fault, name_of(LEGACY_DEVICE), token, LIMIT_INT64));
    } else if (device.size >= 4 && strncasecmp(device.data, "/gpu", 4) == 0) {
        *device_id = 0;
    }
}

// memory_mb, which is a number, in bytes.
static void take_memory_mb(struct legacy *legacy, const struct token *token, int64_t *bytes) {
    double value = to_double(legacy, token) * 0x1p20;
    if (value > -0x1p63 && value < 0x1p63)
        *bytes = (int64_t)value;
    else
        refuse(legacy, fault_set(legacy->fault, DECODE_OUT_OF_RANGE, name_of(LEGACY_MEMORY_MB),
                                 "found %g bytes, culprit takes " LIMIT_INT64, value));
}

static void take_allocated(struct legacy *legacy) {
    int64_t *allocated = &legacy->telemetry->allocated_bytes;
    const struct token *memory_mb = own(legacy, LEGACY_MEMORY_MB);
    *allocated = 0;
    if (legacy->category != DECODE_OK)
        return;
    if (own(legacy, LEGACY_ALLOCATED) != NULL || own(legacy, LEGACY_MEMORY_ALLOCATED) != NULL)
        take_either(legacy, LEGACY_ALLOCATED, LEGACY_MEMORY_ALLOCATED, allocated);
    else if (is_number(memory_mb))
        take_memory_mb(legacy, memory_mb, allocated);
    else
        take_integer(legacy, LEGACY_DEVICE_USED_BYTES, own(legacy, LEGACY_DEVICE_USED_BYTES),
                     allocated);
}

// Null and absent are both null.
static void take_nullable(struct legacy *legacy, enum legacy_key key, const struct token *token,
                          uint32_t counter, int64_t *value) {
    *value = 0;
    if (token == NULL || token->kind == TOKEN_NULL)
        legacy->telemetry->null_counters |= counter;
    else
        take_integer(legacy, key, token, value);
}

static void take_allocator(struct legacy *legacy) {
    struct telemetry *telemetry = legacy->telemetry;
    take_allocated(legacy);
    telemetry->reserved_bytes = telemetry->allocated_bytes;
    telemetry->change_bytes = 0;
    take_either(legacy, LEGACY_RESERVED, LEGACY_MEMORY_RESERVED, &telemetry->reserved_bytes);
    take_either(legacy, LEGACY_CHANGE, LEGACY_MEMORY_CHANGE, &telemetry->change_bytes);
    take_nullable(legacy, LEGACY_ACTIVE, own(legacy, LEGACY_ACTIVE), COUNTER_ACTIVE,
                  &telemetry->active_bytes);
    take_nullable(legacy, LEGACY_INACTIVE, own(legacy, LEGACY_INACTIVE), COUNTER_INACTIVE,
                  &telemetry->inactive_bytes);
}

static void take_total(struct legacy *legacy) {
    static const enum legacy_key keys[] = {LEGACY_TOTAL_MEMORY, LEGACY_DEVICE_TOTAL,
                                           LEGACY_TOTAL_BYTES};
    enum legacy_key key = LEGACY_DEVICE_TOTAL_BYTES;
    const struct token *token = own(legacy, key);
    for (size_t i = 0; i < 3 && token == NULL; i++)
        token = own(legacy, key = keys[i]);
    for (size_t i = 0; i < 3 && token == NULL; i++)
        token = meta(legacy, key = keys[i]);
    take_nullable(legacy, key, token, COUNTER_DEVICE_TOTAL, &legacy->telemetry->device_total_bytes);
}

static void take_device_counters(struct legacy *legacy) {
    struct telemetry *telemetry = legacy->telemetry;
    telemetry->device_used_bytes = telemetry->allocated_bytes;
    take_integer(legacy, LEGACY_DEVICE_USED_BYTES, own(legacy, LEGACY_DEVICE_USED_BYTES),
                 &telemetry->device_used_bytes);
    take_total(legacy);
    const struct token *token = own(legacy, LEGACY_DEVICE_FREE_BYTES);
    bool has_total = (telemetry->null_counters & COUNTER_DEVICE_TOTAL) == 0;
    if (token != NULL || !has_total) {
        take_nullable(legacy, LEGACY_DEVICE_FREE_BYTES, token, COUNTER_DEVICE_FREE,
                      &telemetry->device_free_bytes);
        return;
    }
    __int128 left = (__int128)telemetry->device_total_bytes - telemetry->device_used_bytes;
    // Beyond int64 only when less than nothing is used, which is refused later.
    telemetry->device_free_bytes = left < 0 ? 0 : left > INT64_MAX ? INT64_MAX : (int64_t)left;
}

// *text stays when the token is NULL.
static void take_text(struct legacy *legacy, enum legacy_key key, const struct token *token,
                      struct slice *text) {
    if (token == NULL || legacy->category != DECODE_OK)
        return;
    if (token->kind != TOKEN_STRING || token_is_blank(token))
        refuse(legacy, fault_text(legacy->fault, name_of(key), token));
    else
        *text = token_decode(token, legacy->arena);
}

static const struct token *own_or_meta(const struct legacy *legacy, enum legacy_key key) {
    const struct token *token = own(legacy, key);
    return token == NULL ? meta(legacy, key) : token;
}

static void take_process(struct legacy *legacy) {
    struct telemetry *telemetry = legacy->telemetry;
    const struct token *type = own(legacy, LEGACY_EVENT_TYPE);
    legacy->event_type = SLICE("sample");
    legacy->host = SLICE("unknown");
    telemetry->sampling_interval_ms = 0;
    telemetry->pid = -1;
    take_text(legacy, LEGACY_EVENT_TYPE, type == NULL ? own(legacy, LEGACY_TYPE) : type,
              &legacy->event_type);
    take_integer(legacy, LEGACY_SAMPLING_INTERVAL_MS, own(legacy, LEGACY_SAMPLING_INTERVAL_MS),
                 &telemetry->sampling_interval_ms);
    take_integer(legacy, LEGACY_PID, own_or_meta(legacy, LEGACY_PID), &telemetry->pid);
    take_text(legacy, LEGACY_HOST, own_or_meta(legacy, LEGACY_HOST), &legacy->host);
}

// The tracker that a backend belongs to, or an empty slice.
static struct slice backend_collector(const struct legacy *legacy, const struct token *token) {
    static const struct {
        struct slice backend;
        struct slice collector;
    } known[] = {
        {{"mps", 3}, {"stormlog.mps_tracker", 20}},
        {{"rocm", 4}, {"stormlog.rocm_tracker", 21}},
        {{"cuda", 4}, {"stormlog.cuda_tracker", 21}},
        {{"cpu", 3}, {"stormlog.cpu_tracker", 20}},
    };
    if (token == NULL || token->kind != TOKEN_STRING)
        return SLICE("");
    struct slice backend = text_strip(token_decode(token, legacy->arena));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (backend.size == known[i].backend.size &&
            strncasecmp(backend.data, known[i].backend.data, backend.size) == 0)
            return known[i].collector;
    }
    return SLICE("");
}

static void take_collector(struct legacy *legacy) {
    const struct token *token = own(legacy, LEGACY_COLLECTOR);
    if (token != NULL && token->kind == TOKEN_STRING && !token_is_blank(token)) {
        legacy->collector = token_decode(token, legacy->arena);
        return;
    }
    legacy->collector = backend_collector(legacy, own_or_meta(legacy, LEGACY_BACKEND));
    if (legacy->collector.size > 0)
        return;
    legacy->collector = SLICE("legacy.unknown");
    if (own(legacy, LEGACY_MEMORY_MB) != NULL)
        legacy->collector = SLICE("stormlog.tensorflow.memory_tracker");
    else if (own(legacy, LEGACY_MEMORY_ALLOCATED) != NULL)
        legacy->collector = legacy->telemetry->device_id == -1 ? SLICE("stormlog.cpu_tracker")
                                                               : SLICE("stormlog.cuda_tracker");
}

// The record's value, or metadata's when that is null or absent; NULL when both are.
static const struct token *either(const struct legacy *legacy, enum legacy_key key) {
    const struct token *token = own(legacy, key);
    if (token == NULL || token->kind == TOKEN_NULL)
        token = meta(legacy, key);
    return token == NULL || token->kind == TOKEN_NULL ? NULL : token;
}

static void take_rank(struct legacy *legacy, enum legacy_key key, int32_t min, int32_t *rank) {
    const struct token *token = either(legacy, key);
    int64_t value = *rank;
    take_integer(legacy, key, token, &value);
    if (legacy->category != DECODE_OK)
        return;
    if (value < min)
        refuse(legacy, fault_range(legacy->fault, name_of(key), value,
                                   min == 0 ? "0 or more" : "1 or more"));
    else if (value > RANK_MAX)
        refuse(legacy, fault_limit(legacy->fault, name_of(key), token, LIMIT_RANK));
    else
        *rank = (int32_t)value;
}

static void take_identity(struct legacy *legacy) {
    struct telemetry *telemetry = legacy->telemetry;
    legacy->job = (struct slice){NULL, 0};
    telemetry->rank = 0;
    telemetry->world_size = 1;
    take_text(legacy, LEGACY_JOB_ID, either(legacy, LEGACY_JOB_ID), &legacy->job);
    take_rank(legacy, LEGACY_RANK, 0, &telemetry->rank);
    telemetry->local_rank = telemetry->rank;
    take_rank(legacy, LEGACY_LOCAL_RANK, 0, &telemetry->local_rank);
    take_rank(legacy, LEGACY_WORLD_SIZE, 1, &telemetry->world_size);
    if (legacy->category == DECODE_OK)
        refuse(legacy, telemetry_check_identity(telemetry, legacy->fault));
}

static void take_context(struct legacy *legacy) {
    const struct token *token = own(legacy, LEGACY_CONTEXT);
    if (token == NULL)
        token = own(legacy, LEGACY_MESSAGE);
    legacy->telemetry->context = (struct slice){NULL, 0};
    if (token == NULL || token->kind == TOKEN_NULL || legacy->category != DECODE_OK)
        return;
    if (token->kind == TOKEN_STRING)
        legacy->telemetry->context = token_decode(token, legacy->arena);
    else
        refuse(legacy, fault_type(legacy->fault, SLICE("context"), token, "a text or null"));
}

// Under its own keys only; what is no integer of int64 is as if it were not there.
static const struct tracker_record *take_tracker(const struct legacy *legacy) {
    static const enum legacy_key keys[TRACKER_COUNTERS][2] = {
        [TRACKER_ALLOCATED] = {LEGACY_MEMORY_ALLOCATED, LEGACY_ALLOCATED},
        [TRACKER_RESERVED] = {LEGACY_MEMORY_RESERVED, LEGACY_RESERVED},
        [TRACKER_CHANGE] = {LEGACY_MEMORY_CHANGE, LEGACY_CHANGE},
        [TRACKER_DEVICE_USED] = {LEGACY_DEVICE_USED, LEGACY_DEVICE_USED_BYTES},
        [TRACKER_DEVICE_TOTAL] = {LEGACY_DEVICE_TOTAL, LEGACY_DEVICE_TOTAL_BYTES},
    };
    const struct token *tokens = legacy->record.tokens;
    struct tracker_record *tracker = arena_zero(legacy->arena, 1, sizeof *tracker);
    tracker->timestamp_s = legacy->seconds;
    for (uint32_t i = 0; i < TRACKER_COUNTERS; i++) {
        const struct token *token = &tokens[keys[i][0]];
        if (token->kind != TOKEN_INTEGER)
            token = &tokens[keys[i][1]];
        if (token->kind != TOKEN_INTEGER)
            continue;
        tracker->counters[i] = token->integer;
        tracker->present |= 1u << i;
    }
    if (tokens[LEGACY_RANK].kind == TOKEN_INTEGER)
        tracker->present |= 1u << TRACKER_RANK;
    if (tokens[LEGACY_JOB_ID].kind == TOKEN_STRING)
        tracker->present |= 1u << TRACKER_JOB;
    if (tokens[LEGACY_CONTEXT].kind == TOKEN_STRING)
        tracker->present |= 1u << TRACKER_CONTEXT;
    return tracker;
}

// The metadata keys that v4 records are read for as well.
static void collect_metadata(const struct legacy *legacy, struct metadata_scan *scan) {
    const struct {
        enum legacy_key key;
        enum metadata_key bit;
        struct token *token;
    } keys[] = {
        {LEGACY_CAPABILITIES, METADATA_CAPABILITIES, &scan->capabilities},
        {LEGACY_SCOPE, METADATA_SCOPE, &scan->scope},
        {LEGACY_SESSION_ID, METADATA_SESSION, &scan->session},
        {LEGACY_SAMPLING_SOURCE, METADATA_SAMPLING_SOURCE, &scan->sampling_source},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct token *token = meta(legacy, keys[i].key);
        if (token == NULL)
            continue;
        scan->seen |= keys[i].bit;
        *keys[i].token = *token;
    }
}

// What the conversion does not look at, in the order of the check of a v4 record.
static enum decode_category check_converted(const struct legacy *legacy,
                                            struct metadata_scan *scan) {
    const struct telemetry *telemetry = legacy->telemetry;
    struct decode_fault *fault = legacy->fault;
    if (legacy->before_epoch)
        return fault_set(fault, DECODE_OUT_OF_RANGE, name_of(LEGACY_TIMESTAMP_NS),
                         "found a time before 1970, expected 0 or more");
    if (telemetry->sampling_interval_ms < 0)
        return fault_range(fault, name_of(LEGACY_SAMPLING_INTERVAL_MS),
                           telemetry->sampling_interval_ms, "0 or more");
    if (telemetry->pid < -1)
        return fault_range(fault, name_of(LEGACY_PID), telemetry->pid, "-1 or more");
    enum decode_category category = telemetry_check_allocator(telemetry, fault);
    if (category == DECODE_OK)
        category = telemetry_check_device(telemetry, fault);
    if (category != DECODE_OK)
        return category;
    return metadata_check_capabilities(scan, COUNTERS_ALL & ~telemetry->null_counters,
                                       &legacy->state->capabilities, legacy->arena, fault);
}

static enum decode_category take_names(struct legacy *legacy) {
    struct telemetry *telemetry = legacy->telemetry;
    const struct token *session = either(legacy, LEGACY_SESSION_ID);
    bool named = session != NULL && session->kind == TOKEN_STRING && !token_is_blank(session);
    const struct {
        enum name_memo memo;
        enum legacy_key key;
        struct slice text; // data NULL: there is none
        string_id *id;
    } names[] = {
        {NAME_SESSION, LEGACY_SESSION_ID,
         named ? token_decode(session, legacy->arena) : (struct slice){NULL, 0},
         &telemetry->session},
        {NAME_EVENT_TYPE, LEGACY_EVENT_TYPE, legacy->event_type, &telemetry->event_type},
        {NAME_COLLECTOR, LEGACY_COLLECTOR, legacy->collector, &telemetry->collector},
        {NAME_HOST, LEGACY_HOST, legacy->host, &telemetry->host},
        {NAME_JOB, LEGACY_JOB_ID, legacy->job, &telemetry->job},
    };
    enum decode_category category = DECODE_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names && category == DECODE_OK; i++) {
        *names[i].id = STRING_NONE;
        if (names[i].text.data != NULL)
            category = telemetry_name(legacy->state, names[i].memo, names[i].text,
                                      name_of(names[i].key), names[i].id, legacy->fault);
    }
    return category;
}

enum decode_category telemetry_legacy(struct telemetry_state *state, struct slice record,
                                      struct arena *arena, struct telemetry *telemetry,
                                      struct decode_fault *fault) {
    struct legacy legacy = {.state = state, .arena = arena, .telemetry = telemetry, .fault = fault};
    struct legacy_values prefixed = {.tokens = {{.kind = TOKEN_NONE}}};
    *telemetry = (struct telemetry){.schema_version = 1, .metadata = SLICE("{}")};
    legacy_values_read(record, &legacy.record, &prefixed);
    const struct token *metadata = own(&legacy, LEGACY_METADATA);
    if (metadata != NULL && metadata->kind == TOKEN_OBJECT) {
        telemetry->metadata = token_slice(metadata);
        legacy_values_read(telemetry->metadata, &legacy.metadata, NULL);
    } else if (metadata != NULL && metadata->kind != TOKEN_NULL) {
        return fault_type(fault, name_of(LEGACY_METADATA), metadata, "an object");
    }
    for (size_t i = 0; i < LEGACY_KEY_COUNT; i++) {
        if (prefixed.tokens[i].kind != TOKEN_NONE)
            legacy.metadata.tokens[i] = prefixed.tokens[i];
    }
    struct metadata_scan scan = {.seen = 0};
    collect_metadata(&legacy, &scan);
    take_timestamp(&legacy);
    take_device(&legacy);
    take_allocator(&legacy);
    take_device_counters(&legacy);
    take_process(&legacy);
    take_collector(&legacy);
    take_identity(&legacy);
    take_context(&legacy);
    telemetry->tracker = take_tracker(&legacy);
    enum decode_category category = legacy.category;
    if (category == DECODE_OK)
        category = check_converted(&legacy, &scan);
    if (category == DECODE_OK)
        category = take_names(&legacy);
    if (category != DECODE_OK)
        return category;
    return telemetry_read_phase(telemetry, legacy.event_type, &scan, arena, fault);
}
