// SPDX-License-Identifier: Apache-2.0
// OTLP requests from their JSON form to protobuf, by tables of the messages' fields, and the
// answers' partial_success from either form.
//
// Source of names, numbers and types: opentelemetry-proto, logs/v1/logs.proto,
// metrics/v1/metrics.proto, common/v1/common.proto, resource/v1/resource.proto.
#include "exporters/otlp/otlp.h"

#include <assert.h>
#include <stdlib.h>

enum field_type { FIELD_TEXT, FIELD_BOOL, FIELD_INT, FIELD_FIXED64, FIELD_MESSAGE };
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
enum { DEPTH_MAX = 16 };

struct message;
struct field {
    const char *name; // in JSON; NULL ends a message
    uint32_t number;
    enum field_type type;
    const struct message *message; // of FIELD_MESSAGE, one or an array of them
};
struct message {
    const struct field fields[8];
};

static const struct message ANY_VALUE;
static const struct message KEY_VALUE = {
    {{"key", 1, FIELD_TEXT, NULL}, {"value", 2, FIELD_MESSAGE, &ANY_VALUE}}};
static const struct message ARRAY_VALUE = {{{"values", 1, FIELD_MESSAGE, &ANY_VALUE}}};
static const struct message KEY_VALUE_LIST = {{{"values", 1, FIELD_MESSAGE, &KEY_VALUE}}};
static const struct message ANY_VALUE = {{{"stringValue", 1, FIELD_TEXT, NULL},
                                          {"boolValue", 2, FIELD_BOOL, NULL},
                                          {"intValue", 3, FIELD_INT, NULL},
                                          {"arrayValue", 5, FIELD_MESSAGE, &ARRAY_VALUE},
                                          {"kvlistValue", 6, FIELD_MESSAGE, &KEY_VALUE_LIST}}};
static const struct message RESOURCE = {{{"attributes", 1, FIELD_MESSAGE, &KEY_VALUE}}};
static const struct message SCOPE = {{{"name", 1, FIELD_TEXT, NULL}}};

static const struct message LOG_RECORD = {{{"timeUnixNano", 1, FIELD_FIXED64, NULL},
                                           {"severityNumber", 2, FIELD_INT, NULL},
                                           {"severityText", 3, FIELD_TEXT, NULL},
                                           {"body", 5, FIELD_MESSAGE, &ANY_VALUE},
                                           {"attributes", 6, FIELD_MESSAGE, &KEY_VALUE},
                                           {"observedTimeUnixNano", 11, FIELD_FIXED64, NULL},
                                           {"eventName", 12, FIELD_TEXT, NULL}}};
static const struct message SCOPE_LOGS = {
    {{"scope", 1, FIELD_MESSAGE, &SCOPE}, {"logRecords", 2, FIELD_MESSAGE, &LOG_RECORD}}};
static const struct message RESOURCE_LOGS = {
    {{"resource", 1, FIELD_MESSAGE, &RESOURCE}, {"scopeLogs", 2, FIELD_MESSAGE, &SCOPE_LOGS}}};
static const struct message LOGS = {{{"resourceLogs", 1, FIELD_MESSAGE, &RESOURCE_LOGS}}};

static const struct message POINT = {{{"startTimeUnixNano", 2, FIELD_FIXED64, NULL},
                                      {"timeUnixNano", 3, FIELD_FIXED64, NULL},
                                      {"asInt", 6, FIELD_FIXED64, NULL},
                                      {"attributes", 7, FIELD_MESSAGE, &KEY_VALUE}}};
static const struct message SUM = {{{"dataPoints", 1, FIELD_MESSAGE, &POINT},
                                    {"aggregationTemporality", 2, FIELD_INT, NULL},
                                    {"isMonotonic", 3, FIELD_BOOL, NULL}}};
static const struct message METRIC = {{{"name", 1, FIELD_TEXT, NULL},
                                       {"description", 2, FIELD_TEXT, NULL},
                                       {"unit", 3, FIELD_TEXT, NULL},
                                       {"sum", 7, FIELD_MESSAGE, &SUM}}};
static const struct message SCOPE_METRICS = {
    {{"scope", 1, FIELD_MESSAGE, &SCOPE}, {"metrics", 2, FIELD_MESSAGE, &METRIC}}};
static const struct message RESOURCE_METRICS = {
    {{"resource", 1, FIELD_MESSAGE, &RESOURCE},
     {"scopeMetrics", 2, FIELD_MESSAGE, &SCOPE_METRICS}}};
static const struct message METRICS = {{{"resourceMetrics", 1, FIELD_MESSAGE, &RESOURCE_METRICS}}};

// -- writing --------------------------------------------------------------------------------------

static void append_varint(struct buffer *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        buffer_append_char(out, (char)(value | 0x80));
    buffer_append_char(out, (char)value);
}

static void append_tag(struct buffer *out, const struct field *field, enum wire_type wire) {
    append_varint(out, (uint64_t)field->number << 3 | wire);
}

// A 64-bit number, which OTLP's JSON writes as a text, and which may be one as well.
static uint64_t number_of(const json_t *value) {
    const char *text = json_string_value(value);
    if (text == NULL)
        return (uint64_t)json_integer_value(value);
    return text[0] == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
}

static void append_message(const struct message *message, const json_t *object, unsigned depth,
                           struct buffer *out);

