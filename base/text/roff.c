// SPDX-License-Identifier: Apache-2.0
// Escapes text for man(7).
//
// A backslash begins an escape, a dot or an apostrophe at the beginning of a line a request, a
// quote ends an argument; a hyphen, a caret and the like are printed as other characters unless
// they are escaped. Everything beyond ASCII is written as \[uXXXX].
#include "base/text/roff.h"

#include "base/text/utf8.h"

#include <assert.h>
#include <stdbool.h>

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
    assert(name != NULL && strlen(name) <= 2);
    buffer_append_format(out, ".%s \"", name);
    roff_code(out, text);
    buffer_append_text(out, "\"\n");
}
