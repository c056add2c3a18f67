// SPDX-License-Identifier: Apache-2.0
// Cuts lines and hands them to the feed: one memchr a line, nothing else on the fast path, and no
// memory: lines are handed over where they stand.
#include "receivers/file/records.h"

#include "base/memory.h"
#include "base/text/cut.h"
#include "receivers/decode/json/keys.h"
#include "receivers/decode/telemetry/telemetry.h"
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

// -- lines that are events already --------------------------------------------------------------

bool records_are_telemetry(const struct source *source) {
    const struct decoder_type *decoder = feed_source_decoder(source);
    return decoder == &decoder_stormlog || decoder->plain == &decoder_stormlog;
}

// Gives the names of the next event their ids. False: one of them was refused, and the line is to
// be decoded to say so.
static bool settle_names(struct foreseen_lines *foreseen) {
    const struct intern_later *later = foreseen->later;
    struct event *event = foreseen->next;
    assert(event->position <= later->count && later->count <= INTERN_LATER_MAX);
    for (; foreseen->named < event->position; foreseen->named++)
        foreseen->ids[foreseen->named] = intern(later->names[foreseen->named]);
    return telemetry_settle_names(event, foreseen->ids);
}

// Behind the line end at `end`, which is in the bytes up to `limit`; NULL: it is not.
static const char *behind_line(const char *end, const char *limit) {
    end += end < limit && *end == '\r';
    return end < limit ? end + 1 : NULL;
}

// Whether the next event is of the line at `at`; those of lines before it are passed over.
static bool begins_foreseen(struct foreseen_lines *foreseen, const char *at) {
    while (foreseen->next < foreseen->end && foreseen->next->raw.data < at)
        foreseen->next++;
    return foreseen->next < foreseen->end && foreseen->next->raw.data == at;
}

// Offers the lines from `at` on that are events already and follow one another, up to one with a
// name that is new; returns what is behind them. Of their bytes only some ends are looked at.
static const char *take_foreseen(struct record_sink *sink, struct record_stream *stream,
                                 const char *at, const char *limit) {
    struct foreseen_lines *foreseen = &stream->foreseen;
    const struct event *first = foreseen->next;
    const char *from = at;
    while (foreseen->next < foreseen->end && foreseen->next->raw.data == at) {
        const struct event *event = foreseen->next;
        const char *end = event->raw.data + event->raw.size;
        bool one_byte = event + 1 < foreseen->end && event[1].raw.data == end + 1;
        const char *behind = one_byte && end < limit ? end + 1 : behind_line(end, limit);
        bool is_new = foreseen->later != NULL && event->position > foreseen->named;
        if (behind == NULL || (is_new && event > first) ||
            (foreseen->later != NULL && !settle_names(foreseen)))
            break;
        foreseen->next++;
        at = behind;
    }
    uint32_t count = (uint32_t)(foreseen->next - first);
    if (count == 0)
        return from;
    if (!feed_offer_foreseen(sink->feed, stream->source, first, count, stream->done.records + 1)) {
        foreseen->next = foreseen->end;
        return from;
    }
    stream->done.records += count;
    return at;
}

// The same of one line, whose position was told.
static bool take_foreseen_line(struct record_sink *sink, struct record_stream *stream,
                               const char *at) {
    struct foreseen_lines *foreseen = &stream->foreseen;
    assert(foreseen->later == NULL);
    return begins_foreseen(foreseen, at) &&
           feed_offer_foreseen(sink->feed, stream->source, foreseen->next++, 1,
                               stream->done.records);
}

// `end`: where the line ends, in the bytes that were handed over.
static void take_line(struct record_sink *sink, struct record_stream *stream, struct slice line,
                      size_t end) {
    uint64_t position = ++stream->done.records;
    assert(!stream->skipping);
    stream_reach(stream, position, stream->done.offset + end);
    if (stream->place != NULL && take_foreseen_line(sink, stream, line.data))
        return;
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
    (void)record_sink_offer(sink, stream->source, line, position);
}

// Offers the first line of the bytes from `at` on; returns what is behind it, NULL when it is not
// whole.
static const char *take_first(struct record_sink *sink, struct record_stream *stream,
                              struct slice bytes, const char *at) {
    const char *end = bytes.data + bytes.size;
    const char *newline = at == end ? NULL : memchr(at, '\n', (size_t)(end - at));
    if (newline == NULL)
        return NULL;
    if (stream->skipping)
        stream->skipping = false;
    else
        take_line(sink, stream, (struct slice){at, (size_t)(newline - at)},
                  (size_t)(newline + 1 - bytes.data));
    return newline + 1;
}

