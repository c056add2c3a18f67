// SPDX-License-Identifier: Apache-2.0
// Tells whether a new file is a copy of one that was read already, as log rotation makes them.
//
// A copy lies in the same directory, its name begins like the other's up to the first dot
// (run.jsonl, run.jsonl.1, run-2026.jsonl.gz) or is the same, it has the same first bytes, and the
// same bytes before the offset that was reached. Only then is it read on from that offset instead
// of from its beginning.
#pragma once

#include "receivers/file/follow/alike.h"
#include "receivers/file/follow/follower.h"

enum {
    COPY_CANDIDATES_MAX = 64, // files that begin like the copy and are looked at further
};

enum copy_answer {
    COPY_NONE,
    COPY_FOUND,
    COPY_FOUND_ITSELF, // of what had its own name
    COPY_UNFINISHED,   // the same beginning, but not as long: it may still be growing
};

// How copies are looked for.
struct copy_wish {
    bool all;     // all that fit by their names; otherwise those whose names rotation gives
    bool patient; // it may be waited for; else what cannot be told is noted
};

// One file or former generation that a new file may be a copy of.
struct copy_candidate {
    struct tracked_file *file; // NULL: it is over, or not begun again yet
    struct slice path;         // until the table changes
    bool likely;               // rotation gives the copy such a name, or it is the same
    struct extent done;
    bool undecided; // an earlier process read it; what it holds now will be known soon
    bool is_held;   // the copy holds the bytes that were read of it
};

struct copy_candidates {
    struct copy_candidate items[COPY_CANDIDATES_MAX]; // the likeliest first
    uint32_t count;
    bool more;      // there were more than that
    bool too_short; // the copy has not enough yet to be told from the one that its name fits
};

// Those that fit by their names and first bytes. `beginning`: up to FINGERPRINT_MAX bytes of the
// copy, decompressed.
void copy_find_candidates(const struct track_table *table, const struct tracked_file *copy,
                          struct slice beginning, bool all, struct copy_candidates *found);
// Of those that are held the one that was read furthest; NULL when none is.
const struct copy_candidate *copy_best(const struct copy_candidates *found);
// The copy is that of this one: it remembers the name.
void copy_settle(struct track_table *table, struct tracked_file *copy,
                 const struct copy_candidate *candidate);
// The copy holds all of it: a file (or NULL) that has lost its name is over.
void copy_replace(struct track_table *table, struct tracked_file *original);
// For a file of plain lines, which is settled when it is a copy: `start` is where to go on. Reads
// what is left of the original first, so that nothing is read twice.
enum copy_answer copy_find_plain(struct follower *follower, struct tracked_file *copy,
                                 struct copy_wish wish, struct read_start *start);
// Notes that more files begin like this one than are compared with it.
void copy_note_more(struct follower *follower, const struct tracked_file *copy,
                    const struct copy_candidates *found);
