// SPDX-License-Identifier: Apache-2.0
// Puts positions together and takes them apart. Cost: a copy of some words a record.
#include "receivers/file/stream.h"

#include <assert.h>

enum { DETAIL_OFFSET, DETAIL_INODE, DETAIL_HEAD, DETAIL_TAIL, DETAIL_SIZES, GENERATION_SHIFT = 40 };

static const uint64_t RECORDS_MASK = (UINT64_C(1) << GENERATION_SHIFT) - 1;

_Static_assert(FINGERPRINT_MAX <= 0xffff, "its size has 16 bits of a detail");

struct fingerprint fingerprint_of(struct slice bytes) {
    if (bytes.size > FINGERPRINT_MAX) {
        bytes.data += bytes.size - FINGERPRINT_MAX;
        bytes.size = FINGERPRINT_MAX;
    }
    return (struct fingerprint){hash_slice(bytes), (uint32_t)bytes.size};
}

bool fingerprint_fits(struct fingerprint print, const char *bytes) {
    return print.size == 0 || hash_slice((struct slice){bytes, print.size}) == print.hash;
}

void extent_mark(struct extent *extent, uint64_t offset, struct slice bytes) {
    for (uint32_t i = 0; i < MARK_COUNT && mark_at(i) <= offset + bytes.size; i++) {
        uint64_t from = mark_at(i) - mark_size(i);
        if (from >= offset && extent->marks[i] == 0)
            extent->marks[i] =
                hash_slice((struct slice){bytes.data + (from - offset), mark_size(i)});
    }
}

struct position position_read(const struct source_position *at) {
    uint64_t sizes = at->detail[DETAIL_SIZES];
    struct position position = {
        .done = {.offset = at->detail[DETAIL_OFFSET],
                 .records = at->number & RECORDS_MASK,
                 .head = {at->detail[DETAIL_HEAD], (uint32_t)(sizes & 0xffff)},
                 .tail = {at->detail[DETAIL_TAIL], (uint32_t)(sizes >> 16 & 0xffff)}},
        .generation = at->number >> GENERATION_SHIFT,
        .inode = at->detail[DETAIL_INODE],
        .kind = (enum position_kind)(sizes >> 32 & 0xff),
    };
    position.items_hash = position.kind == POSITION_DOCUMENT ? position.done.tail.hash : 0;
    position.file_bytes = position.kind == POSITION_DONE ? position.done.tail.hash : 0;
    return position;
}

void stream_begin(struct record_stream *stream, struct source *place,
                  const struct source_position *at, uint64_t inode) {
    assert(place != NULL);
    stream->place = place;
    stream->at = *at;
    stream->at.detail[DETAIL_INODE] = inode;
}

void stream_describe(struct record_stream *stream, enum position_kind kind, bool with_tail) {
    uint64_t *detail = stream->at.detail;
    const struct extent *done = &stream->done;
    assert(done->head.size <= FINGERPRINT_MAX && done->tail.size <= FINGERPRINT_MAX);
    detail[DETAIL_HEAD] = done->head.hash;
    if (kind != POSITION_DOCUMENT)
        detail[DETAIL_TAIL] = with_tail ? done->tail.hash : 0;
    detail[DETAIL_SIZES] =
        (uint64_t)kind << 32 | (uint64_t)(with_tail ? done->tail.size : 0) << 16 | done->head.size;
}

void stream_begin_document(struct record_stream *stream, bool written_anew) {
    stream->generation += written_anew;
    stream_describe(stream, POSITION_DOCUMENT, false);
    stream->at.detail[DETAIL_TAIL] = HASH_START;
}

void stream_tell(struct record_stream *stream, uint64_t offset) {
    assert(stream->place != NULL);
    stream->at.detail[DETAIL_OFFSET] = offset;
    feed_source_reached(stream->place, &stream->at);
}

void stream_reach(struct record_stream *stream, uint64_t records, uint64_t offset) {
    assert(records <= RECORDS_MASK);
    if (stream->place == NULL)
        return;
    uint64_t number = stream->generation << GENERATION_SHIFT | (records & RECORDS_MASK);
    if (number < stream->at.number)
        number = ++stream->generation << GENERATION_SHIFT | (records & RECORDS_MASK);
    stream->at.number = number;
    stream_tell(stream, offset);
}

void stream_reach_done(struct record_stream *stream, uint64_t file_bytes) {
    stream_describe(stream, POSITION_DONE, false);
    stream->at.detail[DETAIL_TAIL] = file_bytes;
    stream_reach(stream, stream->done.records, stream->done.offset);
}

void stream_reach_item(struct record_stream *stream, uint64_t item, struct slice record) {
    uint64_t *hash = &stream->at.detail[DETAIL_TAIL];
    if (stream->place != NULL)
        *hash = hash_more(*hash, record.data, record.size);
    stream_reach(stream, item, 0);
}
