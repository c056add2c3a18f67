// SPDX-License-Identifier: Apache-2.0
// Which of the files is this, and where were we in it?
//
// An array of files, found by inode and by path through two chained hashes that are rebuilt when
// the array has doubled or a name changed. Descriptors are few: a hand goes round and closes one
// that is idle. Some 300 bytes a file and its path.
#include "receivers/file/follow/track.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TRIED_FOR_IDLE = 16 };

struct track_mark track_mark_of(struct slice bytes) {
    if (bytes.size > TRACK_MARK_MAX) {
        bytes.data += bytes.size - TRACK_MARK_MAX;
        bytes.size = TRACK_MARK_MAX;
    }
    return (struct track_mark){hash_slice(bytes), (uint32_t)bytes.size};
}

bool track_mark_fits(struct track_mark mark, const char *bytes) {
    return mark.size == 0 || hash_slice((struct slice){bytes, mark.size}) == mark.hash;
}

void track_init(struct track_table *table) {
    *table = (struct track_table){.open_max = TRACK_OPEN_MAX};
    // Half of what the process may have is left to the others in it.
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < TRACK_OPEN_MAX)
        table->open_max = limit.rlim_cur < 4 ? 2 : (uint32_t)(limit.rlim_cur / 2);
}

static void free_file(struct track_table *table, struct tracked_file *file) {
    track_close(table, file);
    memory_give(file->path);
    memory_give(file->was_at);
    memory_give(file);
}

void track_release(struct track_table *table) {
    for (uint32_t i = 0; i < table->count; i++)
        free_file(table, table->files[i]);
    for (uint32_t i = 0; i < table->former_count; i++)
        memory_give(track_former_at(table, i)->path);
    memory_give(table->formers);
    memory_give(table->files);
    memory_give(table->by_inode);
    memory_give(table->by_path);
    *table = (struct track_table){.files = NULL};
}

// -- finding ------------------------------------------------------------------------------------

static uint32_t inode_slot(const struct track_table *table, dev_t device, ino_t inode) {
    uint64_t hash = ((uint64_t)inode + (uint64_t)device * 31) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32) & (table->slots - 1);
}

static uint32_t path_slot(const struct track_table *table, struct slice path) {
    return (uint32_t)(hash_slice(path) >> 16) & (table->slots - 1);
}

static void link_file(struct track_table *table, uint32_t index) {
    struct tracked_file *file = table->files[index];
    uint32_t *inode_head = &table->by_inode[inode_slot(table, file->device, file->inode)];
    uint32_t *path_head = &table->by_path[path_slot(table, slice_of(file->path))];
    file->next_by_inode = *inode_head;
    file->next_by_path = *path_head;
    *inode_head = *path_head = index;
}

static void rebuild(struct track_table *table) {
    uint32_t slots = table->slots == 0 ? 64 : table->slots;
    while (slots < table->count * 2)
        slots *= 2;
    if (slots != table->slots) {
        table->slots = slots;
        table->by_inode = memory_resize(table->by_inode, slots * sizeof *table->by_inode);
        table->by_path = memory_resize(table->by_path, slots * sizeof *table->by_path);
    }
    memset(table->by_inode, 0xff, slots * sizeof *table->by_inode);
    memset(table->by_path, 0xff, slots * sizeof *table->by_path);
    for (uint32_t i = 0; i < table->count; i++)
        link_file(table, i);
}

struct tracked_file *track_find(const struct track_table *table, dev_t device, ino_t inode) {
    if (table->count == 0)
        return NULL;
    uint32_t at = table->by_inode[inode_slot(table, device, inode)];
    for (; at != TRACK_NO_FILE; at = table->files[at]->next_by_inode) {
        if (table->files[at]->device == device && table->files[at]->inode == inode)
            return table->files[at];
    }
    return NULL;
}

struct tracked_file *track_find_path(const struct track_table *table, struct slice path) {
    if (table->count == 0)
        return NULL;
    struct tracked_file *found = NULL;
    uint32_t at = table->by_path[path_slot(table, path)];
    for (; at != TRACK_NO_FILE; at = table->files[at]->next_by_path) {
        struct tracked_file *file = table->files[at];
        if (slice_equal(slice_of(file->path), path) && (found == NULL || file->there))
            found = file;
    }
    return found;
}

struct tracked_file *track_add(struct track_table *table, struct slice path, dev_t device,
                               ino_t inode) {
    if (table->count == table->capacity) {
        table->capacity = table->capacity == 0 ? 16 : table->capacity * 2;
        table->files = memory_resize(table->files, table->capacity * sizeof(struct tracked_file *));
    }
    struct tracked_file *file = memory_zero(1, sizeof *file);
    file->path = memory_copy_text(path.data, path.size);
    file->device = device;
    file->inode = inode;
    file->descriptor = -1;
    file->there = file->changed = true;
    table->files[table->count++] = file;
    if (table->count * 2 > table->slots)
        rebuild(table);
    else
        link_file(table, table->count - 1);
    return file;
}

