// SPDX-License-Identifier: Apache-2.0
// Refused records, kept in a file so that somebody can look at them or mend and read them again.
//
// One JSON object a line: path, position, category, field, detail, record. The record is text: what
// is not UTF-8 in it is written as U+FFFD. The file is appended to and never cut, but for a line
// that could not be written whole.
#pragma once

#include "base/buffer.h"
#include "base/file_identity.h"
#include "pipeline/component/feed.h"

#include <stdint.h>

struct quarantine {
    bool open;
    int descriptor;
    const char *path;
    uint64_t max_bytes;
    struct file_identity identity;
    struct buffer line;
    int write_error; // errno of the write that failed
    bool failed;     // writing failed or the file is full: nothing more is written
    bool said;       // it was told so
    bool silent;     // somebody else writes the file
};

// Creates the file when it is not there (mode 0640). It grows to `max_bytes` at most. `path` must
// stay valid.
enum status quarantine_open(struct quarantine *quarantine, const char *path, uint64_t max_bytes,
                            struct error *error) MUST_USE;
// Keeps a record of `source`; does nothing when it is not open or has failed, which is noted once.
void quarantine_keep(struct quarantine *quarantine, struct feed *feed, const struct source *source,
                     uint64_t position, const struct decode_fault *fault, struct slice record);
void quarantine_close(struct quarantine *quarantine);
