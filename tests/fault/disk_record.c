// SPDX-License-Identifier: Apache-2.0
// What does a process do to the files below one folder, and in which order?
//
// The libc functions through which culprit and SQLite change files are defined here anew: each is
// carried out and then written down, under one lock, so that the order is that in which it
// happened. They stand in front of libc's in a program that links this (-rdynamic, for the library
// of SQLite, which is loaded late), or in any program by LD_PRELOAD with CULPRIT_DISK_ROOT (a
// folder) and CULPRIT_DISK_LOG (a file, appended to).
//
// Why here and not as a VFS of SQLite: the store makes, renames and removes files beside SQLite
// (repair, its directory), the json exporter writes on its own, and what is lost in a power failure
// depends on all of them together. Here one engine sees all, and production code has no seam that
// only tests need. What is written through a mapping is not seen: SQLite's -shm, which it makes
// anew after a crash whatever it holds.
#include "tests/fault/disk_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int open64(const char *path, int flags, ...);
ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t at);
int ftruncate64(int descriptor, off64_t size);

enum { DESCRIPTORS_MAX = 4096, FILES_MAX = 65536 };

struct seen_file {
    dev_t device;
    ino_t inode;
    bool is_folder;
    char *path; // of a folder, below the root
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_size; // 0: nothing is recorded
static int log_file = -1;
static struct disk_log memory_log;
static size_t memory_capacity;
static struct seen_file files[FILES_MAX]; // by number, 0 is none
static uint32_t file_count;
static uint32_t of_descriptor[DESCRIPTORS_MAX];

// -- the log ------------------------------------------------------------------------------------

_Noreturn static void give_up(const char *what) {
    fprintf(stderr, "disk_record: %s: %s\n", what, strerror(errno));
    abort();
}

static void append(const void *bytes, size_t size) {
    if (size == 0)
        return;
    if (log_file >= 0) {
        if (syscall(SYS_write, log_file, bytes, size) != (long)size)
            give_up("the log cannot be written");
        return;
    }
    if (memory_log.size + size > memory_capacity) {
        memory_capacity = (memory_log.size + size) * 2;
        memory_log.data = realloc(memory_log.data, memory_capacity);
        if (memory_log.data == NULL)
            give_up("no memory for the log");
    }
    memcpy(memory_log.data + memory_log.size, bytes, size);
    memory_log.size += size;
}

static void record(enum disk_kind kind, uint32_t file, uint64_t offset, uint64_t size,
                   const char *path, const char *other, const void *bytes) {
    static const char padding[8];
    int before = errno;
    struct disk_record head = {.kind = kind,
                               .file = file,
                               .offset = offset,
                               .size = size,
                               .path_size = path == NULL ? 0 : (uint32_t)strlen(path),
                               .other_size = other == NULL ? 0 : (uint32_t)strlen(other)};
    append(&head, sizeof head);
    append(path, head.path_size);
    append(other, head.other_size);
    size_t data = kind == DISK_WRITE ? (size_t)size : 0;
    append(bytes, data);
    append(padding,
           disk_record_size(&head) - (sizeof head + head.path_size + head.other_size + data));
    errno = before;
}

// -- files and names ----------------------------------------------------------------------------

// The part of `path` below the root; NULL when it is elsewhere. Paths are given in full here.
static const char *below(const char *path) {
    if (root_size == 0 || path == NULL || strncmp(path, root, root_size) != 0)
        return NULL;
    if (path[root_size] == '\0')
        return "";
    return path[root_size] == '/' ? path + root_size + 1 : NULL;
}

static uint32_t file_find(const struct stat *about) {
    for (uint32_t i = file_count; i > 0; i--)
        if (files[i].inode == about->st_ino && files[i].device == about->st_dev)
            return i;
    return 0;
}

static uint32_t file_add(const struct stat *about, const char *path) {
    if (file_count + 1 == FILES_MAX)
        give_up("too many files");
    files[++file_count] = (struct seen_file){about->st_dev, about->st_ino, S_ISDIR(about->st_mode),
                                             S_ISDIR(about->st_mode) ? strdup(path) : NULL};
    return file_count;
}

static void opened(int descriptor, const char *path, bool existed, int flags) {
    struct stat about;
    if (descriptor >= DESCRIPTORS_MAX || fstat(descriptor, &about) != 0)
        give_up("a file cannot be followed");
    if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode))
        return;
    uint32_t file = existed ? file_find(&about) : 0;
    if (file == 0) {
        file = file_add(&about, path);
        if (!files[file].is_folder)
            record(existed ? DISK_OPEN : DISK_CREATE, file, 0, 0, path, NULL, NULL);
    }
    of_descriptor[descriptor] = file;
    if (existed && (flags & O_TRUNC) != 0)
        record(DISK_TRUNCATE, file, 0, 0, NULL, NULL, NULL);
}

static uint32_t file_of(int descriptor) {
    return root_size == 0 || descriptor < 0 || descriptor >= DESCRIPTORS_MAX
               ? 0
               : of_descriptor[descriptor];
}

// -- libc's functions ---------------------------------------------------------------------------

