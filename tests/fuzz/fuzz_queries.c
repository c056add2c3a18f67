// SPDX-License-Identifier: Apache-2.0
// Whatever is asked of whatever spans: the questions are read or refused with a place, and the
// document of answers is JSON that does not depend on how the stream was cut into batches.
//
// The input is the file of questions, on one line, and the lines of a span stream. Both go through
// the spans stage, three times: in one batch, event by event, and with all its bounds at their
// least, of which only the document's form is looked at.
#include "base/intern.h"
#include "cli/component_list.h"
#include "exporters/json/span_document.h"
#include "pipeline/model/batch.h"
#include "receivers/decode/json/strict.h"
#include "receivers/decode/spans/spans.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_options.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { EVENTS_MAX = 512, DOCUMENT_MAX = 256 << 20 };

struct events {
    struct arena arena;
    struct event items[EVENTS_MAX];
    uint32_t count;
};

static void decode(struct events *events, struct fuzz_input lines) {
    uint64_t position = 0;
    for (struct slice line; events->count < EVENTS_MAX && fuzz_piece(&lines, '\n', &line);) {
        struct event *event = &events->items[events->count];
        struct decode_fault fault = {0};
        *event = (struct event){.position = ++position};
        (void)decoder_spans.decode(NULL, line, &events->arena, event, &fault);
        event->source = intern(SLICE("spans.jsonl"));
        event->kind = EVENT_SPAN;
        events->count += event->span != NULL;
    }
}

static void require_document(struct slice document) {
    struct token token;
    struct json_fault fault;
    require(document.size > 0 && document.data[document.size - 1] == '\n');
    const char *end = document.data + document.size - 1;
    require(memchr(document.data, '\n', document.size) == end);
    require(json_scan_strict_value(document.data, end, 0, &token, &fault) == end);
    require(token.kind == TOKEN_OBJECT);
}

static void consume(void *instance, const struct events *events, uint32_t size) {
    struct arena arena;
    arena_init(&arena, 1 << 16);
    for (uint32_t at = 0; at < events->count; at += size) {
        struct batch batch = {.events = events->items + at,
                              .event_count = events->count - at < size ? events->count - at : size,
                              .arena = &arena};
        processor_spans.processor.consume(instance, &batch);
        arena_reset(&arena);
    }
    arena_release(&arena);
}

// The documents of all reports; false when the questions were refused.
static bool run(const struct events *events, uint32_t size, void *config, struct buffer *out) {
    void *instance = memory_zero(1, processor_spans.instance_size);
    struct component_context context = {.id = "spans", .site = "processor/spans", .once = true};
    struct error error = {0};
    enum status status = component_start(&processor_spans, instance, config, &context, &error);
    if (status == STATUS_OK) {
        struct arena arena;
        arena_init(&arena, 1 << 16);
        consume(instance, events, size);
        struct batch last = {
            .arena = &arena, .evaluate = true, .as_of_ns = UINT64_MAX, .last = true};
        processor_spans.processor.consume(instance, &last);
        require(last.spans.count == (events->count > 0 ? 1 : 0));
        for (uint32_t i = 0; i < last.spans.count; i++)
            span_document_encode(&last.spans.items[i], out);
        require(!out->failed);
        arena_release(&arena);
    } else {
        require(status == STATUS_BAD_DATA || status == STATUS_LIMIT);
        require(strstr(error.message, "/proc/self/fd/") != NULL);
    }
    component_stop(&processor_spans, instance);
    memory_give(instance);
    return status == STATUS_OK;
}

static void set_least(void *config, const char *name) {
    const struct option *row = fuzz_option(&processor_spans, name);
    *(int64_t *)(void *)((char *)config + row->offset) = (int64_t)row->min;
}

static void run_all(const struct events *events, const char *path) {
    struct buffer first, second, least;
    void *config = fuzz_options(&processor_spans);
    const struct option *queries = fuzz_option(&processor_spans, "queries");
    *(const char **)(void *)((char *)config + queries->offset) = path;
    buffer_init(&first, DOCUMENT_MAX);
    buffer_init(&second, DOCUMENT_MAX);
    buffer_init(&least, DOCUMENT_MAX);
    bool accepted = run(events, EVENTS_MAX, config, &first);
    require(run(events, 1, config, &second) == accepted);
    require(slice_equal(buffer_slice(&first), buffer_slice(&second)));
    static const char *const bounds[] = {"max_spans", "max_tasks", "max_trees", "max_text"};
    for (size_t i = 0; i < 4; i++)
        set_least(config, bounds[i]);
    require(run(events, 3, config, &least) == accepted);
    if (first.size > 0)
        require_document(buffer_slice(&first));
    if (least.size > 0)
        require_document(buffer_slice(&least));
    buffer_release(&first);
    buffer_release(&second);
    buffer_release(&least);
    memory_give(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    struct slice queries = {"", 0};
    char path[64];
    (void)fuzz_piece(&input, '\n', &queries);
    int file = memfd_create("queries", MFD_CLOEXEC);
    require(file >= 0 && write(file, queries.data, queries.size) == (ssize_t)queries.size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    struct events *events = memory_zero(1, sizeof *events);
    arena_init(&events->arena, 1 << 16);
    decode(events, input);
    run_all(events, path);
    arena_release(&events->arena);
    memory_give(events);
    close(file);
    intern_release();
    return 0;
}
