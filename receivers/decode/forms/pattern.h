// SPDX-License-Identifier: Apache-2.0
// The language in which a row says what a text looks like (docs/forms.md).
//
//     process {local_rank} terminated with signal {signal}
//
// Everything outside of braces stands for itself, but that two or more blanks match one or more
// blanks or tabs. In braces:
//
//     {name}         a part with that name; what it may hold follows from the name
//     {name:type}    the same, of another type (enum pattern_type)
//     {name=a|b}     one of these words, with a name; {a|b} without one
//     {_}  {_:type}  a part that is not kept
//     {? text}       a text that may be missing; it may hold parts, and no other {?
//     {end}          nothing but blanks follows
//     {blank}        one blank, where it would not be seen: at the end
//     {{             a brace
//     ^ in front     only at the beginning of a message
//
// Matching is linear in the text for a given pattern: a part of type text takes as little as it
// can, all others as much as they can, and nothing is tried twice. Any thread.
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum pattern_type {
    PATTERN_LITERAL,
    PATTERN_BLANKS, // one or more
    PATTERN_CHOICE,
    PATTERN_OPTION,
    PATTERN_END,
#define PATTERN_TYPE(constant, name, what) PATTERN_##constant,
#include "receivers/decode/forms/pattern_types.h"
};

enum {
    PATTERN_SIZE_MAX = 512, // bytes of a pattern
    PATTERN_PARTS_MAX = 48,
    PATTERN_NAMES_MAX = 16, // parts that are kept
    PATTERN_NEEDLE_MIN = 6, // see needles.h
    // Of a text that may stand anywhere: how long its beginning is, and how far behind that its
    // needle may stand.
    PATTERN_HEAD_MIN = 4,
    PATTERN_HEAD_MAX = 96,
};

struct pattern_part {
    enum pattern_type type;
    int16_t name;          // which of the names; -1: not kept
    uint16_t count;        // PATTERN_OPTION: parts that follow and belong to it; choices
    struct slice literal;  // PATTERN_LITERAL
    struct slice *choices; // PATTERN_CHOICE; the longest first
};

struct pattern {
    struct slice source;
    struct pattern_part *parts;
    struct slice names[PATTERN_NAMES_MAX];
    uint32_t part_count, name_count;
    bool at_start;
    // A run of bytes that every text holds which matches, PATTERN_NEEDLE_MIN at least; where it
    // stands behind the begin of the match, unless at_start; needle_floats: within
    // PATTERN_HEAD_MAX of it.
    struct slice needle;
    size_t needle_at;
    bool needle_floats;
};

struct pattern_fault {
    size_t offset; // in the source
    char words[768];
};

// Which type a name has by itself; false: it is no name, and `words` says so.
typedef bool pattern_name_type(struct slice name, enum pattern_type *type, char *words,
                               size_t size);

// Makes the pattern, in the arena; `source` lives as long. `needs_needle`: refused without one.
bool pattern_compile(struct slice source, bool needs_needle, pattern_name_type *type_of,
                     struct arena *arena, struct pattern *pattern, struct pattern_fault *fault);
// Whether the text from `at` on begins as the pattern says. `values`: one for each name, data NULL:
// an option that is missing; `end`: behind the match. O(text).
bool pattern_match(const struct pattern *pattern, struct slice text, size_t at,
                   struct slice *values, size_t *end);
// The same for many patterns on one text: what is found out once is remembered. Zeros at first.
struct pattern_memo {
    const char *at; // where a date was looked for last; NULL: nowhere
    size_t date_size;
    // Places behind a part of type text that were tried, each with its parts, and bytes /
    // PATTERN_STEP_BYTES that were looked at. Once there were pattern_steps_max() of them no
    // further place is tried: rows and lines that are made to take long take no longer than that.
    uint64_t steps;
    bool ran_out; // the text ended within the pattern that was tried last, which it had so far
};
enum {
    PATTERN_STEP_BYTES = 16,
    PATTERN_STEPS_A_BYTE = 16,
    PATTERN_STEPS_MIN = 16384,
};
static inline uint64_t pattern_steps_max(struct slice text) {
    return PATTERN_STEPS_MIN + PATTERN_STEPS_A_BYTE * (uint64_t)text.size;
}
// Where a part of type name ends that begins at `at`; `at` itself: there is none.
size_t pattern_name_end(struct slice text, size_t at);
// How long the date is that stands there; 0: there is none.
size_t pattern_date_size(struct slice text, size_t at, struct pattern_memo *memo);
bool pattern_match_again(const struct pattern *pattern, struct slice text, size_t at,
                         struct slice *values, size_t *end, struct pattern_memo *memo);
