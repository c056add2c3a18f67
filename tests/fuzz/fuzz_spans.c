// SPDX-License-Identifier: Apache-2.0
// Whatever lines come, each is decoded the same way twice, and what is told of it can be read.
//
// The input is records, one a line, each in a block of its own, so that a read past its end is
// seen. Texts that were made anew must be JSON that decodes to itself.
#include "base/memory.h"
#include "pipeline/model/span_event.h"
#include "receivers/decode/json/strict.h"
#include "receivers/decode/spans/spans.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static void require_text(struct slice text, size_t least) {
    require(text.data != NULL && text.size >= least && text.size <= 1 << 20);
    require(memchr(text.data, '\0', text.size) == NULL);
}

// Its brackets are added when `open` says so: JSON needs something around a list of items.
static void require_json(struct slice text, bool open) {
    if (text.data == NULL)
        return;
    char *copy = memory_take(text.size + 3);
    size_t size = 0;
    if (open)
        copy[size++] = '[';
    memcpy(copy + size, text.data, text.size);
    size += text.size;
    if (open)
        copy[size++] = ']';
    copy[size] = ' ';
    struct token token;
    struct json_fault fault;
    require(json_scan_strict_value(copy, copy + size + 1, 0, &token, &fault) == copy + size);
    require(token.kind == TOKEN_ARRAY);
    memory_give(copy);
}

static void require_annotation(const struct span_annotation *annotation) {
    if (annotation == NULL)
        return;
    require(annotation->count >= 1 && annotation->count <= SPAN_DEPTH_MAX);
    for (uint32_t i = 0; i < annotation->count; i++) {
        require_text(annotation->tags[i], 0);
        require_text(annotation->ids[i], 1);
    }
}

static void require_tasks(const struct span_event *event) {
    for (uint32_t i = 0; i < event->task_count; i++) {
        const struct span_task *task = &event->tasks[i];
        require_text(task->key, 1);
        require_text(task->group, 1);
        require(task->first <= i && slice_equal(event->tasks[task->first].key, task->key));
        require(event->tasks[task->first].first == task->first && task->nbytes >= -1);
        if (event->refused == SPAN_ACCEPTED)
            require_annotation(task->annotation);
    }
    require_json(event->code, false);
    require_json(event->collections, true);
}

static void require_metrics(const struct span_event *event) {
    for (uint32_t i = 0; i < event->metric_count; i++) {
        const struct span_metric *metric = &event->metrics[i];
        require(i == 0 || metric->entry > event->metrics[i - 1].entry);
        require(metric->refused == SPAN_ACCEPTED || metric->refused == SPAN_BAD_ENTRY);
        if (metric->refused == SPAN_BAD_ENTRY)
            continue;
        require(metric->span_id.size == 0 || metric->span_id.data != NULL);
        require_json(metric->key, false);
        require(metric->whole || isfinite(metric->number));
    }
}

// What every event promises to the stage.
static void require_sound(const struct event *event) {
    const struct span_event *span = event->span;
    require(event->kind == EVENT_SPAN && event->rank == RANK_NONE && event->job == STRING_NONE);
    require_tasks(span);
    if (span->refused != SPAN_ACCEPTED) {
        require(event->timeless && event->time_ns == 0);
        require(span->refused_early || span->kind != SPAN_NO_KIND);
        return;
    }
    require(event->time_ns > 0 && span->time_s > 0 && span->time_s <= 1e11 && span->threads >= 0);
    require_metrics(span);
    if (span->kind == SPAN_JOIN || span->kind == SPAN_LEAVE)
        require_text(span->worker, 1);
    if (span->kind == SPAN_TRANSITION)
        require_text(span->key, 1);
    for (uint32_t i = 0; i < span->action_count; i++) {
        require_text(span->actions[i].name, 1);
        require(fabs(span->actions[i].start_s) <= 1e11 && fabs(span->actions[i].stop_s) <= 1e11);
    }
}

static void decode_twice(struct slice record, struct arena *arena) {
    struct event event[2];
    struct decode_fault fault[2];
    enum decode_category category[2];
    for (int i = 0; i < 2; i++) {
        memset(&event[i], 0, sizeof event[i]);
        memset(&fault[i], 0, sizeof fault[i]);
        category[i] = decoder_spans.decode(NULL, record, arena, &event[i], &fault[i]);
        require_sound(&event[i]);
        require(fault[i].told == (category[i] != DECODE_OK));
        require((event[i].span->refused == SPAN_ACCEPTED) == (category[i] == DECODE_OK));
    }
    require(category[0] == category[1] && event[0].time_ns == event[1].time_ns);
    require(event[0].span->refused == event[1].span->refused);
    require(strcmp(fault[0].detail, fault[1].detail) == 0);
    if (category[0] != DECODE_OK)
        require(fault[0].category == category[0] && fault[0].detail[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena arena;
    arena_init(&arena, 4096);
    while (size > 0) {
        const uint8_t *newline = memchr(data, '\n', size);
        size_t length = newline == NULL ? size : (size_t)(newline - data);
        char *record = memory_take(length);
        memcpy(record, data, length);
        decode_twice((struct slice){record, length}, &arena);
        memory_give(record);
        arena_reset(&arena);
        length += newline != NULL;
        data += length;
        size -= length;
    }
    arena_release(&arena);
    return 0;
}
