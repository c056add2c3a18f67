// SPDX-License-Identifier: Apache-2.0
// See disk_image.h. A file holds its durable bytes and pointers to the records since; memory is
// that of the files and the log. A crash costs the size of the files that it writes.
#include "tests/fault/disk_image.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SECTOR = 512, NAME_ROOM = 256, NAMES_MAX = 256, PATH_ROOM = 4608 };

struct stored_file {
    uint8_t *bytes; // durable
    size_t size, capacity;
    const struct disk_record **pending; // writes and truncations since
    uint32_t pending_count, pending_capacity;
    uint64_t size_now;
};

struct name {
    char text[NAME_ROOM];
    uint32_t file; // place in `files`
};

struct names {
    struct name items[NAMES_MAX];
    uint32_t count;
};

struct name_change {
    char from[NAME_ROOM]; // "" for one that was made
    char to[NAME_ROOM];   // "" for one that was removed
    uint32_t file;
};

struct disk_image {
    const struct disk_log *log;
    size_t at;
    struct stored_file *files;
    uint32_t file_count, file_capacity;
    uint32_t *numbers; // of the log's file numbers: place in `files`
    uint32_t number_count;
    struct names now, durable;
    struct name_change *changes; // of names, since the folder was synced
    uint32_t change_count, change_capacity;
};

static void *resized(void *block, size_t size) {
    void *grown = realloc(block, size);
    if (grown == NULL)
        abort();
    return grown;
}

_Noreturn static void give_up(const char *what, const char *path) {
    fprintf(stderr, "disk_image: %s: ", what);
    perror(path);
    exit(70);
}

// -- bytes --------------------------------------------------------------------------------------

struct bytes {
    uint8_t *data;
    size_t size, capacity;
};

static void bytes_size(struct bytes *bytes, size_t size) {
    if (size > bytes->capacity) {
        bytes->capacity = size * 2;
        bytes->data = resized(bytes->data, bytes->capacity);
    }
    if (size > bytes->size)
        memset(bytes->data + bytes->size, 0, size - bytes->size);
    bytes->size = size;
}

static void bytes_put(struct bytes *bytes, size_t at, const uint8_t *data, size_t size) {
    if (size == 0)
        return;
    if (at + size > bytes->size)
        bytes_size(bytes, at + size);
    memcpy(bytes->data + at, data, size);
}

// -- files --------------------------------------------------------------------------------------

static uint32_t file_new(struct disk_image *image) {
    if (image->file_count == image->file_capacity) {
        image->file_capacity = image->file_capacity * 2 + 16;
        image->files = resized(image->files, image->file_capacity * sizeof *image->files);
    }
    image->files[image->file_count] = (struct stored_file){0};
    return image->file_count++;
}

static void number_set(struct disk_image *image, uint32_t number, uint32_t file) {
    if (number >= image->number_count) {
        uint32_t count = number * 2 + 16;
        image->numbers = resized(image->numbers, count * sizeof *image->numbers);
        memset(image->numbers + image->number_count, 0xff,
               (count - image->number_count) * sizeof *image->numbers);
        image->number_count = count;
    }
    image->numbers[number] = file;
}

static struct stored_file *file_of(struct disk_image *image, const struct disk_record *record) {
    if (record->file >= image->number_count || image->numbers[record->file] >= image->file_count) {
        fprintf(stderr, "disk_image: the log changes file %u, which it never opened\n",
                record->file);
        exit(70);
    }
    return &image->files[image->numbers[record->file]];
}

static void file_change(struct stored_file *file, const struct disk_record *record) {
    if (file->pending_count == file->pending_capacity) {
        file->pending_capacity = file->pending_capacity * 2 + 16;
        file->pending =
            resized(file->pending, file->pending_capacity * sizeof(struct disk_record *));
    }
    file->pending[file->pending_count++] = record;
    uint64_t end = record->offset + record->size;
    if (record->kind == DISK_TRUNCATE)
        file->size_now = record->size;
    else if (end > file->size_now)
        file->size_now = end;
}

