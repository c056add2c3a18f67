// SPDX-License-Identifier: Apache-2.0
// Makes, finds and gives up the places of followed files. Names are made once a file.
#include "receivers/file/follow/place.h"

#include "base/memory.h"
#include "pipeline/component/feed.h"

#include <assert.h>
#include <stdio.h>

static uint64_t inode_hash(uint64_t inode) {
    return file_identity_hash((struct file_identity){.inode = inode});
}

struct restored_places places_restored(struct feed *feed) {
    struct restored_places places = {0};
    struct source *source;
    for (uint32_t i = 0; (source = feed_restored_source(feed, i)) != NULL; i++) {
        struct source_position at = feed_source_restored(source);
        if (feed_source_path(source).data[0] != PLACE_MARK || at.number == 0)
            continue;
        struct position position = position_read(&at);
        bool former = position.kind == POSITION_FORMER;
        if (!former)
            hash_index_add(&places.by_inode, inode_hash(position.inode), places.count);
        places.items =
            memory_room(places.items, &places.capacity, places.count, sizeof *places.items);
        places.items[places.count++] = (struct restored_place){position.inode, source, former};
    }
    return places;
}

void places_release(struct restored_places *places) {
    memory_give(places->items);
    hash_index_release(&places->by_inode);
    *places = (struct restored_places){0};
}

struct slice place_path(const struct source *place) {
    struct slice name = feed_source_path(place);
    assert(name.size > 0 && name.data[0] == PLACE_MARK);
    const char *mark = memchr(name.data + 1, PLACE_MARK, name.size - 1);
    if (mark == NULL)
        return (struct slice){name.data, 0};
    return (struct slice){mark + 1, (size_t)(name.data + name.size - mark - 1)};
}

// Lines of a file that can be known again.
static bool is_worth_keeping(const struct position *position) {
    return position->kind == POSITION_LINES && position->done.offset > 0 &&
           position->done.head.size > 0;
}

// A document or compressed file that was replaced under its name while nobody looked goes on from
// what was offered of the old one.
static void inherit(const struct track_table *table, struct restored_place *place,
                    const struct position *position) {
    struct tracked_file *file = track_find_path(table, place_path(place->source));
    if (file == NULL || file->restored.kind != POSITION_NONE || file->state != TRACK_UNDECIDED)
        return;
    file->restored = *position;
    if (position->kind == POSITION_DONE) // another of the same size is looked at, too
        file->restored.kind = POSITION_GZIP;
    feed_source_forget(table->feed, place->source);
    place->source = NULL;
}

static void remember(struct track_table *table, struct restored_place *place) {
    struct source_position at = feed_source_restored(place->source);
    struct position position = position_read(&at);
    if (position.kind == POSITION_DOCUMENT || position.kind == POSITION_GZIP ||
        position.kind == POSITION_DONE)
        inherit(table, place, &position);
    // The file of one that is not over may only be away for a while: its place stays.
    if (place->former || is_worth_keeping(&position))
        track_remember(table, place_path(place->source), &position.done,
                       place->former ? place->source : NULL);
}

void places_remember(struct restored_places *known, struct track_table *table) {
    // What was over first: it is the older.
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < known->count; i++)
            if (known->items[i].former == (pass == 0) && known->items[i].source != NULL)
                remember(table, &known->items[i]);
}

// -- the place of a file ------------------------------------------------------------------------

static bool is_taken(const struct track_table *table, const struct source *place) {
    if (feed_source_restored(place).number != 0)
        return true;
    const struct track_former *former;
    for (uint32_t i = 0; (former = track_former_at(table, i)) != NULL; i++)
        if (former->place == place)
            return true;
    return false;
}

// Named after inode and path; what the same file was before has the other names.
static struct source *make_place(const struct track_table *table, const struct tracked_file *file) {
    size_t size = strlen(file->path) + 48;
    char *name = memory_take(size);
    struct source *place = NULL;
    for (unsigned n = 0; place == NULL || is_taken(table, place); n++) {
        char number[16] = "";
        if (n > 0)
            snprintf(number, sizeof number, ".%u", n);
        int used =
            snprintf(name, size, "%c%llu%s%c%s", PLACE_MARK,
                     (unsigned long long)file->identity.inode, number, PLACE_MARK, file->path);
        place = feed_place(table->feed, (struct slice){name, (size_t)used});
    }
    memory_give(name);
    return place;
}

static struct restored_place *find_restored(const struct restored_places *known, uint64_t inode) {
    uint32_t probe = 0, at;
    while ((at = hash_index_next(&known->by_inode, inode_hash(inode), &probe)) != HASH_INDEX_NONE)
        if (known->items[at].inode == inode && known->items[at].source != NULL)
            return &known->items[at];
    return NULL;
}

void place_open(struct track_table *table, struct restored_places *known,
                struct tracked_file *file) {
    assert(file->stream.place == NULL && file->stream.source != NULL);
    struct source_position at = {0};
    struct restored_place *found = find_restored(known, file->identity.inode);
    if (found != NULL) {
        // It is the file's from here on, and forgotten with it: another file with this inode, a
        // later one, does not get it.
        at = feed_source_restored(found->source);
        stream_begin(&file->stream, found->source, &at, file->identity.inode);
        found->source = NULL;
    }
    file->restored = position_read(&at);
    file->stream.generation = file->restored.generation;
    place_renew(table, file);
    assert(file->stream.place != NULL);
}

void place_renew(struct track_table *table, struct tracked_file *file) {
    if (file->stream.place == NULL)
        stream_begin(&file->stream, make_place(table, file), &(struct source_position){0},
                     file->identity.inode);
    assert(file->stream.place != NULL);
}

static void retire(struct track_table *table, struct tracked_file *file, struct slice path,
                   const struct extent *done) {
    struct record_stream *stream = &file->stream;
    assert(stream->place != NULL);
    if (stream->at.number > 0) {
        struct record_stream former = *stream;
        former.done = *done;
        stream_describe(&former, POSITION_FORMER, true);
        stream_tell(&former, done->offset);
    }
    track_remember(table, path, done, stream->place);
    stream->place = NULL;
}

void place_retire(struct track_table *table, struct tracked_file *file) {
    if (file->stream.place != NULL)
        feed_source_finish(table->feed, file->stream.place);
    const struct extent *done = &file->stream.done;
    if (file->state == TRACK_LINES && done->offset > 0 && done->head.size > 0)
        retire(table, file, slice_of(file->path), done);
}

void place_retire_restored(struct track_table *table, struct tracked_file *file) {
    if (is_worth_keeping(&file->restored))
        retire(table, file, place_path(file->stream.place), &file->restored.done);
}

void place_forget(struct feed *feed, struct tracked_file *file) {
    if (file->stream.place != NULL)
        feed_source_forget(feed, file->stream.place);
    file->stream.place = NULL;
}
