// SPDX-License-Identifier: Apache-2.0
// Cuts bytes into lines and hands each to the feed; refused ones also to the quarantine.
//
// Lines end at \n only; a \r before it is taken off. Blank lines are counted. A line beyond the
// bound is refused once and skipped up to its end. Slices that were handed over point into the
// caller's bytes: feed_flush before they move.
#pragma once

#include "pipeline/component/feed.h"
#include "receivers/records/quarantine.h"

// Where the records of one receiver go.
struct record_sink {
    struct feed *feed;
    struct quarantine *quarantine;
    size_t record_max;
    struct decode_fault fault; // of the record at hand
};

// How far one source has been cut.
struct record_stream {
    struct source *source;
    uint64_t position; // lines or items so far
    bool skipping;     // in the rest of a line that was too long
    // Live: where positions are told (feed.h), and what they are made of. NULL: they are not.
    struct source *place;
    struct source_position at; // the file's own details are kept there (file_place.h)
    uint64_t generation;       // how often the file began anew
    uint64_t offset;           // in the file, of the bytes that are handed over
};

enum last_line {
    LAST_LINE_NONE, // nothing, or only white space, was left
    LAST_LINE_USED,
    LAST_LINE_TORN, // broke off: was dropped, and `torn` set in the source's figures
};

// Takes the whole lines of `bytes`; returns how many bytes they are.
size_t records_take_lines(struct record_sink *sink, struct record_stream *stream,
                          struct slice bytes);
// `rest` is the beginning of a line whose end has not come. True when it is already too long: it
// was refused, and may be dropped.
bool records_drop_long(struct record_sink *sink, struct record_stream *stream, struct slice rest);
// The input has ended and left `rest` without a newline: it is used when it is a whole JSON object
// (`only_decodable`: and would be accepted), else dropped and noted.
enum last_line records_take_last(struct record_sink *sink, struct record_stream *stream,
                                 struct slice rest, bool only_decodable);
// One record of a document.
void records_take_item(struct record_sink *sink, struct record_stream *stream, struct slice record,
                       uint64_t position);
// Refuses what never gets to the decoder; `start` is what there is of it.
void records_refuse_long(struct record_sink *sink, struct record_stream *stream, struct slice start,
                         uint64_t position);
void records_refuse_empty(struct record_sink *sink, struct record_stream *stream,
                          uint64_t position);
