// SPDX-License-Identifier: Apache-2.0
// Reads a logs request in OTLP/JSON.
//
// The protobuf JSON mapping as OTLP narrows it: lowerCamelCase keys only, 64-bit integers as text
// or numbers, bytes as base64, null for what is not there, unknown keys passed over. Of a key that
// comes twice the last counts, but for the lists, whose items all count. One pass; what comes
// before its resource is read twice, and arrays and maps within values once a level.
#include "receivers/decode/otlp/record.h"

#include "receivers/decode/json/text.h"

#include <math.h>
#include <stdlib.h>

static bool is_key(const struct token *key, const char *name) {
    return token_equals(key, slice_of(name));
}

// Walks the items of an array that opens at `at`, like json_next_member: stops before each item.
static const char *next_item(struct json_members *items, const char *at, const char *end,
                             struct json_fault *fault) {
    if (at == NULL)
        return NULL;
    at = json_skip_space(items->first ? at + 1 : at, end);
    unsigned char c = json_peek(at, end);
    if (c == ']') {
        items->done = true;
        return at + 1;
    }
    if (!items->first) {
        if (c != ',')
            return json_fail(fault, at, "no comma or closing bracket after a value");
        at = json_skip_space(at + 1, end);
    }
    items->first = false;
    return at;
}

static bool is_null(const char *at, const char *end) {
    return end - at >= 4 && memcmp(at, "null", 4) == 0;
}

// The digits of a 64-bit integer, written as a number or as text.
static bool read_integer(const struct token *token, struct token *number) {
    *number = *token;
    if (token->kind == TOKEN_STRING) {
        struct json_fault ignored;
        const char *end = token->text + token->size;
        if (token->size == 0 || (*token->text != '-' && (unsigned)(*token->text - '0') > 9) ||
            json_scan_long_number(token->text, end, number, &ignored) != end)
            return false;
    }
    return token_is_integer(number) && number->kind != TOKEN_HUGE;
}

static bool read_time(const struct token *token, uint64_t *time_ns) {
    struct token number;
    if (token->kind == TOKEN_NULL) {
        *time_ns = 0;
        return true;
    }
    if (!read_integer(token, &number) || (number.kind == TOKEN_INTEGER && number.integer < 0))
        return false;
    *time_ns = (uint64_t)number.integer;
    return true;
}

static bool read_double(const struct token *token, double *number) {
    struct token inner = *token;
    if (token->kind == TOKEN_STRING) {
        struct json_fault ignored;
        const char *end = token->text + token->size;
        if (token->escaped || json_scan_scalar(token->text, end, &inner, &ignored) != end)
            return false;
    }
    if (inner.kind != TOKEN_DECIMAL && !token_is_integer(&inner))
        return false;
    char text[400]; // the longest exact double has fewer digits before its point
    if (inner.size >= sizeof text)
        return false;
    memcpy(text, inner.text, inner.size);
    text[inner.size] = '\0';
    *number = strtod(text, NULL);
    return true;
}

// Either alphabet of RFC 4648, with or without padding.
static bool is_base64(struct slice text) {
    size_t padding = 0;
    while (padding < 2 && text.size > 0 && text.data[text.size - 1] == '=') {
        text.size--;
        padding++;
    }
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        char letter = (char)(c | 0x20);
        if ((letter < 'a' || letter > 'z') && (c < '0' || c > '9') && c != '+' && c != '/' &&
            c != '-' && c != '_')
            return false;
    }
    return text.size % 4 != 1 && (padding == 0 || (text.size + padding) % 4 == 0);
}

static const char *take_text(const struct token *token, struct otlp_value *value) {
    if (token->kind != TOKEN_STRING)
        return "stringValue is not text";
    value->kind = OTLP_QUOTED;
    value->text = token_slice(token);
    value->escaped = token->escaped;
    return NULL;
}

static const char *take_bool(const struct token *token, struct otlp_value *value) {
    if (token->kind != TOKEN_TRUE && token->kind != TOKEN_FALSE)
        return "boolValue is neither true nor false";
    value->kind = OTLP_BOOL;
    value->integer = token->kind == TOKEN_TRUE;
    return NULL;
}