void track_rename(struct track_table *table, struct tracked_file *file, struct slice path) {
    struct slice old = slice_of(file->path);
    if (slice_equal(old, path))
        return;
    uint32_t *link = &table->by_path[path_slot(table, old)];
    while (table->files[*link] != file)
        link = &table->files[*link]->next_by_path;
    uint32_t index = *link;
    *link = file->next_by_path;
    memory_give(file->path);
    file->path = memory_copy_text(path.data, path.size);
    uint32_t *head = &table->by_path[path_slot(table, path)];
    file->next_by_path = *head;
    *head = index;
}

// Links to files that go.
static void unlink_over(struct track_table *table) {
    for (uint32_t i = 0; i < table->count; i++) {
        struct tracked_file *file = table->files[i];
        if (file->successor != NULL && file->successor->over)
            file->successor = NULL;
    }
}

void track_remove_over(struct track_table *table) {
    uint32_t kept = 0;
    unlink_over(table);
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->files[i]->over)
            free_file(table, table->files[i]);
        else
            table->files[kept++] = table->files[i];
    }
    bool fewer = kept < table->count;
    table->count = kept;
    if (fewer)
        rebuild(table);
}

// -- what is over -------------------------------------------------------------------------------

const struct track_former *track_former_at(const struct track_table *table, uint32_t index) {
    if (index >= table->former_count)
        return NULL;
    uint32_t at = table->former_first + table->former_count - 1 - index;
    return &table->formers[at % table->former_capacity];
}

static void grow_formers(struct track_table *table) {
    uint32_t capacity = table->former_capacity == 0 ? 16 : table->former_capacity * 2;
    struct track_former *formers = memory_take(capacity * sizeof *formers);
    for (uint32_t i = 0; i < table->former_count; i++)
        formers[i] = *track_former_at(table, table->former_count - 1 - i);
    memory_give(table->formers);
    table->formers = formers;
    table->former_capacity = capacity;
    table->former_first = 0;
}

static void forget_oldest(struct track_table *table) {
    const struct track_former *former = &table->formers[table->former_first];
    if (former->place != NULL)
        feed_source_forget(table->feed, former->place);
    memory_give(former->path);
    table->former_first = (table->former_first + 1) % table->former_capacity;
    table->former_count--;
}

void track_remember(struct track_table *table, const struct track_former *former) {
    if (table->former_count >= TRACK_FORMERS_MIN + 2 * table->count)
        forget_oldest(table);
    if (table->former_count == table->former_capacity)
        grow_formers(table);
    uint32_t at = (table->former_first + table->former_count++) % table->former_capacity;
    table->formers[at] = *former;
    table->formers[at].path = memory_copy_text(former->path, strlen(former->path));
}

// -- descriptors --------------------------------------------------------------------------------

void track_close(struct track_table *table, struct tracked_file *file) {
    if (file->descriptor < 0)
        return;
    close(file->descriptor);
    file->descriptor = -1;
    table->open_count--;
}

// One that can be opened again under its name.
static bool may_close(const struct tracked_file *file) {
    return file->descriptor >= 0 && file->there && !file->pinned;
}

// Closes one that is idle, or another when none of the next few is.
static bool close_one(struct track_table *table) {
    struct tracked_file *chosen = NULL;
    for (uint32_t tried = 0; tried < table->count; tried++) {
        struct tracked_file *file = table->files[table->hand++ % table->count];
        if (!may_close(file))
            continue;
        bool idle = !file->changed;
        if (chosen == NULL || idle)
            chosen = file;
        if (idle || tried >= TRIED_FOR_IDLE)
            break;
    }
    if (chosen == NULL)
        return false;
    track_close(table, chosen);
    return true;
}

enum status track_open(struct track_table *table, struct tracked_file *file, struct error *error) {
    if (file->descriptor >= 0)
        return STATUS_OK;
    if (table->open_count >= table->open_max)
        close_one(table);
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int descriptor = open(file->path, flags);
    if (descriptor < 0 && (errno == EMFILE || errno == ENFILE) && close_one(table))
        descriptor = open(file->path, flags);
    if (descriptor < 0)
        return error_set_os(error, STATUS_IO, errno, "it cannot be opened");
    struct stat about;
    if (fstat(descriptor, &about) != 0 || about.st_dev != file->device ||
        about.st_ino != file->inode) {
        close(descriptor);
        return error_set(error, STATUS_NOT_FOUND, "another file has its name by now");
    }
    file->descriptor = descriptor;
    table->open_count++;
    return STATUS_OK;
}

bool track_stat(const struct tracked_file *file, struct stat *about) {
    if (file->descriptor >= 0)
        return fstat(file->descriptor, about) == 0;
    return stat(file->path, about) == 0 && about->st_dev == file->device &&
           about->st_ino == file->inode;
}

bool track_notice(struct tracked_file *file, const struct stat *about, uint64_t now_ns) {
    bool same = file->seen_bytes == (uint64_t)about->st_size &&
                file->seen_time.tv_sec == about->st_mtim.tv_sec &&
                file->seen_time.tv_nsec == about->st_mtim.tv_nsec;
    if (same)
        return false;
    file->seen_bytes = (uint64_t)about->st_size;
    file->seen_time = about->st_mtim;
    file->quiet_since_ns = now_ns;
    return true;
}
