// SPDX-License-Identifier: Apache-2.0
// Names and opens what stands beside the store's file.
#include "extensions/file_storage/store_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void path_beside(char name[STORE_PATH_ROOM], const char *path, const char *suffix) {
    int size = snprintf(name, STORE_PATH_ROOM, "%s%s", path, suffix);
    assert(size > 0 && size < STORE_PATH_ROOM);
}

void directory_of(const char *path, char directory[STORE_PATH_ROOM]) {
    const char *slash = strrchr(path, '/');
    assert(slash != NULL);
    snprintf(directory, STORE_PATH_ROOM, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

int open_beside(const char *path, const char *suffix, int flags) {
    char name[STORE_PATH_ROOM];
    path_beside(name, path, suffix);
    return open(name, flags | O_CLOEXEC, 0640);
}

uint64_t size_beside(const char *path, const char *suffix) {
    char name[STORE_PATH_ROOM];
    struct stat about;
    path_beside(name, path, suffix);
    return stat(name, &about) == 0 ? (uint64_t)about.st_size : 0;
}

void unlink_beside(const char *path, const char *suffix) {
    char name[STORE_PATH_ROOM];
    path_beside(name, path, suffix);
    (void)unlink(name);
}

void sync_path(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    (void)fsync(file);
    close(file);
}

void sync_directory_of(const char *path) {
    char directory[STORE_PATH_ROOM];
    directory_of(path, directory);
    sync_path(directory);
}
