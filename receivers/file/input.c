// SPDX-License-Identifier: Apache-2.0
// Reads files, and decompresses them when they are gzip.
//
// Plain files are read straight into the caller's room. gzip goes through one inflate stream that
// is reset for each member, so that a small file that grows large costs time but no memory.
#include "receivers/file/input.h"

#include "base/memory.h"
#include "base/slice.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GZIP_WINDOW = 15 + 16 }; // the largest window, with gzip's header and trailer

static void *zlib_take(void *unused, unsigned count, unsigned size) {
    (void)unused;
    return memory_zero(count, size);
}

static void zlib_give(void *unused, void *block) {
    (void)unused;
    memory_give(block);
}

// False when a stop came first.
static bool wait_for_bytes(const struct file_input *input) {
    struct pollfd descriptors[2] = {{.fd = input->descriptor, .events = POLLIN},
                                    {.fd = input->stop_descriptor, .events = POLLIN}};
    while (poll(descriptors, 2, -1) < 0 && errno == EINTR)
        continue;
    return descriptors[1].revents == 0;
}

static enum status read_some(struct file_input *input, void *to, size_t room, size_t *got,
                             struct error *error) {
    *got = 0;
    assert(input->descriptor >= 0 && room > 0);
    for (;;) {
        if (input->waits && !wait_for_bytes(input))
            return STATUS_OK;
        ssize_t count = read(input->descriptor, to, room);
        if (count >= 0) {
            *got = (size_t)count;
            input->raw_done += (uint64_t)count;
            return STATUS_OK;
        }
        if (errno != EINTR && errno != EAGAIN)
            return error_set_os(error, STATUS_IO, errno, "reading it failed after %llu bytes",
                                (unsigned long long)input->raw_done);
    }
}

static void begin_gzip(struct file_input *input) {
    if (input->stream == NULL) {
        input->stream = memory_take(sizeof *input->stream);
        *input->stream = (z_stream){.zalloc = zlib_take, .zfree = zlib_give};
        int made = inflateInit2(input->stream, GZIP_WINDOW);
        assert(made == Z_OK);
        (void)made;
        input->raw = memory_take(INPUT_RAW_SIZE);
    }
    inflateReset(input->stream);
    assert(input->peeked_count <= sizeof input->peeked);
    memcpy(input->raw, input->peeked, input->peeked_count);
    input->stream->next_in = input->raw;
    input->stream->avail_in = input->peeked_count;
    input->peeked_count = 0;
    input->gzip = input->inflating = true;
}

// Looks at the first two bytes, which stay to be given out.
static enum status begin(struct file_input *input, struct error *error) {
    while (input->peeked_count < 2) {
        size_t got = 0;
        enum status status = read_some(input, input->peeked + input->peeked_count,
                                       2 - input->peeked_count, &got, error);
        if (status != STATUS_OK)
            return status;
        if (got == 0)
            return STATUS_OK;
        input->peeked_count += (unsigned)got;
    }
    if (memcmp(input->peeked, "\x1f\x8b", 2) == 0) {
        begin_gzip(input);
        return STATUS_OK;
    }
    // Where one can go back, large reads shall begin at a page.
    if (!input->waits && lseek(input->descriptor, 0, SEEK_SET) == 0) {
        input->peeked_count = 0;
        input->raw_done = 0;
    }
    return STATUS_OK;
}

static void take(struct file_input *input, int descriptor) {
    assert(descriptor >= 0);
    input->descriptor = descriptor;
    input->owned = input->waits = input->every_byte = input->gzip = input->ended =
        input->inflating = false;
    input->raw_done = input->made = 0;
    input->trouble[0] = '\0';
    input->peeked_count = 0;
}

enum status file_input_attach_plain(struct file_input *input, int descriptor, uint64_t offset,
                                    struct error *error) {
    take(input, descriptor);
    input->every_byte = true;
    if (lseek(descriptor, (off_t)offset, SEEK_SET) < 0)
        return error_set_os(error, STATUS_IO, errno, "it cannot be read from byte %llu on",
                            (unsigned long long)offset);
    return STATUS_OK;
}

enum status file_input_attach(struct file_input *input, int descriptor, struct error *error) {
    take(input, descriptor);
    input->waits = lseek(descriptor, 0, SEEK_CUR) < 0;
    enum status status = begin(input, error);
    if (status != STATUS_OK)
        file_input_close(input);
    return status;
}

enum status file_input_open(struct file_input *input, const char *path, struct error *error) {
    if (strcmp(path, "-") == 0)
        return file_input_attach(input, STDIN_FILENO, error);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return error_set_os(error, STATUS_IO, errno, "it cannot be opened");
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
    enum status status = file_input_attach(input, descriptor, error);
    if (status != STATUS_OK)
        close(descriptor);
    input->owned = status == STATUS_OK;
    return status;
}

