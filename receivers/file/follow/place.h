// SPDX-License-Identifier: Apache-2.0
// The places of followed files in the feed: how far each was read, in a form that outlives the
// process.
//
// Each followed file has a place of its own, named after its inode and path, since a path can stand
// for several files one after another.
#pragma once

#include "receivers/file/follow/track.h"

// What a restarted receiver knows of one file or generation.
struct restored_place {
    uint64_t inode;
    struct source *source; // NULL once a file has it
    bool former;           // it was over
};

struct restored_places {
    struct restored_place *items;
    uint32_t count;
    uint32_t capacity;
    struct hash_index by_inode; // those that were not over
};

struct restored_places places_restored(struct feed *feed);
void places_release(struct restored_places *places);
// Remembers, in the table, what was over already and the places that no file has: of what was
// rotated while nobody looked.
void places_remember(struct restored_places *known, struct track_table *table);
// Gives the file its place in the feed; what was known of it is in file->restored.
void place_open(struct track_table *table, struct restored_places *known,
                struct tracked_file *file);
// The path under which a file's place was made; lives as long as the place.
struct slice place_path(const struct source *place);
// The bytes that were read of the file are over, and it may be, too: they are remembered, together
// with its place, if they are lines. `place_renew` before anything more of it is told.
void place_retire(struct track_table *table, struct tracked_file *file);
// The same when what an earlier process read of it is not there any more.
void place_retire_restored(struct track_table *table, struct tracked_file *file);
// Another place for the file, when it has none.
void place_renew(struct track_table *table, struct tracked_file *file);
// The file is over: its place is no longer needed.
void place_forget(struct feed *feed, struct tracked_file *file);