static const char *take_integer(const struct token *token, struct otlp_value *value) {
    struct token number;
    if (!read_integer(token, &number) || number.kind != TOKEN_INTEGER)
        return "intValue is not a 64-bit integer";
    value->kind = OTLP_INT;
    value->integer = number.integer;
    return NULL;
}

static const char *take_double(const struct token *token, struct otlp_value *value) {
    if (!read_double(token, &value->number))
        return "doubleValue is not a number";
    value->kind = OTLP_DOUBLE;
    return NULL;
}

static const char *take_bytes(const struct token *token, struct otlp_value *value,
                              struct arena *arena) {
    if (token->kind != TOKEN_STRING)
        return "bytesValue is not text";
    value->text = token_decode(token, arena);
    value->kind = OTLP_BASE64;
    return is_base64(value->text) ? NULL : "bytesValue is not base64";
}

// The ArrayValue or KeyValueList at `at`, which hold their items under "values" both.
static const char *read_items(const char *at, const char *end, enum otlp_kind kind,
                              struct otlp_value *value, struct json_fault *fault) {
    if (is_null(at, end))
        return at + 4;
    if (json_peek(at, end) != '{')
        return json_fail(fault, at, "arrayValue or kvlistValue is not an object");
    struct json_members members = {.first = true};
    struct token key, items;
    *value = (struct otlp_value){.kind = kind, .text = {at, 0}};
    while ((at = json_next_member(&members, at, end, &key, fault)) != NULL && !members.done) {
        const char *begin = at;
        at = json_scan_value(at, end, 0, &items, fault);
        if (at == NULL)
            return NULL;
        if (is_key(&key, "values")) {
            if (items.kind != TOKEN_ARRAY && items.kind != TOKEN_NULL)
                return json_fail(fault, begin, "values is not an array");
            if (items.kind == TOKEN_ARRAY)
                value->text = token_slice(&items);
        }
    }
    return at;
}

// One member of an AnyValue that is no container; keys that are not known are passed over.
static const char *take_scalar(const struct token *key, const struct token *token,
                               struct otlp_value *value, struct arena *arena) {
    if (token->kind == TOKEN_NULL)
        return NULL;
    if (is_key(key, "stringValue"))
        return take_text(token, value);
    if (is_key(key, "intValue"))
        return take_integer(token, value);
    if (is_key(key, "doubleValue"))
        return take_double(token, value);
    if (is_key(key, "boolValue"))
        return take_bool(token, value);
    if (is_key(key, "bytesValue"))
        return take_bytes(token, value, arena);
    return NULL;
}

// The AnyValue at `at`.
static const char *read_any(const char *at, const char *end, struct otlp_value *value,
                            struct arena *arena, struct json_fault *fault) {
    *value = (struct otlp_value){.kind = OTLP_NOTHING};
    if (is_null(at, end))
        return at + 4;
    if (json_peek(at, end) != '{')
        return json_fail(fault, at,
                         "a value that is not an object such as {\"stringValue\":\"…\"}");
    struct json_members members = {.first = true};
    struct token key, token;
    while ((at = json_next_member(&members, at, end, &key, fault)) != NULL && !members.done) {
        const char *begin = at;
        bool map = is_key(&key, "kvlistValue");
        if (map || is_key(&key, "arrayValue")) {
            at = read_items(at, end, map ? OTLP_MAP : OTLP_ARRAY, value, fault);
        } else {
            at = json_scan_value(at, end, 0, &token, fault);
            const char *why = at == NULL ? NULL : take_scalar(&key, &token, value, arena);
            if (why != NULL)
                return json_fail(fault, begin, why);
        }
    }
    return at;
}

