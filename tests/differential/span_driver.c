// SPDX-License-Identifier: Apache-2.0
// What does the decoder of span streams make of each record on standard input?
//
// Input: for each record its size in decimal, a newline, its bytes, a newline. Output: one line of
// JSON a record: the code of its refusal, what was read before, and for accepted ones every value.
// Run by spans.py, which compares with span_oracle.py.
#include "base/memory.h"
#include "base/text/json_write.h"
#include "pipeline/model/span_event.h"
#include "receivers/decode/spans/spans.h"

#include <stdio.h>
#include <stdlib.h>

enum { OUTPUT_MAX = 64 << 20, RECORD_MAX = 16 << 20 };

static void put_text(struct json_writer *json, struct slice text) {
    if (text.data == NULL)
        json_put_null(json);
    else
        json_slice(json, text);
}

// As a text, so that no reader takes -0 for an integer.
static void put_double(struct json_writer *json, double value) {
    char text[64];
    snprintf(text, sizeof text, "%.17g", value);
    json_text(json, text);
}

static void put_items(struct json_writer *json, struct slice items) {
    if (items.data == NULL) {
        json_put_null(json);
        return;
    }
    json_array_open(json);
    if (items.size > 0)
        json_raw(json, items);
    json_array_close(json);
}

static void put_texts(struct json_writer *json, const struct slice *texts, uint32_t count) {
    json_array_open(json);
    for (uint32_t i = 0; i < count; i++)
        json_slice(json, texts[i]);
    json_array_close(json);
}

static void put_tasks(struct json_writer *json, const struct span_event *event) {
    json_key(json, "tasks");
    json_array_open(json);
    for (uint32_t i = 0; i < event->task_count; i++) {
        const struct span_task *task = &event->tasks[i];
        json_array_open(json);
        json_slice(json, task->key);
        json_slice(json, task->group);
        json_int(json, task->nbytes);
        json_int(json, task->first);
        // When it was refused the annotation of the last one may not have been read.
        if (task->annotation != NULL && event->refused == SPAN_ACCEPTED) {
            put_texts(json, task->annotation->tags, task->annotation->count);
            put_texts(json, task->annotation->ids, task->annotation->count);
        }
        json_array_close(json);
    }
    json_array_close(json);
}

static void put_transition(struct json_writer *json, const struct span_event *event) {
    json_key(json, "key");
    json_slice(json, event->key);
    json_key(json, "to");
    json_text(json, task_state_name(event->to));
    json_key(json, "nbytes");
    json_int(json, event->nbytes);
    json_key(json, "actions");
    json_array_open(json);
    for (uint32_t i = 0; i < event->action_count; i++) {
        json_array_open(json);
        json_slice(json, event->actions[i].name);
        put_double(json, event->actions[i].start_s);
        put_double(json, event->actions[i].stop_s);
        json_array_close(json);
    }
    json_array_close(json);
}

static void put_metrics(struct json_writer *json, const struct span_event *event) {
    json_key(json, "metrics");
    json_array_open(json);
    for (uint32_t i = 0; i < event->metric_count; i++) {
        const struct span_metric *metric = &event->metrics[i];
        json_array_open(json);
        json_int(json, metric->entry);
        if (metric->refused == SPAN_ACCEPTED) {
            json_slice(json, metric->span_id);
            json_slice(json, metric->key); // as text: it must be the same for the same key
            json_bool(json, metric->is_known_time);
            json_bool(json, metric->whole);
            if (metric->whole)
                json_int(json, metric->integer);
            else
                put_double(json, metric->number);
        } else {
            json_text(json, span_refusal_name(metric->refused));
        }
        json_array_close(json);
    }
    json_array_close(json);
}

static void put_values(struct json_writer *json, const struct event *event) {
    const struct span_event *span = event->span;
    json_key(json, "ts");
    put_double(json, span->time_s);
    json_key(json, "time_ns");
    json_uint(json, event->time_ns);
    json_key(json, "timeless");
    json_bool(json, event->timeless);
    json_key(json, "worker");
    put_text(json, span->worker);
    json_key(json, "threads");
    json_int(json, span->threads);
    json_key(json, "default_id");
    put_text(json, span->default_id);
    json_key(json, "code"); // as text: it must be the same for the same stack
    put_text(json, span->code);
    json_key(json, "collections");
    put_items(json, span->collections);
    if (span->kind == SPAN_TRANSITION)
        put_transition(json, span);
    if (span->kind == SPAN_METRICS)
        put_metrics(json, span);
}

static void put_result(struct buffer *out, enum decode_category category, const struct event *event,
                       const struct decode_fault *fault) {
    const struct span_event *span = event->span;
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_key(&json, "refused");
    json_text(&json, span_refusal_name(span->refused));
    json_key(&json, "kind");
    json_int(&json, (int64_t)span->kind);
    put_tasks(&json, span);
    if (category == DECODE_OK) {
        put_values(&json, event);
    } else {
        json_key(&json, "early");
        json_bool(&json, span->refused_early);
        json_key(&json, "told");
        json_bool(&json, fault->told && event->timeless && event->time_ns == 0);
        json_key(&json, "detail");
        json_text(&json, fault->detail);
    }
    json_object_close(&json);
    buffer_append_char(out, '\n');
}

int main(void) {
    struct arena arena;
    struct buffer out;
    arena_init(&arena, 64 << 10);
    buffer_init(&out, OUTPUT_MAX);
    size_t size;
    while (scanf("%zu", &size) == 1 && getchar() == '\n' && size <= RECORD_MAX) {
        // A block of its own, so that reading past the record's end does not go unseen.
        char *record = memory_take(size);
        if (size > 0 && fread(record, 1, size, stdin) != size)
            return EXIT_FAILURE;
        struct event event = {0};
        struct decode_fault fault = {0};
        enum decode_category category =
            decoder_spans.decode(NULL, (struct slice){record, size}, &arena, &event, &fault);
        put_result(&out, category, &event, &fault);
        if (fwrite(out.data, 1, out.size, stdout) != out.size)
            return EXIT_FAILURE;
        buffer_reset(&out);
        arena_reset(&arena);
        memory_give(record);
    }
    buffer_release(&out);
    arena_release(&arena);
    return EXIT_SUCCESS;
}
