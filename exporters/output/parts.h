// SPDX-License-Identifier: Apache-2.0
// What the parts of output.h share among themselves.
#pragma once

#include "exporters/output/output.h"

// Writes all bytes; 0 or the errno value. Waits when a pipe is full.
int descriptor_write(int descriptor, struct slice bytes);
// Waits until the directory that holds `path` is on the disk, names and all. Failing is only
// logged: the names are right, and only a power failure could undo them.
void directory_sync(const struct output *output, const char *path);
// Takes everything after `size` off the open file again; when that fails it is remembered.
void descriptor_cut(struct output *output, uint64_t size);

// How each line begins that is ours.
#define OUTPUT_LINE_BEGIN "{\"schema\":\"culprit."

// output_lines.c
// "PATH.3", or PATH itself for 0; the caller gives it back.
char *backup_path(const struct output *output, int64_t number);
enum status lines_open(struct output *output, struct error *error);
enum status lines_send(struct output *output, struct slice bytes, struct error *error);
// output_document.c
enum status document_open(struct output *output, struct error *error);
enum status document_send(struct output *output, const struct request *request,
                          struct error *error);
void document_close(struct output *output);
