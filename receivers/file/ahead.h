// SPDX-License-Identifier: Apache-2.0
// Reads an input of lines ahead of who takes them, and decodes there what is telemetry beyond
// doubt, on threads of its own.
//
// The input is read in blocks, in order; each is decoded apart. Who takes them gets the same bytes
// in the same order as without, and with them the events that were made of whole lines. A line
// with a name that is not known yet is left to the taker, so that names get their numbers in the
// order of the input: results are the same with any number of threads. When the next block is not
// ready, the taker decodes, too. Of logs it is found, too, which lines may be of interest
// (search_ahead).
//
// Memory: two blocks a thread and two more, each with the events of its lines; kept from input to
// input. All calls but the threads' own are the taker's.
//
// Of many files those that come are opened and read in the same way: short ones as a whole, of long
// ones the first block. Where an input is one record that its decoder can parse by itself, that is
// done, too. Memory: AHEAD_WINDOW a thread, or one file, with its events.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/format.h"
#include "receivers/file/input.h"

// What is taken at once; valid until the next call.
struct ahead_block {
    char *data; // what was left of the block before, then `read` new bytes: `size` in all
    size_t size;
    size_t read;            // 0: the input is at its end, or all that was asked for was read
    uint64_t raw_done;      // file_input.raw_done behind it
    struct event *foreseen; // in the order of the lines, which are their `raw`
    uint32_t foreseen_count;
    struct found_lines found; // of a log, in the lines behind the first; count 0: not known
    enum status status;       // STATUS_OK, or why reading ended
    const struct error *error;
};

struct ahead;

// `threads`: at most, the taker's among them; at least 2. They are started with the first input.
struct ahead *ahead_new(uint32_t threads, size_t block_size);
void ahead_free(struct ahead *ahead); // NULL is fine
// From here on the input belongs to the threads, until ahead_end; of its bytes about the next
// `bytes` are read. `forms`: it is a log, of which lines are found by these, that live until
// ahead_end; NULL: it is none. Events of the blocks before must be handed over. False: no thread
// could be started, and nothing has happened.
bool ahead_begin(struct ahead *ahead, struct file_input *input, uint64_t bytes, size_t line_max,
                 const struct forms *forms);
// The next block. `rest`: what of the block before (at the first call: of anything) was not used.
void ahead_next(struct ahead *ahead, struct slice rest, struct ahead_block *block);
// The input is the caller's again; the block stays valid until the next ahead_begin. Bytes that
// were read and not taken are lost.
void ahead_end(struct ahead *ahead);

// -- files --------------------------------------------------------------------------------------

enum {
    AHEAD_WINDOW = 4 << 20,       // bytes of files a thread
    AHEAD_SHORT_BLOCKS = 5,       // a file of at most so many blocks is read as a whole
    AHEAD_DOCUMENT_MAX = 8 << 20, // … as is one of this size that is one record and can be parsed
};

struct ahead_path {
    struct slice path; // ends in a zero byte
    uint64_t size;     // about
};

struct ahead_file_options {
    enum format_kind forced; // FORMAT_UNKNOWN: it is found out
    size_t line_max;
    const struct forms *forms; // by which lines of logs are found; they live until ahead_files_end
    bool documents; // inputs that are one record are used at once, and not looked at first
    int stop_descriptor;
};

// What was read of a file, from its first byte; valid until the next call.
struct ahead_file {
    char *data; // NULL: nothing
    size_t size;
    struct event *foreseen; // as above
    uint32_t foreseen_count;
    // Names in them that were not known, in the order of the lines. An event's `position` says how
    // many there were up to it; they are to be interned and put in (telemetry_settle_names) before
    // it is offered. NULL: there is none.
    const struct intern_later *later;
    struct found_lines found; // as above, from the first line on
    // What `parser` made of all bytes (decoder_type.parse); NULL: nothing.
    const struct decoder_type *parser;
    void *parsed;
};

// These files come, in this order; `paths` lives until ahead_files_end or the next call. Nothing
// happens when no thread could be started.
void ahead_files_begin(struct ahead *ahead, const struct ahead_path *paths, uint32_t count,
                       struct ahead_file_options options);
// The file that comes, if it is the one of this path and somebody has begun with it: `input`, which
// has nothing open, is exchanged for one that stands behind the bytes. False: it is the caller's to
// open, as it is when it could not be opened.
bool ahead_file_take(struct ahead *ahead, struct slice path, struct file_input *input,
                     struct ahead_file *file);
// What was taken is not used any more.
void ahead_file_done(struct ahead *ahead);
void ahead_files_end(struct ahead *ahead);
