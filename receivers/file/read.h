// SPDX-License-Identifier: Apache-2.0
// Reads one input from its beginning to its end: tells its format, cuts it into records, offers
// each, says what is wrong with the input as a whole.
#pragma once

#include "receivers/decode/format.h"
#include "receivers/file/ahead.h"
#include "receivers/file/input.h"
#include "receivers/file/records.h"

#include <assert.h>

enum { FILE_BLOCK = 256 << 10 }; // bytes of one read

// Bytes of an input that are not used yet. Keeps its memory.
struct file_window {
    char *data;
    size_t capacity;
    size_t start;
    size_t end;
};

static inline struct slice window_rest(const struct file_window *window) {
    assert(window->start <= window->end && window->end <= window->capacity);
    return (struct slice){window->data + window->start, window->end - window->start};
}
// Room for at least `size` bytes at the end, by moving the rest to the front and growing.
void window_reserve(struct file_window *window, size_t size);

// What the inputs of one receiver share.
struct file_reader {
    struct record_sink sink;
    struct file_window window;
    struct file_window own; // its memory while it shows memory of `ahead`
    bool is_lent;           // … as it does now
    struct file_input input;
    struct extent passed;    // of the input at hand: what stands before what its format was told by
    const char *packing;     // of the input at hand (format_packing)
    enum format_kind forced; // by the option; FORMAT_UNKNOWN: it is found out
    size_t document_max;     // of an input that is one record
    bool to_the_end;         // a stop does not cut an input short
    // A log or dump that does not say whose it is waits until all others have named their nodes: it
    // is of the nearest folder in its path that has the name of one.
    bool may_wait;  // file_read_path leaves such files
    bool by_folder; // all others have been read
    // Kernel logs whose times say no zone wait, too (zone.h).
    char **local_paths;
    uint32_t local_count, local_capacity;
    const struct time_zone *zone; // of these, once it is settled; NULL: UTC
    // The newest time with a year that stands in any input so far: dates that say none wait for it.
    // 0: none.
    uint64_t near_ns;
    // Reads long inputs of lines; NULL: one thread does all.
    struct ahead *ahead;
    struct ahead_file given;         // what was read ahead of the input at hand
    string_id ids[INTERN_LATER_MAX]; // of its new names
    uint64_t done_bytes;             // of the inputs before this one, for progress
    uint64_t total_bytes;            // 0: no progress is told
};

// Where in an input to begin: nothing before it is offered, positions go on counting.
struct read_start {
    uint64_t bytes; // of lines, after decompression
    uint64_t lines; // in those bytes
    uint64_t items; // of a document
};

// Reads a file, or "-" for standard input. What cannot be read is noted and no failure: the other
// inputs go on. False: it waits (may_wait), and nothing of it has been read.
bool file_read_path(struct file_reader *reader, struct slice path);
// The same of what reader->input has open, as `source`.
// `stream` says which; its position is that of the last record afterwards. False: as above.
bool file_read_open(struct file_reader *reader, struct record_stream *stream,
                    struct read_start start);
// Passes what is no text in front of the window: zeros, and the mark of UTF-8.
// A dump is left as it is.
void file_pass_filling(struct file_reader *reader, enum format_kind forced);
void file_reader_release(struct file_reader *reader);
// Nothing has been read of the inputs that come.
void file_reader_begin(struct file_reader *reader);

// The same of what was handed over, too.
uint64_t file_near_ns(struct file_reader *reader);
// By which lines of the source are found, where it is a log; NULL: it is none.
const struct forms *file_forms(const struct file_reader *reader, struct source *source);
// The nearest folder of the path that has the name of a node; empty: none.
struct slice file_node_folder(struct feed *feed, struct slice path);
// When the file was written last, or now when that is not known.
uint64_t file_written_ns(int descriptor);

// The format that the option names, or that a file of this name has beyond doubt; else
// FORMAT_UNKNOWN.
enum format_kind file_forced_format(const struct file_reader *reader, struct slice path);
// Sets the source's decoder, or notes why the input is not read and returns false.
// `descriptor`: the file, for its age and its end; -1: not known.
bool file_accept_format(struct file_reader *reader, struct source *source,
                        struct format_guess guess, int descriptor);