static void append_bytes(struct buffer *out, const struct field *field, struct slice bytes) {
    append_tag(out, field, WIRE_BYTES);
    append_varint(out, bytes.size);
    buffer_append(out, bytes);
}

static void append_nested(const struct field *field, const json_t *object, unsigned depth,
                          struct buffer *out) {
    struct buffer nested;
    buffer_init(&nested, OTLP_BODY_MAX);
    append_message(field->message, object, depth + 1, &nested);
    append_bytes(out, field, buffer_slice(&nested));
    buffer_release(&nested);
}

static void append_value(const struct field *field, const json_t *value, unsigned depth,
                         struct buffer *out) {
    switch (field->type) {
    case FIELD_TEXT:
        append_bytes(out, field,
                     (struct slice){json_string_value(value), json_string_length(value)});
        break;
    case FIELD_BOOL:
    case FIELD_INT:
        append_tag(out, field, WIRE_VARINT);
        append_varint(out,
                      json_is_boolean(value) ? (uint64_t)json_is_true(value) : number_of(value));
        break;
    case FIELD_FIXED64:
        append_tag(out, field, WIRE_FIXED64);
        for (uint64_t i = 0, number = number_of(value); i < 8; i++, number >>= 8)
            buffer_append_char(out, (char)(number & 0xff));
        break;
    case FIELD_MESSAGE:
        append_nested(field, value, depth, out);
        break;
    }
}

static void append_message(const struct message *message, const json_t *object, unsigned depth,
                           struct buffer *out) {
    assert(depth <= DEPTH_MAX); // our own documents are not as deep
    for (const struct field *field = message->fields; field->name != NULL; field++) {
        const json_t *value = json_object_get(object, field->name);
        for (size_t i = 0; i < json_array_size(value); i++)
            append_value(field, json_array_get(value, i), depth, out);
        if (value != NULL && !json_is_array(value))
            append_value(field, value, depth, out);
    }
}

void otlp_protobuf_logs(const json_t *request, struct buffer *out) {
    append_message(&LOGS, request, 0, out);
}

void otlp_protobuf_metrics(const json_t *request, struct buffer *out) {
    append_message(&METRICS, request, 0, out);
}

// -- answers --------------------------------------------------------------------------------------

static bool take_varint(struct slice *bytes, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; bytes->size > 0 && shift < 64; shift += 7) {
        unsigned char byte = (unsigned char)*bytes->data;
        bytes->data++;
        bytes->size--;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

struct wire_field {
    uint64_t number;
    enum wire_type type;
    uint64_t varint;
    struct slice bytes;
};

static bool take_field(struct slice *rest, struct wire_field *field) {
    uint64_t tag, size = 0;
    *field = (struct wire_field){.number = 0};
    if (rest->size == 0 || !take_varint(rest, &tag))
        return false;
    field->number = tag >> 3;
    field->type = (enum wire_type)(tag & 7);
    if (field->type == WIRE_VARINT)
        return take_varint(rest, &field->varint);
    if (field->type == WIRE_BYTES ? !take_varint(rest, &size) : false)
        return false;
    if (field->type == WIRE_FIXED64 || field->type == WIRE_FIXED32)
        size = field->type == WIRE_FIXED64 ? 8 : 4;
    else if (field->type != WIRE_BYTES)
        return false;
    if (size > rest->size)
        return false;
    field->bytes = (struct slice){rest->data, (size_t)size};
    rest->data += size;
    rest->size -= (size_t)size;
    return true;
}

static void set_message(char *message, size_t size, struct slice text) {
    assert(size > 0);
    size_t length = text.size < size - 1 ? text.size : size - 1;
    if (length > 0)
        memcpy(message, text.data, length);
    message[length] = '\0';
}

static bool partial_of_protobuf(struct slice answer, uint64_t *rejected, char *message,
                                size_t size) {
    struct wire_field outer, inner;
    while (take_field(&answer, &outer)) {
        if (outer.number != 1 || outer.type != WIRE_BYTES)
            continue;
        while (take_field(&outer.bytes, &inner)) {
            if (inner.number == 1 && inner.type == WIRE_VARINT)
                *rejected = inner.varint;
            else if (inner.number == 2 && inner.type == WIRE_BYTES)
                set_message(message, size, inner.bytes);
        }
        return true;
    }
    return false;
}

static bool partial_of_json(struct slice answer, uint64_t *rejected, char *message, size_t size) {
    json_t *document = json_loadb(answer.data == NULL ? "" : answer.data, answer.size, 0, NULL);
    const json_t *partial = json_object_get(document, "partialSuccess");
    bool found = json_is_object(partial);
    if (found) {
        *rejected = number_of(json_object_get(partial, "rejectedLogRecords"));
        const json_t *text = json_object_get(partial, "errorMessage");
        if (json_is_string(text))
            set_message(message, size, slice_of(json_string_value(text)));
    }
    json_decref(document);
    return found;
}

bool otlp_partial_success(struct slice answer, bool protobuf, uint64_t *rejected, char *message,
                          size_t size) {
    *rejected = 0;
    set_message(message, size, SLICE(""));
    return protobuf ? partial_of_protobuf(answer, rejected, message, size)
                    : partial_of_json(answer, rejected, message, size);
}
