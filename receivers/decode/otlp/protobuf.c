// SPDX-License-Identifier: Apache-2.0
// Reads a logs request in protobuf.
//
// The wire format (protobuf encoding, proto3) read in place: tags, varints of at most ten bytes,
// fixed 32- and 64-bit values and lengths that must fit. Groups, field numbers of 0 and text that
// is not UTF-8 make the request malformed; fields that are not known, or come with another wire
// type, are passed over. Of a field that comes twice the last counts, but for lists, whose items
// all count, and a resource's attributes. Field numbers: opentelemetry-proto, logs.proto,
// common.proto, resource.proto and logs_service.proto. One pass; lengths are hopped over once a
// level.
#include "receivers/decode/otlp/record.h"

#include "base/text/utf8.h"

#include <assert.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

enum {
    REQUEST_RESOURCE_LOGS = 1,
    RESOURCE_LOGS_RESOURCE = 1,
    RESOURCE_LOGS_SCOPE_LOGS = 2,
    RESOURCE_ATTRIBUTES = 1,
    SCOPE_LOGS_LOG_RECORDS = 2,
    LOG_TIME = 1,
    LOG_BODY = 5,
    LOG_ATTRIBUTES = 6,
    LOG_OBSERVED_TIME = 11,
    LOG_EVENT_NAME = 12,
    PAIR_KEY = 1,
    PAIR_VALUE = 2,
    LIST_VALUES = 1,
    ANY_TEXT = 1,
    ANY_BOOL = 2,
    ANY_INT = 3,
    ANY_DOUBLE = 4,
    ANY_ARRAY = 5,
    ANY_MAP = 6,
    ANY_BYTES = 7,
};

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;     // of the types that are no bytes
    struct slice bytes; // in the request
};

static const char *read_varint(const char *at, const char *end, uint64_t *value,
                               struct json_fault *fault) {
    if (at < end && (unsigned char)*at < 0x80) { // nearly all of them
        *value = (unsigned char)*at;
        return at + 1;
    }
    const char *begin = at;
    *value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (at == end)
            return json_fail(fault, begin, "the message ends inside a number");
        unsigned char byte = (unsigned char)*at++;
        if (shift == 63 && byte > 1)
            break;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return at;
    }
    return json_fail(fault, begin, "a number of more than 64 bits");
}

static const char *read_fixed(const char *at, const char *end, unsigned size, uint64_t *value,
                              struct json_fault *fault) {
    assert(size <= sizeof *value);
    if (end - at < (ptrdiff_t)size)
        return json_fail(fault, at, "the message ends inside a number");
    *value = 0;
    for (unsigned i = 0; i < size; i++)
        *value |= (uint64_t)(unsigned char)at[i] << 8 * i;
    return at + size;
}

// The field at `at`, which is before `end`; returns the place after it.
static const char *read_field(const char *at, const char *end, struct wire_field *field,
                              struct json_fault *fault) {
    const char *begin = at;
    uint64_t tag;
    at = read_varint(at, end, &tag, fault);
    if (at == NULL)
        return NULL;
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return json_fail(fault, begin, "a field number that protobuf does not have");
    *field = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = (enum wire_type)(tag & 7)};
    switch (field->type) {
    case WIRE_VARINT:
        return read_varint(at, end, &field->value, fault);
    case WIRE_FIXED64:
        return read_fixed(at, end, 8, &field->value, fault);
    case WIRE_FIXED32:
        return read_fixed(at, end, 4, &field->value, fault);
    case WIRE_BYTES:
        at = read_varint(at, end, &field->value, fault);
        if (at == NULL)
            return NULL;
        if (field->value > (uint64_t)(end - at))
            return json_fail(fault, begin, "a field that is longer than what is left");
        field->bytes = (struct slice){at, (size_t)field->value};
        return at + field->value;
    }
    return json_fail(fault, begin, "a wire type that OTLP does not use (a group, or no protobuf)");
}

