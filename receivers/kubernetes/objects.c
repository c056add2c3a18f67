// SPDX-License-Identifier: Apache-2.0
#include "receivers/kubernetes/objects.h"

#include "base/hash/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>

enum { PER_PLACE = 2, PREFIX_MAX = 2048, IDENTITY_MAX = 1024 };

// 0 stands for "none".
static uint64_t hash_of(struct slice text) {
    uint64_t hash = hash_slice(text);
    return hash == 0 ? 1 : hash;
}

static uint32_t find(const struct known_objects *objects, uint64_t uid) {
    for (uint32_t probe = 0, at;
         (at = hash_index_next(&objects->by_uid, uid, &probe)) != HASH_INDEX_NONE;)
        if (objects->items[at].uid == uid)
            return at;
    return HASH_INDEX_NONE;
}

// -- places -------------------------------------------------------------------------------------

static struct known_place *add_place(struct known_objects *objects) {
    char name[PREFIX_MAX + 16];
    int size = snprintf(name, sizeof name, "%s%u", objects->prefix, objects->place_count);
    assert(size > 0 && (size_t)size < sizeof name);
    objects->places = memory_room(objects->places, &objects->place_capacity, objects->place_count,
                                  sizeof *objects->places);
    struct known_place *place = &objects->places[objects->place_count++];
    place->source = feed_place(objects->feed, (struct slice){name, (size_t)size});
    place->number = feed_source_restored(place->source).number;
    return place;
}

// Two more items, free or as the store has them. False: the store had nothing of it.
static bool add_items(struct known_objects *objects) {
    struct known_place *place = add_place(objects);
    struct source_position position = feed_source_restored(place->source);
    for (uint32_t i = 0; i < PER_PLACE; i++) {
        objects->items =
            memory_room(objects->items, &objects->capacity, objects->count, sizeof *objects->items);
        struct known_object *item = &objects->items[objects->count];
        *item = (struct known_object){.uid = position.detail[2 * i],
                                      .version = position.detail[2 * i + 1]};
        if (item->uid != 0) {
            hash_index_add(&objects->by_uid, item->uid, objects->count);
            objects->live++;
        } else {
            objects->free_items = memory_room(objects->free_items, &objects->free_capacity,
                                              objects->free_count, sizeof *objects->free_items);
            objects->free_items[objects->free_count++] = objects->count;
        }
        objects->count++;
    }
    return position.number > 0;
}

// What the place holds is kept with what is offered next.
static void write_place(struct known_objects *objects, uint32_t at) {
    struct known_place *place = &objects->places[at / PER_PLACE];
    const struct known_object *first = &objects->items[at / PER_PLACE * PER_PLACE];
    struct source_position position = {
        .number = ++place->number,
        .detail = {first[0].uid, first[0].version, first[1].uid, first[1].version}};
    feed_source_reached(place->source, &position);
}

void known_objects_open(struct known_objects *objects, struct feed *feed, struct slice path,
                        uint32_t max, bool keeps_identity) {
    assert(path.size > 0 && path.size < PREFIX_MAX - 4 && max > 0);
    *objects =
        (struct known_objects){.feed = feed, .live_max = max, .keeps_identity = keeps_identity};
    objects->prefix = memory_take(path.size + 4);
    snprintf(objects->prefix, path.size + 4, "%c%.*s#", PLACE_MARK, (int)path.size, path.data);
    while (add_items(objects))
        ;
}

void known_objects_close(struct known_objects *objects) {
    for (uint32_t i = 0; i < objects->count; i++)
        memory_give(objects->items[i].identity);
    memory_give(objects->items);
    memory_give(objects->free_items);
    memory_give(objects->places);
    memory_give(objects->prefix);
    hash_index_release(&objects->by_uid);
    *objects = (struct known_objects){.feed = NULL};
}

// -- objects ------------------------------------------------------------------------------------

enum known known_objects_look(const struct known_objects *objects, const struct object_meta *meta) {
    assert(meta->uid.size > 0);
    uint32_t at = find(objects, hash_of(meta->uid));
    if (at == HASH_INDEX_NONE)
        return KNOWN_NEW;
    return objects->items[at].version == hash_of(meta->version) ? KNOWN_SAME : KNOWN_OTHER_VERSION;
}

static void note_identity(const struct known_objects *objects, struct known_object *item,
                          const struct object_meta *meta) {
    if (!objects->keeps_identity || item->identity != NULL)
        return;
    size_t size = meta->namespace.size + meta->name.size + meta->uid.size + 3;
    if (size > IDENTITY_MAX)
        return; // no API server takes such names
    item->identity = memory_take(size);
    snprintf(item->identity, size, "%.*s\n%.*s\n%.*s", (int)meta->namespace.size,
             meta->namespace.data == NULL ? "" : meta->namespace.data, (int)meta->name.size,
             meta->name.data == NULL ? "" : meta->name.data, (int)meta->uid.size, meta->uid.data);
}

void known_objects_set(struct known_objects *objects, const struct object_meta *meta) {
    uint64_t uid = hash_of(meta->uid);
    uint32_t at = find(objects, uid);
    if (at == HASH_INDEX_NONE) {
        if (objects->live >= objects->live_max) {
            objects->unknown++;
            return;
        }
        if (objects->free_count == 0)
            (void)add_items(objects);
        at = objects->free_items[--objects->free_count];
        objects->items[at].uid = uid;
        hash_index_add(&objects->by_uid, uid, at);
        objects->live++;
    }
    struct known_object *item = &objects->items[at];
    item->version = hash_of(meta->version);
    item->listing = objects->listing;
    note_identity(objects, item, meta);
    write_place(objects, at);
}

static void forget(struct known_objects *objects, uint32_t at) {
    struct known_object *item = &objects->items[at];
    assert(item->uid != 0 && objects->live > 0);
    hash_index_remove(&objects->by_uid, item->uid, at);
    memory_give(item->identity);
    *item = (struct known_object){.uid = 0};
    objects->live--;
    objects->free_items = memory_room(objects->free_items, &objects->free_capacity,
                                      objects->free_count, sizeof *objects->free_items);
    objects->free_items[objects->free_count++] = at;
    write_place(objects, at);
}

bool known_objects_remove(struct known_objects *objects, struct slice uid) {
    uint32_t at = find(objects, hash_of(uid));
    if (at == HASH_INDEX_NONE)
        return false;
    forget(objects, at);
    return true;
}

// -- lists --------------------------------------------------------------------------------------

void known_objects_begin_list(struct known_objects *objects) {
    objects->listing++;
}

void known_objects_in_list(struct known_objects *objects, const struct object_meta *meta) {
    uint32_t at = find(objects, hash_of(meta->uid));
    if (at == HASH_INDEX_NONE)
        return;
    objects->items[at].listing = objects->listing;
    note_identity(objects, &objects->items[at], meta);
}

bool known_objects_next_missing(struct known_objects *objects, uint32_t *at, char **identity) {
    for (; *at < objects->count; ++*at) {
        struct known_object *item = &objects->items[*at];
        if (item->uid == 0 || item->listing == objects->listing)
            continue;
        *identity = item->identity;
        item->identity = NULL;
        forget(objects, *at);
        return true;
    }
    return false;
}
