// SPDX-License-Identifier: Apache-2.0
// Scans the scalars of JSON text, and the keys of an object.
//
// The common cases are inline in the header (a string of plain ASCII, an integer of up to 19
// digits); this file holds the rest: escapes, UTF-8, long and decimal numbers, words. One pass,
// constant memory.
#include "receivers/decode/json/scan.h"

const uint64_t json_powers_of_ten[9] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000,
};

const char *json_skip_long_space(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// `at` is a backslash.
static const char *skip_escape(const char *at, const char *end, struct json_fault *fault) {
    unsigned char letter = json_peek(at + 1, end);
    if (letter == 'u') {
        bool whole = end - at >= 6;
        for (unsigned i = 2; whole && i < 6; i++)
            whole = is_hex(at[i]);
        return whole ? at + 6 : json_fail(fault, at, "\\u without four hexadecimal digits");
    }
    switch (letter) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return at + 2;
    default:
        return json_fail(fault, at, "an escape that JSON does not know");
    }
}

// `at` is a byte from 0x80 up. Refuses overlong forms, surrogates and what is beyond U+10FFFF.
static const char *skip_character(const char *at, const char *end, struct json_fault *fault) {
    const unsigned char *c = (const unsigned char *)at;
    ptrdiff_t left = end - at;
    unsigned size = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
    if (c[0] < 0xc2 || c[0] > 0xf4 || left < (ptrdiff_t)size)
        return json_fail(fault, at, "bytes that are not UTF-8");
    unsigned char low = 0x80, high = 0xbf;
    if (c[0] == 0xe0)
        low = 0xa0;
    else if (c[0] == 0xed)
        high = 0x9f;
    else if (c[0] == 0xf0)
        low = 0x90;
    else if (c[0] == 0xf4)
        high = 0x8f;
    bool valid = c[1] >= low && c[1] <= high;
    for (unsigned i = 2; i < size; i++)
        valid = valid && (c[i] & 0xc0) == 0x80;
    return valid ? at + size : json_fail(fault, at, "bytes that are not UTF-8");
}

// The string that began at `text`, from `at` on, whatever is in it.
const char *json_scan_long_string(const char *text, const char *at, const char *end,
                                  struct token *token, struct json_fault *fault) {
    uint32_t escaped = 0;
    for (;;) {
        while (end - at >= JSON_BLOCK && json_block_plain(at) == JSON_BLOCK)
            at += JSON_BLOCK;
        if (at >= end)
            return json_fail(fault, at, "the text ends inside a string");
        unsigned char c = (unsigned char)*at;
        if (c == '"')
            break;
        if (c < 0x20)
            return json_fail(fault, at, "a control character inside a string");
        if (c == '\\') {
            escaped = 1;
            at = skip_escape(at, end, fault);
        } else if (c >= 0x80) {
            at = skip_character(at, end, fault);
        } else {
            at++;
        }
        if (at == NULL)
            return NULL;
    }
    token->text = text;
    token->size = (size_t)(at - text);
    token->kind = TOKEN_STRING;
    token->escaped = escaped;
    return at + 1;
}

static bool is_digit(const char *at, const char *end) {
    return at < end && *at >= '0' && *at <= '9';
}

static void set_integer(struct token *token, const char *digits, bool negative) {
    uint64_t magnitude = 0;
    bool huge = false;
    for (const char *at = digits; at < token->text + token->size && !huge; at++) {
        huge = __builtin_mul_overflow(magnitude, 10, &magnitude) ||
               __builtin_add_overflow(magnitude, (uint64_t)(*at - '0'), &magnitude);
    }
    token->kind = TOKEN_HUGE;
    token->integer = 0;
    if (huge || (negative && magnitude > UINT64_C(1) << 63))
        return;
    token->kind = magnitude > INT64_MAX && !negative ? TOKEN_UNSIGNED : TOKEN_INTEGER;
    token->integer = (int64_t)(negative ? 0 - magnitude : magnitude);
}

const char *json_scan_long_number(const char *at, const char *end, struct token *token,
                                  struct json_fault *fault) {
    const char *text = at;
    bool negative = *at == '-';
    at += negative;
    if (negative && json_peek(at, end) == 'I')
        return json_scan_word(text, end, token, fault);
    const char *digits = at;
    if (!is_digit(at, end))
        return json_fail(fault, at, "a number without digits");
    bool zero = *at == '0';
    while (is_digit(at, end))
        at++;
    if (zero && at - digits > 1)
        return json_fail(fault, digits, "a number with a leading zero");
    const char *integer_end = at;
    if (json_peek(at, end) == '.') {
        if (!is_digit(at + 1, end))
            return json_fail(fault, at, "a decimal point without digits after it");
        for (at++; is_digit(at, end); at++)
            continue;
    }
    if ((json_peek(at, end) | 0x20) == 'e') {
        const char *exponent = at + 1;
        exponent += json_peek(exponent, end) == '-' || json_peek(exponent, end) == '+';
        if (!is_digit(exponent, end))
            return json_fail(fault, at, "an exponent without digits");
        for (at = exponent; is_digit(at, end); at++)
            continue;
    }
    token->text = text;
    token->size = (size_t)(at - text);
    token->kind = TOKEN_DECIMAL;
    if (at == integer_end)
        set_integer(token, digits, negative);
    return at;
}

// null, true, false, NaN, Infinity, -Infinity.
const char *json_scan_word(const char *at, const char *end, struct token *token,
                           struct json_fault *fault) {
    static const struct {
        struct slice text;
        enum token_kind kind;
    } words[] = {
        {{"null", 4}, TOKEN_NULL},        {{"true", 4}, TOKEN_TRUE},
        {{"false", 5}, TOKEN_FALSE},      {{"NaN", 3}, TOKEN_DECIMAL},
        {{"Infinity", 8}, TOKEN_DECIMAL}, {{"-Infinity", 9}, TOKEN_DECIMAL},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct slice word = words[i].text;
        if ((size_t)(end - at) < word.size || memcmp(at, word.data, word.size) != 0)
            continue;
        token->text = at;
        token->size = word.size;
        token->kind = words[i].kind;
        return at + word.size;
    }
    return json_fail(fault, at, at < end ? "no JSON value here" : "the text ends before a value");
}

const char *json_next_member(struct json_members *members, const char *at, const char *end,
                             struct token *key, struct json_fault *fault) {
    if (at == NULL)
        return NULL;
    at = json_skip_space(members->first ? at + 1 : at, end);
    unsigned char c = json_peek(at, end);
    if (c == '}') {
        members->done = true;
        return at + 1;
    }
    if (!members->first) {
        if (c != ',')
            return json_fail(fault, at, "no comma or closing brace after a value");
        at = json_skip_space(at + 1, end);
        c = json_peek(at, end);
    }
    members->first = false;
    if (c != '"')
        return json_fail(fault, at, "no key in quotes where one must be");
    at = json_scan_string(at + 1, end, key, fault);
    if (at == NULL)
        return NULL;
    at = json_skip_space(at, end);
    if (json_peek(at, end) != ':')
        return json_fail(fault, at, "no colon after a key");
    return json_skip_space(at + 1, end);
}

const char *json_read_end(const char *at, const char *end, struct json_fault *fault) {
    if (at != NULL)
        at = json_skip_space(at, end);
    if (at == NULL || at == end)
        return at;
    return json_fail(fault, at, "more than white space after the object");
}
