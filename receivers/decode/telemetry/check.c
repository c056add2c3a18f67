// SPDX-License-Identifier: Apache-2.0
// Checks a record of schema 2 to 4 and reads its values.
//
// The checks run in the order of stormlog 0.4.3's loader, so that the first fault found is the one
// that it reports: version, metadata, identity, presence of keys, then field by field, then
// counters against the capability block. Integers beyond culprit's own limits are refused where the
// loader checks the field's type. Constant time and memory apart from decoding escaped texts.
#include "receivers/decode/json/fault.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/telemetry/record.h"

#define REQUIRED_ALL      (FIELD_BIT(FIELD_REQUIRED_COUNT) - 1)
#define REQUIRED_FIELDS   (REQUIRED_ALL & ~FIELD_BIT(FIELD_SESSION_ID))
#define KNOWN_FIELDS      (FIELD_BIT(FIELD_COUNT) - 1)
#define likely(condition) __builtin_expect((condition), 1)

// What the checks of one record share.
struct check {
    struct telemetry_state *state;
    struct arena *arena;
    struct telemetry *telemetry;
    struct decode_fault *fault;
};

static bool is_seen(const struct check *check, enum telemetry_field field) {
    return (check->state->seen & FIELD_BIT(field)) != 0;
}

static const struct token *token_of(const struct check *check, enum telemetry_field field) {
    return &check->state->tokens[field];
}

__attribute__((noinline, cold)) static enum decode_category
refuse_integer(const struct check *check, enum telemetry_field field, const char *limit) {
    const struct token *token = token_of(check, field);
    if (token_is_integer(token))
        return fault_limit(check->fault, telemetry_field_name(field), token, limit);
    return fault_type(check->fault, telemetry_field_name(field), token, "an integer");
}

static inline enum decode_category take_integer(const struct check *check,
                                                enum telemetry_field field, int64_t *value) {
    const struct token *token = token_of(check, field);
    *value = token->integer;
    if (likely(token->kind == TOKEN_INTEGER))
        return DECODE_OK;
    return refuse_integer(check, field, LIMIT_INT64);
}

static inline enum decode_category take_counter(const struct check *check,
                                                enum telemetry_field field, uint32_t counter,
                                                bool nullable, int64_t *value) {
    if (token_of(check, field)->kind != TOKEN_NULL || !nullable)
        return take_integer(check, field, value);
    *value = 0;
    check->telemetry->null_counters |= counter;
    return DECODE_OK;
}

static inline enum decode_category check_text(const struct check *check,
                                              enum telemetry_field field) {
    const struct token *token = token_of(check, field);
    if (likely(token->kind == TOKEN_STRING && !token_is_blank(token)))
        return DECODE_OK;
    return fault_text(check->fault, telemetry_field_name(field), token);
}

static enum decode_category check_version(const struct check *check) {
    const struct token *token = token_of(check, FIELD_SCHEMA_VERSION);
    if (likely(token->kind == TOKEN_INTEGER && token->integer >= 2 && token->integer <= 4)) {
        check->telemetry->schema_version = (int32_t)token->integer;
        return DECODE_OK;
    }
    struct slice name = telemetry_field_name(FIELD_SCHEMA_VERSION);
    if (!token_is_integer(token))
        return fault_type(check->fault, name, token, "an integer");
    bool zero = token->kind == TOKEN_INTEGER && token->integer == 0;
    return fault_set(check->fault, DECODE_UNSUPPORTED_VERSION,
                     zero ? SLICE("0") : token_slice(token),
                     "schema versions 2, 3 and 4 are read, and records without one");
}

// A rank or world size: at least `min`. Null and absent leave *value as it is.
static inline enum decode_category
take_identity(const struct check *check, enum telemetry_field field, int32_t min, int32_t *value) {
    const struct token *token = token_of(check, field);
    if (!is_seen(check, field) || token->kind == TOKEN_NULL)
        return DECODE_OK;
    if (likely(token->kind == TOKEN_INTEGER && token->integer >= min &&
               token->integer <= RANK_MAX)) {
        *value = (int32_t)token->integer;
        return DECODE_OK;
    }
    bool below = token->kind == TOKEN_INTEGER && token->integer < min;
    if (!below)
        return refuse_integer(check, field, LIMIT_RANK);
    return fault_range(check->fault, telemetry_field_name(field), token->integer,
                       min == 0 ? "0 or more" : "1 or more");
}

