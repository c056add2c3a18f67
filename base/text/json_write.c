// SPDX-License-Identifier: Apache-2.0
// Lays JSON documents out byte for byte as Python does.
//
// The writer knows its depth and whether the container at hand has items; a separator is put before
// each item, a newline before a closing bracket only when there were items. Strings are copied in
// runs of plain ASCII. No memory of its own.
#include "base/text/json_write.h"

#include "base/text/utf8.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void json_begin(struct json_writer *json, struct buffer *out, unsigned indent) {
    assert(out != NULL && indent <= 8);
    *json = (struct json_writer){.out = out, .indent = indent};
}

static void newline_append(struct json_writer *json, unsigned depth) {
    assert(depth <= JSON_DEPTH_MAX);
    if (json->indent == 0)
        return;
    buffer_append_char(json->out, '\n');
    for (unsigned left = depth * json->indent; left > 0; left--)
        buffer_append_char(json->out, ' ');
}

// What goes before a key, or before a value that has none.
static void separator_append(struct json_writer *json) {
    assert(json->depth <= JSON_DEPTH_MAX && !json->after_key);
    if (json->depth == 0)
        return;
    if (json->has_items[json->depth - 1])
        buffer_append_char(json->out, ',');
    json->has_items[json->depth - 1] = true;
    newline_append(json, json->depth);
}

static void value_begin(struct json_writer *json) {
    if (json->after_key)
        json->after_key = false;
    else
        separator_append(json);
}

static void container_open(struct json_writer *json, char bracket) {
    assert(json->depth < JSON_DEPTH_MAX);
    value_begin(json);
    buffer_append_char(json->out, bracket);
    json->has_items[json->depth++] = false;
}

static void container_close(struct json_writer *json, char bracket) {
    assert(json->depth > 0 && !json->after_key);
    json->depth--;
    if (json->has_items[json->depth])
        newline_append(json, json->depth);
    buffer_append_char(json->out, bracket);
}

void json_object_open(struct json_writer *json) {
    container_open(json, '{');
}

void json_object_close(struct json_writer *json) {
    container_close(json, '}');
}

void json_array_open(struct json_writer *json) {
    container_open(json, '[');
}

void json_array_close(struct json_writer *json) {
    container_close(json, ']');
}

void json_key(struct json_writer *json, const char *key) {
    json_key_slice(json, slice_of(key));
}

void json_key_slice(struct json_writer *json, struct slice key) {
    assert(json->depth > 0 && !json->after_key);
    separator_append(json);
    json_append_string(json->out, key);
    buffer_append(json->out, json->indent > 0 ? SLICE(": ") : SLICE(":"));
    json->after_key = true;
}

void json_text(struct json_writer *json, const char *text) {
    json_slice(json, slice_of(text));
}

void json_slice(struct json_writer *json, struct slice text) {
    value_begin(json);
    json_append_string(json->out, text);
}

void json_put_null(struct json_writer *json) {
    json_raw(json, SLICE("null"));
}

void json_bool(struct json_writer *json, bool value) {
    json_raw(json, value ? SLICE("true") : SLICE("false"));
}

void json_int(struct json_writer *json, int64_t value) {
    value_begin(json);
    buffer_append_int(json->out, value);
}

void json_uint(struct json_writer *json, uint64_t value) {
    value_begin(json);
    buffer_append_uint(json->out, value);
}

void json_int128(struct json_writer *json, __int128 value) {
    value_begin(json);
    buffer_append_int128(json->out, value);
}

// 15 digits always survive the way through a double, so if they read back as the same number they
// are, without trailing zeros, the shortest; below the normal range fewer survive.
static void shortest_digits(double value, char text[40]) {
    int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    do
        snprintf(text, 40, "%.*e", digits - 1, value);
    while (digits++ < 17 && strtod(text, NULL) != value);
}

// With an exponent; zeros at the end of the digits say nothing.
static void exponent_append(struct buffer *out, const char *text) {
    const char *exponent = strchr(text, 'e');
    const char *end = exponent;
    while (end[-1] == '0')
        end--;
    if (end[-1] == '.')
        end--;
    buffer_append(out, (struct slice){text, (size_t)(end - text)});
    buffer_append_text(out, exponent);
}

void json_double(struct json_writer *json, double value) {
    if (!isfinite(value)) {
        json_put_null(json);
        return;
    }
    value_begin(json);
    double size = fabs(value);
    if (size < 1e16 && value == floor(value)) {
        buffer_append_format(json->out, "%.1f", value);
        return;
    }
    char text[40];
    shortest_digits(value, text);
    if (size >= 1e16 || size < 1e-4) {
        exponent_append(json->out, text);
        return;
    }
    // As many digits, laid out without an exponent.
    int digits = (int)strspn(strchr(text, '.') == NULL ? "" : strchr(text, '.') + 1, "0123456789");
    buffer_append_format(json->out, "%.*g", digits + 1, value);
}

void json_raw(struct json_writer *json, struct slice json_text) {
    value_begin(json);
    buffer_append(json->out, json_text);
}

static void unit_append(struct buffer *out, uint32_t unit) {
    assert(unit <= 0xffff);
    static const char digits[] = "0123456789abcdef";
    char escape[6] = {'\\', 'u'};
    for (unsigned i = 0; i < 4; i++)
        escape[2 + i] = digits[unit >> (12 - 4 * i) & 15];
    buffer_append(out, (struct slice){escape, sizeof escape});
}

static void escape_append(struct buffer *out, uint32_t code_point) {
    assert(code_point <= 0x10ffff);
    static const char short_from[] = "\"\\\b\f\n\r\t", short_to[] = "\"\\bfnrt";
    const char *found =
        code_point == 0 || code_point > 0x7f ? NULL : strchr(short_from, (int)code_point);
    if (found != NULL) {
        char escape[2] = {'\\', short_to[found - short_from]};
        buffer_append(out, (struct slice){escape, sizeof escape});
    } else if (code_point > 0xffff) {
        unit_append(out, 0xd800 + ((code_point - 0x10000) >> 10));
        unit_append(out, 0xdc00 + ((code_point - 0x10000) & 0x3ff));
    } else {
        unit_append(out, code_point);
    }
}

static bool byte_is_plain(char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

void json_append_string(struct buffer *out, struct slice text) {
    buffer_append_char(out, '"');
    for (size_t at = 0; at < text.size;) {
        size_t run = at;
        while (run < text.size && byte_is_plain(text.data[run]))
            run++;
        if (run > at) {
            buffer_append(out, (struct slice){text.data + at, run - at});
            at = run;
            continue;
        }
        uint32_t code_point = 0xfffd;
        size_t length = utf8_decode(text, at, &code_point);
        escape_append(out, length == 0 ? 0xfffd : code_point);
        at += length == 0 ? 1 : length;
    }
    buffer_append_char(out, '"');
}
