// SPDX-License-Identifier: Apache-2.0
// Puts the telemetry record together that a log record stands for.
//
// Fields are gathered by name; those of the body win over attributes, and what the resource and the
// log record's own members say is used only for fields that are still missing. A body that is text
// with a JSON object is used where it lies when nothing has to be added. Memory: a scratch buffer a
// request, and the text of each record in the arena, bounded for the whole request.
#include "receivers/decode/otlp/record.h"

#include "base/text/json_write.h"
#include "receivers/decode/json/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

enum { OUTCOMES_IN_BLOCK = 256 };

struct otlp_outcomes {
    struct otlp_outcomes *next;
    uint32_t count;
    struct otlp_outcome {
        struct slice record;
        const char *refusal;
    } items[OUTCOMES_IN_BLOCK];
};

void otlp_reading_begin(struct otlp_reading *reading, struct slice body, struct arena *arena,
                        otlp_next *next) {
    memset(reading, 0, sizeof *reading);
    reading->arena = arena;
    reading->next = next;
    reading->left = 4 * body.size + (64 << 10);
    buffer_init(&reading->scratch, OTLP_RECORD_MAX);
}

enum status otlp_reading_end(struct otlp_reading *reading, struct slice body, bool wrong,
                             const char *encoding, otlp_visit *visit, void *context,
                             struct error *error) {
    buffer_release(&reading->scratch);
    if (wrong) {
        size_t place = (size_t)(reading->fault.at - body.data);
        return error_set(error, STATUS_BAD_DATA,
                         "The body is not an OTLP logs request in %s: at byte %zu, after %u log "
                         "records: %s.",
                         encoding, place, reading->count, reading->fault.why);
    }
    uint32_t index = 0;
    for (struct otlp_outcomes *block = reading->first; block != NULL; block = block->next) {
        for (uint32_t i = 0; i < block->count; i++)
            visit(context, index++, block->items[i].record, block->items[i].refusal);
    }
    return STATUS_OK;
}

static bool add_outcome(struct otlp_reading *reading, struct slice record, const char *refusal,
                        const char *at) {
    if (reading->count == OTLP_RECORDS_MAX) {
        json_fail(&reading->fault, at, "more than 262144 log records in one request; send fewer");
        return false;
    }
    struct otlp_outcomes *block = reading->last;
    if (block == NULL || block->count == OUTCOMES_IN_BLOCK) {
        block = arena_take(reading->arena, sizeof *block);
        block->next = NULL;
        block->count = 0;
        if (reading->last == NULL)
            reading->first = block;
        else
            reading->last->next = block;
        reading->last = block;
    }
    if (refusal != NULL)
        record = (struct slice){NULL, 0};
    block->items[block->count++] = (struct otlp_outcome){record, refusal};
    reading->count++;
    return true;
}

// Cuts `prefix` off the text; false when it does not begin so.
static bool cut_prefix(struct slice *text, struct slice prefix) {
    if (text->size < prefix.size || memcmp(text->data, prefix.data, prefix.size) != 0)
        return false;
    *text = (struct slice){text->data + prefix.size, text->size - prefix.size};
    return true;
}

static bool cut_namespace(struct slice *name) {
    return cut_prefix(name, SLICE("culprit.")) || cut_prefix(name, SLICE("stormlog."));
}

static bool is_one_of(struct slice name, const struct slice *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(name, names[i]))
            return true;
    }
    return false;
}

// Fields that no other log has: with one of them a log record is telemetry.
static bool is_telemetry_field(struct slice name) {
    static const struct slice names[] = {
        {"schema_version", 14},
        {"device_used_bytes", 17},
        {"allocator_allocated_bytes", 25},
        {"allocator_reserved_bytes", 24},
        {"memory_allocated", 16},
        {"memory_mb", 9},
    };
    return is_one_of(name, names, sizeof names / sizeof *names);
}

