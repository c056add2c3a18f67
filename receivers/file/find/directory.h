// SPDX-License-Identifier: Apache-2.0
// One directory: what kind it is, what is in it, and which of its files are input.
#pragma once

#include "base/arena.h"
#include "base/file_identity.h"
#include "base/status.h"

#include <dirent.h>
#include <stdint.h>

enum directory_kind {
    DIRECTORY_PLAIN,
    DIRECTORY_SINK, // stormlog telemetry sink: manifest.json or segment-NNNNNN.jsonl
    DIRECTORY_DUMP, // out-of-memory dump
};

enum entry_type { ENTRY_FILE, ENTRY_DIRECTORY, ENTRY_OTHER };

struct directory_entry {
    struct slice name;
    enum entry_type type; // of what a symbolic link leads to
};

struct directory {
    DIR *stream; // open until directory_close
    enum directory_kind kind;
    struct file_identity identity;
    struct directory_entry *entries; // `.` and `..` left out; in no order
    uint32_t count;
    bool cut; // there were more than `max` entries
};

enum directory_verdict {
    ENTRY_TAKEN,
    ENTRY_SKIPPED, // hidden or temporary: not worth a word
    ENTRY_PART,    // a manifest or report of a sink or dump: holds no events
    ENTRY_LEFT_OUT,
};

// Opens a directory without reading its names. `path` empty: the working directory.
enum status directory_open(struct directory *directory, const char *path,
                           struct error *error) MUST_USE;
// Reads at most `max` names; they lie in `arena`.
void directory_read(struct directory *directory, const char *path, uint64_t max,
                    struct arena *arena);
void directory_close(struct directory *directory);
// What the rules say about a file of this name. `listed` false: a pattern chose the name, so that
// its ending does not matter.
enum directory_verdict directory_judge(const struct directory *directory, struct slice name,
                                       bool listed);
// The number of a segment of a telemetry sink, by its path; false when it is none.
bool directory_segment_number(struct slice path, uint32_t *number);
// What a file is by its path alone: DIRECTORY_SINK for a segment, DIRECTORY_DUMP for the events of
// a dump, else DIRECTORY_PLAIN.
enum directory_kind directory_kind_of_file(struct slice path);
