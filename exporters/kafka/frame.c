// SPDX-License-Identifier: Apache-2.0
// Records as they wait between encoding and sending.
//
// A frame is its size, its number, key, headers and value, each with its length. Numbers are in
// the machine's order: blocks are read by the process that wrote them, or by one that loaded them
// from the store of the same machine.
#include "exporters/kafka/exporter.h"

#include <assert.h>

static void put_size(struct buffer *out, size_t size) {
    uint32_t number = (uint32_t)size;
    buffer_append(out, (struct slice){(const char *)&number, sizeof number});
}

static void put(struct buffer *out, struct slice bytes) {
    put_size(out, bytes.size);
    if (bytes.size > 0)
        buffer_append(out, bytes);
}

enum { NO_KEY = -1 };

void kafka_frame_write(const struct kafka_frame *frame, struct buffer *out) {
    assert(frame->sequence > 0 && frame->header_count <= KAFKA_HEADERS_MAX);
    size_t size = sizeof(uint64_t) + sizeof(uint32_t) * 3 + frame->key.size + frame->value.size;
    for (uint32_t i = 0; i < frame->header_count; i++)
        size += sizeof(uint32_t) * 2 + frame->headers[i].name.size + frame->headers[i].value.size;
    put_size(out, size);
    buffer_append(out, (struct slice){(const char *)&frame->sequence, sizeof frame->sequence});
    if (frame->key.data == NULL)
        put_size(out, (uint32_t)NO_KEY);
    else
        put(out, frame->key);
    put_size(out, frame->header_count);
    for (uint32_t i = 0; i < frame->header_count; i++) {
        put(out, frame->headers[i].name);
        put(out, frame->headers[i].value);
    }
    put(out, frame->value);
}

static bool take(struct slice *bytes, void *out, size_t size) {
    if (bytes->size < size)
        return false;
    memcpy(out, bytes->data, size);
    bytes->data += size;
    bytes->size -= size;
    return true;
}

static bool take_slice(struct slice *bytes, struct slice *out) {
    uint32_t size;
    if (!take(bytes, &size, sizeof size))
        return false;
    if (size == (uint32_t)NO_KEY) {
        *out = (struct slice){NULL, 0};
        return true;
    }
    if (size > bytes->size)
        return false;
    *out = (struct slice){bytes->data, size};
    bytes->data += size;
    bytes->size -= size;
    return true;
}

bool kafka_frame_skip(struct slice *bytes) {
    struct slice body;
    return take_slice(bytes, &body) && body.data != NULL;
}

bool kafka_frame_read(struct slice *bytes, struct kafka_frame *frame) {
    struct slice left = *bytes, rest;
    if (!take_slice(&left, &rest) || rest.data == NULL ||
        !take(&rest, &frame->sequence, sizeof frame->sequence) || !take_slice(&rest, &frame->key) ||
        !take(&rest, &frame->header_count, sizeof frame->header_count) ||
        frame->header_count > KAFKA_HEADERS_MAX)
        return false;
    for (uint32_t i = 0; i < frame->header_count; i++)
        if (!take_slice(&rest, &frame->headers[i].name) ||
            !take_slice(&rest, &frame->headers[i].value))
            return false;
    if (!take_slice(&rest, &frame->value) || rest.size != 0)
        return false;
    *bytes = left;
    return true;
}
