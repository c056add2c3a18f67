// SPDX-License-Identifier: Apache-2.0
// The pages of a store's file as its last whole transaction left them, read without the library:
// the newest in the write-ahead log, or the file's own.
//
// Frames that the store's mark (store_mark.c) calls synced count even behind one that is damaged.
// Of a frame in which one byte is wrong that byte is put right: its checksum says which.
#pragma once

#include "extensions/file_storage/store_parts.h"

enum { LOG_PATCHES_MAX = 64 };

struct log_report {
    bool is_there;        // the log that the mark speaks of
    bool is_damaged;      // what was acknowledged is not all there, or not as it was written
    uint32_t lost_frames; // that were acknowledged and of which not even the page's number is known
    char sentence[STORE_REASON_MAX]; // what is damaged
};

// A byte of a frame that is other than the log has it.
struct log_patch {
    uint32_t frame, at;
    unsigned char value;
};

struct store_log {
    int file, log;        // -1: there is none
    uint32_t page_count;  // the highest page number
    uint32_t *frames;     // by page number: where in the log it stands, from 1; 0: not there
    uint32_t frame_pages; // length of `frames`
    struct log_patch patches[LOG_PATCHES_MAX];
    uint32_t patch_count;
    struct log_report report;
};

// `path` names the file; the log and the mark are beside it. Any may be missing, cut or garbage.
enum status log_open(struct store_log *log, const char *path, struct error *error) MUST_USE;
void log_close(struct store_log *log);
// False when it is beyond the end or cannot be read.
bool log_page(const struct store_log *log, uint32_t number, unsigned char page[STORE_PAGE_SIZE]);

// Only whether the log holds what was acknowledged. Does not open the store's file.
enum status log_examine(const char *path, struct log_report *report, struct error *error) MUST_USE;
