// SPDX-License-Identifier: Apache-2.0
// Says what is wrong with a record, in words for people and in names for counters.
//
// Texts are written straight into the fault's own arrays; values are quoted up to 40 bytes. Lists
// of names keep only what has room, by insertion into a sorted array.
#include "receivers/decode/json/fault.h"

#include <assert.h>
#include <stdio.h>

enum { QUOTED_MAX = 40 };

// As much of the text as fits into `max` bytes without cutting a character in two.
static size_t fitting_size(struct slice text, size_t max) {
    if (text.size <= max)
        return text.size;
    while (max > 0 && ((unsigned char)text.data[max] & 0xc0) == 0x80)
        max--;
    return max;
}

static void set_field(struct decode_fault *fault, struct slice field) {
    size_t size = fitting_size(field, DECODE_FIELD_MAX - 1);
    if (size > 0)
        memcpy(fault->field, field.data, size);
    fault->field[size] = '\0';
}

enum decode_category fault_set(struct decode_fault *fault, enum decode_category category,
                               struct slice field, const char *format, ...) {
    assert(category > DECODE_OK && category < DECODE_CATEGORY_COUNT);
    char detail[2 * DECODE_DETAIL_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    struct slice text = {detail, length < 0 ? 0 : strlen(detail)};
    text.size = fitting_size(text, DECODE_DETAIL_MAX - 1);
    memcpy(fault->detail, text.data, text.size);
    fault->detail[text.size] = '\0';
    fault->category = category;
    fault->offset = 0;
    set_field(fault, field);
    return category;
}

enum decode_category fault_json(struct decode_fault *fault, struct slice record,
                                const struct json_fault *json) {
    assert(json->at >= record.data && json->at <= record.data + record.size);
    fault_set(fault, DECODE_BAD_JSON, SLICE(""), "not JSON: %s", json->why);
    fault->offset = (size_t)(json->at - record.data);
    return DECODE_BAD_JSON;
}

struct described {
    char text[QUOTED_MAX + 40];
};

static struct described describe(const struct token *token) {
    assert(token->kind <= TOKEN_OBJECT);
    static const char *const kinds[] = {
        [TOKEN_NONE] = "nothing",         [TOKEN_NULL] = "null",
        [TOKEN_FALSE] = "false",          [TOKEN_TRUE] = "true",
        [TOKEN_INTEGER] = "the integer ", [TOKEN_UNSIGNED] = "the integer ",
        [TOKEN_HUGE] = "the integer ",    [TOKEN_DECIMAL] = "the decimal number ",
        [TOKEN_STRING] = "the text ",     [TOKEN_ARRAY] = "an array",
        [TOKEN_OBJECT] = "an object",
    };
    struct described described;
    bool string = token->kind == TOKEN_STRING;
    bool quoted = token->kind >= TOKEN_INTEGER && token->kind <= TOKEN_STRING;
    struct slice value = quoted ? token_slice(token) : SLICE("");
    size_t size = fitting_size(value, QUOTED_MAX);
    snprintf(described.text, sizeof described.text, "%s%s%.*s%s%s", kinds[token->kind],
             string ? "\"" : "", (int)size, value.data, size < value.size ? "..." : "",
             string ? "\"" : "");
    return described;
}

enum decode_category fault_found(struct decode_fault *fault, enum decode_category category,
                                 struct slice field, const struct token *found,
                                 const char *expected) {
    return fault_set(fault, category, field, "found %s, expected %s", describe(found).text,
                     expected);
}

enum decode_category fault_type(struct decode_fault *fault, struct slice field,
                                const struct token *found, const char *expected) {
    return fault_found(fault, DECODE_WRONG_TYPE, field, found, expected);
}

enum decode_category fault_text(struct decode_fault *fault, struct slice field,
                                const struct token *found) {
    bool empty = found->kind == TOKEN_NULL || found->kind == TOKEN_STRING;
    return fault_found(fault, empty ? DECODE_EMPTY_STRING : DECODE_WRONG_TYPE, field, found,
                       "a text that is not blank");
}

enum decode_category fault_limit(struct decode_fault *fault, struct slice field,
                                 const struct token *found, const char *limit) {
    return fault_set(fault, DECODE_OUT_OF_RANGE, field, "found %s, culprit takes %s",
                     describe(found).text, limit);
}

enum decode_category fault_range(struct decode_fault *fault, struct slice field, int64_t found,
                                 const char *expected) {
    return fault_set(fault, DECODE_OUT_OF_RANGE, field, "found %lld, expected %s", (long long)found,
                     expected);
}

enum decode_category fault_intern(struct decode_fault *fault, struct slice field, struct slice name,
                                  string_id *id) {
    *id = intern(name);
    if (*id != STRING_REFUSED)
        return DECODE_OK;
    return fault_set(fault, DECODE_LIMIT, field,
                     "a new name, and the limit on distinct names is reached");
}

void fault_names_add(struct fault_names *names, struct slice name) {
    size_t max = sizeof names->names / sizeof *names->names;
    if (names->count == max && slice_compare(name, names->names[max - 1]) >= 0)
        return;
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (slice_compare(names->names[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < names->count && slice_equal(names->names[low], name))
        return;
    if (names->count < max)
        names->count++;
    memmove(&names->names[low + 1], &names->names[low],
            (names->count - 1 - low) * sizeof *names->names);
    names->names[low] = name;
}

enum decode_category fault_names_join(const struct fault_names *names, struct decode_fault *fault,
                                      enum decode_category category, const char *detail) {
    assert(names->count > 0);
    char joined[DECODE_FIELD_MAX + 4];
    size_t size = 0;
    for (size_t i = 0; i < names->count && size < DECODE_FIELD_MAX; i++) {
        if (i > 0) {
            memcpy(joined + size, ", ", 2);
            size += 2;
        }
        size_t room = sizeof joined - size;
        size_t part = fitting_size(names->names[i], room);
        if (part > 0)
            memcpy(joined + size, names->names[i].data, part);
        size += part;
    }
    return fault_set(fault, category, (struct slice){joined, size}, "%s", detail);
}
