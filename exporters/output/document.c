// SPDX-License-Identifier: Apache-2.0
// A file that is replaced whole, so that a reader never sees half of it.
//
// The pieces of a document are written to PATH.tmp; with the last one it is synced and renamed over
// PATH. A piece that fails is cut off again, so that it can be sent once more. While a sink fails,
// newer content queues up behind older: each begins with a mark (the record separator of RFC 7464,
// which no text of ours holds), and only what follows the last mark is written.
#include "exporters/output/parts.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DOCUMENT_MARK = 0x1e };

void output_begin_document(const struct output *output, struct buffer *out) {
    if (!output->is_stream && output->options.mode == OUTPUT_DOCUMENT)
        buffer_append_char(out, DOCUMENT_MARK);
}

static enum status temporary_open(struct output *output, struct error *error) {
    assert(output->temporary != NULL && output->descriptor < 0);
    output->descriptor = open(
        output->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (output->descriptor < 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno, "cannot create %s",
                            output->temporary);
    output->size = 0;
    output->cut_pending = false;
    return STATUS_OK;
}

static void temporary_drop(struct output *output) {
    assert(output->descriptor >= 0);
    close(output->descriptor);
    output->descriptor = -1;
    unlink(output->temporary);
}

// Makes the temporary file once, so that a place that cannot be written is found at the start.
enum status document_open(struct output *output, struct error *error) {
    struct stat about;
    if (stat(output->path, &about) == 0 && S_ISDIR(about.st_mode))
        return error_set(error, STATUS_CANNOT_CREATE,
                         "path: %s is a directory; write the path of a file.", output->path);
    size_t size = strlen(output->path) + sizeof ".tmp";
    output->temporary = memory_take(size);
    snprintf(output->temporary, size, "%s.tmp", output->path);
    enum status status = temporary_open(output, error);
    if (status == STATUS_OK)
        temporary_drop(output);
    return status;
}

static int document_publish(struct output *output) {
    if (output->options.sync && fsync(output->descriptor) != 0)
        return errno;
    return rename(output->temporary, output->path) == 0 ? 0 : errno;
}

static enum status piece_write(struct output *output, struct slice piece, bool complete,
                               struct error *error) {
    if (output->cut_pending)
        descriptor_cut(output, output->size);
    int failure = output->cut_pending ? EIO : descriptor_write(output->descriptor, piece);
    if (failure == 0 && complete)
        failure = document_publish(output);
    if (failure != 0) {
        descriptor_cut(output, output->size);
        return error_set_os(error, STATUS_IO, failure, "writing %s", output->path);
    }
    output->size += piece.size;
    return STATUS_OK;
}

enum status document_send(struct output *output, const struct request *request,
                          struct error *error) {
    assert(output->options.mode == OUTPUT_DOCUMENT);
    struct slice piece = request->bytes;
    const char *mark = piece.size == 0 ? NULL : memrchr(piece.data, DOCUMENT_MARK, piece.size);
    if (mark != NULL) {
        piece.size -= (size_t)(mark + 1 - piece.data);
        piece.data = mark + 1;
    }
    if (output->descriptor < 0) {
        if (request->bytes.size == 0)
            return STATUS_OK;
        enum status status = temporary_open(output, error);
        if (status != STATUS_OK)
            return status;
    } else if (mark != NULL) {
        output->size = 0;
        descriptor_cut(output, 0);
    }
    enum status status = piece_write(output, piece, request->complete, error);
    if (status == STATUS_OK && request->complete) {
        close(output->descriptor);
        output->descriptor = -1;
        directory_sync(output, output->path);
    }
    return status;
}

void document_close(struct output *output) {
    if (output->temporary != NULL && output->descriptor >= 0)
        temporary_drop(output);
}
