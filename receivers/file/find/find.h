// SPDX-License-Identifier: Apache-2.0
// Finds the files that a receiver reads, by its include and exclude lists.
//
// An entry of `include` is a file, a directory or a pattern; a path that exists is taken literally
// even when it holds wildcards. Directories are searched to the bottom, by rules: of a telemetry
// sink only its segments, of an out-of-memory dump only events.json, elsewhere files with the names
// of telemetry, dumps, logs and counters, each also with .gz, and those that hold such (probe.h).
// Hidden names and *.tmp are never read. What is left out is noted, once a
// directory. The result is in the order of the paths' bytes; a file with several names is there
// once.
#pragma once

#include "base/file_identity.h"
#include "config/option.h"
#include "receivers/file/find/glob.h"
#include "receivers/file/find/probe.h"

enum found_role {
    FOUND_FILE,
    FOUND_SEGMENT,     // of a telemetry sink
    FOUND_DUMP_EVENTS, // events.json of an out-of-memory dump
    FOUND_STREAM,      // a pipe or a device: can be read once
    FOUND_STANDARD_INPUT,
};

struct found_file {
    struct slice path; // as it was named or found, with a terminating zero
    enum found_role role;
    struct file_identity identity; // of standard input none
    uint64_t size;
};

struct found_note {
    struct slice path;
    struct slice text;
    bool missing; // an entry of `include` that nothing is there for
};

enum {
    FIND_DEPTH_MAX = 64,
    FIND_ENTRIES_MAX = 1 << 20, // directory entries looked at in one search
    FIND_NOTES_MAX = 256,
};

// The lists of one receiver, ready for use. `include` is kept as it was written.
struct file_finder {
    struct text_list include;
    struct glob_list *include_globs; // [include.count]
    struct glob_list *exclude_globs; // [exclude_count]
    uint32_t exclude_count;
    uint32_t max_sources;
    struct file_identity skip; // a file that is never input: the receiver's own quarantine
};

// What one search found. Its memory is kept from search to search.
struct found_list {
    struct arena arena;   // paths and notes
    struct arena scratch; // the names of the directory at hand
    struct found_file *files;
    uint32_t count;
    uint32_t capacity;
    struct found_note notes[2 * FIND_NOTES_MAX]; // the rest is for what is missing
    uint32_t note_count;
    struct slice *directories; // looked into, or where a named file would be; may repeat
    uint32_t directory_count;
    uint32_t directory_capacity;
    uint64_t entries; // directory entries looked at
    struct probes probes;
};

void found_list_init(struct found_list *list);
void found_list_release(struct found_list *list);
// Appends a note to the list; the text is copied. Dropped when the list is full. `missing`: an
// entry of `include` that nothing is there for; such notes have room of their own.
void found_note_add(struct found_list *list, bool missing, struct slice path, const char *format,
                    ...) PRINTF_LIKE(4, 5);
// Sorts the files by path and leaves out further names of the same file, with a note.
void found_list_order(struct found_list *list);
// Starts anew with what is there now.
void file_find(const struct file_finder *finder, struct found_list *list);
