// SPDX-License-Identifier: Apache-2.0
// The table of followed files: an array, found by inode and by path through two indexes.
//
// Descriptors are few: a hand goes round and closes one that is idle. Some 300 bytes a file and its
// path.
#include "receivers/file/follow/track.h"

#include "base/hash/hash.h"
#include "base/memory.h"
#include "pipeline/component/feed.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TRIED_FOR_IDLE = 16 };

void track_init(struct track_table *table, struct feed *feed) {
    *table = (struct track_table){.feed = feed, .open_max = TRACK_OPEN_MAX};
    // Half of what the process may have is left to the others in it.
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < TRACK_OPEN_MAX)
        table->open_max = limit.rlim_cur < 4 ? 2 : (uint32_t)(limit.rlim_cur / 2);
}

static void free_file(struct track_table *table, struct tracked_file *file) {
    assert(!file->pinned);
    track_close(table, file);
    memory_give(file->path);
    memory_give(file->was_at);
    memory_give(file);
}

void track_release(struct track_table *table) {
    for (uint32_t i = 0; i < table->count; i++)
        free_file(table, table->files[i]);
    for (uint32_t i = 0; i < table->former_count; i++)
        memory_give(track_former_of(table, table->former_number + i)->path);
    memory_give(table->formers);
    memory_give(table->files);
    hash_index_release(&table->by_inode);
    hash_index_release(&table->by_path);
    hash_index_release(&table->by_head);
    hash_index_release(&table->formers_by_head);
    hash_index_release(&table->formers_by_path);
    *table = (struct track_table){.files = NULL};
}

// -- finding ------------------------------------------------------------------------------------

static void link_file(struct track_table *table, uint32_t number) {
    assert(number <= table->count);
    const struct tracked_file *file = table->files[number];
    hash_index_add(&table->by_inode, file_identity_hash(file->identity), number);
    hash_index_add(&table->by_path, hash_slice(slice_of(file->path)), number);
    if (file->indexed.size > 0)
        hash_index_add(&table->by_head, file->indexed.hash, number);
}

struct tracked_file *track_find(const struct track_table *table, struct file_identity identity) {
    uint64_t hash = file_identity_hash(identity);
    uint32_t probe = 0, at;
    while ((at = hash_index_next(&table->by_inode, hash, &probe)) != HASH_INDEX_NONE)
        if (file_identity_equal(table->files[at]->identity, identity))
            return table->files[at];
    return NULL;
}

// Of several files the one that the last search found there, else the newest.
struct tracked_file *track_find_path(const struct track_table *table, struct slice path) {
    uint64_t hash = hash_slice(path);
    uint32_t probe = 0, at, best = 0;
    struct tracked_file *found = NULL;
    while ((at = hash_index_next(&table->by_path, hash, &probe)) != HASH_INDEX_NONE) {
        struct tracked_file *file = table->files[at];
        if (!slice_equal(slice_of(file->path), path) ||
            (found != NULL && (file->there != found->there ? found->there : at < best)))
            continue;
        found = file;
        best = at;
    }
    return found;
}

struct tracked_file *track_add(struct track_table *table, struct slice path,
                               struct file_identity identity) {
    table->files =
        memory_room(table->files, &table->capacity, table->count, sizeof(struct tracked_file *));
    struct tracked_file *file = memory_zero(1, sizeof *file);
    file->path = memory_copy_text(path.data, path.size);
    file->identity = identity;
    file->descriptor = -1;
    file->there = file->changed = true;
    table->files[table->count] = file;
    link_file(table, table->count++);
    return file;
}

static uint32_t number_of(const struct track_table *table, const struct tracked_file *file) {
    uint64_t hash = hash_slice(slice_of(file->path));
    uint32_t probe = 0, at;
    while ((at = hash_index_next(&table->by_path, hash, &probe)) != HASH_INDEX_NONE)
        if (table->files[at] == file)
            break;
    assert(at != HASH_INDEX_NONE);
    return at;
}

void track_rename(struct track_table *table, struct tracked_file *file, struct slice path) {
    struct slice old = slice_of(file->path);
    if (slice_equal(old, path))
        return;
    uint32_t number = number_of(table, file);
    hash_index_remove(&table->by_path, hash_slice(old), number);
    memory_give(file->path);
    file->path = memory_copy_text(path.data, path.size);
    hash_index_add(&table->by_path, hash_slice(path), number);
}

static struct fingerprint head_now(const struct tracked_file *file) {
    if (file->state == TRACK_LINES)
        return file->stream.done.head;
    bool restored = file->state == TRACK_UNDECIDED && file->restored.kind == POSITION_LINES;
    return restored ? file->restored.done.head : (struct fingerprint){0, 0};
}

