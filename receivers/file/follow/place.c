// SPDX-License-Identifier: Apache-2.0
// Cost: a copy of some words a record; names are made once a file.
#include "receivers/file/follow/place.h"

#include "base/hash/hash.h"
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

static void add_former(struct restored_places *places, struct source *source) {
    uint32_t count = places->former_count++;
    if ((count & (count - 1)) == 0)
        places->formers =
            memory_resize(places->formers, (count == 0 ? 1 : count * 2) * sizeof(struct source *));
    places->formers[count] = source;
}

struct restored_places places_restored(struct feed *feed) {
    struct restored_places places = {0};
    uint32_t capacity = 0;
    struct source *source;
    for (uint32_t i = 0; (source = feed_restored_source(feed, i)) != NULL; i++) {
        struct source_position position = feed_source_restored(source);
        if (feed_source_path(source).data[0] != PLACE_MARK || position.number == 0)
            continue;
        struct place place = place_read(&position);
        if (place.kind == PLACE_FORMER) {
            add_former(&places, source);
            continue;
        }
        if (places.count == capacity) {
            capacity = capacity == 0 ? 16 : capacity * 2;
            places.items = memory_resize(places.items, capacity * sizeof *places.items);
        }
        places.items[places.count++] = (struct restored_place){place.inode, source};
    }
    if (places.count > 1)
        qsort(places.items, places.count, sizeof *places.items, compare_inodes);
    return places;
}

void places_release(struct restored_places *places) {
    memory_give(places->items);
    memory_give(places->formers);
    *places = (struct restored_places){0};
}

struct slice place_path(const struct source *place) {
    struct slice name = feed_source_path(place);
    const char *mark = memchr(name.data + 1, PLACE_MARK, name.size - 1);
    if (mark == NULL)
        return (struct slice){name.data, 0};
    return (struct slice){mark + 1, (size_t)(name.data + name.size - mark - 1)};
}

static void remember(struct track_table *table, struct slice path, const struct place *known,
                     struct source *place) {
    char *text = memory_copy_text(path.data, path.size);
    track_remember(table, &(struct track_former){.path = text,
                                                 .head = known->head,
                                                 .mark = known->mark,
                                                 .offset = known->offset,
                                                 .lines = known->records,
                                                 .place = place});
    memory_give(text);
}

void places_remember(const struct restored_places *known, struct track_table *table) {
    for (uint32_t i = 0; i < known->former_count; i++) {
        struct source_position position = feed_source_restored(known->formers[i]);
        struct place place = place_read(&position);
        remember(table, place_path(known->formers[i]), &place, known->formers[i]);
    }
    for (uint32_t i = 0; i < known->count; i++) {
        const struct source *source = known->items[i].source;
        if (source == NULL)
            continue;
        // Its file may only be away for a while: the place stays.
        struct source_position position = feed_source_restored(source);
        struct place place = place_read(&position);
        if (place.kind == PLACE_LINES && place.offset > 0 && place.head.size > 0)
            remember(table, place_path(source), &place, NULL);
    }
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
        int used = snprintf(name, size, "%c%llu%s%c%s", PLACE_MARK, (unsigned long long)file->inode,
                            number, PLACE_MARK, file->path);
        place = feed_place(table->feed, (struct slice){name, (size_t)used});
    }
    memory_give(name);
    return place;
}

void place_open(struct track_table *table, struct restored_places *known,
                struct tracked_file *file) {
    struct restored_place key = {file->inode, NULL};
    struct restored_place *found =
        known->count == 0 ? NULL
                          : bsearch(&key, known->items, known->count, sizeof key, compare_inodes);
    if (found != NULL && found->source != NULL) {
        // It is the file's from here on, and forgotten with it: another file with this inode, a
        // later one, does not get it.
        file->stream.place = found->source;
        found->source = NULL;
    }
    if (file->stream.place != NULL)
        file->stream.at = feed_source_restored(file->stream.place);
    file->restored = place_read(&file->stream.at);
    file->stream.generation = file->restored.generation;
    file->stream.at.detail[DETAIL_INODE] = file->inode;
    place_renew(table, file);
}

void place_renew(struct track_table *table, struct tracked_file *file) {
    if (file->stream.place != NULL)
        return;
    file->stream.place = make_place(table, file);
    file->stream.at = (struct source_position){0};
    file->stream.at.detail[DETAIL_INODE] = file->inode;
}

static void retire(struct track_table *table, struct tracked_file *file, struct slice path,
                   const struct place *known) {
    struct source_position *at = &file->stream.at;
    if (at->number > 0) {
        at->detail[DETAIL_OFFSET] = known->offset;
        at->detail[DETAIL_HEAD] = known->head.hash;
        at->detail[DETAIL_MARK] = known->mark.hash;
        at->detail[DETAIL_SIZES] =
            (uint64_t)PLACE_FORMER << 32 | (uint64_t)known->mark.size << 16 | known->head.size;
        feed_source_reached(file->stream.place, at);
    }
    remember(table, path, known, file->stream.place);
    file->stream.place = NULL;
}

void place_retire(struct track_table *table, struct tracked_file *file) {
    if (file->state != TRACK_LINES || file->offset == 0 || file->head.size == 0)
        return;
    struct place known = {.records = file->stream.position,
                          .offset = file->offset,
                          .head = file->head,
                          .mark = file->mark};
    retire(table, file, slice_of(file->path), &known);
}

void place_retire_restored(struct track_table *table, struct tracked_file *file) {
    const struct place *known = &file->restored;
    if (known->kind == PLACE_LINES && known->offset > 0 && known->head.size > 0)
        retire(table, file, place_path(file->stream.place), known);
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
