// SPDX-License-Identifier: Apache-2.0
// Reads an input of lines ahead of who takes them, and decodes there what is telemetry beyond
// doubt, on threads of its own.
//
// The input is read in blocks, in order; each is decoded apart. Who takes them gets the same bytes
// in the same order as without, and with them the events that were made of whole lines. A line
// with a name that is not known yet is left to the taker, so that names get their numbers in the
// order of the input: results are the same with any number of threads. When the next block is not
// ready, the taker decodes, too.
//
// Memory: two blocks a thread and two more, each with the events of its lines; kept from input to
// input. All calls but the threads' own are the taker's.
#pragma once

#include "base/slice.h"
#include "pipeline/model/event.h"
#include "receivers/file/input.h"

// One line, without \r and newline, and the event that it is.
struct foreseen {
    struct slice line;
    struct event event;
};

// What is taken at once; valid until the next call.
struct ahead_block {
    char *data; // what was left of the block before, then `read` new bytes: `size` in all
    size_t size;
    size_t read;                     // 0: the input is at its end
    uint64_t raw_done;               // file_input.raw_done behind it
    const struct foreseen *foreseen; // in the order of the lines
    uint32_t foreseen_count;
    enum status status; // STATUS_OK, or why reading ended
    const struct error *error;
};

struct ahead;

// `threads`: at most, the taker's among them; at least 2. They are started with the first input.
struct ahead *ahead_new(uint32_t threads, size_t block_size);
void ahead_free(struct ahead *ahead); // NULL is fine
// From here on the input belongs to the threads, until ahead_end. False: no thread could be
// started, and nothing has happened.
bool ahead_begin(struct ahead *ahead, struct file_input *input, size_t line_max);
// The next block. `rest`: what of the block before (at the first call: of anything) was not used.
void ahead_next(struct ahead *ahead, struct slice rest, struct ahead_block *block);
// The input is the caller's again; the block stays valid until the next ahead_begin. Bytes that
// were read and not taken are lost.
void ahead_end(struct ahead *ahead);
