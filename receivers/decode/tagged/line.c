// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/tagged/line.h"

#include "base/text/cut.h"
#include "base/text/json_write.h"

#include <assert.h>

static void field(struct json_writer *json, const char *key, struct slice value) {
    if (value.size > 0)
        json_field_slice(json, key, value);
}

static void put_lines(struct json_writer *json, struct slice text) {
    json_field_array_open(json, "lines");
    for (bool more = true; more;) {
        struct slice first = text_until(text, '\n');
        more = first.size < text.size;
        json_slice(json, first);
        text = more ? text_from(text, first.size + 1) : text;
    }
    json_array_close(json);
}

void tagged_line_append(const struct tagged_line *line, struct buffer *out) {
    assert(line->time_ns > 0 && line->time_ns <= INT64_MAX);
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_text(&json, "source", line->kernel ? "kmsg" : "app_log");
    json_field_uint(&json, "timestamp_ns", line->time_ns);
    field(&json, "host.name", line->node);
    field(&json, "k8s.pod.name", line->pod);
    field(&json, "k8s.namespace.name", line->namespace);
    field(&json, "job_id", line->job);
    if (line->rank != RANK_NONE)
        json_field_int(&json, "rank", line->rank);
    if (!line->kernel)
        field(&json, "program", line->program);
    if (line->lines)
        put_lines(&json, line->message);
    else
        json_field_slice(&json, "message", line->message);
    json_object_close(&json);
}