static int open_any(const char *path, int flags, mode_t mode) {
    const char *name = below(path);
    if (name == NULL || (flags & O_TMPFILE) == O_TMPFILE)
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat about;
    bool existed = lstat(path, &about) == 0;
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (descriptor >= 0)
        opened(descriptor, name, existed, flags);
    pthread_mutex_unlock(&lock);
    return descriptor;
}

static mode_t mode_of(int flags, va_list more) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    return open_any(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    return open_any(path, flags, mode);
}

int close(int descriptor) {
    if (file_of(descriptor) != 0) {
        pthread_mutex_lock(&lock);
        of_descriptor[descriptor] = 0;
        pthread_mutex_unlock(&lock);
    }
    return (int)syscall(SYS_close, descriptor);
}

// `at` -1: where the descriptor stands.
static ssize_t write_any(int descriptor, const void *bytes, size_t size, off_t at) {
    uint32_t file = file_of(descriptor);
    if (file == 0)
        return at < 0 ? syscall(SYS_write, descriptor, bytes, size)
                      : syscall(SYS_pwrite64, descriptor, bytes, size, at);
    pthread_mutex_lock(&lock);
    ssize_t done = at < 0 ? syscall(SYS_write, descriptor, bytes, size)
                          : syscall(SYS_pwrite64, descriptor, bytes, size, at);
    if (done > 0) {
        off_t end = at < 0 ? lseek(descriptor, 0, SEEK_CUR) : at + done;
        record(DISK_WRITE, file, (uint64_t)(end - done), (uint64_t)done, NULL, NULL, bytes);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t write(int descriptor, const void *bytes, size_t size) {
    return write_any(descriptor, bytes, size, -1);
}
ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t at) {
    return write_any(descriptor, bytes, size, at);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t at) {
    return write_any(descriptor, bytes, size, at);
}

int ftruncate(int descriptor, off_t size) {
    uint32_t file = file_of(descriptor);
    if (file == 0)
        return (int)syscall(SYS_ftruncate, descriptor, size);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_ftruncate, descriptor, size);
    if (result == 0)
        record(DISK_TRUNCATE, file, 0, (uint64_t)size, NULL, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate64(int descriptor, off64_t size) {
    return ftruncate(descriptor, size);
}

static int sync_any(int descriptor, long number) {
    uint32_t file = file_of(descriptor);
    if (file == 0)
        return (int)syscall(number, descriptor);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(number, descriptor);
    if (result == 0 && files[file].is_folder)
        record(DISK_SYNC_NAMES, 0, 0, 0, files[file].path, NULL, NULL);
    else if (result == 0)
        record(DISK_SYNC, file, 0, 0, NULL, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return result;
}
int fsync(int descriptor) {
    return sync_any(descriptor, SYS_fsync);
}
int fdatasync(int descriptor) {
    return sync_any(descriptor, SYS_fdatasync);
}

int rename(const char *from, const char *to) {
    const char *name = below(from), *other = below(to);
    if (name == NULL || other == NULL)
        return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result == 0)
        record(DISK_RENAME, 0, 0, 0, name, other, NULL);
    pthread_mutex_unlock(&lock);
    return result;
}

int unlink(const char *path) {
    const char *name = below(path);
    if (name == NULL)
        return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    pthread_mutex_lock(&lock);
    struct stat about;
    uint32_t file = lstat(path, &about) == 0 ? file_find(&about) : 0;
    int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (result == 0)
        record(DISK_UNLINK, 0, 0, 0, name, NULL, NULL);
    if (result == 0 && file != 0)
        files[file].inode = 0; // the number may be given to another
    pthread_mutex_unlock(&lock);
    return result;
}

// -- who records --------------------------------------------------------------------------------

static void begin(const char *folder) {
    snprintf(root, sizeof root, "%s", folder);
    file_count = 0;
    memset(of_descriptor, 0, sizeof of_descriptor);
    root_size = strlen(root);
}

void disk_record_begin(const char *folder) {
    pthread_mutex_lock(&lock);
    memory_log = (struct disk_log){0};
    memory_capacity = 0;
    begin(folder);
    pthread_mutex_unlock(&lock);
}

void disk_record_mark(uint64_t offset, uint64_t size) {
    pthread_mutex_lock(&lock);
    if (root_size > 0)
        record(DISK_MARK, 0, offset, size, NULL, NULL, NULL);
    pthread_mutex_unlock(&lock);
}

struct disk_log disk_record_end(void) {
    pthread_mutex_lock(&lock);
    root_size = 0;
    for (uint32_t i = 1; i <= file_count; i++)
        free(files[i].path);
    file_count = 0;
    struct disk_log log = memory_log;
    memory_log = (struct disk_log){0};
    memory_capacity = 0;
    pthread_mutex_unlock(&lock);
    return log;
}

__attribute__((constructor)) static void begin_by_environment(void) {
    const char *folder = getenv("CULPRIT_DISK_ROOT"), *log = getenv("CULPRIT_DISK_LOG");
    if (folder == NULL || log == NULL)
        return;
    log_file =
        (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_file < 0)
        give_up(log);
    begin(folder);
}
