// SPDX-License-Identifier: Apache-2.0
// Writes the document of --stats.
//
// The file is opened before the work, so that a path that cannot be written is told at once. One
// pass over the sources; the document is made in memory and written at the end.
#include "cli/stats.h"

#include "base/text/json_write.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/observation.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 30 };

static void write_kinds(struct json_writer *json, const struct report_source *source, bool all) {
    const uint64_t *counts = source->figures.by_class;
    for (uint32_t class = 0; counts != NULL && class < EVENT_CLASS_COUNT; class ++)
        if (counts[class] > 0 && (all || (source->taken != NULL && !source->taken[class])))
            json_field_uint(json, event_class_name(class), counts[class]);
}

static void write_source(struct json_writer *json, const struct report_source *source) {
    const struct source_figures *figures = &source->figures;
    json_object_open(json);
    json_field_slice(json, "path", source->path);
    if (figures->format == NULL)
        json_field_null(json, "format");
    else
        json_field_text(json, "format", figures->format);
    json_field_uint(json, "lines",
                    figures->blank + figures->event_lines + figures->refused + figures->other +
                        figures->torn);
    json_field_uint(json, "blank", figures->blank);
    json_field_uint(json, "event_lines", figures->event_lines);
    json_field_object_open(json, "events");
    write_kinds(json, source, true);
    json_object_close(json);
    json_field_object_open(json, "refused");
    for (int i = 1; i < DECODE_CATEGORY_COUNT; i++) {
        uint64_t count = figures->by_category == NULL ? 0 : figures->by_category[i];
        // A last line that broke off was dropped before any decoder.
        count += i == DECODE_TORN && figures->torn;
        if (count > 0)
            json_field_uint(json, decode_category_name((enum decode_category)i), count);
    }
    json_object_close(json);
    json_field_uint(json, "other", figures->other);
    json_field_object_open(json, "unused");
    write_kinds(json, source, false);
    json_object_close(json);
    json_object_close(json);
}

static void write_document(struct buffer *text, const struct report *report) {
    struct json_writer json;
    json_begin(&json, text, 2);
    json_object_open(&json);
    json_field_array_open(&json, "sources");
    for (uint32_t i = 0; i < report->source_count; i++)
        if (report->sources[i].path.size > 0)
            write_source(&json, &report->sources[i]);
    json_array_close(&json);
    json_object_close(&json);
    buffer_append_char(text, '\n');
}

static bool is_standard_output(const struct stats_file *file) {
    return strcmp(file->path, "-") == 0;
}

// What was in the file stays until the document takes its place: the run may fail before.
enum status stats_open(struct stats_file *file, const char *path, struct error *error) {
    assert(file != NULL && path != NULL);
    *file = (struct stats_file){.path = path, .descriptor = STDOUT_FILENO};
    if (is_standard_output(file))
        return STATUS_OK;
    file->descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    file->is_new = file->descriptor >= 0;
    if (file->descriptor < 0 && errno == EEXIST)
        file->descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (file->descriptor >= 0)
        return STATUS_OK;
    error_set_os(error, STATUS_CANNOT_CREATE, errno, "--stats: %s cannot be written", path);
    if (error->status == STATUS_NOT_FOUND) // the directory
        error->status = STATUS_CANNOT_CREATE;
    return error->status;
}

enum status stats_write(struct stats_file *file, const struct report *report, struct error *error) {
    struct buffer text;
    assert(file->descriptor >= 0);
    buffer_init(&text, TEXT_MAX);
    write_document(&text, report);
    int os_error = 0;
    struct stat what;
    if (fstat(file->descriptor, &what) == 0 && S_ISREG(what.st_mode) && !is_standard_output(file) &&
        ftruncate(file->descriptor, 0) != 0)
        os_error = errno;
    for (size_t at = 0; at < text.size && os_error == 0;) {
        ssize_t written = write(file->descriptor, text.data + at, text.size - at);
        if (written >= 0)
            at += (size_t)written;
        else if (errno != EINTR)
            os_error = errno;
    }
    buffer_release(&text);
    file->is_new = false;
    bool left = is_standard_output(file) && os_error == EPIPE; // who reads it has enough
    return os_error == 0 || left ? STATUS_OK
                                 : error_set_os(error, STATUS_IO, os_error,
                                                "--stats: %s cannot be written", file->path);
}

void stats_close(struct stats_file *file) {
    if (file->path == NULL || is_standard_output(file))
        return;
    if (file->is_new)
        unlink(file->path);
    close(file->descriptor);
}
