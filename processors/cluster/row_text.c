// SPDX-License-Identifier: Apache-2.0
// Fits a text to the room that a row has for it.
#include "processors/cluster/row_text.h"

#include "base/text/cut.h"
#include "base/text/utf8.h"

uint16_t row_text_copy(char *to, size_t room, struct slice text) {
    assert(room <= UINT16_MAX);
    struct slice kept = text_shorten(text, room, TEXT_BYTES, to);
    if (kept.size > 0 && kept.data != to)
        memcpy(to, kept.data, kept.size);
    return (uint16_t)kept.size;
}

void row_text_say(char *to, size_t room, struct slice text) {
    size_t size = row_text_copy(to, room - 1, text_until(text, '\0'));
    memset(to + size, 0, room - size);
}

void row_text_put(char *to, size_t room, struct slice text) {
    assert(room > 0);
    size_t at = 0;
    uint32_t code_point;
    while (at < text.size && text.data[at] != '\0') {
        size_t size = utf8_decode(text, at, &code_point);
        size = size == 0 ? 1 : size;
        if (at + size >= room)
            break;
        at += size;
        assert(at < room);
    }
    memset(to, 0, room);
    if (at > 0)
        memcpy(to, text.data, at);
}
