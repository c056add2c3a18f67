// SPDX-License-Identifier: Apache-2.0
// The one place that reads followed files at an offset.
#include "receivers/file/follow/follower.h"

#include "pipeline/component/feed.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void follower_note(struct follower *follower, const struct tracked_file *file, const char *format,
                   ...) {
    assert(file->path != NULL && format != NULL);
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    feed_note(follower->reader->sink.feed, slice_of(file->path), "%s", text);
}

bool follower_is_finished(const struct follower *follower, const struct tracked_file *file) {
    return follower->now_ns - file->quiet_since_ns >= follower->finish_ns;
}

void follower_clear(struct follower *follower) {
    feed_flush(follower->reader->sink.feed);
    follower->reader->window.start = follower->reader->window.end = 0;
}

char *follower_room(struct follower *follower, size_t size) {
    struct file_window *window = &follower->reader->window;
    if (window->capacity - window->end < size) {
        follower_clear(follower);
        window_reserve(window, size);
    }
    return window->data + window->end;
}

bool follower_open(struct follower *follower, struct tracked_file *file) {
    struct error error;
    enum status status = track_open(follower->table, file, &error);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND && !file->error_noted)
        follower_note(follower, file, "not read for now: %s", error.message);
    file->error_noted = status != STATUS_OK && (file->error_noted || status != STATUS_NOT_FOUND);
    return status == STATUS_OK;
}

bool follower_read(struct follower *follower, const struct tracked_file *file, char *to,
                   size_t size, uint64_t offset, size_t *got) {
    assert(file->descriptor >= 0);
    for (*got = 0; *got < size;) {
        ssize_t count = pread(file->descriptor, to + *got, size - *got, (off_t)(offset + *got));
        if (count == 0)
            break;
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            follower_note(follower, file, "reading it failed; it is tried again later: %s",
                          strerror(errno));
            return false;
        }
        *got += (size_t)count;
    }
    return true;
}

uint64_t follower_data_at(const struct tracked_file *file, uint64_t offset) {
    off_t data = lseek(file->descriptor, (off_t)offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        data = lseek(file->descriptor, 0, SEEK_END);
    return data > (off_t)offset ? (uint64_t)data : offset;
}

bool follower_holds(struct follower *follower, const struct tracked_file *file,
                    struct fingerprint print, uint64_t offset, bool *unreadable) {
    char bytes[FINGERPRINT_MAX];
    size_t got = 0;
    if (print.size > sizeof bytes)
        return false;
    bool read = follower_read(follower, file, bytes, print.size, offset, &got);
    *unreadable = *unreadable || !read;
    return read && got == print.size && fingerprint_fits(print, bytes);
}
