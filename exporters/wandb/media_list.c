// SPDX-License-Identifier: Apache-2.0
// Which files does an artifact hold, and what is its digest?
//
// A directory is walked with a list of folders that wait, never by recursion. Its bounds are
// MEDIA_FILES_MAX and MEDIA_DEPTH_MAX, which also end walks in a circle of links. Files are read in
// blocks of 64 KiB.
#include "exporters/wandb/media.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/base64.h>
#include <nettle/md5.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BLOCK = 64 * 1024, FOLDERS_MAX = MEDIA_FILES_MAX };

void media_list_release(struct media_list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        memory_give(list->files[i].name);
        memory_give(list->files[i].source);
    }
    memory_give(list->files);
    *list = (struct media_list){0};
}

// Takes over both texts.
static struct media_file *list_add(struct media_list *list, char *name, char *source) {
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        list->files = memory_resize(list->files, list->capacity * sizeof *list->files);
    }
    struct media_file *file = &list->files[list->count++];
    *file = (struct media_file){.name = name, .source = source};
    return file;
}

void media_list_add_bytes(struct media_list *list, struct slice name, struct slice bytes) {
    struct media_file *file = list_add(list, memory_copy_text(name.data, name.size), NULL);
    file->size = bytes.size;
    media_md5(bytes, file->md5);
}

// -- walking --------------------------------------------------------------------------------------

static char *path_join(const char *folder, const char *name) {
    size_t front = strlen(folder), back = strlen(name);
    char *path = memory_take(front + back + 2);
    memcpy(path, folder, front);
    path[front] = '/';
    memcpy(path + front + 1, name, back + 1);
    return path;
}

// Names go into JSON and protobuf, which hold Unicode only.
static bool is_utf8(const char *name) {
    struct slice text = slice_of(name);
    for (size_t at = 0; at < text.size;) {
        uint32_t point;
        size_t length = utf8_decode(text, at, &point);
        if (length == 0 || (point >= 0xd800 && point <= 0xdfff))
            return false;
        at += length;
    }
    return true;
}

struct folder {
    char *name;   // in the artifact
    char *source; // on this machine
    uint32_t depth;
};

struct walk {
    struct media_list *list;
    struct folder *folders; // that wait; the last is taken next
    uint32_t count, capacity;
    uint32_t seen; // folders in all
};

static enum status walk_push(struct walk *walk, char *name, char *source, uint32_t depth,
                             struct error *error) {
    enum status status = STATUS_OK;
    if (depth > MEDIA_DEPTH_MAX)
        status = error_set(error, STATUS_LIMIT,
                           "%.300s lies more than %d folders deep (does a link lead back up?); "
                           "an artifact is made of at most so many",
                           source, MEDIA_DEPTH_MAX);
    else if (walk->seen++ >= FOLDERS_MAX)
        status = error_set(error, STATUS_LIMIT,
                           "%.300s is one folder too many; an artifact has at "
                           "most %d",
                           source, FOLDERS_MAX);
    if (status != STATUS_OK) {
        memory_give(name);
        memory_give(source);
        return status;
    }
    if (walk->count == walk->capacity) {
        walk->capacity = walk->capacity == 0 ? 8 : walk->capacity * 2;
        walk->folders = memory_resize(walk->folders, walk->capacity * sizeof *walk->folders);
    }
    walk->folders[walk->count++] = (struct folder){name, source, depth};
    return STATUS_OK;
}

// Takes over both texts. What is neither file nor folder (sockets, links to nothing) is no content.
static enum status walk_entry(struct walk *walk, char *name, char *source, uint32_t depth,
                              struct error *error) {
    struct stat about;
    enum status status = STATUS_OK;
    if (stat(source, &about) != 0) {
        int failure = errno;
        if (failure != ENOENT && failure != ELOOP)
            status = error_set_os(error, STATUS_IO, failure, "looking at %.300s", source);
    } else if (!is_utf8(name)) {
        status = error_set(error, STATUS_BAD_DATA,
                           "the name of %.300s is not UTF-8; W&B takes no other names", source);
    } else if (S_ISDIR(about.st_mode)) {
        return walk_push(walk, name, source, depth, error);
    } else if (S_ISREG(about.st_mode) && walk->list->count >= MEDIA_FILES_MAX) {
        status = error_set(error, STATUS_LIMIT,
                           "%.300s is one file too many; an artifact holds at most %d", source,
                           MEDIA_FILES_MAX);
    } else if (S_ISREG(about.st_mode)) {
        list_add(walk->list, name, source);
        return STATUS_OK;
    }
    memory_give(name);
    memory_give(source);
    return status;
}

static enum status walk_folder(struct walk *walk, const struct folder *folder,
                               struct error *error) {
    DIR *stream = opendir(folder->source);
    if (stream == NULL)
        return error_set_os(error, STATUS_IO, errno, "reading the folder %.300s", folder->source);
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            if (errno != 0)
                status = error_set_os(error, STATUS_IO, errno, "reading the folder %.300s",
                                      folder->source);
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        status = walk_entry(walk, path_join(folder->name, entry->d_name),
                            path_join(folder->source, entry->d_name), folder->depth + 1, error);
    }
    closedir(stream);
    return status;
}

