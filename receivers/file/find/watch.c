// SPDX-License-Identifier: Apache-2.0
// One inotify descriptor; a table from its numbers to paths and an index the other way. Bound:
// 65,536 directories, one path each.
#include "receivers/file/find/watch.h"

#include "base/hash/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

static const uint32_t watch_mask = IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE |
                                   IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |
                                   IN_ONLYDIR;

void file_watch_open(struct file_watch *watch) {
    *watch = (struct file_watch){.descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
    if (watch->descriptor < 0)
        watch->failed_error = errno;
}

void file_watch_close(struct file_watch *watch) {
    if (watch->descriptor >= 0)
        close(watch->descriptor);
    for (uint32_t i = 0; i < watch->count; i++)
        memory_give(watch->directories[i].path);
    memory_give(watch->directories);
    hash_index_release(&watch->by_path);
    *watch = (struct file_watch){.descriptor = -1};
}

static bool is_watched(const struct file_watch *watch, struct slice path) {
    uint32_t probe = 0, at;
    while ((at = hash_index_next(&watch->by_path, hash_slice(path), &probe)) != HASH_INDEX_NONE)
        if (slice_equal(slice_of(watch->directories[at].path), path))
            return true;
    return false;
}

static struct watched_directory *directory_of_number(struct file_watch *watch, int number) {
    // Numbers are handed out in rising order, so the table is sorted by them.
    uint32_t low = 0, high = watch->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (watch->directories[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    bool there = low < watch->count && watch->directories[low].number == number;
    return there && watch->directories[low].path != NULL ? &watch->directories[low] : NULL;
}

bool file_watch_directory(struct file_watch *watch, struct slice path) {
    if (watch->descriptor < 0 || is_watched(watch, path))
        return false;
    if (watch->count == WATCH_MAX) {
        watch->failed_error = ENOSPC;
        return false;
    }
    char *text = memory_copy_text(path.data, path.size);
    int number = inotify_add_watch(watch->descriptor, text[0] == '\0' ? "." : text, watch_mask);
    bool known = watch->count > 0 && number <= watch->directories[watch->count - 1].number;
    if (number < 0 || known) {
        // Known under another path already, or beyond the system's limit.
        if (number < 0 && errno != ENOENT && watch->failed_error == 0)
            watch->failed_error = errno;
        memory_give(text);
        return false;
    }
    watch->directories =
        memory_room(watch->directories, &watch->capacity, watch->count, sizeof *watch->directories);
    hash_index_add(&watch->by_path, hash_slice(path), watch->count);
    watch->directories[watch->count++] = (struct watched_directory){number, text};
    return true;
}

static void forget(struct file_watch *watch, int number) {
    assert(watch->count <= WATCH_MAX);
    struct watched_directory *directory = directory_of_number(watch, number);
    if (directory == NULL)
        return;
    hash_index_remove(&watch->by_path, hash_slice(slice_of(directory->path)),
                      (uint32_t)(directory - watch->directories));
    memory_give(directory->path);
    directory->path = NULL;
}

static void set_path(struct file_watch *watch, const struct watched_directory *directory,
                     const struct inotify_event *told, struct watch_event *event) {
    assert(directory->path != NULL);
    const char *name = told->len > 0 ? told->name : "";
    size_t size = strlen(directory->path);
    const char *slash = size == 0 || directory->path[size - 1] == '/' || name[0] == '\0' ? "" : "/";
    int length = snprintf(watch->path, sizeof watch->path, "%s%s%s", directory->path, slash, name);
    event->path =
        (struct slice){watch->path, length < 0                         ? 0
                                    : length < (int)sizeof watch->path ? (size_t)length
                                                                       : sizeof watch->path - 1};
}

static bool fill(struct file_watch *watch) {
    if (watch->descriptor < 0)
        return false;
    ssize_t got = read(watch->descriptor, watch->events, sizeof watch->events);
    watch->event_at = 0;
    watch->event_end = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static enum watch_kind kind_of(uint32_t mask) {
    if ((mask & IN_MOVED_FROM) != 0)
        return WATCH_MOVED_FROM;
    if ((mask & IN_MOVED_TO) != 0)
        return WATCH_MOVED_TO;
    return (mask & (IN_MODIFY | IN_CLOSE_WRITE)) != 0 ? WATCH_CHANGED : WATCH_NAMES;
}

bool file_watch_next(struct file_watch *watch, struct watch_event *event) {
    for (;;) {
        if (watch->event_at == watch->event_end && !fill(watch))
            return false;
        struct inotify_event told;
        const char *at = watch->events + watch->event_at;
        memcpy(&told, at, sizeof told);
        watch->event_at += sizeof told + told.len;
        assert(watch->event_at <= watch->event_end);
        *event = (struct watch_event){.kind = kind_of(told.mask), .cookie = told.cookie};
        if ((told.mask & IN_MOVE_SELF) != 0)
            inotify_rm_watch(watch->descriptor, told.wd);
        if ((told.mask & (IN_IGNORED | IN_MOVE_SELF)) != 0)
            forget(watch, told.wd);
        if ((told.mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_MOVE_SELF)) != 0) {
            event->kind = (told.mask & IN_Q_OVERFLOW) != 0 ? WATCH_LOST : WATCH_NAMES;
            event->path = SLICE("");
            return true;
        }
        const struct watched_directory *directory = directory_of_number(watch, told.wd);
        if (directory == NULL)
            continue;
        set_path(watch, directory, (const struct inotify_event *)(const void *)at, event);
        return true;
    }
}
