// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/record_frame.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

static const uint32_t NO_KEY = UINT32_MAX;

// What of a frame stands together before it is appended: all but the value, with usual headers.
enum { TOGETHER_BYTES = 1024 };

struct frame_writer {
    struct buffer *out;
    size_t size;
    char bytes[TOGETHER_BYTES];
};

static void write_out(struct frame_writer *writer) {
    buffer_append(writer->out, (struct slice){writer->bytes, writer->size});
    writer->size = 0;
}

static void put_bytes(struct frame_writer *writer, struct slice bytes) {
    assert(writer->size <= TOGETHER_BYTES);
    if (bytes.size > TOGETHER_BYTES - writer->size)
        write_out(writer);
    if (bytes.size > TOGETHER_BYTES) {
        buffer_append(writer->out, bytes);
    } else if (bytes.size > 0) {
        memcpy(writer->bytes + writer->size, bytes.data, bytes.size);
        writer->size += bytes.size;
    }
}

static void put_number(struct frame_writer *writer, uint64_t value, unsigned size) {
    value = htole64(value);
    put_bytes(writer, (struct slice){(const char *)&value, size});
}

static void put(struct frame_writer *writer, struct slice bytes) {
    assert(bytes.size < RECORD_FRAME_MAX);
    put_number(writer, bytes.size, 4);
    put_bytes(writer, bytes);
}

void record_frame_add(struct record_frame *frame, const char *name, struct slice value) {
    assert(frame->header_count < RECORD_HEADERS_MAX);
    frame->headers[frame->header_count++] = (struct record_header){slice_of(name), value};
}

void record_frame_write(const struct record_frame *frame, struct buffer *out) {
    assert(frame->sequence > 0 && frame->header_count <= RECORD_HEADERS_MAX);
    size_t size = 8 + 4 * 3 + frame->key.size + frame->value.size;
    for (uint32_t i = 0; i < frame->header_count; i++)
        size += 4 * 2 + frame->headers[i].name.size + frame->headers[i].value.size;
    struct frame_writer writer;
    writer.out = out;
    writer.size = 0;
    put_number(&writer, size, 4);
    put_number(&writer, frame->sequence, 8);
    if (frame->key.data == NULL)
        put_number(&writer, NO_KEY, 4);
    else
        put(&writer, frame->key);
    put_number(&writer, frame->header_count, 4);
    for (uint32_t i = 0; i < frame->header_count; i++) {
        put(&writer, frame->headers[i].name);
        put(&writer, frame->headers[i].value);
    }
    assert(frame->value.size < RECORD_FRAME_MAX);
    put_number(&writer, frame->value.size, 4);
    write_out(&writer);
    buffer_append(out, frame->value);
}

static bool take_number(struct slice *bytes, unsigned size, uint64_t *value) {
    if (bytes->size < size)
        return false;
    *value = 0;
    memcpy(value, bytes->data, size);
    *value = le64toh(*value);
    bytes->data += size;
    bytes->size -= size;
    return true;
}

static bool take(struct slice *bytes, struct slice *out) {
    uint64_t size;
    if (!take_number(bytes, 4, &size) || size > bytes->size)
        return false;
    *out = (struct slice){bytes->data, (size_t)size};
    bytes->data += size;
    bytes->size -= (size_t)size;
    return true;
}

static bool take_key(struct slice *bytes, struct slice *key) {
    struct slice after = *bytes;
    uint64_t size;
    if (!take_number(&after, 4, &size) || size != NO_KEY)
        return take(bytes, key);
    *key = (struct slice){NULL, 0};
    *bytes = after;
    return true;
}

bool record_frame_skip(struct slice *bytes) {
    struct slice left = *bytes, body;
    if (!take(&left, &body))
        return false;
    *bytes = left;
    return true;
}

bool record_frame_read(struct slice *bytes, struct record_frame *frame) {
    struct slice left = *bytes, rest;
    uint64_t header_count;
    if (!take(&left, &rest) || !take_number(&rest, 8, &frame->sequence) || frame->sequence == 0 ||
        !take_key(&rest, &frame->key) || !take_number(&rest, 4, &header_count) ||
        header_count > RECORD_HEADERS_MAX)
        return false;
    frame->header_count = (uint32_t)header_count;
    for (uint32_t i = 0; i < frame->header_count; i++)
        if (!take(&rest, &frame->headers[i].name) || !take(&rest, &frame->headers[i].value))
            return false;
    if (!take(&rest, &frame->value) || rest.size != 0)
        return false;
    *bytes = left;
    return true;
}
