// SPDX-License-Identifier: Apache-2.0
// Cuts a file of lines back to what was in it at the last checkpoint.
//
// What is sent after a checkpoint comes once more after a crash. So the checkpoint keeps which file
// it was (device and inode), how long it was, and a checksum of its last bytes, since inodes are
// used again. On the next start what follows is cut off; when the file was rotated since, the newer
// ones are removed and it gets its name back. Nothing is cut that does not look like our lines.
#include "exporters/output/parts.h"

#include "base/hash/crc32c.h"
#include "base/log.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARK_VERSION = 1, MARK_TAIL = 512, LOOK_BLOCK = 64 * 1024 };

struct mark {
    uint32_t version;
    uint32_t tail_crc; // of up to MARK_TAIL bytes before `size`
    uint64_t device, inode, size;
};

_Static_assert(sizeof(struct mark) == 32, "it lies in stores");

static bool read_at(int descriptor, char *into, size_t size, uint64_t at) {
    assert(descriptor >= 0);
    while (size > 0) {
        ssize_t got = pread(descriptor, into, size, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        into += got;
        size -= (size_t)got;
        at += (uint64_t)got;
    }
    return true;
}

static bool tail_crc(int descriptor, uint64_t size, uint32_t *crc) {
    char tail[MARK_TAIL];
    size_t length = size < sizeof tail ? (size_t)size : sizeof tail;
    if (!read_at(descriptor, tail, length, size - length))
        return false;
    *crc = crc32c(0, (struct slice){tail, length});
    return true;
}

void output_delivered(void *instance, struct buffer *out) {
    const struct output *output = output_of(instance);
    struct stat about;
    struct mark mark = {.version = MARK_VERSION};
    if (output->is_stream || output->options.mode != OUTPUT_LINES || output->descriptor < 0 ||
        fstat(output->descriptor, &about) != 0)
        return;
    mark.device = about.st_dev;
    mark.inode = about.st_ino;
    mark.size = (uint64_t)about.st_size;
    if (tail_crc(output->descriptor, mark.size, &mark.tail_crc))
        buffer_append(out, (struct slice){(const char *)&mark, sizeof mark});
}

// -- looking ------------------------------------------------------------------------------------

// Whether every line of [from, size) begins as ours do; the last one may have no end.
static bool lines_are_ours(int descriptor, uint64_t from, uint64_t size) {
    static const char begin[] = OUTPUT_LINE_BEGIN;
    char *block = memory_take(LOOK_BLOCK);
    size_t matched = 0; // of `begin`, in the line we are in
    bool ours = true;
    for (uint64_t at = from; ours && at < size;) {
        size_t length = size - at < LOOK_BLOCK ? (size_t)(size - at) : LOOK_BLOCK;
        ours = read_at(descriptor, block, length, at);
        for (size_t i = 0; ours && i < length;) {
            if (matched < sizeof begin - 1) {
                ours = block[i++] == begin[matched++];
                continue;
            }
            const char *newline = memchr(block + i, '\n', length - i);
            i = newline == NULL ? length : (size_t)(newline - block) + 1;
            matched = newline == NULL ? matched : 0;
        }
        at += length;
    }
    memory_give(block);
    return ours;
}

static bool file_is_ours(const char *path) {
    struct stat about;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return errno == ENOENT;
    bool ours = fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
                lines_are_ours(descriptor, 0, (uint64_t)about.st_size);
    close(descriptor);
    return ours;
}

static bool is_marked(const struct stat *about, const struct mark *mark) {
    return about->st_dev == mark->device && about->st_ino == mark->inode;
}

// Which backup it is now: 0 for PATH itself, -1 when it is nowhere.
static int64_t marked_number(const struct output *output, const struct mark *mark) {
    struct stat about;
    char path[BACKUP_PATH_MAX];
    for (int64_t number = 0; number <= output->options.max_backups; number++)
        if (stat(backup_path(output, number, path), &about) == 0 && is_marked(&about, mark))
            return number;
    return -1;
}

// -- cutting ------------------------------------------------------------------------------------

PRINTF_LIKE(4, 5)
static void leave(const struct output *output, enum log_level level, const char *code,
                  const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_write(level, (struct log_site){code, output->options.site},
              "%s: %s; verdicts since the last checkpoint may be duplicated.", output->path, text);
}

enum verdict_of_file { FILE_TO_CUT, FILE_IS_RIGHT, FILE_IS_OTHER };

// Whether what follows the mark can be taken off the open file.
static enum verdict_of_file file_judge(const struct output *output, int descriptor,
                                       const struct mark *mark) {
    struct stat about;
    uint32_t crc;
    if (fstat(descriptor, &about) != 0)
        return FILE_IS_OTHER;
    uint64_t size = (uint64_t)about.st_size;
    if (size < mark->size) {
        leave(output, LOG_WARN, "C3104", "it is shorter (%llu bytes) than culprit left it (%llu)",
              (unsigned long long)size, (unsigned long long)mark->size);
        return FILE_IS_OTHER;
    }
    if (!tail_crc(descriptor, mark->size, &crc) || crc != mark->tail_crc) {
        leave(output, LOG_INFO, "C3103", "it is another file than at the last checkpoint");
        return FILE_IS_OTHER;
    }
    if (size == mark->size)
        return FILE_IS_RIGHT;
    if (!lines_are_ours(descriptor, mark->size, size)) {
        leave(output, LOG_WARN, "C3105", "what follows the last checkpoint is not only verdicts");
        return FILE_IS_OTHER;
    }
    return FILE_TO_CUT;
}

static int file_cut(const struct output *output, int descriptor, uint64_t size) {
    if (ftruncate(descriptor, (off_t)size) != 0)
        return errno;
    return output->options.sync && fsync(descriptor) != 0 ? errno : 0;
}

// Renames the backups so that they are numbered from 1 without gaps, in their order.
static int backups_close_gaps(const struct output *output) {
    char from[BACKUP_PATH_MAX], to[BACKUP_PATH_MAX];
    int64_t next = 1;
    for (int64_t number = 1; number <= output->options.max_backups; number++) {
        if (access(backup_path(output, number, from), F_OK) != 0)
            continue;
        if (number != next && rename(from, backup_path(output, next, to)) != 0)
            return errno;
        next++;
    }
    return 0;
}

static bool newer_are_ours(const struct output *output, int64_t number) {
    char path[BACKUP_PATH_MAX];
    for (int64_t i = 0; i < number; i++)
        if (!file_is_ours(backup_path(output, i, path)))
            return false;
    return true;
}

// Removes what is newer than backup `number` and gives that its place. A crash in between is made
// good by the next resume.
static int newer_remove(const struct output *output, int64_t number) {
    char path[BACKUP_PATH_MAX];
    for (int64_t i = 0; i < number; i++)
        if (unlink(backup_path(output, i, path)) != 0 && errno != ENOENT)
            return errno;
    return rename(backup_path(output, number, path), output->path) == 0 ? 0 : errno;
}

// Cuts the file that is backup `number` now (0: PATH itself) back to the mark, and gives it its
// place again. 0, or the errno value.
static int file_resume(struct output *output, const struct mark *mark, int64_t number) {
    assert(number >= 0 && number <= output->options.max_backups);
    char path[BACKUP_PATH_MAX];
    backup_path(output, number, path);
    int descriptor = number == 0 ? output->descriptor : open(path, O_RDWR | O_CLOEXEC | O_APPEND);
    enum verdict_of_file verdict =
        descriptor < 0 ? FILE_IS_OTHER : file_judge(output, descriptor, mark);
    if (verdict != FILE_IS_OTHER && !newer_are_ours(output, number)) {
        leave(output, LOG_WARN, "C3105",
              "a newer file than %.150s holds something else than verdicts", path);
        verdict = FILE_IS_OTHER;
    }
    int failure = verdict == FILE_TO_CUT ? file_cut(output, descriptor, mark->size) : 0;
    if (number == 0)
        return failure != 0 ? failure : backups_close_gaps(output);
    if (verdict != FILE_IS_OTHER && failure == 0)
        failure = newer_remove(output, number);
    if (verdict == FILE_IS_OTHER || failure != 0) {
        if (descriptor >= 0)
            close(descriptor);
        return failure;
    }
    close(output->descriptor);
    output->descriptor = descriptor;
    failure = backups_close_gaps(output);
    directory_sync(output, output->path);
    return failure;
}

enum status output_resume(void *instance, struct slice delivered, struct error *error) {
    struct output *output = output_of(instance);
    struct mark mark;
    // Another size: another mode wrote it.
    if (output->is_stream || output->options.mode != OUTPUT_LINES || delivered.size != sizeof mark)
        return STATUS_OK;
    memcpy(&mark, delivered.data, sizeof mark);
    if (mark.version != MARK_VERSION)
        return STATUS_OK;
    int64_t number = marked_number(output, &mark);
    if (number < 0) {
        leave(output, LOG_INFO, "C3103", "the file of the last checkpoint was moved away");
        return STATUS_OK;
    }
    int failure = file_resume(output, &mark, number);
    return failure == 0 ? STATUS_OK
                        : error_set_os(error, STATUS_IO, failure,
                                       "cutting %s back to the last checkpoint", output->path);
}
