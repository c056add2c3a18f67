// SPDX-License-Identifier: Apache-2.0
// A hash table of blobs, whose bytes and names stand in one arena, and the strings by their ids.
#include "pipeline/runtime/snapshot.h"

#include "base/arena.h"
#include "base/hash/hash.h"
#include "base/hash/hash_index.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { SNAPSHOT_BLOCK = 1 << 20, STRING_IDS_MAX = 1 << 26 };

struct blob {
    enum storage_space space;
    const char *name;
    uint64_t number;
    struct slice bytes;
};

struct known_string {
    struct slice text; // data NULL: not known
    string_id here;    // STRING_NONE: not asked for yet
};

#define SNAPSHOT_MAGIC UINT32_C(0x536e6170)

struct snapshot {
    uint32_t magic; // SNAPSHOT_MAGIC
    struct arena arena;
    struct blob *blobs;
    uint32_t count, capacity;
    struct hash_index index; // of the blobs, by name and number
    bool foreign;
    struct known_string *strings; // by the id they had
    uint32_t string_capacity;
};

struct snapshot *snapshot_new(void) {
    struct snapshot *snapshot = memory_zero(1, sizeof *snapshot);
    snapshot->magic = SNAPSHOT_MAGIC;
    arena_init(&snapshot->arena, SNAPSHOT_BLOCK);
    return snapshot;
}

void snapshot_free(struct snapshot *snapshot) {
    if (snapshot == NULL)
        return;
    assert(snapshot->magic == SNAPSHOT_MAGIC);
    snapshot->magic = 0;
    arena_release(&snapshot->arena);
    memory_give(snapshot->blobs);
    hash_index_release(&snapshot->index);
    memory_give(snapshot->strings);
    memory_give(snapshot);
}

// -- blobs --------------------------------------------------------------------------------------

static uint64_t blob_hash(const char *name, uint64_t number) {
    return hash_more(hash_slice(slice_of(name)), &number, sizeof number);
}

static struct blob *find(const struct snapshot *snapshot, enum storage_space space,
                         const char *name, uint64_t number) {
    uint64_t hash = blob_hash(name, number);
    for (uint32_t probe = 0, at;
         (at = hash_index_next(&snapshot->index, hash, &probe)) != HASH_INDEX_NONE;) {
        struct blob *blob = &snapshot->blobs[at];
        if (blob->number == number && blob->space == space && strcmp(blob->name, name) == 0)
            return blob;
    }
    return NULL;
}

static void put_string(struct snapshot *snapshot, uint64_t id, struct slice text) {
    snapshot->foreign = true;
    if (id >= STRING_IDS_MAX)
        return;
    if (id >= snapshot->string_capacity) {
        uint32_t before = snapshot->string_capacity, capacity = before == 0 ? 256 : before;
        while (capacity <= id)
            capacity *= 2;
        snapshot->strings = memory_resize(snapshot->strings, capacity * sizeof *snapshot->strings);
        memset(snapshot->strings + before, 0, (capacity - before) * sizeof *snapshot->strings);
        snapshot->string_capacity = capacity;
    }
    struct slice copy = arena_copy(&snapshot->arena, text);
    snapshot->strings[id].text = copy.data == NULL ? SLICE("") : copy;
}

void snapshot_put(struct snapshot *snapshot, enum storage_space space, const char *name,
                  uint64_t number, struct slice bytes) {
    assert(snapshot->magic == SNAPSHOT_MAGIC);
    assert(name != NULL);
    assert(space < STORAGE_SPACE_COUNT);
    if (space == STORAGE_STRINGS) {
        put_string(snapshot, number, bytes);
        return;
    }
    struct blob *known = find(snapshot, space, name, number);
    struct slice copy = arena_copy(&snapshot->arena, bytes);
    if (known != NULL) {
        known->bytes = copy;
        return;
    }
    snapshot->blobs =
        memory_room(snapshot->blobs, &snapshot->capacity, snapshot->count, sizeof *snapshot->blobs);
    // Blobs of one entry come one after another and share the name.
    const char *last = snapshot->count == 0 ? "" : snapshot->blobs[snapshot->count - 1].name;
    const char *kept =
        strcmp(last, name) == 0 ? last : arena_text(&snapshot->arena, slice_of(name));
    snapshot->blobs[snapshot->count] =
        (struct blob){.space = space, .name = kept, .number = number, .bytes = copy};
    hash_index_add(&snapshot->index, blob_hash(name, number), snapshot->count++);
}

bool snapshot_get(const struct snapshot *snapshot, enum storage_space space, const char *name,
                  uint64_t number, struct slice *bytes) {
    assert(snapshot->magic == SNAPSHOT_MAGIC);
    assert(name != NULL);
    assert(space != STORAGE_STRINGS);
    const struct blob *blob = find(snapshot, space, name, number);
    if (blob != NULL)
        *bytes = blob->bytes;
    return blob != NULL;
}

const char *snapshot_next(const struct snapshot *snapshot, enum storage_space space, uint32_t *at) {
    assert(snapshot->magic == SNAPSHOT_MAGIC);
    while (*at < snapshot->count)
        if (snapshot->blobs[(*at)++].space == space)
            return snapshot->blobs[*at - 1].name;
    return NULL;
}

bool snapshot_is_empty(const struct snapshot *snapshot) {
    assert(snapshot->magic == SNAPSHOT_MAGIC);
    return snapshot->count == 0;
}

// -- strings ------------------------------------------------------------------------------------

void snapshot_set_foreign(struct snapshot *snapshot) {
    assert(snapshot->magic == SNAPSHOT_MAGIC);
    snapshot->foreign = true;
}

bool snapshot_is_foreign(const struct snapshot *snapshot) {
    assert(snapshot->magic == SNAPSHOT_MAGIC);
    return snapshot->foreign;
}

bool snapshot_knows_string(const struct snapshot *snapshot, string_id id) {
    assert(snapshot->magic == SNAPSHOT_MAGIC);
    return id == STRING_NONE || !snapshot->foreign ||
           (id < snapshot->string_capacity && snapshot->strings[id].text.data != NULL);
}

string_id snapshot_string(struct snapshot *snapshot, string_id id) {
    assert(snapshot_knows_string(snapshot, id));
    if (id == STRING_NONE || !snapshot->foreign)
        return id;
    struct known_string *string = &snapshot->strings[id];
    if (string->here == STRING_NONE)
        string->here = intern(string->text);
    return string->here == STRING_REFUSED ? STRING_NONE : string->here;
}
