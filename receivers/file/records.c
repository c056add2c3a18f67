// SPDX-License-Identifier: Apache-2.0
// Cuts lines and hands them to the feed: one memchr a line, nothing else on the fast path, and no
// memory: lines are handed over where they stand.
#include "receivers/file/records.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "receivers/decode/json/keys.h"
#include "receivers/file/ahead.h"
#include "receivers/records/body.h"

#include <assert.h>

enum { LONG_RECORD_KEPT = 1024 }; // bytes of an over-long record that the quarantine gets

void records_take_item(struct record_sink *sink, struct record_stream *stream, struct slice record,
                       uint64_t position) {
    stream_reach_item(stream, position, record);
    (void)record_sink_offer(sink, stream->source, record, position);
}

void records_refuse_item(struct record_sink *sink, struct record_stream *stream,
                         struct slice record, uint64_t position) {
    stream_reach_item(stream, position, record);
    record_sink_fault(sink, DECODE_NOT_OBJECT, "not a JSON object");
    record_sink_refuse(sink, stream->source, record, position);
}

void records_refuse_long(struct record_sink *sink, struct record_stream *stream, struct slice start,
                         uint64_t position) {
    assert(start.data != NULL);
    if (start.size > LONG_RECORD_KEPT)
        start.size = LONG_RECORD_KEPT;
    record_sink_fault(sink, DECODE_TOO_LONG, "it is longer than max_line_size (%zu bytes)",
                      sink->record_max);
    record_sink_refuse(sink, stream->source, start, position);
}

void records_refuse_empty(struct record_sink *sink, struct record_stream *stream,
                          uint64_t position) {
    record_sink_fault(sink, DECODE_BAD_JSON, "expected a record");
    record_sink_refuse(sink, stream->source, SLICE(""), position);
}

// Gives the feed the event that the line is, if it was decoded ahead.
static inline void foresee(struct record_sink *sink, struct record_stream *stream,
                           struct slice line) {
    while (stream->foreseen < stream->foreseen_end && stream->foreseen->line.data < line.data)
        stream->foreseen++;
    if (stream->foreseen < stream->foreseen_end && stream->foreseen->line.data == line.data)
        feed_foresee_event(sink->feed, line, &stream->foreseen->event);
}

// `end`: where the line ends, in the bytes that were handed over.
static void take_line(struct record_sink *sink, struct record_stream *stream, struct slice line,
                      size_t end) {
    uint64_t position = ++stream->done.records;
    assert(!stream->skipping);
    stream_reach(stream, position, stream->done.offset + end);
    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    if ((line.size == 0 || (unsigned char)line.data[0] <= ' ') && text_is_blank(line)) {
        feed_source_figures(stream->source)->blank++;
        return;
    }
    if (line.size > sink->record_max) {
        records_refuse_long(sink, stream, line, position);
        return;
    }
    if (stream->foreseen < stream->foreseen_end)
        foresee(sink, stream, line);
    (void)record_sink_offer(sink, stream->source, line, position);
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
    records_refuse_long(sink, stream, rest, ++stream->done.records);
    stream->skipping = true;
    return true;
}

// What the decoder would say of the record, asked apart from the source's own memory.
static enum decode_category try_decode(const struct record_sink *sink,
                                       const struct record_stream *stream, struct slice record) {
    const struct decoder_type *decoder = feed_source_decoder(stream->source);
    assert(decoder != NULL);
    void *state = memory_zero(1, decoder->state_size + 1);
    struct decoder_input input = sink->known;
    input.path = feed_source_path(stream->source);
    if (decoder->begin != NULL)
        decoder->begin(state, &input);
    struct arena arena;
    arena_init(&arena, 4096);
    struct event event;
    struct decode_fault fault;
    enum decode_category category = decoder->decode(state, record, &arena, &event, &fault);
    if (decoder->release != NULL)
        decoder->release(state);
    arena_release(&arena);
    memory_give(state);
    return category;
}

// A line that is no JSON may be whole without a newline, and what is there of it may say enough:
// where the decoder knows that it breaks off, it is offered. So is an object of which a decoder
// says that it is one of its own and breaks off.
static bool is_text_to_offer(const struct record_sink *sink, const struct record_stream *stream,
                             struct slice rest) {
    if (rest.size > sink->record_max ||
        (text_trim(rest).data[0] == '{' && try_decode(sink, stream, rest) != DECODE_TRUNCATED))
        return false;
    return feed_source_cut(stream->source);
}

enum last_line records_take_last(struct record_sink *sink, struct record_stream *stream,
                                 struct slice rest, bool only_decodable) {
    if (stream->skipping)
        return LAST_LINE_NONE;
    if (text_is_blank(rest)) {
        feed_source_figures(stream->source)->blank += !only_decodable && rest.size > 0;
        return LAST_LINE_NONE;
    }
    if (rest.size <= sink->record_max && json_is_whole_object(rest) &&
        (!only_decodable || try_decode(sink, stream, rest) == DECODE_OK)) {
        take_line(sink, stream, rest, rest.size);
        return LAST_LINE_USED;
    }
    if (!only_decodable && is_text_to_offer(sink, stream, rest)) {
        take_line(sink, stream, rest, rest.size);
        return LAST_LINE_USED;
    }
    feed_source_figures(stream->source)->torn = true;
    feed_note(sink->feed, feed_source_path(stream->source),
              "its last line, %llu, breaks off after %zu bytes and was dropped",
              (unsigned long long)stream->done.records + 1, rest.size);
    return LAST_LINE_TORN;
}
