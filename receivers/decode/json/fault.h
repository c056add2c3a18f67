// SPDX-License-Identifier: Apache-2.0
// Why a record is refused, put into words. All of this is off the fast path.
//
// Each returns the category that it set, so that a rule can end with it.
#pragma once

#include "base/intern.h"
#include "base/status.h"
#include "pipeline/component/decoder.h"
#include "receivers/decode/json/scan.h"

// `field` is cut at DECODE_FIELD_MAX between two characters, the detail at DECODE_DETAIL_MAX.
enum decode_category fault_set(struct decode_fault *fault, enum decode_category category,
                               struct slice field, const char *format, ...) PRINTF_LIKE(4, 5);
enum decode_category fault_json(struct decode_fault *fault, struct slice record,
                                const struct json_fault *json);

// "found …, expected …": what stands there, a text or number up to 40 bytes, and what would be
// right.
enum decode_category fault_found(struct decode_fault *fault, enum decode_category category,
                                 struct slice field, const struct token *found,
                                 const char *expected);
// The value is of another kind than `expected` ("an integer").
enum decode_category fault_type(struct decode_fault *fault, struct slice field,
                                const struct token *found, const char *expected);
// A text where a non-blank one must be: null and blank text are DECODE_EMPTY_STRING, anything else
// is DECODE_WRONG_TYPE.
enum decode_category fault_text(struct decode_fault *fault, struct slice field,
                                const struct token *found);
// An integer outside of what culprit keeps: says which `limit` it has ("… to …").
enum decode_category fault_limit(struct decode_fault *fault, struct slice field,
                                 const struct token *found, const char *limit);
// Below the lowest value that the schema allows.
enum decode_category fault_range(struct decode_fault *fault, struct slice field, int64_t found,
                                 const char *expected);

// The id of a name; DECODE_LIMIT when no more distinct ones are taken, with *id STRING_REFUSED.
enum decode_category fault_intern(struct decode_fault *fault, struct slice field, struct slice name,
                                  string_id *id);

// Names, sorted and joined by ", " into the fault's field: the lowest ones when not all have room.
struct fault_names {
    struct slice names[DECODE_FIELD_MAX / 2];
    size_t count;
};
// Adds a name unless it is there already; it must live until the names are joined.
void fault_names_add(struct fault_names *names, struct slice name);
enum decode_category fault_names_join(const struct fault_names *names, struct decode_fault *fault,
                                      enum decode_category category, const char *detail);