static struct otlp_field *find_field(struct otlp_reading *reading, struct slice key) {
    for (unsigned i = 0; i < reading->field_count; i++) {
        if (slice_equal(reading->fields[i].key, key))
            return &reading->fields[i];
    }
    return NULL;
}

// The field to fill for `key`; NULL when another one stands above it or there is no room.
static struct otlp_field *claim_field(struct otlp_reading *reading, struct slice key,
                                      bool of_body) {
    if (reading->refusal != NULL) // too many fields: no use looking at more
        return NULL;
    struct otlp_field *field = find_field(reading, key);
    if (field != NULL && field->of_body && !of_body)
        return NULL;
    if (field == NULL) {
        if (reading->field_count == OTLP_FIELDS_MAX) {
            reading->refusal = "it has more than 128 fields";
            return NULL;
        }
        field = &reading->fields[reading->field_count++];
    }
    *field = (struct otlp_field){.key = key, .of_body = of_body};
    reading->is_telemetry = reading->is_telemetry || is_telemetry_field(key);
    return field;
}

// Begins a member in the scratch; its value is appended next.
static size_t begin_member(struct otlp_reading *reading, struct slice key) {
    size_t offset = reading->scratch.size;
    json_append_string(&reading->scratch, key);
    buffer_append_char(&reading->scratch, ':');
    return offset;
}

// Makes the member that begins at `offset` a field, or takes it back.
static struct otlp_field *end_member(struct otlp_reading *reading, struct slice key, size_t offset,
                                     bool of_body) {
    assert(offset <= reading->scratch.size);
    struct otlp_field *field = claim_field(reading, key, of_body);
    if (field == NULL) {
        reading->scratch.size = offset;
        return NULL;
    }
    field->offset = offset;
    field->member = (struct slice){NULL, reading->scratch.size - offset};
    reading->mixed = true;
    return field;
}

static bool put_value(struct otlp_reading *reading, struct slice key,
                      const struct otlp_value *value, bool of_body) {
    size_t offset = begin_member(reading, key);
    if (!otlp_value_append(&reading->scratch, value, reading->next, reading->arena,
                           &reading->fault))
        return false;
    struct otlp_field *field = end_member(reading, key, offset, of_body);
    if (field != NULL)
        field->is_null = value->kind == OTLP_NOTHING;
    return true;
}

// Reads a value only to see that it is right.
static bool read_through(struct otlp_reading *reading, const struct otlp_value *value) {
    struct buffer *scratch = &reading->scratch;
    size_t size = scratch->size;
    bool failed = scratch->failed;
    bool right = otlp_value_append(scratch, value, reading->next, reading->arena, &reading->fault);
    scratch->size = size;
    scratch->failed = failed;
    return right;
}

// A scalar as JSON in the arena.
static struct slice small_json(struct otlp_reading *reading, const struct otlp_value *value) {
    buffer_reset(&reading->scratch);
    if (!otlp_value_append(&reading->scratch, value, reading->next, reading->arena,
                           &reading->fault) ||
        reading->scratch.failed)
        return (struct slice){NULL, 0};
    return arena_copy(reading->arena, buffer_slice(&reading->scratch));
}