enum decode_category telemetry_check_identity(const struct telemetry *telemetry,
                                              struct decode_fault *fault) {
    if (telemetry->rank >= telemetry->world_size)
        return fault_set(fault, DECODE_IDENTITY_CONFLICT, SLICE("rank"),
                         "found rank %d with world_size %d, expected a lower rank",
                         (int)telemetry->rank, (int)telemetry->world_size);
    if (telemetry->local_rank >= telemetry->world_size)
        return fault_set(fault, DECODE_IDENTITY_CONFLICT, SLICE("local_rank"),
                         "found local_rank %d with world_size %d, expected a lower local_rank",
                         (int)telemetry->local_rank, (int)telemetry->world_size);
    return DECODE_OK;
}

static bool has_job(const struct check *check) {
    return is_seen(check, FIELD_JOB_ID) && token_of(check, FIELD_JOB_ID)->kind != TOKEN_NULL;
}

static enum decode_category check_identity(const struct check *check) {
    struct telemetry *telemetry = check->telemetry;
    enum decode_category category = DECODE_OK;
    if (has_job(check))
        category = check_text(check, FIELD_JOB_ID);
    telemetry->rank = 0;
    telemetry->world_size = 1;
    if (category == DECODE_OK)
        category = take_identity(check, FIELD_RANK, 0, &telemetry->rank);
    telemetry->local_rank = telemetry->rank;
    if (category == DECODE_OK)
        category = take_identity(check, FIELD_LOCAL_RANK, 0, &telemetry->local_rank);
    if (category == DECODE_OK)
        category = take_identity(check, FIELD_WORLD_SIZE, 1, &telemetry->world_size);
    return category != DECODE_OK ? category : telemetry_check_identity(telemetry, check->fault);
}

__attribute__((noinline, cold)) static enum decode_category
refuse_missing(const struct check *check) {
    struct fault_names names = {.count = 0};
    for (unsigned field = 0; field < FIELD_REQUIRED_COUNT; field++) {
        if ((REQUIRED_FIELDS & FIELD_BIT(field)) != 0 && !is_seen(check, field))
            names.names[names.count++] = telemetry_field_name(field);
    }
    return fault_names_join(&names, check->fault, DECODE_MISSING_FIELD,
                            "required by this schema version but missing");
}

static enum decode_category check_keys(const struct check *check, struct slice record) {
    uint32_t seen = check->state->seen, known = KNOWN_FIELDS;
    if (!is_seen(check, FIELD_METADATA))
        return fault_set(check->fault, DECODE_MISSING_FIELD, SLICE("metadata"),
                         "required by this schema version but missing");
    if ((~seen & REQUIRED_FIELDS) != 0)
        return refuse_missing(check);
    if (check->telemetry->schema_version == 2)
        known &= ~FIELD_BIT(FIELD_SESSION_ID);
    if ((seen & ~known) != 0)
        return telemetry_record_unknown(record, known, check->arena, check->fault);
    return DECODE_OK;
}

static inline enum decode_category
take_at_least(const struct check *check, enum telemetry_field field, int64_t min, int64_t *value) {
    enum decode_category category = take_integer(check, field, value);
    if (category != DECODE_OK || likely(*value >= min))
        return category;
    return fault_range(check->fault, telemetry_field_name(field), *value,
                       min == 0 ? "0 or more" : "-1 or more");
}

static enum decode_category check_timestamp(const struct check *check) {
    const struct token *token = token_of(check, FIELD_TIMESTAMP_NS);
    check->telemetry->timestamp_ns = (uint64_t)token->integer;
    if (likely(token->kind == TOKEN_INTEGER && token->integer >= 0) ||
        token->kind == TOKEN_UNSIGNED)
        return DECODE_OK;
    struct slice name = telemetry_field_name(FIELD_TIMESTAMP_NS);
    if (token->kind == TOKEN_INTEGER)
        return fault_range(check->fault, name, token->integer, "0 or more");
    return refuse_integer(check, FIELD_TIMESTAMP_NS, LIMIT_UINT64);
}

static enum decode_category check_process(const struct check *check) {
    struct telemetry *telemetry = check->telemetry;
    enum decode_category category = check_timestamp(check);
    if (category == DECODE_OK)
        category = check_text(check, FIELD_EVENT_TYPE);
    if (category == DECODE_OK)
        category = check_text(check, FIELD_COLLECTOR);
    if (category == DECODE_OK)
        category =
            take_at_least(check, FIELD_SAMPLING_INTERVAL_MS, 0, &telemetry->sampling_interval_ms);
    if (category == DECODE_OK)
        category = take_at_least(check, FIELD_PID, -1, &telemetry->pid);
    return category == DECODE_OK ? check_text(check, FIELD_HOST) : category;
}

