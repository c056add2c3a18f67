// SPDX-License-Identifier: Apache-2.0
// Cuts bytes into lines and hands each to the feed; refused ones also to the quarantine.
//
// Lines end at \n only; a \r before it is taken off. Blank lines are counted. A line beyond the
// bound is refused once and skipped up to its end. Slices that were handed over point into the
// caller's bytes: feed_flush before they move.
#pragma once

#include "receivers/file/stream.h"
#include "receivers/records/sink.h"

enum last_line {
    LAST_LINE_NONE, // nothing, or only white space, was left
    LAST_LINE_USED,
    LAST_LINE_TORN, // broke off: was dropped, and `torn` set in the source's figures
};

// Whether the source's records may be told by decoder_stormlog alone, so that they can be foreseen.
bool records_are_telemetry(const struct source *source);
// Takes the whole lines of `bytes`; returns how many bytes they are. Those that stream->foreseen
// has an event of are not decoded; where positions are told, each is told with its own.
size_t records_take_lines(struct record_sink *sink, struct record_stream *stream,
                          struct slice bytes);
// `rest` is the beginning of a line whose end has not come. True when it is already too long: it
// was refused, and may be dropped.
bool records_drop_long(struct record_sink *sink, struct record_stream *stream, struct slice rest);
// Takes what of the open line ends in a \r, where the decoder reads a bar's states; how many bytes.
size_t records_take_written(struct record_sink *sink, struct record_stream *stream,
                            struct slice rest);
// The input has ended and left `rest` without a newline: it is used when it is a whole JSON object
// (`only_decodable`: and would be accepted, since more may come) or, with nothing more to come, the
// line of a log; else dropped and noted.
enum last_line records_take_last(struct record_sink *sink, struct record_stream *stream,
                                 struct slice rest, bool only_decodable);
// One record of a document.
void records_take_item(struct record_sink *sink, struct record_stream *stream, struct slice record,
                       uint64_t position);
// Refuses what never gets to the decoder; `start` is what there is of it.
void records_refuse_long(struct record_sink *sink, struct record_stream *stream, struct slice start,
                         uint64_t position);
// An item of a document that is no object.
void records_refuse_item(struct record_sink *sink, struct record_stream *stream,
                         struct slice record, uint64_t position);
void records_refuse_empty(struct record_sink *sink, struct record_stream *stream,
                          uint64_t position);
