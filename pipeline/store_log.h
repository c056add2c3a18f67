// SPDX-License-Identifier: Apache-2.0
// The pages of a store's file as its last whole transaction left them, read without the library:
// the newest in the write-ahead log, or the file's own.
#pragma once

#include "pipeline/store_parts.h"

struct store_log {
    int file, log;        // -1: there is none
    uint32_t page_count;  // the highest page number
    uint32_t *frames;     // by page number: where in the log it stands, from 1; 0: not there
    uint32_t frame_pages; // length of `frames`
};

// `path` names the file; the log is beside it. Either may be missing, cut or garbage.
enum status log_open(struct store_log *log, const char *path, struct error *error) MUST_USE;
void log_close(struct store_log *log);
// False when it is beyond the end or cannot be read.
bool log_page(const struct store_log *log, uint32_t number, unsigned char page[STORE_PAGE_SIZE]);
