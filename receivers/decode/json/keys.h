// SPDX-License-Identifier: Apache-2.0
// The keys of a JSON text that may be cut off, wrong or something else altogether: which keys are
// there, how deep, and whether the text is whole.
//
// For telling formats apart and for judging a last line, not for reading records. Grammar as in
// scan.h, but that strings are not checked for UTF-8 and escapes are skipped unseen. One pass,
// no allocation, no recursion.
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum { JSON_KEYS_DEPTH_MAX = 64 };

enum json_keys_step {
    JSON_KEYS_MEMBER, // a key and its colon were passed: see the fields of struct json_keys
    JSON_KEYS_WHOLE,  // the value ended at `at`
    JSON_KEYS_CUT,    // right so far, but the text ends first
    JSON_KEYS_WRONG,  // not JSON, from `at` on
};

struct json_keys {
    struct slice text;
    size_t at;
    struct slice key;   // as written, without its quotes
    unsigned key_depth; // containers around the key: 1 in the outermost object
    // The member's value begins at `at`; 0 when the text ends in front of it.
    char value_first;

    // The walk's own:
    int expect;
    unsigned depth;
    uint64_t objects; // bit i: the container at depth i + 1 is an object
};

// `at` is where the value begins (white space may come before it).
void json_keys_begin(struct json_keys *keys, struct slice text, size_t at);
enum json_keys_step json_keys_next(struct json_keys *keys);
// After a member whose value_first is '"': the string as written; false when it is cut off.
bool json_keys_text(const struct json_keys *keys, struct slice *text);
// True when the text is one whole object with nothing but white space around it.
bool json_is_whole_object(struct slice text);
