// SPDX-License-Identifier: Apache-2.0
// A value of an OTLP attribute or body (AnyValue), whichever encoding it came in, and its JSON.
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "receivers/decode/json/scan.h"

enum otlp_kind {
    OTLP_NOTHING, // no value was set: null
    OTLP_TEXT,    // `text` is UTF-8
    OTLP_QUOTED,  // `text` is a JSON string as written, without its quotes; `escaped` as in a token
    OTLP_BOOL,    // `integer` is 0 or 1
    OTLP_INT,
    OTLP_DOUBLE,
    OTLP_BYTES,  // `text` is the bytes
    OTLP_BASE64, // `text` is base64 as OTLP/JSON allows it, checked
    OTLP_ARRAY,  // `text` is what its cursor walks
    OTLP_MAP,
};

struct otlp_value {
    enum otlp_kind kind;
    bool escaped;
    struct slice text;
    int64_t integer;
    double number;
};

// A place in the items of an array or map.
struct otlp_cursor {
    const char *at;
    const char *end;
    bool map;
    bool first; // nothing was taken yet
};

enum otlp_step { OTLP_ITEM, OTLP_END, OTLP_WRONG };

// How one encoding walks the items of a container. A map's item has a `key`, decoded, which may lie
// in the arena. OTLP_WRONG: `fault` says why.
typedef enum otlp_step otlp_next(struct otlp_cursor *cursor, struct arena *arena, struct slice *key,
                                 struct otlp_value *value, struct json_fault *fault);

// The characters of a text of either kind; data NULL for other values.
struct slice otlp_value_text(const struct otlp_value *value, struct arena *arena);
// Appends the value as JSON. False: something in it is not right, `fault` says what. A value that
// does not fit fails the buffer.
bool otlp_value_append(struct buffer *out, const struct otlp_value *value, otlp_next *next,
                       struct arena *arena, struct json_fault *fault);
