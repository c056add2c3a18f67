// SPDX-License-Identifier: Apache-2.0
// One pass over the sources; the document is made in memory and written at once.
#include "cli/stats.h"

#include "base/text/json_write.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/observation.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

enum status stats_write(const char *path, const struct report *report, struct error *error) {
    struct buffer text;
    struct json_writer json;
    buffer_init(&text, TEXT_MAX);
    json_begin(&json, &text, 2);
    json_object_open(&json);
    json_field_array_open(&json, "sources");
    for (uint32_t i = 0; i < report->source_count; i++)
        if (report->sources[i].path.size > 0)
            write_source(&json, &report->sources[i]);
    json_array_close(&json);
    json_object_close(&json);
    buffer_append_char(&text, '\n');
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    bool written = file != NULL && fwrite(text.data, 1, text.size, file) == text.size;
    int os_error = errno;
    if (file != NULL && (file == stdout ? fflush(file) : fclose(file)) != 0 && written) {
        written = false;
        os_error = errno;
    }
    buffer_release(&text);
    return written ? STATUS_OK
                   : error_set_os(error, file == NULL ? STATUS_CANNOT_CREATE : STATUS_IO, os_error,
                                  "--stats: %s cannot be written", path);
}
