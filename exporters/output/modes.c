// SPDX-License-Identifier: Apache-2.0
// Opens an output, sends to it and closes it, each mode in its way.
//
// A stream (standard output, pipe, device) takes bytes as they come; lines are appended
// (lines.c); a document is replaced (document.c). Nothing is buffered here.
#include "exporters/output/parts.h"

#include "base/file_identity.h"
#include "base/log.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int descriptor_write(int descriptor, struct slice bytes) {
    assert(descriptor >= 0);
    while (bytes.size > 0) {
        ssize_t written = write(descriptor, bytes.data, bytes.size);
        if (written > 0) {
            bytes.data += written;
            bytes.size -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
            poll(&wait, 1, -1);
        } else if (written == 0 || errno != EINTR) {
            return written == 0 ? EIO : errno;
        }
    }
    return 0;
}

void directory_sync(const struct output *output, const char *path) {
    if (!output->options.sync)
        return;
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    char *directory = slash == NULL ? memory_copy_text(".", 1) : memory_copy_text(path, size);
    int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failure = descriptor < 0 || fsync(descriptor) != 0 ? errno : 0;
    if (failure != 0)
        log_write(LOG_WARN, (struct log_site){"C3102", output->options.site},
                  "%s: its directory could not be synced to the disk: %s", path, strerror(failure));
    if (descriptor >= 0)
        close(descriptor);
    memory_give(directory);
}

void descriptor_cut(struct output *output, uint64_t size) {
    assert(output->descriptor >= 0);
    output->cut_size = size;
    output->cut_pending = ftruncate(output->descriptor, (off_t)size) != 0;
}

// A path that is a link stands for what it points to, so that replacing it leaves the link alone.
static char *path_resolve(const char *path) {
    char *real = realpath(path, NULL);
    char *copy = memory_copy_text(real == NULL ? path : real, strlen(real == NULL ? path : real));
    free(real);
    return copy;
}

static bool path_is_stream(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

static enum status stream_open(struct output *output, struct error *error) {
    output->is_stream = true;
    // Without waiting: a pipe that nobody reads would hold up the start for ever.
    output->descriptor = open(output->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (output->descriptor < 0 && errno == ENXIO)
        return error_set(error, STATUS_CANNOT_CREATE,
                         "path: %s is a pipe that nobody reads; start its reader first.",
                         output->path);
    if (output->descriptor < 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno, "path: cannot write to %s",
                            output->path);
    return STATUS_OK;
}

enum status file_open(struct output *output, int flags, struct error *error) {
    assert(output->path != NULL && output->descriptor < 0);
    output->descriptor = open(output->path, O_CREAT | O_CLOEXEC | flags, 0666);
    if (output->descriptor < 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno, "path: cannot write to %s",
                            output->path);
    return STATUS_OK;
}

void file_check(struct output *output) {
    struct stat about, now;
    if (output->descriptor < 0 || fstat(output->descriptor, &about) != 0 || !S_ISREG(about.st_mode))
        return;
    bool there = stat(output->path, &now) == 0;
    if (there ? file_identity_equal(file_identity_of(&about), file_identity_of(&now))
              : errno != ENOENT)
        return;
    log_write(LOG_INFO, (struct log_site){"C3106", output->options.site},
              "%s: it was %s while culprit wrote to it; what comes goes to the file of that name",
              output->path, there ? "replaced" : "moved away or removed");
    close(output->descriptor);
    output->descriptor = -1;
    output->cut_pending = false; // what is to be cut off is no longer here
}

enum status output_open(struct output *output, const struct output_options *options,
                        struct error *error) {
    *output = (struct output){.magic = OUTPUT_MAGIC, .options = *options, .descriptor = -1};
    if (options->path == NULL || strcmp(options->path, "-") == 0) {
        output->descriptor = STDOUT_FILENO;
        output->is_stream = true;
        return STATUS_OK;
    }
    if (options->path[0] == '\0')
        return error_set(error, STATUS_CONFIG,
                         "path: is empty; write a file or - for standard "
                         "output.");
    output->path = path_resolve(options->path);
    if (path_is_stream(output->path))
        return stream_open(output, error);
    if (options->mode == OUTPUT_SLOT)
        return file_open(output, O_WRONLY, error);
    return options->mode == OUTPUT_LINES ? lines_open(output, error) : document_open(output, error);
}

// The last line of the request takes the place of what is there.
static enum status slot_send(struct output *output, struct slice bytes, struct error *error) {
    assert(output->options.mode == OUTPUT_SLOT);
    if (bytes.size == 0)
        return STATUS_OK;
    const char *before = memrchr(bytes.data, '\n', bytes.size - 1);
    size_t skipped = before == NULL ? 0 : (size_t)(before + 1 - bytes.data);
    struct slice line = {bytes.data + skipped, bytes.size - skipped};
    file_check(output);
    enum status status = output->descriptor < 0 ? file_open(output, O_WRONLY, error) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    int failure = lseek(output->descriptor, 0, SEEK_SET) == 0 ? 0 : errno;
    if (failure == 0)
        failure = descriptor_write(output->descriptor, line);
    if (failure == 0 && ftruncate(output->descriptor, (off_t)line.size) != 0)
        failure = errno;
    if (failure == 0 && output->options.sync && fsync(output->descriptor) != 0)
        failure = errno;
    if (failure != 0)
        return error_set_os(error, STATUS_IO, failure, "writing to %s", output->path);
    return STATUS_OK;
}

static enum status stream_send(struct output *output, struct slice bytes,
                               struct send_outcome *outcome, struct error *error) {
    assert(output->is_stream && output->descriptor >= 0);
    const char *name = output->path == NULL ? "standard output" : output->path;
    outcome->sink_dead = output->broken;
    if (output->broken)
        return error_set(error, STATUS_IO, "%s failed before; nothing more is written to it", name);
    int failure = descriptor_write(output->descriptor, bytes);
    // A part may be out already: sending the same again would double it, so there is no retry.
    outcome->sink_dead = output->broken = failure != 0;
    if (failure == EPIPE)
        return error_set(error, STATUS_STOPPED, "%s was closed by its reader.", name);
    if (failure != 0)
        return error_set_os(error, STATUS_IO, failure, "writing to %s", name);
    return STATUS_OK;
}

enum status output_send(void *instance, const struct request *request, struct send_outcome *outcome,
                        struct error *error) {
    struct output *output = output_of(instance);
    assert(outcome->taken == 0 && !outcome->sink_dead);
    if (output->is_stream)
        return stream_send(output, request->bytes, outcome, error);
    if (output->options.mode == OUTPUT_SLOT)
        return slot_send(output, request->bytes, error);
    if (output->options.mode == OUTPUT_LINES)
        return lines_send(output, request->bytes, &outcome->taken, error);
    return document_send(output, request, error);
}

void output_close(struct output *output) {
    if (output->path == NULL)
        return;
    document_close(output);
    if (output->descriptor >= 0)
        close(output->descriptor);
    output->descriptor = -1;
    memory_give(output->path);
    memory_give(output->temporary);
    output->path = output->temporary = NULL;
}
