// SPDX-License-Identifier: Apache-2.0
// Tells whether two paths name the same file, whether it exists yet or not.
//
// What is there is told by device and inode. What is not is told by those of its directory and by
// its name, after links that point to nothing yet have been followed. Where not even the directory
// is there, the spelling has to do.
#include "base/path_identity.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

// Without "//", "/./" and "/../"; a relative path gets the working directory before it with `look`.
static const char *path_plain(struct arena *arena, const char *path, bool look) {
    char working[PATH_MAX];
    if (path[0] != '/' && look && getcwd(working, sizeof working) != NULL)
        path = arena_format(arena, "%s/%s", working, path);
    char *plain = arena_take(arena, strlen(path) + 2);
    size_t size = 0;
    for (const char *at = path; *at != '\0';) {
        at += strspn(at, "/");
        size_t length = strcspn(at, "/");
        bool above = length == 2 && memcmp(at, "..", 2) == 0;
        bool nothing = length == 0 || (length == 1 && *at == '.');
        const char *last = size == 0 ? NULL : memrchr(plain, '/', size);
        if (above && last != NULL && strncmp(last, "/..", size - (size_t)(last - plain)) != 0) {
            size = (size_t)(last - plain);
        } else if (!nothing && !(above && path[0] == '/')) {
            plain[size++] = '/';
            memcpy(plain + size, at, length);
            size += length;
        }
        at += length;
    }
    plain[size] = '\0';
    // A relative one keeps apart from an absolute one.
    return path[0] == '/' ? plain : arena_format(arena, ".%s", plain);
}

static const char *directory_of(struct arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return ".";
    return arena_text(arena, (struct slice){path, slash == path ? 1 : (size_t)(slash - path)});
}

// What a link that points to nothing stands for; other paths as they are.
static const char *link_target(struct arena *arena, const char *path) {
    char target[PATH_MAX];
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t size = readlink(path, target, sizeof target);
        if (size <= 0 || size == (ssize_t)sizeof target)
            break;
        const char *text = arena_text(arena, (struct slice){target, (size_t)size});
        path = *text == '/' ? text : arena_format(arena, "%s/%s", directory_of(arena, path), text);
    }
    return path;
}

static const char *inode_text(struct arena *arena, const struct stat *about, const char *name) {
    return arena_format(arena, "%llu:%llu/%s", (unsigned long long)about->st_dev,
                        (unsigned long long)about->st_ino, name);
}

const char *path_identity(struct arena *arena, const char *path, bool look) {
    struct stat about;
    if (!look)
        return path_plain(arena, path, false);
    if (stat(path, &about) == 0) {
        bool stream = S_ISCHR(about.st_mode) || S_ISFIFO(about.st_mode) || S_ISBLK(about.st_mode);
        return stream ? NULL : inode_text(arena, &about, "");
    }
    const char *target = link_target(arena, path);
    const char *slash = strrchr(target, '/');
    if (stat(directory_of(arena, target), &about) == 0)
        return inode_text(arena, &about, slash == NULL ? target : slash + 1);
    return path_plain(arena, target, true);
}