static int file_compare(const void *left, const void *right) {
    const struct media_file *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static void list_sort(struct media_list *list) {
    struct arena scratch;
    arena_init(&scratch, 4096);
    if (list->count > 1)
        sort_stable(list->files, list->count, sizeof *list->files, &scratch, file_compare);
    arena_release(&scratch);
}

// The last part of a path; of "." and "/x/.." that of the folder it leads to. From memory_take.
static char *base_name(const char *path) {
    char real[PATH_MAX];
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    struct slice name = {path + start, end - start};
    if ((slice_equal(name, SLICE(".")) || slice_equal(name, SLICE(".."))) &&
        realpath(path, real) != NULL) {
        const char *slash = strrchr(real, '/');
        name = slice_of(slash == NULL ? real : slash + 1);
    }
    return memory_copy_text(name.data, name.size);
}

static enum status list_add_path(struct media_list *list, struct slice path, struct error *error) {
    struct walk walk = {.list = list};
    struct stat about;
    char *source = memory_copy_text(path.data, path.size);
    if (stat(source, &about) != 0) {
        enum status missing = error_set_os(error, STATUS_IO, errno, "looking at %.300s", source);
        memory_give(source);
        return missing;
    }
    enum status status = walk_entry(&walk, base_name(source), source, 0, error);
    while (status == STATUS_OK && walk.count > 0) {
        struct folder folder = walk.folders[--walk.count];
        status = walk_folder(&walk, &folder, error);
        memory_give(folder.name);
        memory_give(folder.source);
    }
    while (walk.count > 0) {
        struct folder folder = walk.folders[--walk.count];
        memory_give(folder.name);
        memory_give(folder.source);
    }
    memory_give(walk.folders);
    return status;
}

enum status media_list_add_path(struct media_list *list, struct slice paths, struct error *error) {
    enum status status = STATUS_OK;
    for (size_t at = 0; status == STATUS_OK && at < paths.size;) {
        const char *end = memchr(paths.data + at, '\0', paths.size - at);
        size_t size = end == NULL ? paths.size - at : (size_t)(end - paths.data) - at;
        status = list_add_path(list, (struct slice){paths.data + at, size}, error);
        at += size + 1;
    }
    list_sort(list);
    return status;
}

// -- reading --------------------------------------------------------------------------------------

static int copy_write(int descriptor, const char *data, size_t size) {
    while (descriptor >= 0 && size > 0) {
        ssize_t written = write(descriptor, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written == 0 ? EIO : errno;
        data += written;
        size -= (size_t)written;
    }
    return 0;
}

static enum status too_large(const struct media_file *file, struct error *error) {
    return error_set(error, STATUS_LIMIT,
                     "%.300s has 2 GiB or more, too much for a file of an artifact", file->source);
}

static enum status blocks_read(struct media_file *file, int from, int copy, struct md5_ctx *hash,
                               struct error *error) {
    char *block = memory_take(READ_BLOCK);
    enum status status = STATUS_OK;
    file->size = 0;
    while (status == STATUS_OK) {
        ssize_t got = read(from, block, READ_BLOCK);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = error_set_os(error, STATUS_IO, errno, "reading %.300s", file->source);
        if (got <= 0)
            break;
        file->size += (uint64_t)got;
        md5_update(hash, (size_t)got, (const uint8_t *)block);
        int failure = copy_write(copy, block, (size_t)got);
        if (failure != 0)
            status = error_set(error, STATUS_CANNOT_CREATE, "copying %.300s: %s", file->source,
                               strerror(failure));
        else if (file->size >= MEDIA_FILE_SIZE_MAX) // it grew
            status = too_large(file, error);
    }
    memory_give(block);
    return status;
}

enum status media_file_read(struct media_file *file, int copy, struct error *error) {
    struct md5_ctx hash;
    uint8_t digest[MD5_DIGEST_SIZE];
    struct stat about;
    // Without waiting for a writer when it has become a pipe since it was listed.
    int from = open(file->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from < 0)
        return error_set_os(error, STATUS_IO, errno, "opening %.300s", file->source);
    enum status status = STATUS_OK;
    if (fstat(from, &about) != 0 || !S_ISREG(about.st_mode))
        status =
            error_set(error, STATUS_BAD_DATA, "%.300s is no longer a regular file", file->source);
    else if ((uint64_t)about.st_size >= MEDIA_FILE_SIZE_MAX)
        status = too_large(file, error);
    md5_init(&hash);
    if (status == STATUS_OK)
        status = blocks_read(file, from, copy, &hash, error);
    close(from);
    md5_digest(&hash, sizeof digest, digest);
    base64_encode_raw(file->md5, sizeof digest, digest);
    file->md5[MEDIA_MD5_SIZE - 1] = '\0';
    return status;
}

void media_list_digest(struct media_list *list, char hex[MEDIA_DIGEST_SIZE]) {
    static const char first[] = "wandb-artifact-manifest-v1\n";
    struct md5_ctx hash;
    uint8_t digest[MD5_DIGEST_SIZE];
    list_sort(list);
    md5_init(&hash);
    md5_update(&hash, sizeof first - 1, (const uint8_t *)first);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct media_file *file = &list->files[i];
        md5_update(&hash, strlen(file->name), (const uint8_t *)file->name);
        md5_update(&hash, 1, (const uint8_t *)":");
        md5_update(&hash, MEDIA_MD5_SIZE - 1, (const uint8_t *)file->md5);
        md5_update(&hash, 1, (const uint8_t *)"\n");
    }
    md5_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}
