// SPDX-License-Identifier: Apache-2.0
// Bytes of one file, from its beginning to its end, decompressed when they are gzip.
//
// gzip is told by its first two bytes, whatever the file is called; several members follow one
// another. Memory: 64 KiB and zlib's window, both kept for the next file.
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

enum { INPUT_RAW_SIZE = 64 << 10 };

struct file_input {
    int descriptor;      // -1: none is open
    int stop_descriptor; // readable: do not wait for bytes any longer; -1: none
    bool owned;          // closed by file_input_close
    bool waits;          // a pipe or terminal: bytes may be long in coming
    bool every_byte;     // also of holes: its offsets are the file's
    bool gzip;
    bool ended;        // nothing more comes
    bool inflating;    // inside a gzip member
    uint64_t raw_done; // bytes taken from the file
    uint64_t made;     // bytes given out
    // What is wrong with the compressed data, a clause; empty when nothing is. What was whole
    // before it has been given out.
    char trouble[160];
    unsigned peeked_count;
    unsigned char peeked[2];

    // Kept from file to file. zlib wants its stream to stay where it is.
    z_stream *stream; // NULL: none was needed yet
    unsigned char *raw;
};

// Opens the file, or standard input for "-". On failure nothing is open.
enum status file_input_open(struct file_input *input, const char *path,
                            struct error *error) MUST_USE;
// The same on a descriptor that is somebody else's and stands at the beginning of the file.
enum status file_input_attach(struct file_input *input, int descriptor,
                              struct error *error) MUST_USE;
// The bytes as they are, from `offset` on, of a regular file that is somebody else's.
enum status file_input_attach_plain(struct file_input *input, int descriptor, uint64_t offset,
                                    struct error *error) MUST_USE;
// Up to `room` bytes; *got is 0 only at the end, or when waiting was ended by stop_descriptor.
// STATUS_IO when reading fails.
enum status file_input_read(struct file_input *input, char *to, size_t room, size_t *got,
                            struct error *error) MUST_USE;
void file_input_close(struct file_input *input);
// Gives back what is kept from file to file.
void file_input_release(struct file_input *input);