void track_know_head(struct track_table *table, struct tracked_file *file) {
    struct fingerprint head = head_now(file);
    if (head.size == file->indexed.size && head.hash == file->indexed.hash)
        return;
    assert(head.size <= FINGERPRINT_MAX);
    uint32_t number = number_of(table, file);
    if (file->indexed.size > 0) {
        hash_index_remove(&table->by_head, file->indexed.hash, number);
        table->head_sizes[file->indexed.size]--;
    }
    file->indexed = head;
    if (head.size > 0) {
        hash_index_add(&table->by_head, head.hash, number);
        table->head_sizes[head.size]++;
    }
}

void track_set_was_at(struct tracked_file *file, struct slice path) {
    assert(path.size > 0);
    char *text = memory_copy_text(path.data, path.size);
    memory_give(file->was_at);
    file->was_at = text;
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
        if (table->files[i]->over) {
            if (table->files[i]->indexed.size > 0)
                table->head_sizes[table->files[i]->indexed.size]--;
            free_file(table, table->files[i]);
        } else
            table->files[kept++] = table->files[i];
    }
    if (kept == table->count)
        return;
    table->count = kept;
    hash_index_clear(&table->by_inode);
    hash_index_clear(&table->by_path);
    hash_index_clear(&table->by_head);
    for (uint32_t i = 0; i < kept; i++)
        link_file(table, i);
}

// -- what is over -------------------------------------------------------------------------------

const struct track_former *track_former_of(const struct track_table *table, uint32_t number) {
    uint32_t index = number - table->former_number;
    assert(index < table->former_count);
    return &table->formers[(table->former_first + index) % table->former_capacity];
}

static void forget_oldest(struct track_table *table) {
    assert(table->former_count > 0);
    const struct track_former *former = &table->formers[table->former_first];
    if (former->place != NULL)
        feed_source_forget(table->feed, former->place);
    hash_index_remove(&table->formers_by_path, hash_slice(slice_of(former->path)),
                      table->former_number);
    hash_index_remove(&table->formers_by_head, former->done.head.hash, table->former_number);
    table->head_sizes[former->done.head.size]--;
    table->former_number++;
    memory_give(former->path);
    table->former_first = (table->former_first + 1) % table->former_capacity;
    table->former_count--;
}

void track_remember(struct track_table *table, struct slice path, const struct extent *done,
                    struct source *place) {
    char *text = memory_copy_text(path.data, path.size);
    if (table->former_count >= TRACK_FORMERS_MIN + 2 * table->count)
        forget_oldest(table);
    table->formers = memory_ring_room(table->formers, &table->former_capacity, table->former_first,
                                      table->former_count, sizeof *table->formers);
    uint32_t at = (table->former_first + table->former_count++) % table->former_capacity;
    assert(table->former_count <= table->former_capacity);
    table->formers[at] = (struct track_former){text, *done, place};
    uint32_t number = table->former_number + table->former_count - 1;
    hash_index_add(&table->formers_by_path, hash_slice(path), number);
    hash_index_add(&table->formers_by_head, done->head.hash, number);
    table->head_sizes[done->head.size]++;
}

// -- descriptors --------------------------------------------------------------------------------

void track_close(struct track_table *table, struct tracked_file *file) {
    if (file->descriptor < 0)
        return;
    assert(table->open_count > 0);
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
    if (fstat(descriptor, &about) != 0 || !track_is_of(file, &about)) {
        close(descriptor);
        return error_set(error, STATUS_NOT_FOUND, "another file has its name by now");
    }
    assert(file->descriptor < 0);
    file->descriptor = descriptor;
    table->open_count++;
    return STATUS_OK;
}

bool track_stat(const struct tracked_file *file, struct stat *about) {
    assert(file->path != NULL && about != NULL);
    if (file->descriptor >= 0)
        return fstat(file->descriptor, about) == 0;
    return stat(file->path, about) == 0 && track_is_of(file, about);
}

struct file_version file_version_of(const struct stat *about) {
    return (struct file_version){(uint64_t)about->st_size, about->st_mtim};
}

bool file_version_equal(struct file_version a, struct file_version b) {
    return a.bytes == b.bytes && a.time.tv_sec == b.time.tv_sec && a.time.tv_nsec == b.time.tv_nsec;
}

bool track_notice(struct tracked_file *file, const struct stat *about, uint64_t now_ns) {
    struct file_version version = file_version_of(about);
    if (file_version_equal(version, file->seen))
        return false;
    file->seen = version;
    file->quiet_since_ns = now_ns;
    return true;
}
