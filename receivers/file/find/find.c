// SPDX-License-Identifier: Apache-2.0
// Searches for files. A stack of things to look at instead of recursion: a directory to search by
// the rules, or a place in a pattern. A directory is looked at once for each part of a pattern,
// told by its device and inode, so that links in a circle end. Then the list is put in order and
// cut at its bound. Bounds: depth, directory entries, files; one call a file.
#include "receivers/file/find/find.h"

#include "base/hash/hash_index.h"
#include "base/memory.h"
#include "base/sort.h"
#include "receivers/file/find/directory.h"
#include "receivers/file/find/path.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { LISTED_NAMES_MAX = 6 };

// Something to look at: `glob` NULL is a directory to search by the rules.
struct place {
    struct slice path;
    const struct glob *glob;
    uint32_t part;
    uint32_t depth;
};

struct visit {
    struct file_identity identity;
    const struct glob *glob;
    uint32_t part;
};

struct search {
    const struct file_finder *finder;
    struct found_list *list;
    struct place *places;
    uint32_t place_count;
    uint32_t place_capacity;
    struct visit *visits;
    uint32_t visit_count;
    uint32_t visit_capacity;
    struct hash_index seen;   // visits
    struct slice first_parts; // the first sink or dump whose parts were passed over
    uint32_t parts_count;
    bool cut;
    bool matched; // the entry of `include` at hand named something
};

static void push(struct search *search, struct place place) {
    assert(place.depth <= FIND_DEPTH_MAX + 1);
    search->places = memory_room(search->places, &search->place_capacity, search->place_count,
                                 sizeof *search->places);
    search->places[search->place_count++] = place;
}

static struct slice join(struct arena *arena, struct slice path, struct slice name) {
    bool slash = path.size > 0 && path.data[path.size - 1] != '/';
    char *text = arena_take(arena, path.size + slash + name.size + 1);
    if (path.size > 0)
        memcpy(text, path.data, path.size);
    if (slash)
        text[path.size] = '/';
    memcpy(text + path.size + slash, name.data, name.size);
    text[path.size + slash + name.size] = '\0';
    return (struct slice){text, path.size + slash + name.size};
}

// -- directories seen ---------------------------------------------------------------------------

// True the first time that this directory is met at this place of a pattern.
static bool first_visit(struct search *search, const struct directory *directory,
                        const struct place *place) {
    struct visit visit = {directory->identity, place->glob, place->part};
    uint64_t hash = file_identity_hash(visit.identity);
    uint32_t probe = 0, at;
    while ((at = hash_index_next(&search->seen, hash, &probe)) != HASH_INDEX_NONE) {
        const struct visit *seen = &search->visits[at];
        if (file_identity_equal(seen->identity, visit.identity) && seen->glob == visit.glob &&
            seen->part == visit.part)
            return false;
    }
    search->visits = memory_room(search->visits, &search->visit_capacity, search->visit_count,
                                 sizeof *search->visits);
    hash_index_add(&search->seen, hash, search->visit_count);
    search->visits[search->visit_count++] = visit;
    return true;
}

// -- taking files -------------------------------------------------------------------------------

static bool is_excluded(const struct file_finder *finder, struct slice path) {
    for (uint32_t i = 0; i < finder->exclude_count; i++) {
        const struct glob_list *globs = &finder->exclude_globs[i];
        for (uint32_t k = 0; k < globs->count; k++) {
            if (glob_match_path(&globs->items[k], path))
                return true;
        }
    }
    return false;
}

static void add_file(struct search *search, struct found_file file) {
    assert(file.path.data[file.path.size] == '\0');
    const struct file_finder *finder = search->finder;
    struct found_list *list = search->list;
    if (is_excluded(finder, file.path))
        return;
    if (finder->skip.inode != 0 && file_identity_equal(file.identity, finder->skip)) {
        found_note_add(list, false, file.path,
                       "not read: it is this receiver's own quarantine file");
        return;
    }
    list->files = memory_room(list->files, &list->capacity, list->count, sizeof *list->files);
    list->files[list->count++] = file;
}

