// SPDX-License-Identifier: Apache-2.0
// Keeps refused records in a JSON Lines file.
//
// Each line is made in pieces of 64 KiB and written at once; when a write fails, the file is cut
// back to whole lines and the quarantine stays shut, as it does when the file is full.
#include "receivers/records/quarantine.h"

#include "base/text/json_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { LINE_BLOCK = 64 << 10 };

static bool write_all(void *context, struct slice bytes) {
    struct quarantine *quarantine = context;
    assert(quarantine->descriptor >= 0);
    while (bytes.size > 0) {
        ssize_t written = write(quarantine->descriptor, bytes.data, bytes.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            quarantine->write_error = errno;
            return false;
        }
        bytes.data += written;
        bytes.size -= (size_t)written;
    }
    return true;
}

// A line that a crash has cut off gets its end, so that the next one stands alone.
static bool end_last_line(struct quarantine *quarantine, off_t size) {
    char last = '\n';
    if (size == 0 || pread(quarantine->descriptor, &last, 1, size - 1) != 1 || last == '\n')
        return true;
    return write_all(quarantine, SLICE("\n"));
}

enum status quarantine_open(struct quarantine *quarantine, const char *path, uint64_t max_bytes,
                            struct error *error) {
    *quarantine = (struct quarantine){.path = path, .descriptor = -1, .max_bytes = max_bytes};
    int descriptor = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (descriptor < 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno,
                            "the quarantine file %s cannot be opened for writing", path);
    quarantine->descriptor = descriptor;
    struct stat about;
    if (fstat(descriptor, &about) != 0 || !end_last_line(quarantine, about.st_size)) {
        int os_error = quarantine->write_error != 0 ? quarantine->write_error : errno;
        close(descriptor);
        return error_set_os(error, STATUS_IO, os_error, "the quarantine file %s cannot be used",
                            path);
    }
    quarantine->identity = file_identity_of(&about);
    quarantine->open = true;
    buffer_init_drained(&quarantine->line, LINE_BLOCK, write_all, quarantine);
    return STATUS_OK;
}

// A file that was moved away or removed, as rotation does, is left, and a new one begun.
static bool follow_name(struct quarantine *quarantine) {
    struct stat about;
    bool there = stat(quarantine->path, &about) == 0;
    if (there ? file_identity_equal(file_identity_of(&about), quarantine->identity)
              : errno != ENOENT)
        return true;
    int descriptor = open(quarantine->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (descriptor < 0 || fstat(descriptor, &about) != 0) {
        quarantine->write_error = errno;
        if (descriptor >= 0)
            close(descriptor);
        return false;
    }
    close(quarantine->descriptor);
    quarantine->descriptor = descriptor;
    quarantine->identity = file_identity_of(&about);
    return end_last_line(quarantine, about.st_size);
}

static void add_line(struct quarantine *quarantine, struct slice path, uint64_t position,
                     const struct decode_fault *fault, struct slice record) {
    assert(quarantine->open && !quarantine->failed && fault->category != DECODE_OK);
    quarantine->failed = !follow_name(quarantine);
    if (quarantine->failed)
        return;
    off_t before = lseek(quarantine->descriptor, 0, SEEK_END);
    if (before >= 0 && (uint64_t)before + record.size > quarantine->max_bytes) {
        quarantine->write_error = EFBIG;
        quarantine->failed = true;
        return;
    }
    buffer_reset(&quarantine->line);
    struct json_writer json;
    json_begin(&json, &quarantine->line, 0);
    json_object_open(&json);
    json_field_slice(&json, "path", path);
    json_field_uint(&json, "position", position);
    json_field_text(&json, "category", decode_category_name(fault->category));
    json_field_text(&json, "field", fault->field);
    json_field_text(&json, "detail", fault->detail);
    json_field_slice(&json, "record", record);
    json_object_close(&json);
    buffer_append_char(&quarantine->line, '\n');
    if (buffer_finish(&quarantine->line))
        return;
    quarantine->failed = true;
    // Where that fails too, the next start ends the torn line.
    if (before < 0 || ftruncate(quarantine->descriptor, before) != 0)
        return;
}

void quarantine_keep(struct quarantine *quarantine, struct feed *feed, const struct source *source,
                     uint64_t position, const struct decode_fault *fault, struct slice record) {
    if (!quarantine->open || quarantine->silent)
        return;
    if (!quarantine->failed)
        add_line(quarantine, feed_source_path(source), position, fault, record);
    if (!quarantine->failed || quarantine->said)
        return;
    quarantine->said = true;
    feed_note(feed, slice_of(quarantine->path),
              "the quarantine file cannot be written (%s): refused records are counted but no "
              "longer kept",
              strerror(quarantine->write_error));
}

void quarantine_close(struct quarantine *quarantine) {
    if (!quarantine->open)
        return;
    close(quarantine->descriptor);
    buffer_release(&quarantine->line);
    quarantine->open = false;
}
