// SPDX-License-Identifier: Apache-2.0
// Writes the bytes of a .wandb file.
//
// A head of 7 bytes, then blocks of 32 KiB counted from the start of the file, head included. In
// them chunks: CRC-32 (zlib's, of type and payload), length, type (whole, first, middle, last),
// payload; less than a chunk's head at the end of a block is zeros. A payload is one protobuf
// message. Source: LevelDB's log format, with the checksum and head of wandb 0.31.0.
#include "exporters/wandb/offline/parts.h"

#include "base/text/utf8.h"

#include <zlib.h>

enum chunk_type { CHUNK_WHOLE = 1, CHUNK_FIRST, CHUNK_MIDDLE, CHUNK_LAST };
enum { WIRE_VARINT = 0, WIRE_BYTES = 2, VARINT_MAX = 10 };

static void append_chunk(struct buffer *out, enum chunk_type type, struct slice part) {
    assert(part.size <= OFFLINE_BLOCK - OFFLINE_CHUNK_HEAD);
    unsigned char head[OFFLINE_CHUNK_HEAD];
    head[6] = (unsigned char)type;
    uLong crc = crc32(crc32(0, NULL, 0), head + 6, 1);
    if (part.size > 0)
        crc = crc32(crc, (const Bytef *)part.data, (uInt)part.size);
    for (int i = 0; i < 4; i++)
        head[i] = (unsigned char)(crc >> (8 * i));
    head[4] = (unsigned char)part.size;
    head[5] = (unsigned char)(part.size >> 8);
    buffer_append(out, (struct slice){(const char *)head, sizeof head});
    if (part.size > 0)
        buffer_append(out, part);
}

void offline_log_append(struct buffer *out, uint64_t length, struct slice payload) {
    static const char head[OFFLINE_FILE_HEAD] = {':', 'W', '&', 'B', '\xe1', '\xbe', 0};
    static const char zeros[OFFLINE_CHUNK_HEAD];
    if (length == 0) {
        buffer_append(out, (struct slice){head, sizeof head});
        length += sizeof head;
    }
    bool first = true;
    do {
        size_t room = OFFLINE_BLOCK - (size_t)(length % OFFLINE_BLOCK);
        if (room < OFFLINE_CHUNK_HEAD) {
            buffer_append(out, (struct slice){zeros, room});
            length += room;
            room = OFFLINE_BLOCK;
        }
        room -= OFFLINE_CHUNK_HEAD;
        struct slice part = {payload.data, payload.size < room ? payload.size : room};
        bool last = part.size == payload.size;
        append_chunk(out,
                     first  ? last ? CHUNK_WHOLE : CHUNK_FIRST
                     : last ? CHUNK_LAST
                            : CHUNK_MIDDLE,
                     part);
        length += OFFLINE_CHUNK_HEAD + part.size;
        payload.data += part.size;
        payload.size -= part.size;
        if (last)
            return;
        first = false;
    } while (!out->failed);
}

// -- protobuf -------------------------------------------------------------------------------------

static size_t varint_encode(uint64_t value, char out[VARINT_MAX]) {
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        out[size++] = (char)(value | 0x80);
    out[size++] = (char)value;
    assert(size <= VARINT_MAX);
    return size;
}

static void append_varint(struct buffer *out, uint64_t value) {
    char bytes[VARINT_MAX];
    size_t size = varint_encode(value, bytes);
    buffer_append(out, (struct slice){bytes, size});
}

static void append_tag(struct buffer *out, uint32_t field, uint32_t wire) {
    append_varint(out, (uint64_t)field << 3 | wire);
}

size_t proto_open(struct buffer *out, uint32_t field) {
    assert(field > 0);
    append_tag(out, field, WIRE_BYTES);
    buffer_append_char(out, 0); // the length, unless it needs more room
    return out->size;
}

void proto_close(struct buffer *out, size_t opened) {
    assert(out->failed || opened <= out->size);
    if (out->failed)
        return;
    char bytes[VARINT_MAX];
    size_t content = out->size - opened;
    size_t size = varint_encode(content, bytes);
    buffer_append(out, (struct slice){bytes, size - 1}); // room for what moves
    if (out->failed)
        return;
    memmove(out->data + opened - 1 + size, out->data + opened, content);
    memcpy(out->data + opened - 1, bytes, size);
}

void proto_int(struct buffer *out, uint32_t field, int64_t value) {
    assert(field > 0);
    if (value == 0)
        return;
    append_tag(out, field, WIRE_VARINT);
    append_varint(out, (uint64_t)value);
}

void proto_text(struct buffer *out, uint32_t field, struct slice text) {
    if (text.size == 0)
        return;
    size_t opened = proto_open(out, field);
    size_t done = 0; // up to here it is in `out`
    for (size_t at = 0; at < text.size;) {
        uint32_t point;
        size_t length = utf8_decode(text, at, &point);
        if (length > 0 && (point < 0xd800 || point > 0xdfff)) {
            at += length;
            continue;
        }
        buffer_append(out, (struct slice){text.data + done, at - done});
        buffer_append_text(out, "\xef\xbf\xbd");
        at += length > 0 ? length : 1;
        done = at;
    }
    buffer_append(out, (struct slice){text.data + done, text.size - done});
    proto_close(out, opened);
}