// Passes over the lines from `at` on that need not be offered; returns what is behind them.
static const char *pass_lines(struct record_sink *sink, struct record_stream *stream,
                              struct slice bytes, const char *at) {
    enum { NOT_NOW = 64 };
    struct line_run runs[LINE_RUNS];
    struct slice rest = {at, bytes.size - (size_t)(at - bytes.data)};
    if (!feed_pass_lines(sink->feed, stream->source, rest, &stream->found, runs)) {
        stream->to_offer = NOT_NOW;
        return at;
    }
    for (int i = 0; i < LINE_RUNS; i++) {
        // Between two runs all lines are whole.
        for (; runs[i].lines > 0 && stream->to_offer > 0; stream->to_offer--)
            at = take_first(sink, stream, bytes, at);
        at += runs[i].bytes;
        stream->done.records += runs[i].lines;
        if (runs[i].lines > 0)
            stream_reach(stream, stream->done.records,
                         stream->done.offset + (uint64_t)(at - bytes.data));
        stream->to_offer += runs[i].offered;
    }
    return at;
}

// A bar that overwrites itself ends no line, however long it runs: where it grows longer than a
// line may be, it is cut behind one of its states, and what was cut off counts as a line. Returns
// what is behind that.
static const char *cut_written(struct record_sink *sink, struct record_stream *stream,
                               struct slice bytes, const char *at) {
    size_t left = bytes.size - (size_t)(at - bytes.data);
    if (stream->skipping || left <= sink->record_max ||
        feed_source_decoder(stream->source)->pass_over == NULL)
        return at;
    const char *end = memrchr(at, '\r', sink->record_max);
    if (end == NULL)
        return at;
    take_line(sink, stream, (struct slice){at, (size_t)(end - at)}, (size_t)(end + 1 - bytes.data));
    return end + 1;
}

size_t records_take_written(struct record_sink *sink, struct record_stream *stream,
                            struct slice rest) {
    if (stream->skipping || rest.size > sink->record_max ||
        feed_source_decoder(stream->source)->pass_over == NULL)
        return 0;
    const char *end = memrchr(rest.data, '\r', rest.size);
    if (end == NULL || end == rest.data)
        return 0;
    size_t size = (size_t)(end - rest.data);
    take_line(sink, stream, (struct slice){rest.data, size}, size + 1);
    return size + 1;
}

// Behind what is no text: zeros before a line, which a log that was cut leaves where its writer
// goes on (copytruncate), or a machine that lost its power; and the mark of UTF-8.
static const char *behind_filling(const struct record_stream *stream, struct slice bytes,
                                  const char *at) {
    const char *end = bytes.data + bytes.size;
    if (stream->skipping || at == end)
        return at;
    if (*at == '\0')
        at += text_filling((struct slice){at, (size_t)(end - at)});
    else if (*at == '\xef' && at == bytes.data && stream->done.offset == 0)
        at += text_mark(bytes);
    return at;
}

size_t records_take_lines(struct record_sink *sink, struct record_stream *stream,
                          struct slice bytes) {
    const char *at = bytes.data;
    const char *end = bytes.data + bytes.size;
    for (;;) {
        at = behind_filling(stream, bytes, at);
        if (!stream->skipping && stream->place == NULL && begins_foreseen(&stream->foreseen, at)) {
            const char *behind = take_foreseen(sink, stream, at, end);
            if (behind > at) {
                at = behind;
                continue;
            }
        }
        if (stream->to_offer == 0 && !stream->skipping && at < end)
            at = pass_lines(sink, stream, bytes, at);
        const char *behind = take_first(sink, stream, bytes, at);
        if (behind == NULL) {
            behind = cut_written(sink, stream, bytes, at);
            if (behind == at)
                break;
        }
        at = behind;
        stream->to_offer -= stream->to_offer > 0;
    }
    return (size_t)(at - bytes.data);
}

bool records_drop_long(struct record_sink *sink, struct record_stream *stream, struct slice rest) {
    if (stream->skipping)
        return true;
    // One more than the bound may be the \r of a line that just fits.
    if (rest.size <= sink->record_max + 1)
        return false;
    // A line that broke off before a hole is over: what stands behind that is another.
    const char *hole = memchr(rest.data, '\0', rest.size);
    if (hole != NULL &&
        hole + text_filling(text_from(rest, (size_t)(hole - rest.data))) == rest.data + rest.size) {
        take_line(sink, stream, (struct slice){rest.data, (size_t)(hole - rest.data)}, rest.size);
        return true;
    }
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
