// SPDX-License-Identifier: Apache-2.0
// Where an exporter's bytes go: standard output, a file of whole lines that grows and is rotated,
// or a file that is replaced whole.
//
// Lines: a request that fails half way is cut off the file again, so the same request can be sent
// once more without a line appearing twice or in part. A last line that a crash left without its
// newline is cut off when the file is opened. Replaced: the new content is written beside the file
// (PATH.tmp) and takes its name when it is complete; a reader sees the old or the new one whole.
// Slot: for a file that cannot be replaced, such as a mounted /dev/termination-log.
// Requests that were not taken may come again with more behind them, as a queue grows.
// Used by one thread at a time.
#pragma once

#include "pipeline/component/component.h"

enum output_mode {
    OUTPUT_LINES,    // appended to, rotated
    OUTPUT_DOCUMENT, // replaced whole by each complete document
    OUTPUT_SLOT,     // one line, written over the one before, in the same file
};

struct output_options {
    const char *path; // NULL or "-": standard output
    enum output_mode mode;
    uint64_t max_size;   // LINES: a file never grows beyond it, but for a single longer line
    int64_t max_backups; // LINES: PATH.1 (newest) to PATH.N; 0: none are kept
    bool sync;           // wait until what was sent is on the disk
    const char *site;    // for logs
};

struct output {
    struct output_options options; // its texts belong to the caller
    char *path;                    // NULL: standard output
    char *temporary;               // DOCUMENT: what is being written
    int descriptor;                // -1: none
    bool is_stream;                // standard output, a pipe or a device: bytes just go out
    bool broken;                   // a stream that failed once stays failed
    bool cut_pending;              // cutting back failed: to be done before anything is written
    uint64_t size;                 // DOCUMENT: bytes of whole requests in the temporary file
    uint64_t cut_size;             // with cut_pending: what is whole
    // LINES: how much of the request that failed last is in the file for good, and what it was.
    uint64_t kept_size, kept_hash;
};

// Opens the place; nothing is written but the cut of a torn last line. STATUS_CANNOT_CREATE and the
// like when it cannot be written, or when it holds something that does not look like our lines.
enum status output_open(struct output *output, const struct output_options *options,
                        struct error *error) MUST_USE;
// Appends the mark that goes before new content of a document (see output_document.c); nothing when
// it goes to a stream. For encode.
void output_begin_document(const struct output *output, struct buffer *out);
// See exporter_calls.send. Failures of a stream are permanent: STATUS_STOPPED when its reader has
// gone, STATUS_IO else.
enum status output_send(struct output *output, const struct request *request,
                        struct send_outcome *outcome, struct error *error) MUST_USE;
// See exporter_calls.delivered and resume. For files of lines only; else they do nothing. A file
// that is not the one of the checkpoint any more is left as it is, and that is logged; STATUS_IO
// when it cannot be cut back.
void output_delivered(const struct output *output, struct buffer *out);
enum status output_resume(struct output *output, struct slice delivered,
                          struct error *error) MUST_USE;
// Closes; an incomplete document is thrown away. Fine after a failed open, or a zeroed struct.
void output_close(struct output *output);
