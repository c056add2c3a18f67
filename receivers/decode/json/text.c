// SPDX-License-Identifier: Apache-2.0
// Decodes and compares JSON strings.
//
// Escaped strings are read code point by code point; one pass, and memory only for a copy that is
// never longer than what was written.
#include "receivers/decode/json/text.h"

#include "base/text/utf8.h"

#include <assert.h>

static unsigned hex_value(char c) {
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);
}

static uint32_t hex_unit(const char *digits) {
    uint32_t unit = 0;
    for (unsigned i = 0; i < 4; i++)
        unit = unit << 4 | hex_value(digits[i]);
    return unit;
}

static bool is_escaped_unit(const char *at, const char *end) {
    return end - at >= 6 && at[0] == '\\' && at[1] == 'u';
}

static uint32_t simple_escape(char letter) {
    switch (letter) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return (unsigned char)letter;
    }
}

// The escape at *at, which it moves past.
static uint32_t next_escape(const char **at, const char *end) {
    if (!is_escaped_unit(*at, end)) {
        char letter = (*at)[1];
        *at += 2;
        return simple_escape(letter);
    }
    uint32_t unit = hex_unit(*at + 2);
    *at += 6;
    if (unit < 0xd800 || unit > 0xdbff || !is_escaped_unit(*at, end))
        return unit;
    uint32_t low = hex_unit(*at + 2);
    if (low < 0xdc00 || low > 0xdfff)
        return unit;
    *at += 6;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

// The character of valid or generalised UTF-8 at *at, which it moves past.
static uint32_t next_character(const char **at, const char *end) {
    uint32_t code;
    size_t size = utf8_decode((struct slice){*at, (size_t)(end - *at)}, 0, &code);
    assert(size > 0);
    *at += size;
    return code;
}

static uint32_t next_code_point(const char **at, const char *end) {
    return **at == '\\' ? next_escape(at, end) : next_character(at, end);
}

// Returns how many bytes it wrote, at most 4.
static unsigned put_character(char *out, uint32_t code) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    unsigned size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (unsigned i = size - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(0xf00u >> size | code);
    return size;
}

struct slice token_decode(const struct token *token, struct arena *arena) {
    assert(token->kind == TOKEN_STRING);
    if (!token->escaped)
        return token_slice(token);
    const char *at = token->text, *end = at + token->size;
    char *text = arena_take(arena, token->size);
    size_t size = 0;
    while (at < end) {
        const char *stop = memchr(at, '\\', (size_t)(end - at));
        size_t plain = (size_t)((stop == NULL ? end : stop) - at);
        memcpy(text + size, at, plain);
        size += plain;
        at += plain;
        if (at < end)
            size += put_character(text + size, next_escape(&at, end));
    }
    return (struct slice){text, size};
}

bool token_starts_with(const struct token *token, struct slice text) {
    if (!token->escaped)
        return token->size >= text.size && memcmp(token->text, text.data, text.size) == 0;
    const char *at = token->text, *end = at + token->size;
    const char *want = text.data, *want_end = want + text.size;
    while (at < end && want < want_end) {
        if (next_code_point(&at, end) != next_character(&want, want_end))
            return false;
    }
    return want == want_end;
}

bool token_equals(const struct token *token, struct slice text) {
    if (!token->escaped)
        return slice_equal(token_slice(token), text);
    const char *at = token->text, *end = at + token->size;
    const char *want = text.data, *want_end = want + text.size;
    while (at < end && want < want_end) {
        if (next_code_point(&at, end) != next_character(&want, want_end))
            return false;
    }
    return at == end && want == want_end;
}

static bool is_space(uint32_t code) {
    return code == ' ' || (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x1f) ||
           code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool token_is_long_blank(const struct token *token) {
    const char *at = token->text, *end = at + token->size;
    while (at < end) {
        if (!is_space(next_code_point(&at, end)))
            return false;
    }
    return true;
}

struct slice text_strip(struct slice text) {
    const char *at = text.data, *end = at + text.size;
    const char *first = end, *last = end;
    while (at < end) {
        const char *start = at;
        if (is_space(next_character(&at, end)))
            continue;
        if (first == end)
            first = start;
        last = at;
    }
    return (struct slice){first, (size_t)(last - first)};
}