bool otlp_resource_attribute(struct otlp_reading *reading, struct otlp_resource *resource,
                             struct slice key, const struct otlp_value *value) {
    static const struct slice jobs[] = {
        {"culprit.job_id", 14},
        {"stormlog.job_id", 15},
        {"k8s.pod.label.jobset.sigs.k8s.io/jobset-name", 44},
        {"k8s.pod.labels.jobset.sigs.k8s.io/jobset-name", 45},
        {"k8s.job.name", 12},
    };
    bool named = (value->kind == OTLP_TEXT || value->kind == OTLP_QUOTED) &&
                 value->text.size <= OTLP_NAME_MAX && value->text.size > 0;
    if (named && slice_equal(key, SLICE("host.name")))
        resource->host = small_json(reading, value);
    if (named && slice_equal(key, SLICE("k8s.pod.name")))
        resource->pod = small_json(reading, value);
    if (named && slice_equal(key, SLICE("k8s.namespace.name")))
        resource->namespace = small_json(reading, value);
    if (named && slice_equal(key, SLICE("service.instance.id")))
        resource->instance = small_json(reading, value);
    if (value->kind == OTLP_INT && slice_equal(key, SLICE("process.pid")))
        resource->pid = small_json(reading, value);
    for (unsigned i = 0; named && i < sizeof jobs / sizeof *jobs; i++) {
        if (!slice_equal(key, jobs[i]) || (resource->job.data != NULL && resource->job_order < i))
            continue;
        resource->job = small_json(reading, value);
        resource->job_order = i;
    }
    // What is not used is read all the same: a malformed request is told whatever it means.
    return read_through(reading, value);
}

void otlp_record_begin(struct otlp_reading *reading) {
    buffer_reset(&reading->scratch);
    reading->field_count = 0;
    reading->is_telemetry = reading->mixed = reading->body_is_object = false;
    reading->time_ns = reading->observed_ns = 0;
    reading->name = reading->name_too = reading->body_text = (struct slice){NULL, 0};
    reading->body_line = reading->file = (struct slice){NULL, 0};
    reading->body_kind = OTLP_NOTHING;
    reading->refusal = NULL;
}

bool otlp_record_attribute(struct otlp_reading *reading, struct slice key,
                           const struct otlp_value *value) {
    if (slice_equal(key, SLICE("event.name"))) {
        reading->name_too = otlp_value_text(value, reading->arena);
        return read_through(reading, value);
    }
    if (slice_equal(key, SLICE("log.file.path")) ||
        (reading->file.size == 0 && slice_equal(key, SLICE("log.file.name"))))
        reading->file = otlp_value_text(value, reading->arena);
    bool ours = cut_namespace(&key);
    // Names with a dot are other conventions' (code.function.name, exception.type).
    if (key.size > 0 && (ours || memchr(key.data, '.', key.size) == NULL))
        return put_value(reading, key, value, false);
    return read_through(reading, value);
}

static bool put_map(struct otlp_reading *reading, const struct otlp_value *map) {
    struct otlp_cursor cursor = {
        .at = map->text.data, .end = map->text.data + map->text.size, .map = true, .first = true};
    struct slice key;
    struct otlp_value value;
    enum otlp_step step;
    while ((step = reading->next(&cursor, reading->arena, &key, &value, &reading->fault)) ==
           OTLP_ITEM) {
        if (!put_value(reading, key, &value, true))
            return false;
    }
    return step == OTLP_END;
}

// The members of the object that a text begins with. What is wrong with them is a refusal.
static void put_members(struct otlp_reading *reading, struct slice text) {
    struct json_members members = {.first = true};
    struct json_fault fault;
    struct token key, value;
    const char *end = text.data + text.size;
    const char *at = json_next_member(&members, text.data, end, &key, &fault);
    while (at != NULL && !members.done) {
        const char *begin = key.text - 1; // its quote
        at = json_scan_value(at, end, 1, &value, &fault);
        if (at == NULL)
            break;
        struct otlp_field *field = claim_field(reading, token_decode(&key, reading->arena), true);
        if (field == NULL)
            return;
        field->member = (struct slice){begin, (size_t)(at - begin)};
        field->is_null = value.kind == TOKEN_NULL;
        at = json_skip_space(at, end);
        at = json_next_member(&members, at, end, &key, &fault);
    }
    if (at != NULL)
        at = json_skip_space(at, end);
    if (at != NULL && at != end)
        at = json_fail(&fault, at, "something follows the object");
    if (at == NULL)
        reading->refusal =
            arena_format(reading->arena,
                         "the text of its body begins like a JSON object but is none: %s, at "
                         "byte %zu of it",
                         fault.why, (size_t)(fault.at - text.data));
}

