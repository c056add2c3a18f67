// SPDX-License-Identifier: Apache-2.0
// Cuts a text to the room that a row has for it.
#include "processors/cluster/row_text.h"

#include "base/text/utf8.h"

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