static void file_sync(struct stored_file *file) {
    struct bytes bytes = {file->bytes, file->size, file->capacity};
    for (uint32_t i = 0; i < file->pending_count; i++) {
        const struct disk_record *record = file->pending[i];
        if (record->kind == DISK_TRUNCATE)
            bytes_size(&bytes, (size_t)record->size);
        else
            bytes_put(&bytes, (size_t)record->offset, disk_record_bytes(record),
                      (size_t)record->size);
    }
    file->bytes = bytes.data;
    file->size = bytes.size;
    file->capacity = bytes.capacity;
    file->pending_count = 0;
}

// -- names --------------------------------------------------------------------------------------

static struct name *name_find(struct names *names, const char *text) {
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i].text, text) == 0)
            return &names->items[i];
    return NULL;
}

static void name_remove(struct names *names, const char *text) {
    struct name *name = name_find(names, text);
    if (name != NULL)
        *name = names->items[--names->count];
}

static void name_set(struct names *names, const char *text, uint32_t file) {
    name_remove(names, text);
    if (names->count == NAMES_MAX)
        give_up("too many names", text);
    struct name *name = &names->items[names->count++];
    snprintf(name->text, sizeof name->text, "%s", text);
    name->file = file;
}

static void change_apply(struct names *names, const struct name_change *change) {
    struct name *source = change->from[0] == '\0' ? NULL : name_find(names, change->from);
    // A name that stands for another file by now is not this change's.
    if (source != NULL && (source->file == change->file || change->to[0] == '\0'))
        name_remove(names, change->from);
    if (change->to[0] != '\0')
        name_set(names, change->to, change->file);
}

static void change_add(struct disk_image *image, struct name_change change) {
    if (image->change_count == image->change_capacity) {
        image->change_capacity = image->change_capacity * 2 + 16;
        image->changes = resized(image->changes, image->change_capacity * sizeof change);
    }
    image->changes[image->change_count++] = change;
    change_apply(&image->now, &change);
}

static void text_of(char text[NAME_ROOM], const char *bytes, size_t size) {
    if (size >= NAME_ROOM)
        give_up("a name is too long", bytes);
    memcpy(text, bytes, size);
    text[size] = '\0';
}

// -- the log ------------------------------------------------------------------------------------

static void named(struct disk_image *image, const struct disk_record *record) {
    struct name_change change = {0};
    const char *path = disk_record_path(record);
    text_of(change.from, path, record->path_size);
    struct name *name = name_find(&image->now, change.from);
    if (record->kind == DISK_OPEN) {
        if (name == NULL)
            give_up("the log opens what is not there", change.from);
        number_set(image, record->file, name->file);
        return;
    }
    if (record->kind == DISK_CREATE) {
        change.file = file_new(image);
        number_set(image, record->file, change.file);
        memcpy(change.to, change.from, sizeof change.to);
        change.from[0] = '\0';
    } else {
        if (name == NULL)
            give_up("the log moves what is not there", change.from);
        change.file = name->file;
        if (record->kind == DISK_RENAME)
            text_of(change.to, path + record->path_size, record->other_size);
    }
    change_add(image, change);
}

bool disk_image_step(struct disk_image *image, const struct disk_record **out) {
    if (image->at + sizeof(struct disk_record) > image->log->size)
        return false;
    const struct disk_record *record =
        (const struct disk_record *)(const void *)(image->log->data + image->at);
    if (image->at + disk_record_size(record) > image->log->size)
        return false; // it was being written when its process was killed
    image->at += disk_record_size(record);
    *out = record;
    switch ((enum disk_kind)record->kind) {
    case DISK_CREATE:
    case DISK_OPEN:
    case DISK_RENAME:
    case DISK_UNLINK:
        named(image, record);
        break;
    case DISK_WRITE:
    case DISK_TRUNCATE:
        file_change(file_of(image, record), record);
        break;
    case DISK_SYNC:
        file_sync(file_of(image, record));
        break;
    case DISK_SYNC_NAMES: // folders are few here: one sync counts for all names
        image->durable = image->now;
        image->change_count = 0;
        break;
    case DISK_MARK:
        break;
    }
    return true;
}

// -- a crash ------------------------------------------------------------------------------------

