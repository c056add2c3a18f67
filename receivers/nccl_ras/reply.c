// SPDX-License-Identifier: Apache-2.0
#include "receivers/nccl_ras/reply.h"

#include "base/text/cut.h"

#include <stdint.h>
#include <strings.h>

static bool begins(struct slice line, struct slice word) {
    return line.size >= word.size && strncasecmp(line.data, word.data, word.size) == 0;
}

bool ras_line_is_hello(struct slice line) {
    static const struct slice hello = {"SERVER PROTOCOL ", 16};
    uint64_t version;
    return begins(line, hello) && text_number(text_trim(text_from(line, hello.size)), 9, &version);
}

bool ras_line_is_ok(struct slice line) {
    line = text_trim(line);
    return line.size == 2 && begins(line, SLICE("OK"));
}

bool ras_line_is_error(struct slice line) {
    return begins(line, SLICE("ERROR:"));
}

size_t ras_object_size(struct slice text) {
    size_t depth = 0;
    bool in_string = false, escaped = false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (in_string) {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        if (depth == 0 && c != '{') {
            if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
                return SIZE_MAX;
            continue;
        }
        in_string = c == '"';
        if (c == '{')
            depth++;
        else if (c == '}' && --depth == 0)
            return i + 1;
    }
    return 0;
}

bool ras_reply_is_whole(struct slice reply, bool json) {
    struct slice rest;
    if (json) {
        size_t size = ras_object_size(reply);
        return size > 0 && size <= reply.size && text_trim(text_from(reply, size)).size == 0;
    }
    return text_begins(reply, SLICE("NCCL version ")) && reply.data[reply.size - 1] == '\n' &&
           text_find(reply, SLICE("\nWarnings\n"), &rest);
}

struct slice ras_event_name(struct slice object) {
    struct slice none = {NULL, 0}, text = object;
    if (!text_find(text, SLICE("\"event\""), &text))
        return none;
    text = text_trim(text);
    if (!text_skip_char(&text, ':'))
        return none;
    text = text_trim(text);
    if (!text_skip_char(&text, '"'))
        return none;
    struct slice name = text_until(text, '"');
    return name.size < text.size && name.size <= 64 ? name : none;
}

bool ras_event_is_silence(struct slice name) {
    static const struct slice names[] = {
        {"PEER_DEAD", 9},
        {"PEER_UNRESPONSIVE", 17},
        {"PEER_TIMEOUT_DEAD", 17},
        {"PEER_SEND_STUCK", 15},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_equal(name, names[i]))
            return true;
    return false;
}

bool ras_event_is_lifecycle(struct slice name) {
    return slice_equal(name, SLICE("PEER_DEAD")) || slice_equal(name, SLICE("PEER_NEW"));
}