bool otlp_record_body(struct otlp_reading *reading, const struct otlp_value *value) {
    reading->body_kind = value->kind;
    if (value->kind == OTLP_MAP) {
        reading->body_is_object = true;
        return put_map(reading, value);
    }
    if (value->kind != OTLP_TEXT && value->kind != OTLP_QUOTED)
        return read_through(reading, value);
    struct slice text = otlp_value_text(value, reading->arena);
    const char *end = text.data + text.size;
    const char *begin = json_skip_space(text.data, end);
    reading->body_line = text;
    reading->body_text = (struct slice){begin, (size_t)(end - begin)};
    if (json_peek(begin, end) == '{') {
        reading->body_is_object = true;
        put_members(reading, reading->body_text);
    }
    return true;
}

static void put_missing(struct otlp_reading *reading, struct slice key, struct slice json) {
    if (json.data == NULL)
        return;
    size_t offset = begin_member(reading, key);
    buffer_append(&reading->scratch, json);
    end_member(reading, key, offset, true);
}

static void put_missing_text(struct otlp_reading *reading, struct slice key, struct slice text) {
    size_t offset = begin_member(reading, key);
    json_append_string(&reading->scratch, text);
    end_member(reading, key, offset, true);
}

static bool has_field(struct otlp_reading *reading, struct slice key) {
    return find_field(reading, key) != NULL;
}

static void put_missing_time(struct otlp_reading *reading) {
    uint64_t time_ns = reading->time_ns != 0 ? reading->time_ns : reading->observed_ns;
    if (time_ns == 0 || has_field(reading, SLICE("timestamp_ns")) ||
        has_field(reading, SLICE("timestamp")))
        return;
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%" PRIu64, time_ns);
    put_missing(reading, SLICE("timestamp_ns"), (struct slice){digits, (size_t)size});
}

// What the log record and its resource say beside the body and the attributes.
static void put_all_missing(struct otlp_reading *reading, const struct otlp_resource *resource) {
    put_missing_time(reading);
    struct slice name = reading->name.size > 0 ? reading->name : reading->name_too;
    cut_namespace(&name);
    if (name.size > 0 && !has_field(reading, SLICE("event_type")) &&
        !has_field(reading, SLICE("type")))
        put_missing_text(reading, SLICE("event_type"), name);
    if (!reading->body_is_object && reading->body_text.data != NULL &&
        !has_field(reading, SLICE("context")) && !has_field(reading, SLICE("message")))
        put_missing_text(reading, SLICE("context"), reading->body_text);
    if (!has_field(reading, SLICE("host")))
        put_missing(reading, SLICE("host"), resource->host);
    if (!has_field(reading, SLICE("pid")))
        put_missing(reading, SLICE("pid"), resource->pid);
    struct otlp_field *job = find_field(reading, SLICE("job_id"));
    if (job == NULL || job->is_null)
        put_missing(reading, SLICE("job_id"), resource->job);
}

static const char *why_no_telemetry(const struct otlp_reading *reading) {
    if (reading->body_is_object)
        return "neither the object in its body nor its attributes have a field that only telemetry "
               "has, such as schema_version or device_used_bytes";
    switch (reading->body_kind) {
    case OTLP_NOTHING:
        return "it has no body, and its attributes are no telemetry record";
    case OTLP_TEXT:
    case OTLP_QUOTED:
        return "its body is text that is not a JSON object, and its attributes are no telemetry "
               "record";
    case OTLP_BYTES:
    case OTLP_BASE64:
        return "its body is bytes instead of text or a map, and its attributes are no telemetry "
               "record";
    default:
        return "its body is neither text nor a map, and its attributes are no telemetry record";
    }
}

