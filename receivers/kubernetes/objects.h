// SPDX-License-Identifier: Apache-2.0
// Which objects of one resource were handed over, and in which version: kept in the store with the
// positions of sources, so that neither a restart nor a new list hands over a version twice.
//
// An object is 16 bytes of a place (feed_place): hashes of its uid and of its version, two objects
// a place. What a deletion must say (namespace, name, uid) is in memory only. Bounded by a count:
// objects beyond it are handed over but not known. One thread.
#pragma once

#include "base/hash/hash_index.h"
#include "pipeline/component/feed.h"
#include "receivers/kubernetes/meta.h"

struct known_object {
    uint64_t uid, version; // hashes; uid 0: free
    uint32_t listing;      // number of the list that it was in last
    char *identity;        // "NAMESPACE\nNAME\nUID"; NULL: not known
};

struct known_place {
    struct source *source;
    uint64_t number;
};

struct known_objects {
    struct feed *feed;
    char *prefix; // of the names of places
    struct known_object *items;
    uint32_t count, capacity; // handed out ever
    uint32_t *free_items;
    uint32_t free_count, free_capacity;
    struct known_place *places; // one for two items
    uint32_t place_count, place_capacity;
    struct hash_index by_uid;
    uint32_t live, live_max;
    uint32_t listing; // number of the list that is under way or was last
    uint64_t unknown; // objects beyond the bound
    bool keeps_identity;
};

enum known { KNOWN_NEW, KNOWN_SAME, KNOWN_OTHER_VERSION };

// `path`: that of the resource's source. `max`: objects. With `keeps_identity` those that vanish
// can be named. Takes up what the store has.
void known_objects_open(struct known_objects *objects, struct feed *feed, struct slice path,
                        uint32_t max, bool keeps_identity);
void known_objects_close(struct known_objects *objects);

enum known known_objects_look(const struct known_objects *objects, const struct object_meta *meta);
// This version of it is handed over with the record that is offered next: to be called right before
// the resource's own position is set.
void known_objects_set(struct known_objects *objects, const struct object_meta *meta);
// It is gone. False: it was not known.
bool known_objects_remove(struct known_objects *objects, struct slice uid);

// A list begins; what is looked at, set or not, until it ends is there.
void known_objects_begin_list(struct known_objects *objects);
void known_objects_in_list(struct known_objects *objects, const struct object_meta *meta);
// The next object that was not in the list, from `*at` on (0 first), which is forgotten; false at
// the end. Its identity is the caller's to free; NULL: not known.
bool known_objects_next_missing(struct known_objects *objects, uint32_t *at, char **identity);
