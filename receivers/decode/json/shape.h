// SPDX-License-Identifier: Apache-2.0
// Picks the values at known paths out of a JSON object, in one pass: the rest is passed over.
//
// A shape is a list of keys; a key stands for a slot (its value is kept there as a token), or for
// an object with a shape of its own, or both. Of a repeated key the last one counts; in an object
// that comes twice, member by member. Keys are compared with their escapes resolved. Recursion goes
// as deep as the shapes do, not as the input. No allocation, any thread.
#pragma once

#include "receivers/decode/json/text.h"

struct json_shape;

struct json_shape_row {
    struct slice key;
    int32_t slot;                   // or JSON_NO_SLOT
    const struct json_shape *inner; // when the value is an object; NULL: it is passed over
};

enum { JSON_NO_SLOT = -1 };

struct json_shape {
    const struct json_shape_row *rows;
    uint32_t count;
};

#define JSON_SHAPE(rows)                                                                           \
    { (rows), sizeof(rows) / sizeof *(rows) }

// The object that opens at `at`, `depth` containers deep (0: it is the record itself). Slots that
// are not met stay as they are. Returns where the object ends, NULL with `fault` where it is wrong.
const char *json_shape_read(const struct json_shape *shape, const char *at, const char *end,
                            unsigned depth, struct token *slots, struct json_fault *fault);
// A whole text: one object and white space around it. False with `fault` filled; at an empty text
// or another value than an object `fault->why` is NULL.
bool json_shape_read_all(const struct json_shape *shape, struct slice text, struct token *slots,
                         struct json_fault *fault);

// Walks the items of an array token that was scanned before.
struct json_items {
    const char *at;
    const char *end;
    bool started;
};
struct json_items json_items_of(const struct token *array);
bool json_items_next(struct json_items *items, struct token *item);

// Walks the members of an object that was scanned before.
struct json_pairs {
    const char *at;
    const char *end;
    struct json_members members;
};
struct json_pairs json_pairs_of(struct slice object);
bool json_pairs_next(struct json_pairs *pairs, struct token *key, struct token *value);