// Null was as good as absent before; the strict check refuses it.
static enum decode_category check_identity_nulls(const struct check *check) {
    for (unsigned field = FIELD_RANK; field <= FIELD_WORLD_SIZE; field++) {
        if (is_seen(check, field) && token_of(check, field)->kind == TOKEN_NULL)
            return refuse_integer(check, field, LIMIT_RANK);
    }
    return DECODE_OK;
}

static inline enum decode_category check_lowest(struct decode_fault *fault,
                                                enum telemetry_field field, int64_t value) {
    if (likely(value >= 0))
        return DECODE_OK;
    return fault_range(fault, telemetry_field_name(field), value, "0 or more");
}

enum decode_category telemetry_check_allocator(const struct telemetry *telemetry,
                                               struct decode_fault *fault) {
    enum decode_category category =
        check_lowest(fault, FIELD_ALLOCATED, telemetry->allocated_bytes);
    if (category == DECODE_OK)
        category = check_lowest(fault, FIELD_RESERVED, telemetry->reserved_bytes);
    if (category == DECODE_OK)
        category = check_lowest(fault, FIELD_ACTIVE, telemetry->active_bytes);
    if (category == DECODE_OK)
        category = check_lowest(fault, FIELD_INACTIVE, telemetry->inactive_bytes);
    return category;
}

static enum decode_category refuse_above_total(struct decode_fault *fault,
                                               enum telemetry_field field, int64_t value,
                                               int64_t total) {
    return fault_set(fault, DECODE_EXCEEDS_TOTAL, telemetry_field_name(field),
                     "found %lld with device_total_bytes %lld, expected no more than the total",
                     (long long)value, (long long)total);
}

enum decode_category telemetry_check_device(const struct telemetry *telemetry,
                                            struct decode_fault *fault) {
    int64_t used = telemetry->device_used_bytes, free_bytes = telemetry->device_free_bytes;
    int64_t total = telemetry->device_total_bytes;
    enum decode_category category = check_lowest(fault, FIELD_DEVICE_USED, used);
    if (category == DECODE_OK)
        category = check_lowest(fault, FIELD_DEVICE_FREE, free_bytes);
    if (category == DECODE_OK)
        category = check_lowest(fault, FIELD_DEVICE_TOTAL, total);
    if (category != DECODE_OK || (telemetry->null_counters & COUNTER_DEVICE_TOTAL) != 0)
        return category;
    // A counter that is null is 0 here, which no total is below.
    if (used > total)
        return refuse_above_total(fault, FIELD_DEVICE_USED, used, total);
    if (free_bytes > total)
        return refuse_above_total(fault, FIELD_DEVICE_FREE, free_bytes, total);
    return DECODE_OK;
}

static enum decode_category check_counters(const struct check *check) {
    struct telemetry *to = check->telemetry;
    bool nullable = to->schema_version == 4;
    to->null_counters = 0;
    const struct {
        enum telemetry_field field;
        uint32_t counter;
        bool nullable;
        int64_t *value;
    } allocator[] =
        {
            {FIELD_ALLOCATED, COUNTER_ALLOCATED, nullable, &to->allocated_bytes},
            {FIELD_RESERVED, COUNTER_RESERVED, nullable, &to->reserved_bytes},
            {FIELD_ACTIVE, COUNTER_ACTIVE, true, &to->active_bytes},
            {FIELD_INACTIVE, COUNTER_INACTIVE, true, &to->inactive_bytes},
            {FIELD_CHANGE, COUNTER_CHANGE, nullable, &to->change_bytes},
        },
      device[] = {
          {FIELD_DEVICE_USED, COUNTER_DEVICE_USED, nullable, &to->device_used_bytes},
          {FIELD_DEVICE_FREE, COUNTER_DEVICE_FREE, true, &to->device_free_bytes},
          {FIELD_DEVICE_TOTAL, COUNTER_DEVICE_TOTAL, true, &to->device_total_bytes},
      };
    enum decode_category category = DECODE_OK;
    for (size_t i = 0; i < sizeof allocator / sizeof *allocator && category == DECODE_OK; i++)
        category = take_counter(check, allocator[i].field, allocator[i].counter,
                                allocator[i].nullable, allocator[i].value);
    if (category == DECODE_OK)
        category = telemetry_check_allocator(to, check->fault);
    for (size_t i = 0; i < sizeof device / sizeof *device && category == DECODE_OK; i++)
        category = take_counter(check, device[i].field, device[i].counter, device[i].nullable,
                                device[i].value);
    return category == DECODE_OK ? telemetry_check_device(to, check->fault) : category;
}

