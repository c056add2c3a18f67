// SPDX-License-Identifier: Apache-2.0
// JSON text as Python's json.dumps writes it, into a buffer.
//
// ASCII only: other characters and DEL as \uXXXX (surrogate pairs above U+FFFF, a lone surrogate
// kept), "/" not escaped. Strings come as generalised UTF-8 (see intern.h); a byte that is not part
// of a character is written as \ufffd. Commas, newlines and indents are put by the writer. Source
// of the layout: Python json module, indent=2 (", " never, "," + newline) and the compact form
// separators=(",", ":").
#pragma once

#include "base/buffer.h"

enum { JSON_DEPTH_MAX = 32 };

struct json_writer {
    struct buffer *out;
    unsigned indent; // 0: compact, on one line
    unsigned depth;
    bool has_items[JSON_DEPTH_MAX];
    bool after_key;
};

void json_begin(struct json_writer *json, struct buffer *out, unsigned indent);
void json_object_open(struct json_writer *json);
void json_object_close(struct json_writer *json);
void json_array_open(struct json_writer *json);
void json_array_close(struct json_writer *json);
void json_key(struct json_writer *json, const char *key);
void json_key_slice(struct json_writer *json, struct slice key);

void json_text(struct json_writer *json, const char *text);
void json_slice(struct json_writer *json, struct slice text);
void json_put_null(struct json_writer *json); // jansson has a json_null
void json_bool(struct json_writer *json, bool value);
void json_int(struct json_writer *json, int64_t value);
void json_uint(struct json_writer *json, uint64_t value);
void json_int128(struct json_writer *json, __int128 value);
// As Python's repr: the shortest text that reads back as the same double, never without a point or
// an exponent: 1700000000.0, 0.1, 1e+16. What JSON has no number for (NaN, infinities) is null.
void json_double(struct json_writer *json, double value);
void json_raw(struct json_writer *json, struct slice json_text); // already JSON

// A key with its value.
static inline void json_field_text(struct json_writer *json, const char *key, const char *value) {
    json_key(json, key);
    json_text(json, value);
}
static inline void json_field_slice(struct json_writer *json, const char *key, struct slice value) {
    json_key(json, key);
    json_slice(json, value);
}
static inline void json_field_null(struct json_writer *json, const char *key) {
    json_key(json, key);
    json_put_null(json);
}
static inline void json_field_bool(struct json_writer *json, const char *key, bool value) {
    json_key(json, key);
    json_bool(json, value);
}
static inline void json_field_int(struct json_writer *json, const char *key, int64_t value) {
    json_key(json, key);
    json_int(json, value);
}
static inline void json_field_uint(struct json_writer *json, const char *key, uint64_t value) {
    json_key(json, key);
    json_uint(json, value);
}
static inline void json_field_int128(struct json_writer *json, const char *key, __int128 value) {
    json_key(json, key);
    json_int128(json, value);
}
static inline void json_field_double(struct json_writer *json, const char *key, double value) {
    json_key(json, key);
    json_double(json, value);
}
static inline void json_field_object_open(struct json_writer *json, const char *key) {
    json_key(json, key);
    json_object_open(json);
}
static inline void json_field_array_open(struct json_writer *json, const char *key) {
    json_key(json, key);
    json_array_open(json);
}

// One string with its quotes, outside any writer.
void json_append_string(struct buffer *out, struct slice text);