// The KeyValue at `at`.
static const char *read_pair(const char *at, const char *end, struct slice *name,
                             struct otlp_value *value, struct arena *arena,
                             struct json_fault *fault) {
    *name = (struct slice){"", 0};
    *value = (struct otlp_value){.kind = OTLP_NOTHING};
    if (json_peek(at, end) != '{')
        return json_fail(fault, at, "an attribute that is not an object with key and value");
    struct json_members members = {.first = true};
    struct token key, token;
    while ((at = json_next_member(&members, at, end, &key, fault)) != NULL && !members.done) {
        if (is_key(&key, "value")) {
            at = read_any(at, end, value, arena, fault);
        } else {
            const char *begin = at;
            at = json_scan_value(at, end, 0, &token, fault);
            if (at != NULL && is_key(&key, "key") && token.kind != TOKEN_NULL) {
                if (token.kind != TOKEN_STRING)
                    return json_fail(fault, begin, "the key of an attribute is not text");
                *name = token_decode(&token, arena);
            }
        }
    }
    return at;
}

// otlp_next for this encoding: the cursor is in the text of a `values` array.
static enum otlp_step json_next(struct otlp_cursor *cursor, struct arena *arena, struct slice *key,
                                struct otlp_value *value, struct json_fault *fault) {
    if (cursor->at == cursor->end)
        return OTLP_END;
    struct json_members items = {.first = cursor->first};
    const char *at = next_item(&items, cursor->at, cursor->end, fault);
    cursor->first = false;
    if (at != NULL && items.done) {
        cursor->at = at;
        return OTLP_END;
    }
    if (at != NULL && cursor->map)
        at = read_pair(at, cursor->end, key, value, arena, fault);
    else if (at != NULL)
        at = read_any(at, cursor->end, value, arena, fault);
    if (at == NULL)
        return OTLP_WRONG;
    cursor->at = json_skip_space(at, cursor->end);
    return OTLP_ITEM;
}

// One item of a list; returns the place after it.
typedef const char *read_item(struct otlp_reading *reading, struct otlp_resource *resource,
                              const char *at, const char *end);

// The list at `at`, which may be null.
static const char *read_list(struct otlp_reading *reading, struct otlp_resource *resource,
                             const char *at, const char *end, read_item *item) {
    if (is_null(at, end))
        return at + 4;
    if (json_peek(at, end) != '[')
        return json_fail(&reading->fault, at, "something else where an array must be");
    struct json_members items = {.first = true};
    while ((at = next_item(&items, at, end, &reading->fault)) != NULL && !items.done) {
        if (json_peek(at, end) != '{')
            return json_fail(&reading->fault, at, "something else where an object must be");
        at = item(reading, resource, at, end);
    }
    return at;
}

static const char *skip_value(struct otlp_reading *reading, const char *at, const char *end) {
    struct token ignored;
    return json_scan_value(at, end, 0, &ignored, &reading->fault);
}

// An attribute of the resource, or of the log record at hand when `resource` is NULL.
static const char *read_attribute(struct otlp_reading *reading, struct otlp_resource *resource,
                                  const char *at, const char *end) {
    struct slice key;
    struct otlp_value value;
    at = read_pair(at, end, &key, &value, reading->arena, &reading->fault);
    bool taken =
        at != NULL && (resource == NULL ? otlp_record_attribute(reading, key, &value)
                                        : otlp_resource_attribute(reading, resource, key, &value));
    return taken ? at : NULL;
}

static const char *read_log_time(struct otlp_reading *reading, const char *at, const char *end,
                                 uint64_t *time_ns) {
    struct token token;
    const char *after = json_scan_value(at, end, 0, &token, &reading->fault);
    if (after != NULL && !read_time(&token, time_ns))
        return json_fail(&reading->fault, at, "a time that is not nanoseconds since 1970");
    return after;
}

static const char *read_log_name(struct otlp_reading *reading, const char *at, const char *end) {
    struct token token;
    const char *after = json_scan_value(at, end, 0, &token, &reading->fault);
    if (after == NULL || token.kind == TOKEN_NULL)
        return after;
    if (token.kind != TOKEN_STRING)
        return json_fail(&reading->fault, at, "eventName is not text");
    reading->name = token_decode(&token, reading->arena);
    return after;
}