// The fields put together, `size` bytes.
static struct slice join_fields(const struct otlp_reading *reading, size_t size) {
    char *text = arena_take(reading->arena, size);
    size_t at = 0;
    for (unsigned i = 0; i < reading->field_count; i++) {
        const struct otlp_field *field = &reading->fields[i];
        const char *member = field->member.data;
        if (member == NULL)
            member = reading->scratch.data + field->offset;
        text[at++] = i == 0 ? '{' : ',';
        memcpy(text + at, member, field->member.size);
        at += field->member.size;
    }
    text[at++] = '}';
    assert(at == size);
    return (struct slice){text, size};
}

// The text of the record, or a refusal.
static struct slice build_record(struct otlp_reading *reading) {
    size_t size = reading->body_text.size;
    if (reading->mixed) {
        size = 1; // the closing brace
        for (unsigned i = 0; i < reading->field_count; i++)
            size += 1 + reading->fields[i].member.size;
    }
    if (reading->scratch.failed || size > OTLP_RECORD_MAX) {
        reading->refusal = "it is larger than 1 MiB";
    } else if (!reading->mixed) {
        return reading->body_text;
    } else if (size > reading->left) {
        reading->refusal =
            "the telemetry records of this request are more than four times as "
            "large as the request; send fewer at a time";
    } else {
        reading->left -= size;
        return join_fields(reading, size);
    }
    return (struct slice){NULL, 0};
}

static void put_line_text(struct buffer *out, const char *key, struct slice text) {
    if (text.size == 0)
        return;
    buffer_append_format(out, ",\"%s\":", key);
    json_append_string(out, text);
}

static void put_line_json(struct buffer *out, const char *key, struct slice json) {
    if (json.data == NULL)
        return;
    buffer_append_format(out, ",\"%s\":", key);
    buffer_append(out, json);
}

// A line of a log, which is no telemetry: an envelope that the decoder of logs opens
// (forms/rows/envelopes.forms: otlp_record).
static struct slice build_line(struct otlp_reading *reading, const struct otlp_resource *resource) {
    struct buffer *out = &reading->scratch;
    buffer_reset(out);
    buffer_append_text(out, "{\"otlp\":\"log\"");
    if (reading->time_ns != 0)
        buffer_append_format(out, ",\"timeUnixNano\":\"%" PRIu64 "\"", reading->time_ns);
    if (reading->observed_ns != 0)
        buffer_append_format(out, ",\"observedTimeUnixNano\":\"%" PRIu64 "\"",
                             reading->observed_ns);
    put_line_json(out, "host.name", resource->host);
    put_line_json(out, "k8s.pod.name", resource->pod);
    put_line_json(out, "k8s.namespace.name", resource->namespace);
    put_line_json(out, "service.instance.id", resource->instance);
    put_line_json(out, "process.pid", resource->pid);
    put_line_text(out, "log.file.path", reading->file);
    put_line_text(out, "body", reading->body_line);
    buffer_append_char(out, '}');
    if (out->failed) {
        reading->refusal = "it is larger than 1 MiB";
        return (struct slice){NULL, 0};
    }
    if (out->size > reading->left) {
        reading->refusal =
            "the lines of this request are more than four times as large as the "
            "request; send fewer at a time";
        return (struct slice){NULL, 0};
    }
    reading->left -= out->size;
    return arena_copy(reading->arena, buffer_slice(out));
}

bool otlp_record_finish(struct otlp_reading *reading, const struct otlp_resource *resource,
                        const char *at) {
    assert(resource != NULL && at != NULL);
    struct slice record = {NULL, 0};
    bool is_line = reading->body_text.size > 0 && !reading->body_is_object;
    if (reading->refusal == NULL && !reading->is_telemetry && is_line) {
        record = build_line(reading, resource);
        return add_outcome(reading, record, reading->refusal, at);
    }
    if (reading->refusal == NULL && !reading->is_telemetry)
        reading->refusal = why_no_telemetry(reading);
    if (reading->refusal == NULL && !reading->scratch.failed)
        put_all_missing(reading, resource);
    if (reading->refusal == NULL)
        record = build_record(reading);
    return add_outcome(reading, record, reading->refusal, at);
}
