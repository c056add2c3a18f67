// SPDX-License-Identifier: Apache-2.0
// Where an exporter's bytes go: standard output, a file of whole lines that grows and is rotated,
// or a file that is replaced whole.
//
// Lines: what of a request fails half way is cut off the file again, and what is in it for good is
// told as taken, so no line appears twice or in part. A last line that a crash left without its
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
    uint32_t magic;                // set by output_open
    struct output_options options; // its texts belong to the caller
    char *path;                    // NULL: standard output
    char *temporary;               // DOCUMENT: what is being written
    int descriptor;                // -1: none
    bool is_stream;                // standard output, a pipe or a device: bytes just go out
    bool broken;                   // a stream that failed once stays failed
    bool name_unsynced;            // LINES: its directory is to be synced once a line is in it
    bool cut_pending;              // cutting back failed: to be done before anything is written
    uint64_t size;                 // DOCUMENT: bytes of whole requests in the temporary file
    uint64_t cut_size;             // with cut_pending: what is whole
};

// Opens the place; nothing is written but the cut of a torn last line. STATUS_CANNOT_CREATE and the
// like when it cannot be written, or when it holds something that does not look like our lines.
enum status output_open(struct output *output, const struct output_options *options,
                        struct error *error) MUST_USE;
// Appends the mark that goes before new content of a document (see document.c); nothing when
// it goes to a stream. For encode.
void output_begin_document(const struct output *output, struct buffer *out);
// These are calls of an exporter (struct exporter_calls): `instance` is its instance, which begins
// with its struct output. Failures of a stream are permanent: STATUS_STOPPED when its reader has
// gone, STATUS_IO else.
enum status output_send(void *instance, const struct request *request, struct send_outcome *outcome,
                        struct error *error) MUST_USE;
// For files of lines only; else they do nothing. A file that is not the one of the checkpoint any
// more is left as it is, and that is logged; STATUS_IO when it cannot be cut back.
void output_delivered(void *instance, struct buffer *out);
enum status output_resume(void *instance, struct slice delivered, struct error *error) MUST_USE;
// To be stated by each exporter that is called so.
#define OUTPUT_COMES_FIRST(exporter)                                                               \
    _Static_assert(offsetof(exporter, output) == 0, "output.h takes the instance for its output")
// Closes; an incomplete document is thrown away. Fine after a failed open, or a zeroed struct.
void output_close(struct output *output);
