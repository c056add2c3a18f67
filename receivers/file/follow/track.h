// SPDX-License-Identifier: Apache-2.0
// The files that are being followed: which file is which, and how far each has been read.
//
// A file is told by device and inode; its name may change. Since an inode can be used again and a
// file can be cut and filled anew, fingerprints of what was read are kept (stream.h) and compared
// before reading on.
#pragma once

#include "base/file_identity.h"
#include "base/hash/hash_index.h"
#include "base/status.h"
#include "receivers/file/stream.h"

#include <time.h>

enum {
    TRACK_OPEN_MAX = 512,   // descriptors held at a time, or half of the process's limit
    TRACK_FORMERS_MIN = 64, // files and generations that are over and still recognised: so many,
                            // and two more for each file that is followed
};

enum track_state {
    TRACK_UNDECIDED, // too little to tell the format
    TRACK_LINES,
    TRACK_DOCUMENT, // read when it is whole
    TRACK_GZIP,     // read once, when it is whole
    TRACK_IGNORED,  // not telemetry, left out, or read for good
};

// What a file of lines looked like when it was left: enough to know a copy of it.
struct track_former {
    char *path;
    struct extent done;
    struct source *place; // keeps this for the next process; NULL: nothing does
};

// Size and time, which tell whether a file has changed.
struct file_version {
    uint64_t bytes;
    struct timespec time;
};

struct tracked_file {
    char *path; // where it is now, as far as is known
    struct file_identity identity;
    int descriptor; // -1: closed for the moment
    enum track_state state;
    bool changed;   // something may be there to read
    bool there;     // the last search found it
    bool was_there; // and the one before
    bool over;      // to be forgotten
    bool pinned;    // in use: is not closed
    bool from_end;
    bool error_noted;
    bool left;                      // it is complete, and the feed was told …
    bool came_back;                 // … and something came all the same
    struct tracked_file *successor; // goes on where this one ends; NULL: none is known
    char *was_at;        // path of which it holds what was there before; NULL: none but its own
    uint32_t copy_waits; // how often it looked like a copy that is still being made …
    uint64_t copy_bytes; // … and did not grow beyond this
    uint32_t copy_looks; // the same, also while it grew
    uint64_t short_of; // how long it was before it was found shorter than what was read; 0: is not
    struct record_stream stream;
    struct position restored; // what an earlier process read of it
    uint64_t scanned;         // no newline is in [stream.done.offset, scanned)
    uint64_t written_bytes;   // how far it was looked for states of a bar in its open line
    uint64_t begin_bytes;     // with from_end: what was there at first
    uint64_t tried_bytes;     // size when the format could not be told
    uint64_t passed_bytes;    // what its format is not told by: no text, or lines that say nothing
    bool unread_noted;        // … and that was said
    struct file_version seen;
    uint64_t quiet_since_ns; // monotonic; last change that was seen
    uint64_t restarts;
    // A document: what was offered of it.
    uint64_t items;
    uint64_t items_hash;
    bool is_quiet;            // when it was looked at
    bool unfinished;          // it was looked at and was not whole
    struct file_version read; // when it was looked at
};

struct track_table {
    struct feed *feed; // where places are forgotten
    struct tracked_file **files;
    uint32_t count;
    uint32_t capacity;
    struct hash_index by_inode;
    struct hash_index by_path;
    uint32_t open_count;
    uint32_t open_max;
    uint32_t hand;                // where to look for a descriptor to close
    struct track_former *formers; // a ring
    uint32_t former_first;        // the oldest
    uint32_t former_count;
    uint32_t former_capacity;
};

void track_init(struct track_table *table, struct feed *feed);
void track_release(struct track_table *table);
// A new file that nothing is known of. The path is copied.
struct tracked_file *track_add(struct track_table *table, struct slice path,
                               struct file_identity identity);
struct tracked_file *track_find(const struct track_table *table, struct file_identity identity);
struct tracked_file *track_find_path(const struct track_table *table, struct slice path);
// The file was found under another name.
void track_rename(struct track_table *table, struct tracked_file *file, struct slice path);
// It holds what was at this path before, which is copied.
void track_set_was_at(struct tracked_file *file, struct slice path);
// Forgets the files whose `over` is set.
void track_remove_over(struct track_table *table);
// Keeps what is needed to know a copy; the path is copied. The place, unless it is NULL, is the
// table's from then on and forgotten with it.
void track_remember(struct track_table *table, struct slice path, const struct extent *done,
                    struct source *place);
// What was remembered, the newest first; NULL at the end.
const struct track_former *track_former_at(const struct track_table *table, uint32_t index);

// Makes sure that the file is open; closes another one that is idle when there are too many.
// STATUS_NOT_FOUND also when another file has its path by now.
enum status track_open(struct track_table *table, struct tracked_file *file,
                       struct error *error) MUST_USE;
void track_close(struct track_table *table, struct tracked_file *file);
static inline bool track_is_of(const struct tracked_file *file, const struct stat *about) {
    return file_identity_equal(file->identity, file_identity_of(about));
}
// The file's size and times as they are now; false when they cannot be had.
bool track_stat(const struct tracked_file *file, struct stat *about);
// Remembers size and time; true when they are not those that were remembered.
bool track_notice(struct tracked_file *file, const struct stat *about, uint64_t now_ns);
struct file_version file_version_of(const struct stat *about);
bool file_version_equal(struct file_version a, struct file_version b);