// Takes the next field off the message: false at its end, and where it is wrong, which empties it.
static bool next_field(struct slice *message, struct wire_field *field, struct json_fault *fault) {
    if (message->size == 0)
        return false;
    const char *end = message->data + message->size;
    const char *at = read_field(message->data, end, field, fault);
    *message = (struct slice){at, at == NULL ? 0 : (size_t)(end - at)};
    return at != NULL;
}

static bool is_bytes(const struct wire_field *field, uint32_t number) {
    return field->number == number && field->type == WIRE_BYTES;
}

static bool check_text(struct slice text, struct json_fault *fault) {
    size_t at = 0;
    while (at < text.size) {
        uint64_t block;
        if (text.size - at >= sizeof block) {
            memcpy(&block, text.data + at, sizeof block);
            if ((block & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof block;
                continue;
            }
        }
        uint32_t code;
        size_t size = utf8_decode(text, at, &code);
        if (size == 0 || (code >= 0xd800 && code <= 0xdfff)) {
            json_fail(fault, text.data + at, "bytes that are not UTF-8");
            return false;
        }
        at += size;
    }
    return true;
}

static void take_container(struct otlp_value *value, enum otlp_kind kind,
                           const struct wire_field *field) {
    *value = (struct otlp_value){.kind = kind, .text = field->bytes};
}

// One field of an AnyValue.
static bool take_any_field(const struct wire_field *field, struct otlp_value *value,
                           struct json_fault *fault) {
    if (is_bytes(field, ANY_TEXT)) {
        take_container(value, OTLP_TEXT, field);
        return check_text(field->bytes, fault);
    }
    if (field->number == ANY_BOOL && field->type == WIRE_VARINT)
        *value = (struct otlp_value){.kind = OTLP_BOOL, .integer = field->value != 0};
    else if (field->number == ANY_INT && field->type == WIRE_VARINT)
        *value = (struct otlp_value){.kind = OTLP_INT, .integer = (int64_t)field->value};
    else if (is_bytes(field, ANY_ARRAY))
        take_container(value, OTLP_ARRAY, field);
    else if (is_bytes(field, ANY_MAP))
        take_container(value, OTLP_MAP, field);
    else if (is_bytes(field, ANY_BYTES))
        take_container(value, OTLP_BYTES, field);
    if (field->number == ANY_DOUBLE && field->type == WIRE_FIXED64) {
        *value = (struct otlp_value){.kind = OTLP_DOUBLE};
        memcpy(&value->number, &field->value, sizeof value->number);
    }
    return true;
}

static bool read_any(struct slice message, struct otlp_value *value, struct json_fault *fault) {
    *value = (struct otlp_value){.kind = OTLP_NOTHING};
    for (struct wire_field field; next_field(&message, &field, fault);)
        if (!take_any_field(&field, value, fault))
            return false;
    return message.data != NULL;
}

static bool read_pair(struct slice message, struct slice *key, struct otlp_value *value,
                      struct json_fault *fault) {
    *key = (struct slice){"", 0};
    *value = (struct otlp_value){.kind = OTLP_NOTHING};
    for (struct wire_field field; next_field(&message, &field, fault);) {
        if (is_bytes(&field, PAIR_KEY))
            *key = field.bytes;
        if (is_bytes(&field, PAIR_KEY) && !check_text(*key, fault))
            return false;
        if (is_bytes(&field, PAIR_VALUE) && !read_any(field.bytes, value, fault))
            return false;
    }
    return message.data != NULL;
}

// otlp_next for this encoding: the cursor is in an ArrayValue or KeyValueList.
static enum otlp_step protobuf_next(struct otlp_cursor *cursor, struct arena *arena,
                                    struct slice *key, struct otlp_value *value,
                                    struct json_fault *fault) {
    (void)arena;
    cursor->first = false;
    while (cursor->at < cursor->end) {
        struct wire_field field;
        cursor->at = read_field(cursor->at, cursor->end, &field, fault);
        if (cursor->at == NULL)
            return OTLP_WRONG;
        if (!is_bytes(&field, LIST_VALUES))
            continue;
        bool right = cursor->map ? read_pair(field.bytes, key, value, fault)
                                 : read_any(field.bytes, value, fault);
        return right ? OTLP_ITEM : OTLP_WRONG;
    }
    return OTLP_END;
}

static bool read_resource(struct otlp_reading *reading, struct otlp_resource *resource,
                          struct slice message) {
    struct slice key;
    struct otlp_value value;
    for (struct wire_field field; next_field(&message, &field, &reading->fault);)
        if (is_bytes(&field, RESOURCE_ATTRIBUTES) &&
            (!read_pair(field.bytes, &key, &value, &reading->fault) ||
             !otlp_resource_attribute(reading, resource, key, &value)))
            return false;
    return message.data != NULL;
}

static bool read_log_field(struct otlp_reading *reading, const struct wire_field *field,
                           struct otlp_value *body) {
    struct slice key;
    struct otlp_value value;
    if (is_bytes(field, LOG_ATTRIBUTES))
        return read_pair(field->bytes, &key, &value, &reading->fault) &&
               otlp_record_attribute(reading, key, &value);
    if (is_bytes(field, LOG_BODY))
        return read_any(field->bytes, body, &reading->fault);
    if (is_bytes(field, LOG_EVENT_NAME)) {
        reading->name = field->bytes;
        return check_text(field->bytes, &reading->fault);
    }
    if (field->type == WIRE_FIXED64 && field->number == LOG_TIME)
        reading->time_ns = field->value;
    if (field->type == WIRE_FIXED64 && field->number == LOG_OBSERVED_TIME)
        reading->observed_ns = field->value;
    return true;
}

static bool read_log(struct otlp_reading *reading, const struct otlp_resource *resource,
                     struct slice message) {
    const char *begin = message.data;
    struct otlp_value body = {.kind = OTLP_NOTHING};
    otlp_record_begin(reading);
    for (struct wire_field field; next_field(&message, &field, &reading->fault);)
        if (!read_log_field(reading, &field, &body))
            return false;
    return message.data != NULL && otlp_record_body(reading, &body) &&
           otlp_record_finish(reading, resource, begin);
}

static bool read_scope_logs(struct otlp_reading *reading, const struct otlp_resource *resource,
                            struct slice message) {
    for (struct wire_field field; next_field(&message, &field, &reading->fault);)
        if (is_bytes(&field, SCOPE_LOGS_LOG_RECORDS) && !read_log(reading, resource, field.bytes))
            return false;
    return message.data != NULL;
}

// The resource may stand behind the logs, so it is looked for first.
static bool read_resource_logs(struct otlp_reading *reading, struct slice message) {
    struct otlp_resource resource = {0};
    struct slice again = message;
    for (struct wire_field field; next_field(&message, &field, &reading->fault);)
        if (is_bytes(&field, RESOURCE_LOGS_RESOURCE) &&
            !read_resource(reading, &resource, field.bytes))
            return false;
    if (message.data == NULL)
        return false;
    for (struct wire_field field; next_field(&again, &field, &reading->fault);)
        if (is_bytes(&field, RESOURCE_LOGS_SCOPE_LOGS) &&
            !read_scope_logs(reading, &resource, field.bytes))
            return false;
    return true;
}

static bool read_request(struct otlp_reading *reading, struct slice body) {
    for (struct wire_field field; next_field(&body, &field, &reading->fault);)
        if (is_bytes(&field, REQUEST_RESOURCE_LOGS) && !read_resource_logs(reading, field.bytes))
            return false;
    return body.data != NULL;
}

enum status otlp_logs_protobuf(struct slice body, struct arena *arena, otlp_visit *visit,
                               void *context, struct error *error) {
    struct otlp_reading reading;
    if (body.size == 0)
        body.data = "";
    otlp_reading_begin(&reading, body, arena, protobuf_next);
    bool right = read_request(&reading, body);
    return otlp_reading_end(&reading, body, !right, "protobuf", visit, context, error);
}
