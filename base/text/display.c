// SPDX-License-Identifier: Apache-2.0
// Shows text that somebody else wrote without letting it do anything.
//
// Character by character: harmless ones pass, all others are spelled out. No memory of its own;
// linear in the text.
#include "base/text/display.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/utf8.h"

#include <assert.h>
#include <stdio.h>

struct range {
    uint32_t first, last;
};

// Sources: Unicode general categories Cc, Cf, Zl, Zp, Cs; tags and variation of annotations.
static const struct range hidden_ranges[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x600, 0x605},
    {0x61c, 0x61c},   {0x6dd, 0x6dd},   {0x70f, 0x70f},     {0x180e, 0x180e},
    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0xd800, 0xdfff},
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}, {0xfffe, 0xffff},
};

// Combining marks of the common scripts: they stand on the character before them.
static const struct range combining_ranges[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20f0}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};

// East Asian wide and emoji blocks.
static const struct range wide_ranges[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
    {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

static bool in_ranges(uint32_t code_point, const struct range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (code_point >= ranges[i].first && code_point <= ranges[i].last)
            return true;
    return false;
}

#define IN_RANGES(code_point, ranges)                                                              \
    in_ranges(code_point, ranges, sizeof(ranges) / sizeof((ranges)[0]))

enum { SHOWN_MAX = 16 };

struct shown {
    char bytes[SHOWN_MAX];
    size_t size;
    size_t columns;
    size_t consumed;
};

// What stands for the character at `at`.
static struct shown character_shown(struct slice text, size_t at) {
    assert(at < text.size);
    struct shown shown = {0};
    uint32_t code_point = 0;
    size_t length = utf8_decode(text, at, &code_point);
    int spelled = 0;
    if (length == 0)
        spelled = snprintf(shown.bytes, SHOWN_MAX, "\\x%02x", (unsigned char)text.data[at]);
    else if (!IN_RANGES(code_point, hidden_ranges))
        memcpy(shown.bytes, text.data + at, length);
    else if (code_point < 0x80)
        spelled = snprintf(shown.bytes, SHOWN_MAX, "\\x%02x", (unsigned)code_point);
    else
        spelled = snprintf(shown.bytes, SHOWN_MAX, "\\u%04x", (unsigned)code_point);
    shown.consumed = length == 0 ? 1 : length;
    shown.size = spelled > 0 ? (size_t)spelled : length;
    if (spelled > 0)
        shown.columns = (size_t)spelled;
    else if (!IN_RANGES(code_point, combining_ranges))
        shown.columns = IN_RANGES(code_point, wide_ranges) ? 2 : 1;
    return shown;
}

// The bytes that `text` takes once made safe, but no more than just over `max`.
static size_t shown_size(struct slice text, size_t max) {
    size_t size = 0;
    for (size_t at = 0; at < text.size && size <= max;) {
        struct shown shown = character_shown(text, at);
        size += shown.size;
        at += shown.consumed;
    }
    return size;
}

static void append_all(struct buffer *out, struct slice text) {
    for (size_t at = 0; at < text.size;) {
        struct shown shown = character_shown(text, at);
        buffer_append(out, (struct slice){shown.bytes, shown.size});
        at += shown.consumed;
    }
}

static void append_shortened(struct buffer *out, struct slice text, size_t max) {
    // A word that is not whole in it is too long to be shown by its end.
    size_t looked_at = max + 2 * TEXT_WORD_MAX;
    struct buffer safe;
    text.size = text.size < looked_at ? text.size : looked_at;
    buffer_init(&safe, SHOWN_MAX * text.size);
    append_all(&safe, text);
    char *room = memory_take(max);
    buffer_append(out, text_shorten(buffer_slice(&safe), max, TEXT_BYTES, room));
    memory_give(room);
    buffer_release(&safe);
}

void display_append(struct buffer *out, struct slice text, size_t max) {
    assert(max == 0 || max >= TEXT_SHORTEST);
    if (max > 0 && shown_size(text, max) > max)
        append_shortened(out, text, max);
    else
        append_all(out, text);
}

size_t display_columns(struct slice text) {
    size_t columns = 0;
    for (size_t at = 0; at < text.size;) {
        struct shown shown = character_shown(text, at);
        columns += shown.columns;
        at += shown.consumed;
    }
    return columns;
}
