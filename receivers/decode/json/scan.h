// SPDX-License-Identifier: Apache-2.0
// Reads JSON text value by value, in place, without building anything.
//
// The grammar is RFC 8259's with the three tokens that Python's json adds (NaN, Infinity,
// -Infinity). Strings must be valid UTF-8 without control characters; an escaped lone surrogate is
// fine. Nothing is read at or past `end`. Functions return where they stopped, or NULL with `fault`
// filled. No allocation, any thread.
#pragma once

#include "base/slice.h"
#include "receivers/decode/json/block.h"

#include <stdint.h>

// Containers may stand this deep in one another, the record itself included.
enum { JSON_SCAN_DEPTH_MAX = 64 };

// What a sign and three times eight digits may need, and the byte behind them.
enum { JSON_NUMBER_ROOM = 26 };

enum token_kind {
    TOKEN_NONE, // not there
    TOKEN_NULL,
    TOKEN_FALSE,
    TOKEN_TRUE,
    TOKEN_INTEGER,  // fits int64: `integer`
    TOKEN_UNSIGNED, // beyond int64 but within uint64: `integer` holds its bits
    TOKEN_HUGE,     // an integer beyond both
    TOKEN_DECIMAL,  // with point or exponent, or NaN, Infinity, -Infinity
    TOKEN_STRING,
    TOKEN_ARRAY,
    TOKEN_OBJECT,
};

struct token {
    const char *text; // as written; a string's without its quotes
    size_t size;
    int64_t integer;
    uint32_t kind;    // enum token_kind
    uint32_t escaped; // a string that holds a backslash
};

struct json_fault {
    const char *at;
    const char *why; // static text, a clause
};

static inline struct slice token_slice(const struct token *token) {
    return (struct slice){token->text, token->size};
}

static inline bool token_is_integer(const struct token *token) {
    return token->kind >= TOKEN_INTEGER && token->kind <= TOKEN_HUGE;
}

// The byte at `at`, or 0 (which is never right outside a string) at the end.
static inline unsigned char json_peek(const char *at, const char *end) {
    return at < end ? (unsigned char)*at : 0;
}

static inline const char *json_fail(struct json_fault *fault, const char *at, const char *why) {
    *fault = (struct json_fault){at, why};
    return NULL;
}

const char *json_skip_long_space(const char *at, const char *end);

// Past space, tab, newline and carriage return.
static inline const char *json_skip_space(const char *at, const char *end) {
    if (at < end && *at == ' ')
        at++;
    if (at < end && (unsigned char)*at <= ' ')
        at = json_skip_long_space(at, end);
    return at;
}

const char *json_scan_long_string(const char *text, const char *at, const char *end,
                                  struct token *token, struct json_fault *fault);
const char *json_scan_long_number(const char *at, const char *end, struct token *token,
                                  struct json_fault *fault);
const char *json_scan_word(const char *at, const char *end, struct token *token,
                           struct json_fault *fault);
// Past the object or array that opens at `at`; `depth` is its own, 1 for the outermost.
const char *json_skip_container(const char *at, const char *end, unsigned depth,
                                struct json_fault *fault);

// A string whose first character (after the quote) is at `at`.
static inline const char *json_scan_string(const char *at, const char *end, struct token *token,
                                           struct json_fault *fault) {
    const char *text = at;
    while (end - at >= JSON_BLOCK) {
        unsigned plain = json_block_plain(at);
        at += plain;
        if (plain == JSON_BLOCK)
            continue;
        if (*at != '"')
            break;
        token->text = text;
        token->size = (size_t)(at - text);
        token->kind = TOKEN_STRING;
        token->escaped = 0;
        return at + 1;
    }
    return json_scan_long_string(text, at, end, token, fault);
}

extern const uint64_t json_powers_of_ten[9];

// How many digits stand at `digits`, of which JSON_NUMBER_ROOM bytes may be read, and what they
// write: `magnitude` is right for up to 19 of them. 0 when there are none, more than 19, or a zero
// in front of others.
static inline unsigned json_read_digits(const char *digits, uint64_t *magnitude) {
    uint64_t more;
    unsigned count = json_block_number(digits, magnitude);
    if (count == 8) {
        unsigned next = json_block_number(digits + 8, &more);
        *magnitude = *magnitude * json_powers_of_ten[next] + more;
        count += next;
        if (next == 8) {
            next = json_block_number(digits + 16, &more);
            *magnitude = *magnitude * json_powers_of_ten[next] + more;
            count += next;
        }
    }
    return count > 19 || (*digits == '0' && count > 1) ? 0 : count;
}

// At most 19 digits with a comma or brace right behind them, negated when `sign` is 1.
static inline const char *json_scan_digits(const char *at, size_t sign, const char *end,
                                           struct token *token, struct json_fault *fault) {
    const char *digits = at + sign;
    uint64_t magnitude;
    unsigned count = json_read_digits(digits, &magnitude);
    unsigned char after = (unsigned char)digits[count];
    if ((after != ',' && after != '}') || magnitude > INT64_MAX || count == 0)
        return json_scan_long_number(at, end, token, fault);
    token->text = at;
    token->size = sign + count;
    token->integer = sign == 0 ? (int64_t)magnitude : -(int64_t)magnitude;
    token->kind = TOKEN_INTEGER;
    return digits + count;
}

// A number that starts at `at` with a digit or a minus sign.
static inline const char *json_scan_number(const char *at, const char *end, struct token *token,
                                           struct json_fault *fault) {
    if (end - at < JSON_NUMBER_ROOM)
        return json_scan_long_number(at, end, token, fault);
    if (*at == '-')
        return json_scan_digits(at, 1, end, token, fault);
    return json_scan_digits(at, 0, end, token, fault);
}

// Any value but an object or array.
static inline const char *json_scan_scalar(const char *at, const char *end, struct token *token,
                                           struct json_fault *fault) {
    unsigned char first = json_peek(at, end);
    if (first == '"')
        return json_scan_string(at + 1, end, token, fault);
    if ((unsigned)(first - '0') <= 9 || first == '-')
        return json_scan_number(at, end, token, fault);
    if (end - at > 4 && memcmp(at, "null", 4) == 0) {
        token->text = at;
        token->size = 4;
        token->kind = TOKEN_NULL;
        return at + 4;
    }
    return json_scan_word(at, end, token, fault);
}

// Any value; `depth` is how many containers it stands in.
static inline const char *json_scan_value(const char *at, const char *end, unsigned depth,
                                          struct token *token, struct json_fault *fault) {
    unsigned char first = json_peek(at, end);
    if (first != '{' && first != '[')
        return json_scan_scalar(at, end, token, fault);
    const char *after = json_skip_container(at, end, depth + 1, fault);
    if (after == NULL)
        return NULL;
    token->text = at;
    token->size = (size_t)(after - at);
    token->kind = first == '{' ? TOKEN_OBJECT : TOKEN_ARRAY;
    return after;
}

// Walks the members of an object: each call reads one key and stops before its value, which the
// caller scans and hands back as `at` of the next call: NULL when it is wrong, which is then the
// answer. Starts at the brace with `first` true.
struct json_members {
    bool first;
    bool done; // the closing brace was passed
};
const char *json_next_member(struct json_members *members, const char *at, const char *end,
                             struct token *key, struct json_fault *fault);
// Past the white space behind an object, behind which nothing may stand; also NULL for NULL.
const char *json_read_end(const char *at, const char *end, struct json_fault *fault);
