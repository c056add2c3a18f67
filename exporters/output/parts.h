// SPDX-License-Identifier: Apache-2.0
// What the modes of output.h share among themselves.
#pragma once

#include "exporters/output/output.h"

#include <assert.h>
#include <limits.h>

enum { OUTPUT_MAGIC = 0x4f555450 };

// The output that an exporter's instance begins with.
static inline struct output *output_of(void *instance) {
    struct output *output = instance;
    assert(output != NULL && output->magic == OUTPUT_MAGIC);
    return output;
}

// Writes all bytes; 0 or the errno value. Waits when a pipe is full.
int descriptor_write(int descriptor, struct slice bytes);
// Waits until the directory that holds `path` is on the disk, names and all. Failing is only
// logged: the names are right, and only a power failure could undo them.
void directory_sync(const struct output *output, const char *path);
// Takes everything after `size` off the open file again; when that fails it is remembered.
void descriptor_cut(struct output *output, uint64_t size);

// Closes a file whose path is another's by now, or nobody's: whoever writes opens anew what has it.
void file_check(struct output *output);
// Opens the output's file, which is made when it is not there, with these flags of open(2).
enum status file_open(struct output *output, int flags, struct error *error);

// How each line begins that is ours.
#define OUTPUT_LINE_BEGIN "{\"schema\":\"culprit."

// lines.c
// "PATH.3", or PATH itself for 0, in `path`, which is returned.
enum { BACKUP_PATH_MAX = PATH_MAX + 24 };
const char *backup_path(const struct output *output, int64_t number, char path[BACKUP_PATH_MAX]);
enum status lines_open(struct output *output, struct error *error);
// Adds to `*taken` the bytes that are in files for good, also when it fails.
enum status lines_send(struct output *output, struct slice bytes, size_t *taken,
                       struct error *error);
// document.c
enum status document_open(struct output *output, struct error *error);
enum status document_send(struct output *output, const struct request *request,
                          struct error *error);
void document_close(struct output *output);
