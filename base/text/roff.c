// SPDX-License-Identifier: Apache-2.0
// How does a text get through roff unharmed?
//
// A backslash begins an escape, a dot or an apostrophe at the beginning of a line a request, a
// quote ends an argument; a hyphen, a caret and the like are printed as other characters unless
// they are escaped. Everything beyond ASCII is written as \[uXXXX].
#include "base/text/roff.h"

#include "base/text/utf8.h"

#include <stdbool.h>

enum { LINE_MAX_BYTES = 80 };

static const char *escape_of(uint32_t c) {
    switch (c) {
    case '\\':
        return "\\(rs";
    case '-':
        return "\\-";
    case '"':
        return "\\(dq";
    case '\'':
        return "\\(aq";
    case '`':
        return "\\(ga";
    case '^':
        return "\\(ha";
    case '~':
        return "\\(ti";
    default:
        return NULL;
    }
}

static void character_append(struct buffer *out, uint32_t c) {
    const char *escape = escape_of(c);
    if (escape != NULL)
        buffer_append_text(out, escape);
    else if (c < 0x80)
        buffer_append_char(out, (char)c);
    else
        buffer_append_format(out, "\\[u%04X]", c);
}

static void text_append(struct buffer *out, struct slice text, bool backticks) {
    bool bold = false, line_begins = true;
    for (size_t at = 0; at < text.size;) {
        uint32_t c = '?';
        size_t length = utf8_decode(text, at, &c);
        at += length == 0 ? 1 : length;
        if (backticks && c == '`') {
            bold = !bold;
            buffer_append_text(out, bold ? "\\fB" : "\\fP");
            line_begins = false;
            continue;
        }
        if (line_begins && c == '.')
            buffer_append_text(out, "\\&");
        character_append(out, c);
        line_begins = c == '\n';
    }
    if (bold)
        buffer_append_text(out, "\\fP");
}

void roff_text(struct buffer *out, const char *text) {
    text_append(out, slice_of(text), true);
}

void roff_code(struct buffer *out, const char *text) {
    text_append(out, slice_of(text), false);
}

void roff_macro(struct buffer *out, const char *name, const char *text) {
    buffer_append_format(out, ".%s \"", name);
    roff_code(out, text);
    buffer_append_text(out, "\"\n");
}

// The last blank at which the line can be broken so that it is short enough, else the first one; 0
// when there is none.
static size_t break_of(struct slice line, size_t room) {
    size_t found = 0;
    for (size_t i = 1; i + 1 < line.size && (i <= room || found == 0); i++)
        if (line.data[i] == ' ' && line.data[i + 1] != ' ')
            found = i;
    return found;
}

static void line_wrap(struct buffer *out, struct slice line, bool one) {
    size_t room = LINE_MAX_BYTES - (one ? 2 : 0);
    while (line.size > LINE_MAX_BYTES) {
        size_t at = break_of(line, room);
        if (at == 0)
            break;
        buffer_append(out, (struct slice){line.data, at + one});
        buffer_append_text(out, one ? "\\\n" : "\n");
        line = (struct slice){line.data + at + 1, line.size - at - 1};
        if (!one && line.data[0] == '.')
            buffer_append_text(out, "\\&");
    }
    buffer_append(out, line);
    buffer_append_char(out, '\n');
}

void roff_wrap(struct buffer *out, struct slice page) {
    bool filled = true, tag = false;
    for (size_t at = 0; at < page.size;) {
        const char *end = memchr(page.data + at, '\n', page.size - at);
        size_t size = end == NULL ? page.size - at : (size_t)(end - page.data) - at;
        struct slice line = {page.data + at, size};
        at += size + 1;
        bool request = size > 0 && line.data[0] == '.';
        if (slice_equal(line, SLICE(".nf")) || slice_equal(line, SLICE(".fi")))
            filled = line.data[1] == 'f';
        line_wrap(out, line, request || tag || !filled);
        tag = slice_equal(line, SLICE(".TP"));
    }
}
