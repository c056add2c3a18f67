// SPDX-License-Identifier: Apache-2.0
// Cuts text into parts from its front: for formats that are read word by word.
//
// A function named `take` or `skip` moves the text behind what it took; one that gives false leaves
// it as it was. Parts point into the text. Any bytes, no allocation, any thread.
//
// text_shorten is for texts that people read and that are longer than their place.
#pragma once

#include "base/slice.h"
#include "base/text/find.h"

#include <stdint.h>

static inline bool text_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline bool text_begins(struct slice text, struct slice start) {
    return text.size >= start.size && memcmp(text.data, start.data, start.size) == 0;
}

// The text without its first `size` bytes, of which it has as many.
static inline struct slice text_from(struct slice text, size_t size) {
    assert(size <= text.size);
    return size == 0 ? text : (struct slice){text.data + size, text.size - size};
}

static inline struct slice text_take(struct slice *text, size_t size) {
    struct slice taken = {text->data, size};
    *text = text_from(*text, size);
    return taken;
}

static inline bool text_skip(struct slice *text, struct slice start) {
    if (!text_begins(*text, start))
        return false;
    *text = text_from(*text, start.size);
    return true;
}

static inline bool text_skip_char(struct slice *text, char wanted) {
    return text_skip(text, (struct slice){&wanted, 1});
}

// Past spaces and tabs.
static inline void text_skip_blanks(struct slice *text) {
    while (text->size > 0 && (*text->data == ' ' || *text->data == '\t'))
        *text = text_from(*text, 1);
}

// Without the spaces, tabs and ends of lines around it.
static inline struct slice text_trim(struct slice text) {
    static const char blanks[] = {' ', '\t', '\r', '\n'};
    while (text.size > 0 && memchr(blanks, text.data[0], sizeof blanks) != NULL)
        text = text_from(text, 1);
    while (text.size > 0 && memchr(blanks, text.data[text.size - 1], sizeof blanks) != NULL)
        text.size--;
    return text;
}

// The part in front of the first `stop`, or all of it.
static inline struct slice text_until(struct slice text, char stop) {
    const char *at = text.size == 0 ? NULL : memchr(text.data, stop, text.size);
    return at == NULL ? text : (struct slice){text.data, (size_t)(at - text.data)};
}

// The same for the first byte that is one of `stops`.
static inline struct slice text_until_any(struct slice text, const char *stops) {
    size_t size = 0, count = strlen(stops);
    while (size < text.size && memchr(stops, text.data[size], count) == NULL)
        size++;
    return (struct slice){text.data, size};
}

// What follows the first `wanted` in the text; false, and `behind` as it was, when it is not there.
static inline bool text_find(struct slice text, struct slice wanted, struct slice *behind) {
    const char *at = text_position(text, wanted);
    if (at == NULL)
        return false;
    *behind = text_from(text, (size_t)(at - text.data) + wanted.size);
    return true;
}

// The next line, without its newline.
static inline struct slice text_take_line(struct slice *text) {
    struct slice line = text_until(*text, '\n');
    *text = text_from(*text, line.size + (line.size < text->size));
    return line;
}

// A number of `least` to `most` digits, whatever follows; false also beyond 64 bits.
static inline bool text_take_number(struct slice *text, size_t least, size_t most,
                                    uint64_t *value) {
    size_t size = 0;
    uint64_t number = 0;
    bool fits = true;
    assert(least > 0 && least <= most);
    for (; size < text->size && size < most && text_is_digit(text->data[size]); size++)
        fits = !__builtin_mul_overflow(number, 10, &number) &&
               !__builtin_add_overflow(number, (uint64_t)(text->data[size] - '0'), &number) && fits;
    if (size < least || !fits)
        return false;
    *text = text_from(*text, size);
    *value = number;
    return true;
}

// The number that the whole text writes in at most `most` digits.
static inline bool text_number(struct slice text, size_t most, uint64_t *value) {
    return text_take_number(&text, 1, most, value) && text.size == 0;
}

enum text_unit { TEXT_BYTES, TEXT_CHARACTERS };
enum {
    TEXT_SHORTEST = 4,   // no text is shortened to less than this
    TEXT_WORD_MAX = 512, // bytes; what is longer is no name, and its end is not shown
    UTF8_BYTES_MAX = 4,  // of one character
};
// The room for a text of at most `max` characters.
#define TEXT_ROOM(max) (UTF8_BYTES_MAX * (max))

// At most `max` bytes or characters of a text that people read: all of it where it fits, else
// whole words from its front and " …" for what is left out. A word is what stands between blanks,
// so an address, a number and a path are never shown in part, with one exception: where one word
// takes most of the room, its end is shown, from a sign on ("cannot open …/shards/0017.tar"). Only
// a word without such a sign is cut within, and never within a number.
// Ids, which are compared, are not to be shortened: utf8_cut.
// The text itself, or a slice of `room`, which has `max` bytes or TEXT_ROOM(max). O(max).
struct slice text_shorten(struct slice text, size_t max, enum text_unit unit, char *room);

// Whether the text begins as `start` does, but for its numbers: where one stands any may stand.
// `size`: how much of the text that is. O(size of both).
bool text_begins_like(struct slice text, struct slice start, size_t *size);