static const char *read_log_member(struct otlp_reading *reading, const struct token *key,
                                   const char *at, const char *end, struct otlp_value *body) {
    if (is_key(key, "attributes"))
        return read_list(reading, NULL, at, end, read_attribute);
    if (is_key(key, "timeUnixNano"))
        return read_log_time(reading, at, end, &reading->time_ns);
    if (is_key(key, "observedTimeUnixNano"))
        return read_log_time(reading, at, end, &reading->observed_ns);
    if (is_key(key, "eventName"))
        return read_log_name(reading, at, end);
    if (is_key(key, "body"))
        return read_any(at, end, body, reading->arena, &reading->fault);
    return skip_value(reading, at, end);
}

static const char *read_log(struct otlp_reading *reading, struct otlp_resource *resource,
                            const char *at, const char *end) {
    struct json_members members = {.first = true};
    struct token key;
    const char *begin = at;
    struct otlp_value body = {.kind = OTLP_NOTHING};
    otlp_record_begin(reading);
    while ((at = json_next_member(&members, at, end, &key, &reading->fault)) != NULL &&
           !members.done) {
        at = read_log_member(reading, &key, at, end, &body);
    }
    bool right = at != NULL && otlp_record_body(reading, &body) &&
                 otlp_record_finish(reading, resource, begin);
    return right ? at : NULL;
}

// Walks the object at `at` and reads the lists called `name` with `item`.
static const char *read_member_list(struct otlp_reading *reading, struct otlp_resource *resource,
                                    const char *at, const char *end, const char *name,
                                    read_item *item) {
    struct json_members members = {.first = true};
    struct token key;
    while ((at = json_next_member(&members, at, end, &key, &reading->fault)) != NULL &&
           !members.done) {
        at = is_key(&key, name) ? read_list(reading, resource, at, end, item)
                                : skip_value(reading, at, end);
    }
    return at;
}

static const char *read_scope_logs(struct otlp_reading *reading, struct otlp_resource *resource,
                                   const char *at, const char *end) {
    return read_member_list(reading, resource, at, end, "logRecords", read_log);
}

// Finds the resource of the object at `at`, wherever in it, and reads it.
static bool find_resource(struct otlp_reading *reading, struct otlp_resource *resource,
                          const char *at, const char *end) {
    struct json_members members = {.first = true};
    struct token key;
    while ((at = json_next_member(&members, at, end, &key, &reading->fault)) != NULL &&
           !members.done) {
        if (is_key(&key, "resource")) {
            if (is_null(at, end))
                return true;
            if (json_peek(at, end) == '{')
                return read_member_list(reading, resource, at, end, "attributes", read_attribute) !=
                       NULL;
            json_fail(&reading->fault, at, "something else where an object must be");
            return false;
        }
        at = skip_value(reading, at, end);
    }
    return at != NULL;
}

static const char *read_resource_logs(struct otlp_reading *reading, struct otlp_resource *resource,
                                      const char *at, const char *end) {
    *resource = (struct otlp_resource){0};
    if (!find_resource(reading, resource, at, end))
        return NULL;
    return read_member_list(reading, resource, at, end, "scopeLogs", read_scope_logs);
}

static bool read_request(struct otlp_reading *reading, struct slice body) {
    struct otlp_resource resource = {0};
    const char *end = body.data + body.size;
    const char *at = json_skip_space(body.data, end);
    if (json_peek(at, end) != '{')
        return json_fail(&reading->fault, at, "no JSON object") != NULL;
    at = read_member_list(reading, &resource, at, end, "resourceLogs", read_resource_logs);
    return json_read_end(at, end, &reading->fault) != NULL;
}

enum status otlp_logs_json(struct slice body, struct arena *arena, otlp_visit *visit, void *context,
                           struct error *error) {
    struct otlp_reading reading;
    otlp_reading_begin(&reading, body, arena, json_next);
    bool right = read_request(&reading, body);
    return otlp_reading_end(&reading, body, !right, "JSON", visit, context, error);
}
