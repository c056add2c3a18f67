// SPDX-License-Identifier: Apache-2.0
// Collects the texts of every `session_id` in the sinks' manifests as a sorted list of hashes and
// looks the dumps' up in it. Does nothing when no dump was found. One manifest in memory at a time,
// 8 bytes a session.
#include "receivers/file/dump.h"

#include "base/hash/hash.h"
#include "base/memory.h"
#include "base/sort.h"
#include "receivers/decode/json/keys.h"
#include "receivers/file/find/path.h"

#include <assert.h>
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
    assert(set->count <= SESSIONS_MAX && session.size > 0);
    if (set->count == SESSIONS_MAX)
        return;
    set->hashes = memory_room(set->hashes, &set->capacity, set->count, sizeof *set->hashes);
    set->hashes[set->count++] = hash_slice(session);
}

// The file's bytes, to be given back; NULL when it cannot be read or is too large.
static char *read_whole(const char *path, size_t *size) {
    assert(path != NULL && size != NULL);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return NULL;
    char *text = memory_take(DUMP_MANIFEST_MAX);
    ssize_t got = 1;
    for (*size = 0; got > 0 && *size<DUMP_MANIFEST_MAX; *size += got> 0 ? (size_t)got : 0)
        got = read(descriptor, text + *size, DUMP_MANIFEST_MAX - *size);
    close(descriptor);
    if (*size < DUMP_MANIFEST_MAX)
        return text;
    memory_give(text);
    return NULL;
}

// Adds every session that `directory`/`name` names.
static void collect(struct session_set *set, struct slice directory, const char *name) {
    char path[4096 + 64];
    int length = snprintf(path, sizeof path, "%.*s%s", (int)directory.size, directory.data, name);
    if (length < 0 || length >= (int)sizeof path)
        return;
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

// Segments of one sink stand next to each other, since the list is sorted by path.
static struct session_set collect_sinks(const struct found_list *list) {
    struct session_set set = {NULL, 0, 0};
    struct slice last = {NULL, 0};
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->files[i].role != FOUND_SEGMENT)
            continue;
        struct slice directory = path_directory(list->files[i].path);
        if (last.data == NULL || !slice_equal(directory, last))
            collect(&set, directory, "manifest.json");
        last = directory;
    }
    if (set.count > 1)
        qsort(set.hashes, set.count, sizeof *set.hashes, compare_by_u64);
    return set;
}

static bool names_one_of(const struct session_set *sinks, struct slice path) {
    struct session_set dump = {NULL, 0, 0};
    collect(&dump, path_directory(path), "metadata.json");
    collect(&dump, path_directory(path), "manifest.json");
    bool repeated = false;
    for (uint32_t i = 0; i < dump.count && !repeated && sinks->count > 0; i++)
        repeated = bsearch(&dump.hashes[i], sinks->hashes, sinks->count, sizeof *sinks->hashes,
                           compare_by_u64) != NULL;
    memory_give(dump.hashes);
    return repeated;
}

bool dump_is_repeated(const struct found_list *list, struct slice path) {
    struct session_set sinks = collect_sinks(list);
    bool repeated = names_one_of(&sinks, path);
    memory_give(sinks.hashes);
    return repeated;
}

void dump_leave_out_repeated(struct found_list *list) {
    struct session_set sinks = {NULL, 0, 0};
    bool collected = false;
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        struct found_file file = list->files[i];
        if (file.role == FOUND_DUMP_EVENTS && !collected)
            sinks = collect_sinks(list);
        collected = collected || file.role == FOUND_DUMP_EVENTS;
        if (file.role == FOUND_DUMP_EVENTS && names_one_of(&sinks, file.path)) {
            found_note_add(list, false, file.path,
                           "not read: the telemetry sink of the same session is, and holds these "
                           "events too");
            continue;
        }
        list->files[count++] = file;
    }
    list->count = count;
    memory_give(sinks.hashes);
    assert(list->count == count);
}
