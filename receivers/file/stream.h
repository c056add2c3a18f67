// SPDX-License-Identifier: Apache-2.0
// How far one input was read, and the position that the feed is told of it.
//
// A position outlives the process: its number is the generation (how often the file began anew) and
// the line or item, its details are the offset, the inode, and fingerprints of the bytes that were
// read, so that they are recognised after a restart.
#pragma once

#include "base/hash/hash.h"
#include "pipeline/component/feed.h"

// Lines of the bytes at hand that are events already, in their order.
struct foreseen_lines {
    struct event *next, *end;
    // Names in them that are not interned yet (struct ahead_file), and the ids of the first `named`
    // of them, with room for INTERN_LATER_MAX. NULL: there is none.
    const struct intern_later *later;
    string_id *ids;
    uint32_t named;
};

enum { FINGERPRINT_MAX = 1024 }; // bytes that one stands for, at most

// A hash of some bytes. Size 0: none.
struct fingerprint {
    uint64_t hash;
    uint32_t size;
};

// What was read is known at a few offsets on the way, too: MARK_FIRST, and twice as far each time.
enum { MARK_FIRST = 16, MARK_BYTES = 64, MARK_COUNT = 23 };

// What was read of a file of lines, or of the decompressed bytes of one.
struct extent {
    uint64_t offset;         // where the first line that was not offered begins
    uint64_t records;        // lines; of a document its items
    struct fingerprint head; // of the first bytes
    struct fingerprint tail; // of the bytes before the offset
    // Of at most MARK_BYTES before each mark; 0: not known. They do not outlive the process.
    uint64_t marks[MARK_COUNT];
};

enum position_kind {
    POSITION_NONE,
    POSITION_LINES,    // the offset is in the file
    POSITION_DOCUMENT, // items, and a hash over them
    POSITION_GZIP,     // the offset is in the decompressed bytes
    POSITION_DONE,     // a gzip file that was read to its end
    POSITION_FORMER,   // lines of a file or generation that is over
};

// A position, taken apart.
struct position {
    struct extent done;
    uint64_t generation;
    uint64_t inode;
    uint64_t items_hash; // DOCUMENT
    uint64_t file_bytes; // DONE: of the file, compressed; 0: not known
    enum position_kind kind;
};

struct record_stream {
    struct source *source;
    struct extent done;
    bool skipping; // in the rest of a line that was too long
    // Live: where positions are told, and the one that was told last. NULL: they are not told.
    struct source *place;
    struct source_position at;
    uint64_t generation; // how often the file began anew
    struct foreseen_lines foreseen;
    struct found_lines found; // in the bytes at hand
    uint64_t to_offer;        // lines that are offered before it is asked which may be passed over
};

// The fingerprint of the last FINGERPRINT_MAX bytes.
struct fingerprint fingerprint_of(struct slice bytes);
// Whether it is that of the first bytes at `bytes`, which are as many as it stands for.
bool fingerprint_fits(struct fingerprint print, const char *bytes);

// Where a mark is, and how many bytes before it its hash stands for.
static inline uint64_t mark_at(uint32_t mark) {
    return (uint64_t)MARK_FIRST << mark;
}
static inline size_t mark_size(uint32_t mark) {
    return mark_at(mark) < MARK_BYTES ? (size_t)mark_at(mark) : MARK_BYTES;
}
// Sets the marks that lie in these bytes, which begin at `offset`.
void extent_mark(struct extent *extent, uint64_t offset, struct slice bytes);

struct position position_read(const struct source_position *at);
// The stream goes to this place in the feed, as the file with this inode.
void stream_begin(struct record_stream *stream, struct source *place,
                  const struct source_position *at, uint64_t inode);
// Puts kind and fingerprints into the details; records are told with them from then on.
void stream_describe(struct record_stream *stream, enum position_kind kind, bool with_tail);
// A gzip file of so many bytes was read to its end.
void stream_reach_done(struct record_stream *stream, uint64_t file_bytes);
// The items of a document are counted and hashed from the first again.
void stream_begin_document(struct record_stream *stream, bool written_anew);
// Tells that everything up to this record, which ends at `offset`, is offered with what comes next.
// Nothing without a place.
void stream_reach(struct record_stream *stream, uint64_t records, uint64_t offset);
// Tells the record that was told last again, with what the details say now.
void stream_tell(struct record_stream *stream, uint64_t offset);
// Like stream_reach, for an item of a document.
void stream_reach_item(struct record_stream *stream, uint64_t item, struct slice record);
