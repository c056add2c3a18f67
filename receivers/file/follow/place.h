// SPDX-License-Identifier: Apache-2.0
// How far a file was read, in a form that outlives the process: told to the feed with every record,
// given back after a restart.
//
// Each tracked file has a place of its own in the feed, named after its inode and path, since a
// path can stand for several files one after another. The number of a position is the generation
// (how often the file began anew) and the line or item; its details say which bytes these were.
#pragma once

#include "receivers/file/follow/track.h"

struct restored_places {
    struct restored_place *items; // by inode
    uint32_t count;
    struct source **formers; // of files and generations that were over
    uint32_t former_count;
};

struct restored_place {
    uint64_t inode;
    struct source *source; // NULL once a file has it
};

// What a restarted receiver knows.
struct restored_places places_restored(struct feed *feed);
void places_release(struct restored_places *places);
// Remembers, in the table, what was over already and the places that no file has: of what was
// rotated while nobody looked.
void places_remember(const struct restored_places *known, struct track_table *table);
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
struct place place_read(const struct source_position *position);
// Puts kind, head and mark into the details; lines are told with them from then on.
void place_describe(struct tracked_file *file, enum place_kind kind, bool with_mark);
// The items of a document are counted and hashed from the first again.
void place_begin_document(struct tracked_file *file, bool written_anew);
// Tells that everything up to this record is offered with what comes next.
void place_reach(struct record_stream *stream, uint64_t position, uint64_t offset);
void place_add_item(struct record_stream *stream, struct slice record);
// The file is over: its place is no longer needed.
void place_forget(struct feed *feed, struct tracked_file *file);
