// SPDX-License-Identifier: Apache-2.0
// The files that are being followed: which file is which, and how far each has been read.
//
// A file is told by device and inode; its name may change. Since an inode can be used again and a
// file can be cut and filled anew, the bytes before the place that was reached are remembered as a
// hash (the mark) and compared before reading on.
#pragma once

#include "receivers/file/read.h"

#include "base/hash/hash.h"

#include <sys/stat.h>
#include <time.h>

enum {
    TRACK_MARK_MAX = 1024,  // bytes that a mark stands for, at most
    TRACK_OPEN_MAX = 512,   // descriptors held at a time, or half of the process's limit
    TRACK_FORMERS_MIN = 64, // files and generations that are over and still recognised: so many,
                            // and two more for each file that is followed
    TRACK_NO_FILE = UINT32_MAX,
};

enum track_state {
    TRACK_UNDECIDED, // too little to tell the format
    TRACK_LINES,
    TRACK_DOCUMENT, // read when it is whole
    TRACK_GZIP,     // read once, when it is whole
    TRACK_IGNORED,  // not telemetry, left out, or read for good
};

// A hash of some bytes. Size 0: none.
struct track_mark {
    uint64_t hash;
    uint32_t size;
};

enum place_kind {
    PLACE_UNKNOWN,
    PLACE_LINES,    // offset is in the file
    PLACE_DOCUMENT, // items, and a hash over them
    PLACE_GZIP,     // offset is in the decompressed bytes
    PLACE_DONE,     // a gzip file that was read to its end
    PLACE_FORMER,   // lines of a file or generation that is over
};

// A position, taken apart.
struct place {
    uint64_t generation;
    uint64_t records; // lines or items
    uint64_t offset;
    uint64_t inode;
    struct track_mark head;
    struct track_mark mark; // of the bytes before the offset; size 0: not known
    uint64_t items_hash;    // DOCUMENT
    enum place_kind kind;
};

// What a file of lines looked like when it was left: enough to know a copy of it.
struct track_former {
    char *path;
    struct track_mark head; // of its first bytes
    struct track_mark mark; // of the bytes before `offset`
    uint64_t offset;
    uint64_t lines;
    struct source *place; // keeps this for the next process; NULL: nothing does
};

struct tracked_file {
    char *path; // where it is now, as far as is known
    dev_t device;
    ino_t inode;
    int descriptor; // -1: closed for the moment
    enum track_state state;
    bool changed; // something may be there to read
    bool there;   // the last search found it
    bool over;    // to be forgotten
    bool pinned;  // in use: is not closed
    bool from_end;
    bool error_noted;
    bool left;                      // it is complete, and the feed was told …
    bool came_back;                 // … and something came all the same
    struct tracked_file *successor; // goes on where this one ends; NULL: none is known
    char *was_at;        // path of which it holds what was there before; NULL: none but its own
    uint32_t copy_waits; // how often it looked like a copy that is still being made …
    uint64_t copy_bytes; // … and did not grow beyond this
    struct record_stream stream;
    struct place restored; // what an earlier process read of it
    struct track_mark head;
    struct track_mark mark;
    uint64_t offset;      // where the first line that was not offered begins
    uint64_t scanned;     // no newline is in [offset, scanned)
    uint64_t begin_bytes; // with from_end: what was there at first
    uint64_t tried_bytes; // size when the format could not be told
    uint64_t seen_bytes;
    struct timespec seen_time;
    uint64_t quiet_since_ns; // monotonic; last change that was seen
    uint64_t restarts;
    // A document: what was offered of it.
    uint64_t items;
    uint64_t items_hash;
    bool unfinished;     // it was looked at and was not whole
    uint64_t read_bytes; // size and time when it was looked at
    struct timespec read_time;
    uint32_t next_by_inode; // hash chains, TRACK_NO_FILE at their ends
    uint32_t next_by_path;
};

struct track_table {
    struct feed *feed; // where places are forgotten
    struct tracked_file **files;
    uint32_t count;
    uint32_t capacity;
    uint32_t *by_inode; // heads of chains
    uint32_t *by_path;
    uint32_t slots; // a power of two
    uint32_t open_count;
    uint32_t open_max;
    uint32_t hand;                // where to look for a descriptor to close
    struct track_former *formers; // a ring
    uint32_t former_first;        // the oldest
    uint32_t former_count;
    uint32_t former_capacity;
};

void track_init(struct track_table *table);
void track_release(struct track_table *table);
// A new file that nothing is known of. The path is copied.
struct tracked_file *track_add(struct track_table *table, struct slice path, dev_t device,
                               ino_t inode);
struct tracked_file *track_find(const struct track_table *table, dev_t device, ino_t inode);
struct tracked_file *track_find_path(const struct track_table *table, struct slice path);
// The file was found under another name.
void track_rename(struct track_table *table, struct tracked_file *file, struct slice path);
// Forgets the files whose `over` is set.
void track_remove_over(struct track_table *table);
// Keeps what is needed to know a copy; its path is copied. The place, if it has one, is the table's
// from then on and forgotten with it.
void track_remember(struct track_table *table, const struct track_former *former);
// What was remembered, the newest first; NULL at the end.
const struct track_former *track_former_at(const struct track_table *table, uint32_t index);

// Makes sure that the file is open; closes another one that is idle when there are too many.
// STATUS_NOT_FOUND also when another file has its path by now.
enum status track_open(struct track_table *table, struct tracked_file *file,
                       struct error *error) MUST_USE;
void track_close(struct track_table *table, struct tracked_file *file);
// The file's size and times as they are now; false when they cannot be had.
bool track_stat(const struct tracked_file *file, struct stat *about);
// Remembers size and time; true when they are not those that were remembered.
bool track_notice(struct tracked_file *file, const struct stat *about, uint64_t now_ns);

struct track_mark track_mark_of(struct slice bytes);
bool track_mark_fits(struct track_mark mark, const char *bytes);
