// SPDX-License-Identifier: Apache-2.0
// Where does each line end, and what becomes of it?
//
// One memchr a line, nothing else on the fast path, and no memory: lines are handed over where they
// stand.
#include "receivers/file/records.h"

#include "base/memory.h"
#include "receivers/decode/json/keys.h"
#include "receivers/file/follow/place.h"

#include <ctype.h>
#include <stdio.h>

enum { LONG_RECORD_KEPT = 1024 }; // bytes of an over-long record that the quarantine gets

static void keep(struct record_sink *sink, const struct record_stream *stream, uint64_t position,
                 struct slice record) {
    quarantine_keep(sink->quarantine, sink->feed, stream->source, position, &sink->fault, record);
}

// The record at hand ends at `end` in the file; told before it is offered.
static void reach(struct record_stream *stream, uint64_t position, uint64_t end) {
    if (stream->place == NULL)
        return;
    place_reach(stream, position, end);
}

static void offer(struct record_sink *sink, struct record_stream *stream, struct slice record,
                  uint64_t position) {
    if (feed_offer(sink->feed, stream->source, record, position, &sink->fault) != DECODE_OK)
        keep(sink, stream, position, record);
}

void records_take_item(struct record_sink *sink, struct record_stream *stream, struct slice record,
                       uint64_t position) {
    if (stream->place != NULL)
        place_add_item(stream, record);
    reach(stream, position, 0);
    offer(sink, stream, record, position);
}

static void refuse(struct record_sink *sink, struct record_stream *stream, uint64_t position,
                   enum decode_category category, struct slice record) {
    sink->fault.category = category;
    sink->fault.field[0] = '\0';
    sink->fault.offset = 0;
    feed_refuse(sink->feed, stream->source, position, &sink->fault);
    keep(sink, stream, position, record);
}

void records_refuse_long(struct record_sink *sink, struct record_stream *stream, struct slice start,
                         uint64_t position) {
    snprintf(sink->fault.detail, sizeof sink->fault.detail,
             "it is longer than max_line_size (%zu bytes)", sink->record_max);
    if (start.size > LONG_RECORD_KEPT)
        start.size = LONG_RECORD_KEPT;
    refuse(sink, stream, position, DECODE_TOO_LONG, start);
}

void records_refuse_empty(struct record_sink *sink, struct record_stream *stream,
                          uint64_t position) {
    snprintf(sink->fault.detail, sizeof sink->fault.detail,
             "nothing stands where a record should be");
    refuse(sink, stream, position, DECODE_BAD_JSON, SLICE(""));
}

static bool is_blank(struct slice line) {
    for (size_t i = 0; i < line.size; i++) {
        if (!isspace((unsigned char)line.data[i]))
            return false;
    }
    return true;
}

// `end`: where the line ends, in the bytes that were handed over.
static void take_line(struct record_sink *sink, struct record_stream *stream, struct slice line,
                      size_t end) {
    uint64_t position = ++stream->position;
    reach(stream, position, stream->offset + end);
    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    if ((line.size == 0 || (unsigned char)line.data[0] <= ' ') && is_blank(line)) {
        feed_source_figures(stream->source)->blank++;
        return;
    }
    if (line.size > sink->record_max)
        records_refuse_long(sink, stream, line, position);
    else
        offer(sink, stream, line, position);
}

size_t records_take_lines(struct record_sink *sink, struct record_stream *stream,
                          struct slice bytes) {
    const char *at = bytes.data;
    const char *end = bytes.data + bytes.size;
    const char *newline;
    while (at < end && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        if (stream->skipping)
            stream->skipping = false;
        else
            take_line(sink, stream, (struct slice){at, (size_t)(newline - at)},
                      (size_t)(newline + 1 - bytes.data));
        at = newline + 1;
    }
    return (size_t)(at - bytes.data);
}

bool records_drop_long(struct record_sink *sink, struct record_stream *stream, struct slice rest) {
    if (stream->skipping)
        return true;
    // One more than the bound may be the \r of a line that just fits.
    if (rest.size <= sink->record_max + 1)
        return false;
    records_refuse_long(sink, stream, rest, ++stream->position);
    stream->skipping = true;
    return true;
}

// Whether the decoder would take the record, asked apart from the source's own memory.
static bool is_decodable(const struct record_stream *stream, struct slice record) {
    const struct decoder_type *decoder = feed_source_decoder(stream->source);
    void *state = memory_zero(1, decoder->state_size);
    struct arena arena;
    arena_init(&arena, 4096);
    struct event event;
    struct decode_fault fault;
    bool taken = decoder->decode(state, record, &arena, &event, &fault) == DECODE_OK;
    arena_release(&arena);
    memory_give(state);
    return taken;
}

enum last_line records_take_last(struct record_sink *sink, struct record_stream *stream,
                                 struct slice rest, bool only_decodable) {
    if (stream->skipping || is_blank(rest))
        return LAST_LINE_NONE;
    if (rest.size <= sink->record_max && json_is_whole_object(rest) &&
        (!only_decodable || is_decodable(stream, rest))) {
        take_line(sink, stream, rest, rest.size);
        return LAST_LINE_USED;
    }
    feed_source_figures(stream->source)->torn = true;
    feed_note(sink->feed, feed_source_path(stream->source),
              "its last line, %llu, breaks off after %zu bytes and was dropped",
              (unsigned long long)stream->position + 1, rest.size);
    return LAST_LINE_TORN;
}