static struct found_file found(struct slice path, enum directory_kind kind,
                               const struct stat *about) {
    static const enum found_role roles[] = {[DIRECTORY_PLAIN] = FOUND_FILE,
                                            [DIRECTORY_SINK] = FOUND_SEGMENT,
                                            [DIRECTORY_DUMP] = FOUND_DUMP_EVENTS};
    return (struct found_file){.path = path,
                               .role = roles[kind],
                               .identity = file_identity_of(about),
                               .size = (uint64_t)about->st_size};
}

static void take_entry(struct search *search, const struct directory *directory,
                       struct slice path) {
    struct stat about;
    if (stat(path.data, &about) != 0 || !S_ISREG(about.st_mode))
        return;
    add_file(search, found(path, directory->kind, &about));
    search->matched = true;
}

// -- directories by the rules -------------------------------------------------------------------

// The names that were left out of one directory, for one note.
struct left_out {
    char names[512];
    size_t size;
    uint32_t count;
};

static void leave_out(struct left_out *left, struct slice name) {
    if (++left->count > LISTED_NAMES_MAX)
        return;
    int written = snprintf(left->names + left->size, sizeof left->names - left->size, "%s%.60s",
                           left->count > 1 ? ", " : "", name.data);
    left->size += (size_t)written;
    assert(left->size < sizeof left->names);
}

static void note_left_out(struct search *search, const struct directory *directory,
                          struct slice path, const struct left_out *left) {
    if (left->count == 0)
        return;
    static const char *const why[] = {
        [DIRECTORY_PLAIN] =
            "neither their names nor what they hold is that of telemetry, dumps, logs or counters",
        [DIRECTORY_SINK] = "of a telemetry sink only segment-NNNNNN.jsonl is",
        [DIRECTORY_DUMP] = "of an out-of-memory dump only events.json is"};
    char more[48] = "";
    if (left->count > LISTED_NAMES_MAX)
        snprintf(more, sizeof more, " and %u more", left->count - LISTED_NAMES_MAX);
    found_note_add(search->list, false, path.size == 0 ? SLICE(".") : path, "not read: %s%s; %s",
                   left->names, more, why[directory->kind]);
}

// By its name, or, where that says little, by what it holds.
static enum directory_verdict judge(struct search *search, const struct place *place,
                                    const struct directory *directory, struct slice name) {
    enum directory_verdict verdict = directory_judge(directory, name, true);
    if (verdict != ENTRY_LEFT_OUT || directory->kind != DIRECTORY_PLAIN || !probe_suits(name))
        return verdict;
    struct slice path = join(&search->list->arena, place->path, name);
    bool holds = !is_excluded(search->finder, path) && probe_file(&search->list->probes, path);
    return holds ? ENTRY_TAKEN : ENTRY_LEFT_OUT;
}

static void search_entries(struct search *search, const struct place *place,
                           const struct directory *directory) {
    struct left_out left = {.size = 0};
    bool parts = false;
    for (uint32_t i = 0; i < directory->count; i++) {
        const struct directory_entry *entry = &directory->entries[i];
        if (entry->type == ENTRY_OTHER)
            continue;
        if (entry->type == ENTRY_DIRECTORY) {
            struct slice path = join(&search->list->arena, place->path, entry->name);
            if (entry->name.data[0] != '.' && !is_excluded(search->finder, path))
                push(search, (struct place){path, NULL, 0, place->depth + 1});
            continue;
        }
        enum directory_verdict verdict = judge(search, place, directory, entry->name);
        if (verdict == ENTRY_TAKEN)
            take_entry(search, directory, join(&search->list->arena, place->path, entry->name));
        else if (verdict == ENTRY_LEFT_OUT)
            leave_out(&left, entry->name);
        parts = parts || verdict == ENTRY_PART;
    }
    bool first = search->parts_count == 0 || slice_compare(place->path, search->first_parts) < 0;
    search->parts_count += parts;
    if (parts && first)
        search->first_parts = place->path;
    note_left_out(search, directory, place->path, &left);
}

