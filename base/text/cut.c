// SPDX-License-Identifier: Apache-2.0
// Shortens a text between words.
//
// Scripts that are written without blanks (from U+2E80 on) may be cut between any two characters. A
// byte that begins no character counts as one.
#include "base/text/cut.h"

#include "base/text/utf8.h"

#include <assert.h>

static const struct slice MARK = {"\xe2\x80\xa6", 3}; // U+2026

enum { FIRST_WITHOUT_BLANKS = 0x2e80 };

static size_t character_at(struct slice text, size_t at, uint32_t *code_point) {
    size_t size = utf8_decode(text, at, code_point);
    if (size == 0)
        *code_point = 0;
    return size == 0 ? 1 : size;
}

static size_t length_of(struct slice text, enum text_unit unit) {
    size_t count = 0;
    uint32_t code_point;
    if (unit == TEXT_BYTES)
        return text.size;
    for (size_t at = 0; at < text.size; at += character_at(text, at, &code_point))
        count++;
    return count;
}

// Bytes of the whole characters at the text's front that take at most `max`.
static size_t fitting(struct slice text, size_t max, enum text_unit unit) {
    size_t at = 0, used = 0;
    while (at < text.size) {
        uint32_t code_point;
        size_t size = character_at(text, at, &code_point);
        used += unit == TEXT_BYTES ? size : 1;
        if (used > max)
            break;
        at += size;
    }
    return at;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Digits, and what joins them to one number or address.
static bool is_of_number(struct slice text, size_t at) {
    char c = text.data[at];
    bool joins = c == '.' || c == ',' || c == ':';
    return text_is_digit(c) || (joins && at > 0 && text_is_digit(text.data[at - 1]) &&
                                at + 1 < text.size && text_is_digit(text.data[at + 1]));
}

// Neither a letter nor part of a number. Other scripts are letters.
static bool is_sign(struct slice text, size_t at) {
    char c = text.data[at];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
    return !letter && !is_of_number(text, at);
}

static bool is_without_blanks(struct slice text, size_t at) {
    uint32_t code_point = 0;
    if (at < text.size)
        character_at(text, at, &code_point);
    return code_point >= FIRST_WITHOUT_BLANKS;
}

// The end of the last whole word within the first `most` bytes of a longer text, without what joins
// it to the next; 0: there is none.
static size_t words_end(struct slice text, size_t most) {
    static const char JOINS[] = ",;:([{";
    size_t end = 0, before = 0;
    uint32_t code_point;
    for (size_t at = 0; at <= most; at += character_at(text, at, &code_point)) {
        if (is_blank(text.data[at]) || is_without_blanks(text, at) ||
            is_without_blanks(text, before))
            end = at;
        before = at;
    }
    for (;;) {
        if (end > 0 && (is_blank(text.data[end - 1]) ||
                        memchr(JOINS, text.data[end - 1], sizeof JOINS - 1) != NULL))
            end--;
        else if (end >= MARK.size && memcmp(text.data + end - MARK.size, MARK.data, MARK.size) == 0)
            end -= MARK.size; // of a shortening before this one
        else
            return end;
    }
}

// As much of a word's end as fits and begins at a sign; nothing: it has none there, or only signs
// follow.
static struct slice word_tail(struct slice word, size_t max, enum text_unit unit) {
    size_t length = length_of(word, unit), before = length > max ? length - max : 0;
    size_t at = unit == TEXT_BYTES ? before : fitting(word, before, unit), end = word.size;
    while (end > 0 && is_sign(word, end - 1))
        end--;
    while (at < end && !is_sign(word, at))
        at++;
    return at < end ? text_from(word, at) : (struct slice){NULL, 0};
}

// As much of a word's front as fits, but no part of a number.
static struct slice word_front(struct slice word, size_t max, enum text_unit unit) {
    size_t size = fitting(word, max, unit);
    while (size > 0 && size < word.size && is_of_number(word, size - 1) && is_of_number(word, size))
        size--;
    return (struct slice){word.data, size};
}

static size_t put(char *room, size_t at, struct slice text) {
    if (text.size > 0)
        memcpy(room + at, text.data, text.size);
    return at + text.size;
}

struct slice text_shorten(struct slice text, size_t max, enum text_unit unit, char *room) {
    assert(max >= TEXT_SHORTEST);
    if (fitting(text, max, unit) == text.size)
        return text;
    size_t marked = 1 + (unit == TEXT_BYTES ? MARK.size : 1); // a blank and the mark
    struct slice words = {text.data, words_end(text, fitting(text, max - marked, unit))};
    size_t size = put(room, 0, words);
    struct slice rest = text_trim(text_from(text, words.size)), looked_at = rest;
    looked_at.size = rest.size <= TEXT_WORD_MAX ? rest.size : TEXT_WORD_MAX + 1;
    struct slice word = text_until_any(looked_at, " \t\r\n");
    size_t left = max - marked - length_of(words, unit);
    struct slice part = {NULL, 0};
    if (left > max / 2 && word.size <= TEXT_WORD_MAX) {
        left -= word.size < rest.size ? marked : 0;
        part = word_tail(word, left, unit);
    }
    if (part.size > 0 || words.size > 0) {
        size = put(room, size, words.size > 0 ? SLICE(" ") : SLICE(""));
        size = put(room, put(room, size, MARK), part);
        return (struct slice){room, part.size > 0 && word.size < rest.size
                                        ? put(room, put(room, size, SLICE(" ")), MARK)
                                        : size};
    }
    size = put(room, 0, word_front(rest, max + 1 - marked, unit));
    return (struct slice){room, put(room, size, MARK)};
}

static size_t digits_end(struct slice text, size_t at) {
    while (at < text.size && text_is_digit(text.data[at]))
        at++;
    return at;
}

bool text_begins_like(struct slice text, struct slice start, size_t *size) {
    size_t at = 0, in_text = 0;
    while (at < start.size && in_text < text.size) {
        if (text_is_digit(start.data[at]) && text_is_digit(text.data[in_text])) {
            at = digits_end(start, at);
            in_text = digits_end(text, in_text);
        } else if (start.data[at++] != text.data[in_text++]) {
            return false;
        }
    }
    *size = in_text;
    return at == start.size;
}
