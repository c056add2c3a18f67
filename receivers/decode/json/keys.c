// SPDX-License-Identifier: Apache-2.0
// Lists the keys of a JSON text that may be cut off, and says whether it is whole.
//
// A table of what may come next, one bit a level for the kind of container. Stops at each key. Time
// linear in the text, constant memory.
#include "receivers/decode/json/keys.h"

#include "receivers/decode/json/scan.h"

#include <assert.h>

enum expect { EXPECT_VALUE, EXPECT_VALUE_OR_END, EXPECT_KEY, EXPECT_KEY_OR_END, EXPECT_COMMA };

void json_keys_begin(struct json_keys *keys, struct slice text, size_t at) {
    assert(at <= text.size);
    *keys = (struct json_keys){.text = text, .at = at, .expect = EXPECT_VALUE};
}

static bool skip_space(struct json_keys *keys) {
    const char *end = keys->text.data + keys->text.size;
    keys->at = (size_t)(json_skip_space(keys->text.data + keys->at, end) - keys->text.data);
    return keys->at < keys->text.size;
}

// Past the string whose quote is at `at`: its text in `*out`.
static enum json_keys_step pass_string(const struct json_keys *keys, size_t *at,
                                       struct slice *out) {
    struct slice text = keys->text;
    size_t from = *at + 1;
    for (size_t i = from; i < text.size;) {
        unsigned plain = text.size - i < JSON_BLOCK ? 0 : json_block_plain(text.data + i);
        i += plain;
        if (plain == JSON_BLOCK)
            continue;
        unsigned char c = (unsigned char)text.data[i];
        if (c == '"') {
            *out = (struct slice){text.data + from, i - from};
            *at = i + 1;
            return JSON_KEYS_WHOLE;
        }
        if (c < 0x20)
            return JSON_KEYS_WRONG;
        i += c == '\\' ? 2 : 1;
    }
    return JSON_KEYS_CUT;
}

static bool is_word_byte(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
           c == '-' || c == '.';
}

// The end of a number of at most 19 digits, if one begins at `at` and much text follows; else NULL.
static const char *short_number_end(const char *at, const char *end) {
    if (end - at < JSON_NUMBER_ROOM)
        return NULL;
    const char *digits = at + (*at == '-');
    uint64_t unused;
    unsigned count = json_read_digits(digits, &unused);
    return count > 0 && !is_word_byte(digits[count]) ? digits + count : NULL;
}

// A number or a word. At the end of the text one cannot know that it is whole, unless nothing is
// open around it.
static enum json_keys_step pass_word(struct json_keys *keys) {
    const char *from = keys->text.data + keys->at;
    const char *end = keys->text.data + keys->text.size;
    const char *at = short_number_end(from, end);
    if (at != NULL) {
        keys->at = (size_t)(at - keys->text.data);
        return JSON_KEYS_WHOLE;
    }
    at = from;
    while (at < end && is_word_byte(*at))
        at++;
    if (at == end && keys->depth > 0)
        return JSON_KEYS_CUT;
    struct token token;
    struct json_fault fault;
    if (json_scan_scalar(from, at, &token, &fault) != at)
        return JSON_KEYS_WRONG;
    keys->at = (size_t)(at - keys->text.data);
    return JSON_KEYS_WHOLE;
}

static bool in_object(const struct json_keys *keys) {
    return (keys->objects >> (keys->depth - 1) & 1) != 0;
}

static enum json_keys_step open_container(struct json_keys *keys, bool object) {
    if (keys->depth == JSON_KEYS_DEPTH_MAX)
        return JSON_KEYS_WRONG;
    uint64_t bit = UINT64_C(1) << keys->depth++;
    keys->objects = object ? keys->objects | bit : keys->objects & ~bit;
    keys->expect = object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    keys->at++;
    return JSON_KEYS_WHOLE;
}

// A value that begins here: a container is entered, anything else is passed.
static enum json_keys_step pass_value(struct json_keys *keys) {
    char first = keys->text.data[keys->at];
    if (first == '{' || first == '[')
        return open_container(keys, first == '{');
    keys->expect = EXPECT_COMMA;
    struct slice unused;
    return first == '"' ? pass_string(keys, &keys->at, &unused) : pass_word(keys);
}

// A key and its colon; `at` is its quote.
static enum json_keys_step pass_key(struct json_keys *keys) {
    if (keys->text.data[keys->at] != '"')
        return JSON_KEYS_WRONG;
    enum json_keys_step step = pass_string(keys, &keys->at, &keys->key);
    if (step != JSON_KEYS_WHOLE)
        return step;
    if (!skip_space(keys))
        return JSON_KEYS_CUT;
    if (keys->text.data[keys->at] != ':')
        return JSON_KEYS_WRONG;
    keys->at++;
    keys->key_depth = keys->depth;
    keys->expect = EXPECT_VALUE;
    keys->value_first = skip_space(keys) ? keys->text.data[keys->at] : '\0';
    return JSON_KEYS_MEMBER;
}

// After a value inside a container.
static enum json_keys_step pass_comma(struct json_keys *keys) {
    if (keys->text.data[keys->at] != ',')
        return JSON_KEYS_WRONG;
    keys->at++;
    keys->expect = in_object(keys) ? EXPECT_KEY : EXPECT_VALUE;
    return JSON_KEYS_WHOLE;
}

static bool closes(const struct json_keys *keys) {
    if (keys->expect == EXPECT_VALUE || keys->expect == EXPECT_KEY)
        return false;
    return keys->text.data[keys->at] == (in_object(keys) ? '}' : ']');
}

enum json_keys_step json_keys_next(struct json_keys *keys) {
    for (;;) {
        if (keys->expect == EXPECT_COMMA && keys->depth == 0)
            return JSON_KEYS_WHOLE;
        if (!skip_space(keys))
            return JSON_KEYS_CUT;
        enum json_keys_step step = JSON_KEYS_WHOLE;
        if (keys->depth > 0 && closes(keys)) {
            keys->depth--;
            keys->at++;
            keys->expect = EXPECT_COMMA;
        } else if (keys->expect == EXPECT_VALUE || keys->expect == EXPECT_VALUE_OR_END) {
            step = pass_value(keys);
        } else if (keys->expect == EXPECT_COMMA) {
            step = pass_comma(keys);
        } else {
            step = pass_key(keys);
        }
        if (step != JSON_KEYS_WHOLE)
            return step;
    }
}

bool json_keys_text(const struct json_keys *keys, struct slice *text) {
    size_t at = keys->at;
    return pass_string(keys, &at, text) == JSON_KEYS_WHOLE;
}

bool json_is_whole_object(struct slice text) {
    struct json_keys keys;
    json_keys_begin(&keys, text, 0);
    if (!skip_space(&keys) || text.data[keys.at] != '{')
        return false;
    enum json_keys_step step;
    do
        step = json_keys_next(&keys);
    while (step == JSON_KEYS_MEMBER);
    return step == JSON_KEYS_WHOLE && !skip_space(&keys);
}
