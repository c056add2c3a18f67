// SPDX-License-Identifier: Apache-2.0
// A receiver's way into the pipelines: bytes with a position go in, decoded events come out.
//
// A feed belongs to one receiver and is used by one thread at a time. It decodes each record into
// its batch; feed_flush hands the batch to every pipeline that lists the receiver and returns when
// all have consumed it. That is the backpressure: a slow pipeline holds up its receivers and nobody
// else. Slices in events point into the receiver's own bytes: flush before they move or change.
#pragma once

#include "base/status.h"
#include "pipeline/decoder.h"

#include <stdbool.h>

struct feed;
struct source;

// The finite inputs of a receiver, as it found them.
struct source_list {
    struct arena arena;
    struct slice *paths;
    uint32_t count;
    uint32_t capacity;
};
void source_list_add(struct source_list *list, struct slice path);

// What became of one input, for the closing words of analyze and for logs.
struct source_figures {
    uint64_t bytes;     // read, after decompression
    uint64_t accepted;  // events
    uint64_t refused;   // records
    uint64_t blank;     // lines with nothing on them
    bool torn;          // its last line broke off and was dropped
    bool unread;        // left out as a whole: not known, or not readable; a note says why
    const char *format; // "stormlog", or NULL when nothing was recognised
};

// Opens (or finds again, by path) a source of this feed. `decoder` says what its records are and
// may be NULL until feed_source_format. The source lives as long as the feed.
struct source *feed_source(struct feed *feed, struct slice path);
// Sets the decoder and gives it fresh memory; once a source, before its first record.
void feed_source_format(struct source *source, const struct decoder_type *decoder);
const struct decoder_type *feed_source_decoder(const struct source *source);
struct slice feed_source_path(const struct source *source);
struct source_figures *feed_source_figures(struct source *source);

// One record: decoded and put into the batch, which is flushed by itself when it is full. On
// refusal the category is returned and `fault` filled; the feed has counted it and said it (log,
// report). `position` is the 1-based line or item in its source.
enum decode_category feed_offer(struct feed *feed, struct source *source, struct slice record,
                                uint64_t position, struct decode_fault *fault);
// A record that never got to a decoder (too long, torn): counts it and says it like a refusal.
void feed_refuse(struct feed *feed, struct source *source, uint64_t position,
                 const struct decode_fault *fault);
// A thing about the input as a whole that a person should know ("manifest.json: not read").
// Kept for the report, bounded; also logged at info level.
void feed_note(struct feed *feed, struct slice path, const char *format, ...) PRINTF_LIKE(3, 4);

// Hands over what is in the batch. Does nothing when it is empty.
void feed_flush(struct feed *feed);

// Events that name no job, or the text "none", get this one. STRING_NONE: none (the default).
void feed_stamp_job(struct feed *feed, string_id job);

// Bytes done and to do, for progress; any values, cheap.
void feed_progress(struct feed *feed, uint64_t done_bytes, uint64_t total_bytes);

// True once the receiver has been asked to stop: drain what is there already, then return.
bool feed_stopping(const struct feed *feed);
// Readable (poll) once feed_stopping is true. Never -1.
int feed_stop_descriptor(const struct feed *feed);
