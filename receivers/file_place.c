// SPDX-License-Identifier: Apache-2.0
// Cost: a copy of some words a record; names are made once a file.
#include "receivers/file_place.h"

#include "base/hash.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

enum { DETAIL_OFFSET, DETAIL_INODE, DETAIL_HEAD, DETAIL_MARK, DETAIL_SIZES, GENERATION_SHIFT = 40 };

static const uint64_t RECORDS_MASK = (UINT64_C(1) << GENERATION_SHIFT) - 1;

struct place place_read(const struct source_position *position) {
    uint64_t sizes = position->detail[DETAIL_SIZES];
    struct place place = {
        .generation = position->number >> GENERATION_SHIFT,
        .records = position->number & RECORDS_MASK,
        .offset = position->detail[DETAIL_OFFSET],
        .inode = position->detail[DETAIL_INODE],
        .head = {position->detail[DETAIL_HEAD], (uint32_t)(sizes & 0xffff)},
        .mark = {position->detail[DETAIL_MARK], (uint32_t)(sizes >> 16 & 0xffff)},
        .kind = (enum place_kind)(sizes >> 32 & 0xff),
    };
    place.items_hash = place.kind == PLACE_DOCUMENT ? place.mark.hash : 0;
    return place;
}

static int compare_inodes(const void *left, const void *right) {
    const struct restored_place *a = left;
    const struct restored_place *b = right;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

struct restored_places places_restored(struct feed *feed) {
    struct restored_places places = {0};
    uint32_t capacity = 0;
    struct source *source;
    for (uint32_t i = 0; (source = feed_restored_source(feed, i)) != NULL; i++) {
        struct source_position position = feed_source_restored(source);
        if (feed_source_path(source).data[0] != PLACE_MARK || position.number == 0)
            continue;
        if (places.count == capacity) {
            capacity = capacity == 0 ? 16 : capacity * 2;
            places.items = memory_resize(places.items, capacity * sizeof *places.items);
        }
        places.items[places.count++] = (struct restored_place){place_read(&position).inode, source};
    }
    if (places.count > 1)
        qsort(places.items, places.count, sizeof *places.items, compare_inodes);
    return places;
}

static struct source *make_place(struct feed *feed, const struct tracked_file *file) {
    size_t size = strlen(file->path) + 32;
    char *name = memory_take(size);
    int used = snprintf(name, size, "%c%llu%c%s", PLACE_MARK, (unsigned long long)file->inode,
                        PLACE_MARK, file->path);
    struct source *place = feed_place(feed, (struct slice){name, (size_t)used});
    memory_give(name);
    return place;
}

void place_open(struct feed *feed, struct restored_places *known, struct tracked_file *file) {
    struct restored_place key = {file->inode, NULL};
    struct restored_place *found =
        known->count == 0 ? NULL
                          : bsearch(&key, known->items, known->count, sizeof key, compare_inodes);
    if (found != NULL && found->source != NULL) {
        // It is the file's from here on, and forgotten with it: another file with this inode, a
        // later one, does not get it.
        file->stream.place = found->source;
        found->source = NULL;
    } else {
        file->stream.place = make_place(feed, file);
    }
    file->stream.at = feed_source_restored(file->stream.place);
    file->restored = place_read(&file->stream.at);
    file->stream.generation = file->restored.generation;
    file->stream.at.detail[DETAIL_INODE] = file->inode;
}

struct slice place_path(const struct source *place) {
    struct slice name = feed_source_path(place);
    const char *mark = memchr(name.data + 1, PLACE_MARK, name.size - 1);
    if (mark == NULL)
        return (struct slice){name.data, 0};
    return (struct slice){mark + 1, (size_t)(name.data + name.size - mark - 1)};
}

void places_remember(const struct restored_places *known, struct track_table *table) {
    for (uint32_t i = 0; i < known->count; i++) {
        const struct source *source = known->items[i].source;
        if (source == NULL)
            continue;
        struct source_position position = feed_source_restored(source);
        struct place place = place_read(&position);
        track_remember_place(table, place_path(source), &place);
    }
}

void place_describe(struct tracked_file *file, enum place_kind kind, bool with_mark) {
    struct source_position *at = &file->stream.at;
    at->detail[DETAIL_HEAD] = file->head.hash;
    if (kind != PLACE_DOCUMENT)
        at->detail[DETAIL_MARK] = with_mark ? file->mark.hash : 0;
    at->detail[DETAIL_SIZES] =
        (uint64_t)kind << 32 | (uint64_t)(with_mark ? file->mark.size : 0) << 16 | file->head.size;
}

void place_begin_document(struct tracked_file *file, bool written_anew) {
    file->stream.generation += written_anew;
    place_describe(file, PLACE_DOCUMENT, false);
    file->stream.at.detail[DETAIL_MARK] = HASH_START;
}

void place_reach(struct record_stream *stream, uint64_t position, uint64_t offset) {
    uint64_t number = stream->generation << GENERATION_SHIFT | (position & RECORDS_MASK);
    if (number < stream->at.number)
        number = ++stream->generation << GENERATION_SHIFT | (position & RECORDS_MASK);
    stream->at.number = number;
    stream->at.detail[DETAIL_OFFSET] = offset;
    feed_source_reached(stream->place, &stream->at);
}

void place_add_item(struct record_stream *stream, struct slice record) {
    uint64_t *hash = &stream->at.detail[DETAIL_MARK];
    *hash = hash_more(*hash, record.data, record.size);
}

void place_forget(struct feed *feed, struct tracked_file *file) {
    if (file->stream.place != NULL)
        feed_source_forget(feed, file->stream.place);
    file->stream.place = NULL;
}
