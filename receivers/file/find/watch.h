// SPDX-License-Identifier: Apache-2.0
// Tells at once when something changes in a directory, where the system can.
//
// inotify on directories. Where it is not there, or its limits are reached, nothing is told and the
// owner's polling finds the change later.
#pragma once

#include "base/hash/hash_index.h"
#include "base/slice.h"

#include <stdint.h>

enum { WATCH_MAX = 1 << 16, WATCH_PATH_MAX = 4096 + 256 };

enum watch_kind {
    WATCH_CHANGED,    // the file at `path` was written to
    WATCH_NAMES,      // names came, went or changed in the directory
    WATCH_MOVED_FROM, // `path` got another name; `cookie` is that of its WATCH_MOVED_TO
    WATCH_MOVED_TO,
    WATCH_LOST, // more happened than could be told
};

struct watch_event {
    enum watch_kind kind;
    struct slice path; // ends in a zero byte; until the next call
    uint32_t cookie;
};

struct watched_directory {
    int number;
    char *path; // NULL: no longer watched
};

struct file_watch {
    int descriptor;   // -1: nothing is told
    int failed_error; // errno of the first directory that could not be watched; 0 none
    struct watched_directory *directories;
    uint32_t count;
    uint32_t capacity;
    struct hash_index by_path;
    char path[WATCH_PATH_MAX];
    _Alignas(8) char events[16 << 10];
    size_t event_at;
    size_t event_end;
};

void file_watch_open(struct file_watch *watch);
void file_watch_close(struct file_watch *watch);
// True when the directory was not watched before and now is.
bool file_watch_directory(struct file_watch *watch, struct slice path);
// The next thing that was told; false when there is none. Never waits.
bool file_watch_next(struct file_watch *watch, struct watch_event *event);