// -- patterns -----------------------------------------------------------------------------------

static void match_entries(struct search *search, const struct place *place,
                          const struct directory *directory) {
    const struct glob *glob = place->glob;
    assert(place->part < glob->count);
    struct slice part = glob->parts[place->part];
    bool deep = glob_is_deep(part);
    bool last = place->part + 1 == glob->count;
    for (uint32_t i = 0; i < directory->count; i++) {
        const struct directory_entry *entry = &directory->entries[i];
        if (!glob_match_name(part, entry->name) || entry->type == ENTRY_OTHER)
            continue;
        if (entry->type == ENTRY_DIRECTORY) {
            struct slice path = join(&search->list->arena, place->path, entry->name);
            if (!is_excluded(search->finder, path))
                push(search, (struct place){path, last && !deep ? NULL : glob, place->part + !deep,
                                            place->depth + 1});
            search->matched = search->matched || (last && !deep);
        } else if (last && !deep && directory_judge(directory, entry->name, false) == ENTRY_TAKEN) {
            take_entry(search, directory, join(&search->list->arena, place->path, entry->name));
        }
    }
}

// A path that a pattern ends at or that the include list names.
static void take_path(struct search *search, struct slice path, uint32_t depth) {
    struct stat about;
    if (stat(path.size == 0 ? "." : path.data, &about) != 0)
        return;
    search->matched = true;
    if (S_ISDIR(about.st_mode)) {
        push(search, (struct place){path, NULL, 0, depth});
        return;
    }
    struct found_file file = found(path, directory_kind_of_file(path), &about);
    bool stream = S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode);
    if (stream)
        file.role = FOUND_STREAM;
    if (S_ISREG(about.st_mode) || stream)
        add_file(search, file);
    else
        found_note_add(search->list, false, path, "not read: it is neither a file nor a directory");
}

static void add_directory(struct found_list *list, struct slice path) {
    list->directories = memory_room(list->directories, &list->directory_capacity,
                                    list->directory_count, sizeof *list->directories);
    list->directories[list->directory_count++] = path;
}

// Where a file that the include list names is, or would be.
static void add_parent(struct found_list *list, struct slice path) {
    struct slice directory = path_directory(path);
    if (directory.size > 1)
        directory.size--; // the slash
    add_directory(list, arena_copy(&list->arena, directory));
}

static void look_into(struct search *search, const struct place *place) {
    struct directory directory;
    struct error error;
    if (directory_open(&directory, place->path.data, &error) != STATUS_OK) {
        if (error.status != STATUS_NOT_FOUND)
            found_note_add(search->list, false, place->path, "%s", error.message);
        return;
    }
    if (first_visit(search, &directory, place)) {
        add_directory(search->list, place->path);
        arena_reset(&search->list->scratch);
        assert(search->list->entries <= FIND_ENTRIES_MAX);
        uint64_t left = FIND_ENTRIES_MAX - search->list->entries;
        directory_read(&directory, place->path.data, left, &search->list->scratch);
        search->list->entries += directory.count;
        search->cut = search->cut || directory.cut;
        if (directory.count > 1)
            qsort(directory.entries, directory.count, sizeof *directory.entries, compare_by_slice);
        if (place->glob == NULL)
            search_entries(search, place, &directory);
        else
            match_entries(search, place, &directory);
    }
    directory_close(&directory);
}

