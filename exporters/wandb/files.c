// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files, and makes their paths.
#include "exporters/wandb/files.h"

#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

char *wandb_text(const char *format, ...) {
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    int size = vsnprintf(NULL, 0, format, values);
    va_end(values);
    assert(size >= 0);
    char *text = memory_take((size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

struct slice wandb_without_slashes(const char *path) {
    struct slice text = slice_of(path);
    while (text.size > 1 && text.data[text.size - 1] == '/')
        text.size--;
    return text;
}

struct slice wandb_base_name(const char *path) {
    struct slice text = wandb_without_slashes(path);
    const char *slash = memrchr(text.data, '/', text.size);
    size_t at = slash == NULL ? 0 : (size_t)(slash - text.data) + 1;
    return (struct slice){text.data + at, text.size - at};
}

int wandb_write_all(int descriptor, struct slice bytes) {
    while (bytes.size > 0) {
        ssize_t written = write(descriptor, bytes.data, bytes.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written == 0 ? EIO : errno;
        bytes.data += written;
        bytes.size -= (size_t)written;
    }
    return 0;
}

int wandb_read_all(int descriptor, struct buffer *out) {
    char block[65536];
    ssize_t got = 1;
    while (got != 0 && !out->failed) {
        got = read(descriptor, block, sizeof block);
        if (got < 0 && errno != EINTR)
            return errno;
        if (got > 0)
            buffer_append(out, (struct slice){block, (size_t)got});
    }
    explicit_bzero(block, sizeof block);
    return 0;
}

bool wandb_is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}
