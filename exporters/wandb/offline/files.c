// SPDX-License-Identifier: Apache-2.0
// Writes run directories to the disk, and removes what a failed call wrote.
//
// Each file is synced when it is written; the directories that gained an entry at the end of a
// call. What a call makes is listed, so that a failed one takes it away again: on a full disk the
// same records fit later.
#include "exporters/wandb/offline/parts.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0666, FOLDER_MODE = 0777 }; // less the umask

static char *path_of(const char *folder, struct slice name) {
    return wandb_text("%s/%.*s", folder, (int)name.size, name.size == 0 ? "" : name.data);
}

static void note_made(struct wandb_offline *offline, const char *path) {
    offline->made = memory_room(offline->made, &offline->made_capacity, offline->made_count,
                                sizeof *offline->made);
    offline->made[offline->made_count++] = memory_copy_text(path, strlen(path));
}

static void forget_made(struct wandb_offline *offline) {
    for (uint32_t i = 0; i < offline->made_count; i++)
        memory_give(offline->made[i]);
    offline->made_count = 0;
}

void files_undo(struct wandb_offline *offline) {
    for (uint32_t i = offline->made_count; i > 0; i--)
        remove(offline->made[i - 1]); // file or empty folder; what stays is written over later
    forget_made(offline);
}

static enum status folder_sync(const char *path, struct error *error) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failure = descriptor < 0 || fsync(descriptor) != 0 ? errno : 0;
    if (descriptor >= 0)
        close(descriptor);
    // Some file systems cannot sync a directory; they have no need to.
    if (failure == 0 || failure == EINVAL || failure == ENOTSUP)
        return STATUS_OK;
    return error_set_os(error, STATUS_IO, failure, "writing the directory %.300s to the disk",
                        path);
}

enum status files_keep(struct wandb_offline *offline, struct error *error) {
    enum status status = STATUS_OK;
    struct slice synced = {NULL, 0}; // files of one folder mostly come one after the other
    for (uint32_t i = 0; i < offline->made_count && status == STATUS_OK; i++) {
        char *path = offline->made[i];
        char *slash = strrchr(path, '/');
        assert(slash != NULL);
        struct slice folder = {path, (size_t)(slash - path)};
        if (slice_equal(folder, synced))
            continue;
        *slash = '\0';
        status = folder_sync(path, error);
        *slash = '/';
        synced = folder;
    }
    if (status == STATUS_OK)
        forget_made(offline);
    return status;
}

enum status files_make_folder(struct wandb_offline *offline, const char *path,
                              struct error *error) {
    assert(path[0] == '/');
    if (mkdir(path, FOLDER_MODE) == 0) {
        note_made(offline, path);
        return STATUS_OK;
    }
    return errno == EEXIST
               ? STATUS_OK
               : error_set_os(error, STATUS_IO, errno, "making the directory %.300s", path);
}

// The folders between `folder` and the last part of `path`, which begins with it.
static enum status folders_between(struct wandb_offline *offline, const char *folder, char *path,
                                   struct error *error) {
    enum status status = STATUS_OK;
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash != NULL && status == STATUS_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = files_make_folder(offline, path, error);
        *slash = '/';
    }
    return status;
}

// Opens FOLDER/NAME for writing, empty. The descriptor, or -1 with the error set.
static int file_create(struct wandb_offline *offline, const char *folder, struct slice name,
                       char **path, struct error *error) {
    assert(folder[0] == '/' && name.size > 0);
    *path = path_of(folder, name);
    if (folders_between(offline, folder, *path, error) != STATUS_OK)
        return -1;
    int descriptor = open(*path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (descriptor < 0)
        error_set_os(error, STATUS_IO, errno, "making %.300s", *path);
    else
        note_made(offline, *path);
    return descriptor;
}

// Syncs and closes what was written; `failure` is what writing met.
static enum status file_finish(int descriptor, const char *path, int failure, struct error *error) {
    if (failure == 0 && fsync(descriptor) != 0)
        failure = errno;
    close(descriptor);
    return failure == 0 ? STATUS_OK
                        : error_set_os(error, STATUS_IO, failure, "writing %.300s", path);
}

enum status files_write(struct wandb_offline *offline, const char *folder, struct slice name,
                        struct slice bytes, struct error *error) {
    char *path;
    enum status status = STATUS_IO;
    int descriptor = file_create(offline, folder, name, &path, error);
    if (descriptor >= 0)
        status = file_finish(descriptor, path, wandb_write_all(descriptor, bytes), error);
    memory_give(path);
    return status;
}

enum status files_copy(struct wandb_offline *offline, const char *folder, struct media_file *file,
                       struct error *error) {
    char *path;
    int descriptor = file_create(offline, folder, slice_of(file->name), &path, error);
    enum status status = STATUS_CANNOT_CREATE;
    if (descriptor >= 0) {
        status = media_file_read(file, descriptor, error);
        if (status == STATUS_OK)
            status = file_finish(descriptor, path, 0, error) == STATUS_OK ? STATUS_OK
                                                                          : STATUS_CANNOT_CREATE;
        else
            close(descriptor);
    }
    memory_give(path);
    return status;
}

// -- logs -----------------------------------------------------------------------------------------

// `wandb sync` leaves PATH.synced when it has sent all there was, and then passes it over; with
// more in it that is no longer so.
static void marker_remove(const char *path) {
    char *marker = wandb_text("%s.synced", path);
    unlink(marker);
    memory_give(marker);
}

enum status files_append(struct wandb_offline *offline, struct offline_run *run,
                         struct error *error) {
    assert(run->now.length >= run->pending.size);
    if (run->pending.size == 0)
        return STATUS_OK;
    uint64_t at = run->now.length - run->pending.size;
    char *path = run_log_path(offline, run);
    if (at == 0)
        note_made(offline, path);
    enum status status = STATUS_IO;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (descriptor < 0)
        error_set_os(error, STATUS_IO, errno, "opening %.300s", path);
    else
        status = file_finish(descriptor, path,
                             lseek(descriptor, (off_t)at, SEEK_SET) < 0
                                 ? errno
                                 : wandb_write_all(descriptor, buffer_slice(&run->pending)),
                             error);
    if (status == STATUS_OK) {
        marker_remove(path);
        buffer_reset(&run->pending);
    }
    memory_give(path);
    return status;
}

enum status files_cut(const struct wandb_offline *offline, const struct offline_run *run,
                      struct error *error) {
    uint64_t length = run->kept.length;
    struct stat about;
    char *path = run_log_path(offline, run);
    enum status status = STATUS_OK;
    int descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0 || fstat(descriptor, &about) != 0)
        status = error_set_os(error, STATUS_IO, errno, "opening %.300s", path);
    else if ((uint64_t)about.st_size < length)
        status = error_set(error, STATUS_NOT_FOUND,
                           "%.300s is shorter (%llu bytes) than culprit left it (%llu)", path,
                           (unsigned long long)about.st_size, (unsigned long long)length);
    else if ((uint64_t)about.st_size > length &&
             (ftruncate(descriptor, (off_t)length) != 0 || fsync(descriptor) != 0))
        status = error_set_os(error, STATUS_IO, errno, "cutting %.300s to %llu bytes", path,
                              (unsigned long long)length);
    if (descriptor >= 0)
        close(descriptor);
    memory_give(path);
    return status;
}
