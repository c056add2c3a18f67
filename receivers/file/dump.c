// SPDX-License-Identifier: Apache-2.0
// Is this dump's session read from a sink already?
//
// Collects the texts of every `session_id` in the sinks' manifests as a sorted list of hashes and
// looks the dumps' up in it. Does nothing when no dump was found. One manifest in memory at a time,
// 8 bytes a session.
#include "receivers/file/dump.h"

#include "base/hash/hash.h"
#include "base/memory.h"
#include "receivers/decode/json/keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SESSIONS_MAX = 1 << 20 };

struct session_set {
    uint64_t *hashes; // of the session ids; sorted before it is searched
    uint32_t count;
    uint32_t capacity;
};

static void session_add(struct session_set *set, struct slice session) {
    if (set->count == SESSIONS_MAX)
        return;
    if (set->count == set->capacity) {
        set->capacity = set->capacity == 0 ? 16 : set->capacity * 2;
        set->hashes = memory_resize(set->hashes, set->capacity * sizeof *set->hashes);
    }
    set->hashes[set->count++] = hash_slice(session);
}

static int compare_hashes(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// The file's bytes, to be given back; NULL when it cannot be read or is too large.
static char *read_whole(const char *path, size_t *size) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return NULL;
    char *text = memory_take(DUMP_MANIFEST_MAX);
    size_t used = 0;
    for (;;) {
        ssize_t got = read(descriptor, text + used, DUMP_MANIFEST_MAX - used);
        if (got <= 0 || (used += (size_t)got) == DUMP_MANIFEST_MAX)
            break;
    }
    close(descriptor);
    *size = used;
    if (used < DUMP_MANIFEST_MAX)
        return text;
    memory_give(text);
    return NULL;
}

// Adds every session that `directory`/`name` names.
static void collect(struct session_set *set, struct slice directory, const char *name) {
    char path[4096 + 64];
    if (directory.size > 4096)
        return;
    snprintf(path, sizeof path, "%.*s%s", (int)directory.size, directory.data, name);
    size_t size = 0;
    char *text = read_whole(path, &size);
    if (text == NULL)
        return;
    struct json_keys keys;
    json_keys_begin(&keys, (struct slice){text, size}, 0);
    while (json_keys_next(&keys) == JSON_KEYS_MEMBER) {
        struct slice session;
        if (slice_equal(keys.key, SLICE("session_id")) && keys.value_first == '"' &&
            json_keys_text(&keys, &session) && session.size > 0)
            session_add(set, session);
    }
    memory_give(text);
}

// The path up to its last slash, which stays; empty for a bare name.
static struct slice directory_of(struct slice path) {
    const char *slash = memrchr(path.data, '/', path.size);
    return (struct slice){path.data, slash == NULL ? 0 : (size_t)(slash + 1 - path.data)};
}

static bool has_dump(const struct found_list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->files[i].role == FOUND_DUMP_EVENTS)
            return true;
    }
    return false;
}

// Segments of one sink stand next to each other, since the list is sorted by path.
static void collect_sinks(struct session_set *set, const struct found_list *list) {
    struct slice last = {NULL, 0};
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->files[i].role != FOUND_SEGMENT)
            continue;
        struct slice directory = directory_of(list->files[i].path);
        if (last.data == NULL || !slice_equal(directory, last))
            collect(set, directory, "manifest.json");
        last = directory;
    }
    if (set->count > 1)
        qsort(set->hashes, set->count, sizeof *set->hashes, compare_hashes);
}

static bool names_one_of(const struct session_set *sinks, struct slice path) {
    struct session_set dump = {NULL, 0, 0};
    collect(&dump, directory_of(path), "metadata.json");
    collect(&dump, directory_of(path), "manifest.json");
    bool repeated = false;
    for (uint32_t i = 0; i < dump.count && !repeated && sinks->count > 0; i++)
        repeated = bsearch(&dump.hashes[i], sinks->hashes, sinks->count, sizeof *sinks->hashes,
                           compare_hashes) != NULL;
    memory_give(dump.hashes);
    return repeated;
}

bool dump_is_repeated(const struct found_list *list, struct slice path) {
    struct session_set sinks = {NULL, 0, 0};
    collect_sinks(&sinks, list);
    bool repeated = names_one_of(&sinks, path);
    memory_give(sinks.hashes);
    return repeated;
}

void dump_leave_out_repeated(struct found_list *list) {
    if (!has_dump(list))
        return;
    struct session_set sinks = {NULL, 0, 0};
    collect_sinks(&sinks, list);
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        struct found_file file = list->files[i];
        if (file.role == FOUND_DUMP_EVENTS && names_one_of(&sinks, file.path)) {
            found_note_add(list, file.path,
                           "not read: the telemetry sink of the same session is, and holds these "
                           "events too");
            continue;
        }
        list->files[count++] = file;
    }
    list->count = count;
    memory_give(sinks.hashes);
}
