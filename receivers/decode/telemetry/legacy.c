// SPDX-License-Identifier: Apache-2.0
// What does a record without schema_version say?
//
// Old trackers wrote other keys, and each value is looked for in several places. A second walk over
// the record, whose JSON was found right before, collects the values (telemetry_legacy_values.c);
// then they are converted one by one in the order of stormlog 0.4.3's legacy conversion, and the
// result is checked as a v4 record. Unknown keys are ignored. A cold path: one more pass, and arena
// memory for decoded texts and numbers with a point.
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/telemetry/legacy_values.h"
#include "receivers/decode/telemetry/record.h"

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

static enum decode_category take_integer(const struct legacy *legacy, enum legacy_key key,
                                         const struct token *token, int64_t *value) {
    *value = token->integer;
    if (token->kind == TOKEN_INTEGER)
        return DECODE_OK;
    if (token_is_integer(token))
        return fault_limit(legacy->fault, name_of(key), token, LIMIT_INT64);
    return fault_type(legacy->fault, name_of(key), token, "an integer");
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
static enum decode_category take_timestamp_ns(struct legacy *legacy, const struct token *token) {
    legacy->telemetry->timestamp_ns = (uint64_t)token->integer;
    legacy->before_epoch = token->kind == TOKEN_INTEGER && token->integer < 0;
    if (token->kind == TOKEN_INTEGER || token->kind == TOKEN_UNSIGNED)
        return DECODE_OK;
    struct slice name = name_of(LEGACY_TIMESTAMP_NS);
    if (token->kind == TOKEN_HUGE)
        return fault_limit(legacy->fault, name, token, LIMIT_UINT64);
    return fault_type(legacy->fault, name, token, "an integer");
}

static enum decode_category take_timestamp(struct legacy *legacy) {
    struct telemetry *telemetry = legacy->telemetry;
    const struct token *seconds = own(legacy, LEGACY_TIMESTAMP);
    legacy->seconds = is_number(seconds) ? to_double(legacy, seconds) : NAN;
    if (own(legacy, LEGACY_TIMESTAMP_NS) != NULL)
        return take_timestamp_ns(legacy, own(legacy, LEGACY_TIMESTAMP_NS));
    if (!is_number(seconds))
        return fault_set(legacy->fault, DECODE_MISSING_TIMESTAMP, name_of(LEGACY_TIMESTAMP),
                         "expected timestamp_ns, or timestamp as a number of seconds");
    double time_ns = legacy->seconds * 1e9;
    if (!isfinite(time_ns))
        return fault_set(legacy->fault, DECODE_OUT_OF_RANGE, name_of(LEGACY_TIMESTAMP),
                         "expected a number of seconds that is finite as nanoseconds");
    if (time_ns >= 0x1p64)
        return fault_set(legacy->fault, DECODE_OUT_OF_RANGE, name_of(LEGACY_TIMESTAMP),
                         "found %g seconds, culprit takes " LIMIT_UINT64, legacy->seconds);
    legacy->before_epoch = time_ns <= -1.0;
    telemetry->timestamp_ns = legacy->before_epoch ? 0 : (uint64_t)time_ns;
    return DECODE_OK;
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

static enum decode_category take_device(const struct legacy *legacy) {
    static const char gpu[] = "/gpu";
    int64_t *device_id = &legacy->telemetry->device_id;
    if (own(legacy, LEGACY_DEVICE_ID) != NULL)
        return take_integer(legacy, LEGACY_DEVICE_ID, own(legacy, LEGACY_DEVICE_ID), device_id);
    *device_id = own(legacy, LEGACY_MEMORY_MB) != NULL ? 0 : -1;
    const struct token *token = own(legacy, LEGACY_DEVICE);
    if (token == NULL || token->kind != TOKEN_STRING)
        return DECODE_OK;
    struct slice device = token_decode(token, legacy->arena);
    struct slice digits = device_digits(device);
    if (contains_cpu(device)) {
        *device_id = -1;
    } else if (digits.size > 0) {
        *device_id = 0;
        for (size_t i = 0; i < digits.size; i++) {
            if (__builtin_mul_overflow(*device_id, 10, device_id) ||
                __builtin_add_overflow(*device_id, digits.data[i] - '0', device_id))
                return fault_limit(legacy->fault, name_of(LEGACY_DEVICE), token, LIMIT_INT64);
        }
    } else if (device.size >= 4 && strncasecmp(device.data, gpu, 4) == 0) {
        *device_id = 0;
    }
    return DECODE_OK;
}

// memory_mb, which is a number, in bytes.
static enum decode_category take_memory_mb(const struct legacy *legacy, const struct token *token,
                                           int64_t *bytes) {
    double value = to_double(legacy, token) * 0x1p20;
    if (!(value > -0x1p63 && value < 0x1p63))
        return fault_set(legacy->fault, DECODE_OUT_OF_RANGE, name_of(LEGACY_MEMORY_MB),
                         "found %g bytes, culprit takes " LIMIT_INT64, value);
    *bytes = (int64_t)value;
    return DECODE_OK;
}

// The value of the first of `keys` that the record has; *value stays when it has none.
static enum decode_category take_first(const struct legacy *legacy, const enum legacy_key *keys,
                                       size_t count, int64_t *value) {
    for (size_t i = 0; i < count; i++) {
        if (own(legacy, keys[i]) != NULL)
            return take_integer(legacy, keys[i], own(legacy, keys[i]), value);
    }
    return DECODE_OK;
}

static enum decode_category take_allocated(const struct legacy *legacy) {
    static const enum legacy_key keys[] = {LEGACY_ALLOCATED, LEGACY_MEMORY_ALLOCATED};
    static const enum legacy_key used[] = {LEGACY_DEVICE_USED_BYTES};
    int64_t *allocated = &legacy->telemetry->allocated_bytes;
    *allocated = 0;
    if (own(legacy, keys[0]) != NULL || own(legacy, keys[1]) != NULL)
        return take_first(legacy, keys, 2, allocated);
    if (is_number(own(legacy, LEGACY_MEMORY_MB)))
        return take_memory_mb(legacy, own(legacy, LEGACY_MEMORY_MB), allocated);
    return take_first(legacy, used, 1, allocated);
}

// Null and absent are both null.
static enum decode_category take_nullable(const struct legacy *legacy, enum legacy_key key,
                                          const struct token *token, uint32_t counter,
                                          int64_t *value) {
    *value = 0;
    if (token != NULL && token->kind != TOKEN_NULL)
        return take_integer(legacy, key, token, value);
    legacy->telemetry->null_counters |= counter;
    return DECODE_OK;
}

static enum decode_category take_allocator(const struct legacy *legacy) {
    static const enum legacy_key reserved[] = {LEGACY_RESERVED, LEGACY_MEMORY_RESERVED};
    static const enum legacy_key change[] = {LEGACY_CHANGE, LEGACY_MEMORY_CHANGE};
    struct telemetry *telemetry = legacy->telemetry;
    enum decode_category category = take_allocated(legacy);
    telemetry->reserved_bytes = telemetry->allocated_bytes;
    telemetry->change_bytes = 0;
    if (category == DECODE_OK)
        category = take_first(legacy, reserved, 2, &telemetry->reserved_bytes);
    if (category == DECODE_OK)
        category = take_first(legacy, change, 2, &telemetry->change_bytes);
    if (category == DECODE_OK)
        category = take_nullable(legacy, LEGACY_ACTIVE, own(legacy, LEGACY_ACTIVE), COUNTER_ACTIVE,
                                 &telemetry->active_bytes);
    if (category == DECODE_OK)
        category = take_nullable(legacy, LEGACY_INACTIVE, own(legacy, LEGACY_INACTIVE),
                                 COUNTER_INACTIVE, &telemetry->inactive_bytes);
    return category;
}

static enum decode_category take_total(const struct legacy *legacy) {
    static const enum legacy_key keys[] = {LEGACY_TOTAL_MEMORY, LEGACY_DEVICE_TOTAL,
                                           LEGACY_TOTAL_BYTES};
    enum legacy_key key = LEGACY_DEVICE_TOTAL_BYTES;
    const struct token *token = own(legacy, key);
    for (size_t i = 0; i < 3 && token == NULL; i++)
        token = own(legacy, key = keys[i]);
    for (size_t i = 0; i < 3 && token == NULL; i++)
        token = meta(legacy, key = keys[i]);
    return take_nullable(legacy, key, token, COUNTER_DEVICE_TOTAL,
                         &legacy->telemetry->device_total_bytes);
}

static enum decode_category take_device_counters(const struct legacy *legacy) {
    static const enum legacy_key used[] = {LEGACY_DEVICE_USED_BYTES};
    struct telemetry *telemetry = legacy->telemetry;
    telemetry->device_used_bytes = telemetry->allocated_bytes;
    enum decode_category category = take_first(legacy, used, 1, &telemetry->device_used_bytes);
    if (category == DECODE_OK)
        category = take_total(legacy);
    if (category != DECODE_OK)
        return category;
    const struct token *token = own(legacy, LEGACY_DEVICE_FREE_BYTES);
    bool has_total = (telemetry->null_counters & COUNTER_DEVICE_TOTAL) == 0;
    if (token != NULL || !has_total)
        return take_nullable(legacy, LEGACY_DEVICE_FREE_BYTES, token, COUNTER_DEVICE_FREE,
                             &telemetry->device_free_bytes);
    __int128 left = (__int128)telemetry->device_total_bytes - telemetry->device_used_bytes;
    // Beyond int64 only when less than nothing is used, which is refused later.
    telemetry->device_free_bytes = left < 0 ? 0 : left > INT64_MAX ? INT64_MAX : (int64_t)left;
    return DECODE_OK;
}

static enum decode_category take_text(const struct legacy *legacy, enum legacy_key key,
                                      const struct token *token, struct slice *text) {
    if (token->kind != TOKEN_STRING || token_is_blank(token))
        return fault_text(legacy->fault, name_of(key), token);
    *text = token_decode(token, legacy->arena);
    return DECODE_OK;
}

static enum decode_category take_process(struct legacy *legacy) {
    static const enum legacy_key interval[] = {LEGACY_SAMPLING_INTERVAL_MS};
    struct telemetry *telemetry = legacy->telemetry;
    enum decode_category category = DECODE_OK;
    const struct token *type = own(legacy, LEGACY_EVENT_TYPE);
    if (type == NULL)
        type = own(legacy, LEGACY_TYPE);
    legacy->event_type = SLICE("sample");
    if (type != NULL)
        category = take_text(legacy, LEGACY_EVENT_TYPE, type, &legacy->event_type);
    telemetry->sampling_interval_ms = 0;
    if (category == DECODE_OK)
        category = take_first(legacy, interval, 1, &telemetry->sampling_interval_ms);
    const struct token *pid = own(legacy, LEGACY_PID), *host = own(legacy, LEGACY_HOST);
    pid = pid == NULL ? meta(legacy, LEGACY_PID) : pid;
    host = host == NULL ? meta(legacy, LEGACY_HOST) : host;
    telemetry->pid = -1;
    legacy->host = SLICE("unknown");
    if (category == DECODE_OK && pid != NULL)
        category = take_integer(legacy, LEGACY_PID, pid, &telemetry->pid);
    if (category == DECODE_OK && host != NULL)
        category = take_text(legacy, LEGACY_HOST, host, &legacy->host);
    return category;
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
    const struct token *backend = own(legacy, LEGACY_BACKEND);
    backend = backend == NULL ? meta(legacy, LEGACY_BACKEND) : backend;
    legacy->collector = backend_collector(legacy, backend);
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

static enum decode_category take_rank(const struct legacy *legacy, enum legacy_key key, int32_t min,
                                      int32_t *rank) {
    const struct token *token = either(legacy, key);
    int64_t value;
    if (token == NULL)
        return DECODE_OK;
    enum decode_category category = take_integer(legacy, key, token, &value);
    if (category != DECODE_OK)
        return category;
    if (value < min)
        return fault_range(legacy->fault, name_of(key), value,
                           min == 0 ? "0 or more" : "1 or more");
    if (value > RANK_MAX)
        return fault_limit(legacy->fault, name_of(key), token, LIMIT_RANK);
    *rank = (int32_t)value;
    return DECODE_OK;
}

static enum decode_category take_identity(struct legacy *legacy) {
    struct telemetry *telemetry = legacy->telemetry;
    enum decode_category category = DECODE_OK;
    legacy->job = (struct slice){NULL, 0};
    if (either(legacy, LEGACY_JOB_ID) != NULL)
        category = take_text(legacy, LEGACY_JOB_ID, either(legacy, LEGACY_JOB_ID), &legacy->job);
    telemetry->rank = 0;
    telemetry->world_size = 1;
    if (category == DECODE_OK)
        category = take_rank(legacy, LEGACY_RANK, 0, &telemetry->rank);
    telemetry->local_rank = telemetry->rank;
    if (category == DECODE_OK)
        category = take_rank(legacy, LEGACY_LOCAL_RANK, 0, &telemetry->local_rank);
    if (category == DECODE_OK)
        category = take_rank(legacy, LEGACY_WORLD_SIZE, 1, &telemetry->world_size);
    return category == DECODE_OK ? telemetry_check_identity(telemetry, legacy->fault) : category;
}

static enum decode_category take_context(const struct legacy *legacy) {
    const struct token *token = own(legacy, LEGACY_CONTEXT);
    if (token == NULL)
        token = own(legacy, LEGACY_MESSAGE);
    legacy->telemetry->context = (struct slice){NULL, 0};
    if (token == NULL || token->kind == TOKEN_NULL)
        return DECODE_OK;
    if (token->kind != TOKEN_STRING)
        return fault_type(legacy->fault, SLICE("context"), token, "a text or null");
    legacy->telemetry->context = token_decode(token, legacy->arena);
    return DECODE_OK;
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

static enum decode_category convert(struct legacy *legacy) {
    enum decode_category category = take_timestamp(legacy);
    if (category == DECODE_OK)
        category = take_device(legacy);
    if (category == DECODE_OK)
        category = take_allocator(legacy);
    if (category == DECODE_OK)
        category = take_device_counters(legacy);
    if (category == DECODE_OK)
        category = take_process(legacy);
    if (category != DECODE_OK)
        return category;
    take_collector(legacy);
    category = take_identity(legacy);
    if (category != DECODE_OK)
        return category;
    legacy->telemetry->tracker = take_tracker(legacy);
    return take_context(legacy);
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

static enum decode_category take_session(const struct legacy *legacy) {
    const struct token *token = either(legacy, LEGACY_SESSION_ID);
    legacy->telemetry->session = STRING_NONE;
    if (token == NULL || token->kind != TOKEN_STRING || token_is_blank(token))
        return DECODE_OK;
    return telemetry_name(legacy->state, NAME_SESSION, token_decode(token, legacy->arena),
                          name_of(LEGACY_SESSION_ID), &legacy->telemetry->session, legacy->fault);
}

static enum decode_category take_names(const struct legacy *legacy) {
    struct telemetry *telemetry = legacy->telemetry;
    struct telemetry_state *state = legacy->state;
    enum decode_category category = take_session(legacy);
    if (category == DECODE_OK)
        category =
            telemetry_name(state, NAME_EVENT_TYPE, legacy->event_type, name_of(LEGACY_EVENT_TYPE),
                           &telemetry->event_type, legacy->fault);
    if (category == DECODE_OK)
        category = telemetry_name(state, NAME_COLLECTOR, legacy->collector,
                                  name_of(LEGACY_COLLECTOR), &telemetry->collector, legacy->fault);
    if (category == DECODE_OK)
        category = telemetry_name(state, NAME_HOST, legacy->host, name_of(LEGACY_HOST),
                                  &telemetry->host, legacy->fault);
    telemetry->job = STRING_NONE;
    if (category == DECODE_OK && legacy->job.data != NULL)
        category = telemetry_name(state, NAME_JOB, legacy->job, name_of(LEGACY_JOB_ID),
                                  &telemetry->job, legacy->fault);
    return category;
}

enum decode_category telemetry_legacy(struct telemetry_state *state, struct slice record,
                                      struct arena *arena, struct telemetry *telemetry,
                                      struct decode_fault *fault) {
    struct legacy legacy = {.state = state, .arena = arena, .telemetry = telemetry, .fault = fault};
    struct legacy_values prefixed = {.tokens = {{.kind = TOKEN_NONE}}};
    *telemetry = (struct telemetry){.schema_version = 1, .metadata = SLICE("{}")};
    legacy_values_read(record, 1, &legacy.record, &prefixed);
    const struct token *metadata = own(&legacy, LEGACY_METADATA);
    if (metadata != NULL && metadata->kind == TOKEN_OBJECT) {
        telemetry->metadata = token_slice(metadata);
        legacy_values_read(telemetry->metadata, 2, &legacy.metadata, NULL);
    } else if (metadata != NULL && metadata->kind != TOKEN_NULL) {
        return fault_type(fault, name_of(LEGACY_METADATA), metadata, "an object");
    }
    for (size_t i = 0; i < LEGACY_KEY_COUNT; i++) {
        if (prefixed.tokens[i].kind != TOKEN_NONE)
            legacy.metadata.tokens[i] = prefixed.tokens[i];
    }
    struct metadata_scan scan = {.seen = 0};
    collect_metadata(&legacy, &scan);
    enum decode_category category = convert(&legacy);
    if (category == DECODE_OK)
        category = check_converted(&legacy, &scan);
    if (category == DECODE_OK)
        category = take_names(&legacy);
    if (category != DECODE_OK)
        return category;
    return telemetry_read_phase(telemetry, legacy.event_type, &scan, arena, fault);
}
