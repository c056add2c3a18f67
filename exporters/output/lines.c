// SPDX-License-Identifier: Apache-2.0
// A file of lines that grows without ever holding part of one for long.
//
// Lines are appended and synced; a failure cuts the file back to where it stood. Before a line that
// would pass max_size the file is renamed to PATH.1, PATH.1 to PATH.2 and so on, and a new one is
// begun. A file that somebody else renamed or removed is left, and a new one begun in its place.
// What of a failed request went into files for good is told as taken.
#include "exporters/output/parts.h"

#include "base/log.h"
#include "base/text/cut.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

// Where the last whole line of the open file ends.
static int lines_end(int descriptor, uint64_t size, uint64_t *end) {
    assert(descriptor >= 0);
    char block[4096];
    uint64_t at = size;
    while (at > 0) {
        size_t length = at < sizeof block ? (size_t)at : sizeof block;
        ssize_t got = pread(descriptor, block, length, (off_t)(at - length));
        if (got != (ssize_t)length)
            return got < 0 ? errno : EIO;
        const char *newline = memrchr(block, '\n', length);
        if (newline != NULL) {
            *end = at - length + (size_t)(newline - block) + 1;
            return 0;
        }
        at -= length;
    }
    *end = 0;
    return 0;
}

// A file of something else, given by mistake, must not lose its end.
static bool tail_is_ours(int descriptor, uint64_t at, uint64_t size) {
    static const char begin[] = OUTPUT_LINE_BEGIN;
    char head[sizeof begin - 1];
    size_t length = size - at < sizeof head ? (size_t)(size - at) : sizeof head;
    ssize_t got = pread(descriptor, head, length, (off_t)at);
    return got == (ssize_t)length && memcmp(head, begin, length) == 0;
}

static enum status torn_line_cut(struct output *output, struct error *error) {
    struct stat about;
    uint64_t end = 0;
    int failure = fstat(output->descriptor, &about) == 0 ? 0 : errno;
    uint64_t size = failure == 0 ? (uint64_t)about.st_size : 0;
    if (failure == 0)
        failure = lines_end(output->descriptor, size, &end);
    if (failure == 0 && end < size) {
        if (!tail_is_ours(output->descriptor, end, size))
            return error_set(error, STATUS_CANNOT_CREATE,
                             "path: %s ends in the middle of a line that is not a verdict; move "
                             "that file away or choose another path.",
                             output->path);
        failure = ftruncate(output->descriptor, (off_t)end) == 0 ? 0 : errno;
    }
    if (failure != 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, failure,
                            "path: cannot find the end of the last line of %s", output->path);
    if (end < size)
        log_write(LOG_WARN, (struct log_site){"C3101", output->options.site},
                  "%s: its last line was incomplete; %llu bytes were cut off.", output->path,
                  (unsigned long long)(size - end));
    return STATUS_OK;
}

static enum status lines_reopen(struct output *output, struct error *error) {
    return file_open(output, O_RDWR | O_APPEND, error);
}

static void name_sync(struct output *output) {
    output->name_unsynced = false;
    directory_sync(output, output->path);
}

enum status lines_open(struct output *output, struct error *error) {
    bool is_new = access(output->path, F_OK) != 0;
    enum status status = lines_reopen(output, error);
    if (status != STATUS_OK)
        return status;
    // Whoever made it may have ended before its name was synced: that can wait for the first line.
    output->name_unsynced = true;
    if (is_new)
        name_sync(output);
    return torn_line_cut(output, error);
}

const char *backup_path(const struct output *output, int64_t number, char path[BACKUP_PATH_MAX]) {
    assert(number >= 0 && output->path != NULL);
    if (number == 0)
        snprintf(path, BACKUP_PATH_MAX, "%s", output->path);
    else
        snprintf(path, BACKUP_PATH_MAX, "%s.%lld", output->path, (long long)number);
    return path;
}

// Renames PATH.N to PATH.N+1; with the highest number the older one is overwritten.
static int backup_shift(const struct output *output, int64_t number) {
    char from[BACKUP_PATH_MAX], to[BACKUP_PATH_MAX];
    int renamed = rename(backup_path(output, number, from), backup_path(output, number + 1, to));
    return renamed == 0 || errno == ENOENT ? 0 : errno;
}

static int64_t backups_highest(const struct output *output) {
    char path[BACKUP_PATH_MAX];
    int64_t number = 0;
    while (number < output->options.max_backups &&
           access(backup_path(output, number + 1, path), F_OK) == 0)
        number++;
    return number;
}

static enum status lines_rotate(struct output *output, struct error *error) {
    assert(output->descriptor >= 0);
    int failure = 0;
    if (output->options.max_backups == 0) {
        failure = unlink(output->path) == 0 || errno == ENOENT ? 0 : errno;
    } else {
        int64_t number = backups_highest(output);
        if (number == output->options.max_backups)
            number--;
        for (; number >= 0 && failure == 0; number--)
            failure = backup_shift(output, number);
    }
    if (failure != 0)
        return error_set_os(error, STATUS_IO, failure, "rotating %s", output->path);
    close(output->descriptor);
    output->descriptor = -1;
    enum status status = lines_reopen(output, error);
    if (status == STATUS_OK)
        name_sync(output);
    return status;
}

// The whole lines at the front of `bytes` that fit into `room`, but at least one.
static struct slice lines_fitting(struct slice bytes, uint64_t room) {
    if (bytes.size <= room)
        return bytes;
    assert(bytes.data != NULL);
    const char *newline = room == 0 ? NULL : memrchr(bytes.data, '\n', (size_t)room);
    if (newline == NULL)
        newline = memchr(bytes.data, '\n', bytes.size);
    assert(newline != NULL && "requests are whole lines");
    return (struct slice){bytes.data, (size_t)(newline - bytes.data) + 1};
}

// Appends as many lines as the file has room for; sets how many bytes that was.
static enum status lines_append(struct output *output, struct slice bytes, size_t *taken,
                                struct error *error) {
    *taken = 0;
    struct stat about;
    file_check(output);
    enum status status = output->descriptor < 0 ? lines_open(output, error) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (output->cut_pending)
        descriptor_cut(output, output->cut_size);
    if (output->cut_pending || fstat(output->descriptor, &about) != 0)
        return error_set_os(error, STATUS_IO, errno, "cannot write to %s", output->path);
    uint64_t size = (uint64_t)about.st_size, max = output->options.max_size;
    struct slice part = lines_fitting(bytes, max > size ? max - size : 0);
    if (size > 0 && part.size > (max > size ? max - size : 0)) {
        status = lines_rotate(output, error);
        if (status != STATUS_OK)
            return status;
        size = 0;
        part = lines_fitting(bytes, max);
    }
    int failure = descriptor_write(output->descriptor, part);
    if (failure == 0 && output->options.sync && fsync(output->descriptor) != 0)
        failure = errno;
    if (failure != 0) {
        descriptor_cut(output, size);
        return error_set_os(error, STATUS_IO, failure, "writing %s", output->path);
    }
    if (output->name_unsynced)
        name_sync(output);
    *taken = part.size;
    return STATUS_OK;
}

enum status lines_send(struct output *output, struct slice bytes, size_t *taken,
                       struct error *error) {
    assert(*taken == 0 && output->options.mode == OUTPUT_LINES);
    enum status status = STATUS_OK;
    for (size_t part; status == STATUS_OK && *taken < bytes.size; *taken += part)
        status = lines_append(output, text_from(bytes, *taken), &part, error);
    return status;
}