static void step(struct search *search, struct place place) {
    assert(place.glob == NULL || place.part <= place.glob->count);
    const struct glob *glob = place.glob;
    if (place.depth > FIND_DEPTH_MAX) {
        found_note_add(search->list, false, place.path, "not searched: it lies more than %d deep",
                       FIND_DEPTH_MAX);
        return;
    }
    if (glob == NULL) {
        look_into(search, &place);
        return;
    }
    if (place.part == glob->count) {
        take_path(search, place.path, place.depth);
        return;
    }
    struct slice part = glob->parts[place.part];
    if (glob_is_deep(part)) {
        push(search, (struct place){place.path, glob, place.part + 1, place.depth});
        // What is below the last `**` is searched by the rules.
        if (place.part + 1 < glob->count)
            look_into(search, &place);
    } else if (glob_has_wildcard(part)) {
        look_into(search, &place);
    } else {
        struct slice path = join(&search->list->arena, place.path, part);
        push(search, (struct place){path, glob, place.part + 1, place.depth + 1});
    }
}

static void run(struct search *search) {
    while (search->place_count > 0)
        step(search, search->places[--search->place_count]);
}

static void search_pattern(struct search *search, const struct glob_list *globs) {
    for (uint32_t i = 0; i < globs->count; i++) {
        const struct glob *glob = &globs->items[i];
        push(search, (struct place){glob->absolute ? SLICE("/") : SLICE(""), glob, 0, 0});
        run(search);
    }
}

static void search_entry(struct search *search, uint32_t index) {
    struct found_list *list = search->list;
    struct slice text = slice_of(search->finder->include.items[index]);
    search->matched = false;
    if (slice_equal(text, SLICE("-"))) {
        add_file(search, (struct found_file){.path = SLICE("-"), .role = FOUND_STANDARD_INPUT});
        return;
    }
    struct stat about;
    add_parent(list, text);
    bool there = stat(text.data, &about) == 0;
    int os_error = errno;
    if (there) {
        while (text.size > 1 && text.data[text.size - 1] == '/')
            text.size--;
        text = arena_copy(&list->arena, text);
        take_path(search, text, 0);
        run(search);
        search->matched = true;
    } else if (glob_has_wildcard(text)) {
        search_pattern(search, &search->finder->include_globs[index]);
        if (!search->matched)
            found_note_add(list, true, text, "matches nothing");
    } else {
        found_note_add(list, true, text, "cannot be read: %s", strerror(os_error));
    }
}

// -- all of it ----------------------------------------------------------------------------------

static void note_parts(struct search *search) {
    assert(search->parts_count > 0 && search->first_parts.data != NULL);
    uint32_t more = search->parts_count - 1;
    char others[64] = "";
    if (more > 0)
        snprintf(others, sizeof others, " and %u more sink%s or dump%s", more, more == 1 ? "" : "s",
                 more == 1 ? "" : "s");
    found_note_add(search->list, false, search->first_parts,
                   "the manifests and reports of this%s are not read: they hold no events",
                   more > 0 ? others : " sink or dump");
}

static void note_limits(struct search *search) {
    struct found_list *list = search->list;
    if (search->parts_count > 0)
        note_parts(search);
    if (search->cut)
        found_note_add(list, false, SLICE("include"),
                       "the search stopped after %d directory entries: name fewer or deeper "
                       "directories",
                       FIND_ENTRIES_MAX);
    uint32_t max = search->finder->max_sources;
    if (list->count > max) {
        found_note_add(list, false, SLICE("include"),
                       "%u files beyond max_sources (%u) are not read, the first of them %s",
                       list->count - max, max, list->files[max].path.data);
        list->count = max;
    }
}

void file_find(const struct file_finder *finder, struct found_list *list) {
    arena_reset(&list->arena);
    list->count = list->note_count = list->directory_count = 0;
    list->entries = 0;
    struct search search = {.finder = finder, .list = list};
    for (uint32_t i = 0; i < finder->include.count; i++)
        search_entry(&search, i);
    memory_give(search.places);
    memory_give(search.visits);
    hash_index_release(&search.seen);
    found_list_order(list);
    note_limits(&search);
}