static uint64_t mixed(uint64_t value) {
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

// How many of the changes since the sync a place of a file has seen.
static uint32_t seen_by(uint64_t seed, uint32_t file, uint64_t place, uint32_t count) {
    uint64_t dice = mixed(seed ^ mixed((uint64_t)file << 48 ^ place));
    switch (seed % 7) {
    case 0:
        return 0;
    case 1:
        return count;
    case 2:
        return dice % 2 == 0 ? 0 : count;
    case 3:
        return dice % 16 == 0 ? 0 : count;
    case 4:
        return dice % 16 == 0 ? count : 0;
    case 5: // the last change is torn
        return dice % 2 == 0 || count == 0 ? count : count - 1;
    default:
        return (uint32_t)(dice % ((uint64_t)count + 1));
    }
}

static void file_crash(const struct stored_file *file, uint32_t number, uint64_t seed,
                       struct bytes *bytes) {
    bytes->size = 0;
    bytes_put(bytes, 0, file->bytes, file->size);
    uint32_t length_seen = seen_by(seed, number, UINT64_MAX >> 16, file->pending_count);
    for (uint32_t i = 0; i < file->pending_count; i++) {
        const struct disk_record *record = file->pending[i];
        if (record->kind == DISK_TRUNCATE) {
            if (i < length_seen)
                bytes_size(bytes, (size_t)record->size);
            continue;
        }
        const uint8_t *data = disk_record_bytes(record);
        for (uint64_t at = record->offset, end = at + record->size; at < end;) {
            uint64_t next = (at / SECTOR + 1) * SECTOR < end ? (at / SECTOR + 1) * SECTOR : end;
            if (i < seen_by(seed, number, at / SECTOR, file->pending_count))
                bytes_put(bytes, (size_t)at, data + (at - record->offset), (size_t)(next - at));
            at = next;
        }
    }
    if (file->size_now > bytes->size && mixed(seed + number) % 4 == 0)
        bytes_size(bytes, (size_t)file->size_now);
}

static void file_put(const char *folder, const char *name, const struct bytes *bytes) {
    char path[PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (file < 0 || write(file, bytes->data, bytes->size) != (ssize_t)bytes->size)
        give_up("writing", path);
    close(file);
}

static void folder_empty(const char *folder, struct names *kept) {
    char path[PATH_ROOM];
    DIR *list = opendir(folder);
    if (list == NULL)
        give_up("listing", folder);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (entry->d_type != DT_REG || name_find(kept, entry->d_name) != NULL)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    closedir(list);
}

void disk_crash(const struct disk_image *image, uint64_t seed, const char *folder) {
    struct names names = image->durable;
    bool ordered = mixed(seed) % 4 != 0;
    uint32_t first = seen_by(seed, UINT32_MAX, 0, image->change_count);
    for (uint32_t i = 0; i < image->change_count; i++)
        if (ordered ? i < first : mixed(seed + i) % 2 == 0)
            change_apply(&names, &image->changes[i]);
    folder_empty(folder, &names);
    struct bytes bytes = {0};
    for (uint32_t i = 0; i < names.count; i++) {
        uint32_t file = names.items[i].file;
        file_crash(&image->files[file], file, seed, &bytes);
        file_put(folder, names.items[i].text, &bytes);
    }
    free(bytes.data);
}

// -- the beginning ------------------------------------------------------------------------------

static void file_load(struct disk_image *image, const char *folder, const char *name) {
    char path[PATH_ROOM];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &about) != 0)
        give_up("reading", path);
    uint32_t number = file_new(image);
    struct stored_file *file = &image->files[number];
    file->size = file->capacity = (size_t)about.st_size;
    file->size_now = file->size;
    file->bytes = resized(NULL, file->size + 1);
    if (read(descriptor, file->bytes, file->size) != (ssize_t)file->size)
        give_up("reading", path);
    close(descriptor);
    name_set(&image->durable, name, number);
}

struct disk_image *disk_image_new(const char *folder, const struct disk_log *log) {
    struct disk_image *image = calloc(1, sizeof *image);
    if (image == NULL)
        abort();
    image->log = log;
    DIR *list = opendir(folder);
    if (list == NULL)
        give_up("listing", folder);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (entry->d_type == DT_REG)
            file_load(image, folder, entry->d_name);
    closedir(list);
    image->now = image->durable;
    return image;
}

void disk_image_free(struct disk_image *image) {
    for (uint32_t i = 0; i < image->file_count; i++) {
        free(image->files[i].bytes);
        free(image->files[i].pending);
    }
    free(image->files);
    free(image->numbers);
    free(image->changes);
    free(image);
}
