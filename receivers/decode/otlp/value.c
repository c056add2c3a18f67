// SPDX-License-Identifier: Apache-2.0
// Writes OTLP values as JSON.
//
// Containers are walked with a stack of OTLP_DEPTH_MAX places instead of recursion. Integers stay
// integers and floating-point numbers keep a point or exponent, so that a field has the type that
// was sent. Bytes become base64 text with padding. Cost: the value's bytes once, in each container
// that it stands in.
#include "receivers/decode/otlp/value.h"

#include "base/text/json_write.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/otlp/otlp.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct slice otlp_value_text(const struct otlp_value *value, struct arena *arena) {
    if (value->kind == OTLP_TEXT)
        return value->text;
    if (value->kind != OTLP_QUOTED)
        return (struct slice){NULL, 0};
    struct token token = {.text = value->text.data,
                          .size = value->text.size,
                          .kind = TOKEN_STRING,
                          .escaped = value->escaped};
    return token_decode(&token, arena);
}

// The shortest of the usual precisions that reads back as the same number.
static void append_double(struct buffer *out, double number) {
    if (isnan(number) || isinf(number)) {
        buffer_append_text(out, isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity");
        return;
    }
    char text[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, number);
        double again = strtod(text, NULL);
        if (again >= number && again <= number)
            break;
    }
    buffer_append_text(out, text);
    if (strpbrk(text, ".e") == NULL)
        buffer_append_text(out, ".0");
}

static const char base64_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void append_bytes(struct buffer *out, struct slice bytes) {
    const unsigned char *byte = (const unsigned char *)bytes.data;
    buffer_append_char(out, '"');
    for (size_t i = 0; i < bytes.size && !out->failed; i += 3) {
        size_t left = bytes.size - i;
        uint32_t group = (uint32_t)byte[i] << 16;
        group |= left > 1 ? (uint32_t)byte[i + 1] << 8 : 0;
        group |= left > 2 ? byte[i + 2] : 0;
        char letters[4] = {base64_letters[group >> 18], base64_letters[group >> 12 & 63],
                           left > 1 ? base64_letters[group >> 6 & 63] : '=',
                           left > 2 ? base64_letters[group & 63] : '='};
        buffer_append(out, (struct slice){letters, sizeof letters});
    }
    buffer_append_char(out, '"');
}

// Either alphabet becomes the first, missing padding is put.
static void append_base64(struct buffer *out, struct slice letters) {
    while (letters.size > 0 && letters.data[letters.size - 1] == '=')
        letters.size--;
    buffer_append_char(out, '"');
    for (size_t i = 0; i < letters.size && !out->failed; i++) {
        char letter = letters.data[i];
        buffer_append_char(out, letter == '-' ? '+' : letter == '_' ? '/' : letter);
    }
    for (size_t i = letters.size; i % 4 != 0; i++)
        buffer_append_char(out, '=');
    buffer_append_char(out, '"');
}

static void append_scalar(struct buffer *out, const struct otlp_value *value) {
    switch (value->kind) {
    case OTLP_NOTHING:
        buffer_append_text(out, "null");
        return;
    case OTLP_TEXT:
        json_append_string(out, value->text);
        return;
    case OTLP_QUOTED:
        buffer_append_char(out, '"');
        buffer_append(out, value->text);
        buffer_append_char(out, '"');
        return;
    case OTLP_BOOL:
        buffer_append_text(out, value->integer != 0 ? "true" : "false");
        return;
    case OTLP_INT:
        buffer_append_int(out, value->integer);
        return;
    case OTLP_DOUBLE:
        append_double(out, value->number);
        return;
    case OTLP_BYTES:
        append_bytes(out, value->text);
        return;
    case OTLP_BASE64:
        append_base64(out, value->text);
        return;
    case OTLP_ARRAY:
    case OTLP_MAP:
        return; // not scalars: see below
    }
}

bool otlp_value_append(struct buffer *out, const struct otlp_value *value, otlp_next *next,
                       struct arena *arena, struct json_fault *fault) {
    assert(out != NULL && next != NULL);
    struct otlp_cursor open[OTLP_DEPTH_MAX];
    struct otlp_value item = *value;
    unsigned depth = 0;
    for (;;) {
        if (item.kind == OTLP_ARRAY || item.kind == OTLP_MAP) {
            if (depth == OTLP_DEPTH_MAX) {
                json_fail(fault, item.text.data, "arrays and maps nested more than 16 deep");
                return false;
            }
            bool map = item.kind == OTLP_MAP;
            open[depth++] = (struct otlp_cursor){.at = item.text.data,
                                                 .end = item.text.data + item.text.size,
                                                 .map = map,
                                                 .first = true};
            buffer_append_char(out, map ? '{' : '[');
        } else {
            append_scalar(out, &item);
        }
        enum otlp_step step = OTLP_END;
        struct slice key = {NULL, 0};
        while (depth > 0) {
            struct otlp_cursor *cursor = &open[depth - 1];
            bool first = cursor->first;
            step = next(cursor, arena, &key, &item, fault);
            if (step == OTLP_WRONG)
                return false;
            if (step == OTLP_ITEM) {
                if (!first)
                    buffer_append_char(out, ',');
                break;
            }
            buffer_append_char(out, cursor->map ? '}' : ']');
            depth--;
        }
        if (depth == 0)
            return true;
        if (open[depth - 1].map) {
            json_append_string(out, key);
            buffer_append_char(out, ':');
        }
    }
}
