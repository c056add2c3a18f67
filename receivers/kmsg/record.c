// SPDX-License-Identifier: Apache-2.0
#include "receivers/kmsg/record.h"

#include "base/text/cut.h"

enum { DIGITS_MAX = 20, FACILITY_MAX = 1 << 20 };

bool kmsg_record_parse(struct slice bytes, struct kmsg_record *record) {
    uint64_t priority;
    *record = (struct kmsg_record){0};
    if (!text_take_number(&bytes, 1, DIGITS_MAX, &priority) || priority >= FACILITY_MAX ||
        !text_skip_char(&bytes, ',') ||
        !text_take_number(&bytes, 1, DIGITS_MAX, &record->sequence) ||
        record->sequence == UINT64_MAX || !text_skip_char(&bytes, ',') ||
        !text_take_number(&bytes, 1, DIGITS_MAX, &record->usec) || !text_skip_char(&bytes, ','))
        return false;
    struct slice head = text_until(bytes, ';');
    if (head.size == bytes.size || memchr(head.data, '\n', head.size) != NULL)
        return false;
    record->facility = (uint32_t)priority >> 3;
    record->level = (uint32_t)priority & 7;
    record->text = text_until(text_from(bytes, head.size + 1), '\n');
    return true;
}

static int hex_digit(char c) {
    if (text_is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t kmsg_unescape(struct slice text, char *out) {
    size_t size = 0;
    for (size_t at = 0; at < text.size;) {
        int high = -1, low = -1;
        if (text.size - at >= 4 && text.data[at] == '\\' && text.data[at + 1] == 'x') {
            high = hex_digit(text.data[at + 2]);
            low = hex_digit(text.data[at + 3]);
        }
        bool escape = high >= 0 && low >= 0;
        out[size++] = escape ? (char)(high * 16 + low) : text.data[at];
        at += escape ? 4 : 1;
    }
    return size;
}
