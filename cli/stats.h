// SPDX-License-Identifier: Apache-2.0
// What became of each line of each input, as one JSON document (`analyze --stats`).
#pragma once

#include "base/status.h"
#include "pipeline/runtime/run_report.h"

struct stats_file {
    const char *path; // "-": standard output; NULL: none
    int descriptor;
    bool is_new; // made by stats_open, and nothing is in it yet
};

// Opens it, so that a path that cannot be written is told before the work. `path` is kept.
enum status stats_open(struct stats_file *file, const char *path, struct error *error) MUST_USE;
// Replaces what is in the file. For each source lines = blank + event_lines + refused + other.
enum status stats_write(struct stats_file *file, const struct report *report,
                        struct error *error) MUST_USE;
// Takes away a file that stats_open made and that nothing was written to.
void stats_close(struct stats_file *file);
