// SPDX-License-Identifier: Apache-2.0
// Bytes in one block that doubles up to its maximum. Appending is O(bytes), amortised.
#include "base/buffer.h"

#include "base/memory.h"
#include "base/text/number.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { BUFFER_FIRST_CAPACITY = 256 };

void buffer_init(struct buffer *buffer, size_t max) {
    assert(max > 0);
    *buffer = (struct buffer){.max = max};
}

void buffer_init_drained(struct buffer *buffer, size_t block, buffer_drain *drain, void *context) {
    assert(drain != NULL);
    buffer_init(buffer, block);
    buffer->drain = drain;
    buffer->drain_context = context;
}

void buffer_reset(struct buffer *buffer) {
    buffer->size = 0;
    buffer->failed = false;
}

void buffer_release(struct buffer *buffer) {
    memory_give(buffer->data);
    buffer->data = NULL;
    buffer->size = buffer->capacity = 0;
}

static void buffer_drain_all(struct buffer *buffer) {
    assert(buffer->drain != NULL);
    if (buffer->size == 0 || buffer->failed)
        return;
    if (!buffer->drain(buffer->drain_context, buffer_slice(buffer)))
        buffer->failed = true;
    buffer->size = 0;
}

bool buffer_finish(struct buffer *buffer) {
    if (buffer->drain != NULL)
        buffer_drain_all(buffer);
    return !buffer->failed;
}

// Makes room for `more` bytes, or fails the buffer.
static bool make_room(struct buffer *buffer, size_t more) {
    assert(buffer->size <= buffer->capacity && buffer->capacity <= buffer->max);
    if (buffer->failed)
        return false;
    if (buffer->capacity - buffer->size >= more)
        return true;
    if (more > buffer->max - buffer->size) {
        buffer->failed = true;
        return false;
    }
    size_t wanted = buffer->size + more;
    size_t capacity = buffer->capacity == 0 ? BUFFER_FIRST_CAPACITY : buffer->capacity;
    while (capacity < wanted)
        capacity = capacity > buffer->max / 2 ? buffer->max : capacity * 2;
    if (capacity > buffer->max)
        capacity = buffer->max;
    buffer->data = memory_resize(buffer->data, capacity);
    buffer->capacity = capacity;
    return true;
}

void buffer_reserve(struct buffer *buffer, size_t more) {
    size_t left = buffer->max - buffer->size;
    (void)make_room(buffer, more < left ? more : left);
}

void buffer_append(struct buffer *buffer, struct slice bytes) {
    if (bytes.size == 0)
        return;
    assert(bytes.data != NULL);
    if (buffer->drain != NULL && bytes.size > buffer->max - buffer->size) {
        buffer_drain_all(buffer);
        if (bytes.size > buffer->max) {
            if (!buffer->failed && !buffer->drain(buffer->drain_context, bytes))
                buffer->failed = true;
            return;
        }
    }
    if (!make_room(buffer, bytes.size))
        return;
    memcpy(buffer->data + buffer->size, bytes.data, bytes.size);
    buffer->size += bytes.size;
}

void buffer_append_text(struct buffer *buffer, const char *text) {
    buffer_append(buffer, slice_of(text));
}

void buffer_append_char(struct buffer *buffer, char c) {
    buffer_append(buffer, (struct slice){&c, 1});
}

void buffer_append_uint(struct buffer *buffer, uint64_t value) {
    char digits[20];
    char *end = digits + sizeof digits;
    char *begin = end;
    do {
        *--begin = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    buffer_append(buffer, (struct slice){begin, (size_t)(end - begin)});
}

void buffer_append_int(struct buffer *buffer, int64_t value) {
    if (value < 0)
        buffer_append_char(buffer, '-');
    buffer_append_uint(buffer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void buffer_append_int128(struct buffer *buffer, __int128 value) {
    char digits[NUMBER_TEXT_MAX];
    buffer_append(buffer, number_text(value, digits));
}

void buffer_append_format(struct buffer *buffer, const char *format, ...) {
    assert(format != NULL);
    char small[512];
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    assert(length >= 0);
    if ((size_t)length < sizeof small) {
        buffer_append(buffer, (struct slice){small, (size_t)length});
    } else {
        char *large = memory_take((size_t)length + 1);
        vsnprintf(large, (size_t)length + 1, format, again);
        buffer_append(buffer, (struct slice){large, (size_t)length});
        memory_give(large);
    }
    va_end(again);
}