static enum decode_category check_context(const struct check *check) {
    const struct token *token = token_of(check, FIELD_CONTEXT);
    check->telemetry->context = (struct slice){NULL, 0};
    if (token->kind == TOKEN_STRING)
        check->telemetry->context = token_decode(token, check->arena);
    else if (token->kind != TOKEN_NULL)
        return fault_type(check->fault, telemetry_field_name(FIELD_CONTEXT), token,
                          "a text or null");
    return DECODE_OK;
}

static enum decode_category check_fields(const struct check *check, struct slice record) {
    struct telemetry_state *state = check->state;
    struct telemetry *telemetry = check->telemetry;
    enum decode_category category = check_version(check);
    if (category != DECODE_OK)
        return category;
    if (is_seen(check, FIELD_METADATA) && token_of(check, FIELD_METADATA)->kind != TOKEN_OBJECT)
        return fault_type(check->fault, SLICE("metadata"), token_of(check, FIELD_METADATA),
                          "an object");
    category = check_identity(check);
    if (category == DECODE_OK)
        category = check_keys(check, record);
    if (category == DECODE_OK)
        category = check_process(check);
    if (category == DECODE_OK)
        category = check_identity_nulls(check);
    if (category == DECODE_OK)
        category = take_integer(check, FIELD_DEVICE_ID, &telemetry->device_id);
    if (category == DECODE_OK)
        category = check_counters(check);
    if (category == DECODE_OK)
        category = check_context(check);
    if (category != DECODE_OK)
        return category;
    return metadata_check_capabilities(&state->metadata, COUNTERS_ALL & ~telemetry->null_counters,
                                       &state->capabilities, check->arena, check->fault);
}

static enum decode_category take_name(const struct check *check, enum telemetry_field field,
                                      enum name_memo memo, string_id *id) {
    struct slice text = token_decode(token_of(check, field), check->arena);
    return telemetry_name(check->state, memo, text, telemetry_field_name(field), id, check->fault);
}

// The record's own; metadata's when that is null or absent. Anything but a non-blank text then
// stands for none.
static enum decode_category take_session(const struct check *check) {
    struct telemetry_state *state = check->state;
    const struct token *token = NULL;
    if (is_seen(check, FIELD_SESSION_ID) && token_of(check, FIELD_SESSION_ID)->kind != TOKEN_NULL)
        token = token_of(check, FIELD_SESSION_ID);
    else if ((state->metadata.seen & METADATA_SESSION) != 0)
        token = &state->metadata.session;
    check->telemetry->session = STRING_NONE;
    if (token == NULL || token->kind != TOKEN_STRING || token_is_blank(token))
        return DECODE_OK;
    return telemetry_name(state, NAME_SESSION, token_decode(token, check->arena),
                          SLICE("session_id"), &check->telemetry->session, check->fault);
}

static enum decode_category take_names(const struct check *check) {
    struct telemetry *telemetry = check->telemetry;
    enum decode_category category = take_session(check);
    if (category == DECODE_OK)
        category = take_name(check, FIELD_EVENT_TYPE, NAME_EVENT_TYPE, &telemetry->event_type);
    if (category == DECODE_OK)
        category = take_name(check, FIELD_COLLECTOR, NAME_COLLECTOR, &telemetry->collector);
    if (category == DECODE_OK)
        category = take_name(check, FIELD_HOST, NAME_HOST, &telemetry->host);
    telemetry->job = STRING_NONE;
    if (category == DECODE_OK && has_job(check))
        category = take_name(check, FIELD_JOB_ID, NAME_JOB, &telemetry->job);
    return category;
}

enum decode_category telemetry_check(struct telemetry_state *state, struct slice record,
                                     struct arena *arena, struct telemetry *telemetry,
                                     struct decode_fault *fault) {
    struct check check = {state, arena, telemetry, fault};
    enum decode_category category = check_fields(&check, record);
    if (category == DECODE_OK)
        category = take_names(&check);
    if (category != DECODE_OK)
        return category;
    telemetry->metadata = state->metadata.text;
    telemetry->tracker = NULL;
    return telemetry_read_phase(telemetry, intern_slice(telemetry->event_type), &state->metadata,
                                arena, fault);
}