// -- gzip ---------------------------------------------------------------------------------------

static enum status refill(struct file_input *input, struct error *error) {
    assert(input->stream != NULL && input->raw != NULL);
    if (input->stream->avail_in > 0)
        return STATUS_OK;
    size_t got = 0;
    enum status status = read_some(input, input->raw, INPUT_RAW_SIZE, &got, error);
    input->stream->next_in = input->raw;
    input->stream->avail_in = (unsigned)got;
    return status;
}

static void stop_with(struct file_input *input, const char *trouble) {
    assert(input->raw_done >= input->stream->avail_in);
    snprintf(input->trouble, sizeof input->trouble, "%s, at byte %llu of the file", trouble,
             (unsigned long long)(input->raw_done - input->stream->avail_in));
    input->ended = true;
}

// Between members: zero bytes are padding, a header begins the next one, anything else is not ours.
static enum status next_member(struct file_input *input, struct error *error) {
    for (;;) {
        enum status status = refill(input, error);
        if (status != STATUS_OK)
            return status;
        z_stream *stream = input->stream;
        if (stream->avail_in == 0) {
            input->ended = true;
            return STATUS_OK;
        }
        if (*stream->next_in == 0x1f) {
            inflateReset(stream);
            input->inflating = true;
            return STATUS_OK;
        }
        if (*stream->next_in != 0) {
            stop_with(input, "something that is not gzip follows the compressed data");
            return STATUS_OK;
        }
        stream->next_in++;
        stream->avail_in--;
    }
}

static enum status inflate_some(struct file_input *input, struct error *error) {
    enum status status = refill(input, error);
    if (status != STATUS_OK)
        return status;
    bool at_end = input->stream->avail_in == 0;
    int result = inflate(input->stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
        input->inflating = false;
    else if (at_end && (result == Z_BUF_ERROR || input->stream->avail_out > 0))
        stop_with(input, "the compressed data breaks off");
    else if (result != Z_OK && result != Z_BUF_ERROR)
        stop_with(input, "the compressed data is damaged");
    return STATUS_OK;
}

static enum status read_gzip(struct file_input *input, char *to, size_t room, size_t *got,
                             struct error *error) {
    z_stream *stream = input->stream;
    stream->next_out = (unsigned char *)to;
    stream->avail_out = room > UINT_MAX ? UINT_MAX : (unsigned)room;
    unsigned asked = stream->avail_out;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && stream->avail_out > 0 && !input->ended)
        status = input->inflating ? inflate_some(input, error) : next_member(input, error);
    *got = asked - stream->avail_out;
    input->made += *got;
    return status;
}

// Behind zeros that nobody wrote the next data is sought: a hole may be longer than any disk.
static void skip_hole(struct file_input *input, struct slice bytes) {
    if (input->waits || input->every_byte ||
        memcmp(bytes.data, bytes.data + 1, bytes.size - 1) != 0)
        return;
    off_t at = lseek(input->descriptor, 0, SEEK_CUR);
    off_t data = at < 0 ? -1 : lseek(input->descriptor, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) // a hole up to the end
        data = lseek(input->descriptor, 0, SEEK_END);
    if (data > at)
        input->raw_done += (uint64_t)(data - at);
    else if (at >= 0)
        (void)lseek(input->descriptor, at, SEEK_SET);
}

enum status file_input_read(struct file_input *input, char *to, size_t room, size_t *got,
                            struct error *error) {
    assert(room >= sizeof input->peeked);
    *got = 0;
    if (input->ended)
        return STATUS_OK;
    if (input->gzip)
        return read_gzip(input, to, room, got, error);
    if (input->peeked_count > 0) {
        memcpy(to, input->peeked, input->peeked_count);
        *got = input->peeked_count;
        input->peeked_count = 0;
        input->made += *got;
        return STATUS_OK;
    }
    enum status status = read_some(input, to, room, got, error);
    if (status == STATUS_OK && *got == room && to[0] == '\0')
        skip_hole(input, (struct slice){to, room});
    input->ended = status == STATUS_OK && *got == 0;
    input->made += *got;
    return status;
}

void file_input_close(struct file_input *input) {
    if (input->owned)
        close(input->descriptor);
    input->owned = false;
    input->descriptor = -1;
}

void file_input_release(struct file_input *input) {
    file_input_close(input);
    if (input->stream != NULL)
        inflateEnd(input->stream);
    memory_give(input->stream);
    memory_give(input->raw);
    input->stream = NULL;
    input->raw = NULL;
}
