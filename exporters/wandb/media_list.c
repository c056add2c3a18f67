// SPDX-License-Identifier: Apache-2.0
// Finds the files of an artifact, reads them and computes its digest.
//
// A directory is walked along the list that it fills, never by recursion. Its bounds are
// MEDIA_FILES_MAX and MEDIA_DEPTH_MAX, which also end walks in a circle of links. Files are read in
// blocks of 64 KiB.
#include "exporters/wandb/media.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/utf8.h"
#include "exporters/wandb/files.h"

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

enum { READ_BLOCK = 64 * 1024, FOLDERS_MAX = MEDIA_FILES_MAX, TEXTS_BLOCK = 16 * 1024 };

void media_list_release(struct media_list *list) {
    memory_give(list->files);
    if (list->texts.block_size > 0)
        arena_release(&list->texts);
    *list = (struct media_list){0};
}

// A text of the list: NAME, or FOLDER/NAME.
static char *list_text(struct media_list *list, const char *folder, struct slice name) {
    if (list->texts.block_size == 0)
        arena_init(&list->texts, TEXTS_BLOCK);
    if (folder == NULL)
        return arena_text(&list->texts, name);
    return arena_format(&list->texts, "%s/%.*s", folder, (int)name.size, name.data);
}

static struct media_file *list_add(struct media_list *list, struct media_file file) {
    assert(file.name != NULL);
    list->files = memory_room(list->files, &list->capacity, list->count, sizeof *list->files);
    list->files[list->count] = file;
    return &list->files[list->count++];
}

void media_list_add_bytes(struct media_list *list, struct slice name, struct slice bytes) {
    struct media_file *file = list_add(
        list, (struct media_file){.name = list_text(list, NULL, name), .size = bytes.size});
    media_md5(bytes, file->md5);
}

// -- walking --------------------------------------------------------------------------------------

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

// Adds a file or a folder. What is neither (sockets, links to nothing) is no content.
static enum status entry_add(struct media_list *list, struct media_file entry, uint32_t *folders,
                             struct error *error) {
    struct stat about;
    if (stat(entry.source, &about) != 0)
        return errno == ENOENT || errno == ELOOP
                   ? STATUS_OK
                   : error_set_os(error, STATUS_IO, errno, "looking at %.300s", entry.source);
    entry.is_folder = S_ISDIR(about.st_mode);
    if (!is_utf8(entry.name))
        return error_set(error, STATUS_BAD_DATA,
                         "the name of %.300s is not UTF-8; W&B takes no other names", entry.source);
    if (!entry.is_folder && !S_ISREG(about.st_mode))
        return STATUS_OK;
    if (entry.is_folder && entry.depth > MEDIA_DEPTH_MAX)
        return error_set(error, STATUS_LIMIT,
                         "%.300s lies more than %d folders deep (does a link lead back up?); an "
                         "artifact is made of at most so many",
                         entry.source, MEDIA_DEPTH_MAX);
    if (entry.is_folder ? *folders >= FOLDERS_MAX : list->count - *folders >= MEDIA_FILES_MAX)
        return error_set(error, STATUS_LIMIT,
                         "%.300s is one %s too many; an artifact holds at most %d", entry.source,
                         entry.is_folder ? "folder" : "file",
                         entry.is_folder ? FOLDERS_MAX : MEDIA_FILES_MAX);
    *folders += entry.is_folder;
    list_add(list, entry);
    return STATUS_OK;
}

static enum status folder_read(struct media_list *list, struct media_file folder, uint32_t *folders,
                               struct error *error) {
    assert(folder.is_folder && folder.source != NULL);
    DIR *stream = opendir(folder.source);
    const struct dirent *entry = NULL;
    enum status status = STATUS_OK;
    errno = stream == NULL ? errno : 0;
    while (stream != NULL && status == STATUS_OK && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            struct slice name = slice_of(entry->d_name);
            struct media_file file = {.name = list_text(list, folder.name, name),
                                      .source = list_text(list, folder.source, name),
                                      .depth = folder.depth + 1};
            status = entry_add(list, file, folders, error);
        }
        errno = 0;
    }
    if (status == STATUS_OK && errno != 0)
        status = error_set_os(error, STATUS_IO, errno, "reading the folder %.300s", folder.source);
    if (stream != NULL)
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

// The last part of a path; of "." and "/x/.." that of the folder it leads to, in `real`.
static struct slice base_name(const char *path, char real[PATH_MAX]) {
    struct slice name = wandb_base_name(path);
    if ((slice_equal(name, SLICE(".")) || slice_equal(name, SLICE(".."))) &&
        realpath(path, real) != NULL)
        name = wandb_base_name(real);
    return name;
}

// Folders stand in the list until they were read, and are taken out at the end.
static enum status list_add_path(struct media_list *list, struct slice path, struct error *error) {
    struct stat about;
    char real[PATH_MAX];
    uint32_t folders = 0, first = list->count, kept = list->count;
    const char *source = list_text(list, NULL, path);
    if (stat(source, &about) != 0)
        return error_set_os(error, STATUS_IO, errno, "looking at %.300s", source);
    struct media_file file = {.name = list_text(list, NULL, base_name(source, real)),
                              .source = source};
    enum status status = entry_add(list, file, &folders, error);
    for (uint32_t i = first; i < list->count && status == STATUS_OK; i++)
        if (list->files[i].is_folder)
            status = folder_read(list, list->files[i], &folders, error);
    for (uint32_t i = first; i < list->count; i++)
        if (!list->files[i].is_folder)
            list->files[kept++] = list->files[i];
    list->count = kept;
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
        int failure = copy < 0 ? 0 : wandb_write_all(copy, (struct slice){block, (size_t)got});
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
    assert(file->source != NULL && !file->is_folder);
    struct md5_ctx hash;
    uint8_t digest[MD5_DIGEST_SIZE];
    struct stat about;
    assert(file->source != NULL && !file->is_folder);
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
