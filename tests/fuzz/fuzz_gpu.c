// SPDX-License-Identifier: Apache-2.0
// Whatever is said of GPUs and PCI devices, decoders and detectors stand it, and what comes out is
// JSON that does not depend on the order of what came in.
//
// The input is read four times: as an exposition of dcgm-exporter, as a counter file of sysfs, line
// by line as JSON of both and as a line of the kernel, and as tagged lines. It lies in a block of
// its own, so that a read past its end is seen.
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "cli/component_list.h"
#include "receivers/decode/dcgm/dcgm.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/kernel_log/aer.h"
#include "receivers/decode/sysfs_aer/sysfs_aer.h"
#include "receivers/decode/tagged/tagged.h"
#include "tests/fuzz/fuzz_options.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENTS_MAX = 512 };
static const uint64_t NOW = UINT64_C(1794992400000000000), STEP = 7000000;

struct events {
    struct arena arena;
    struct event items[EVENTS_MAX];
    uint32_t count;
};

static void require(bool holds) {
    if (!holds)
        abort();
}

static void keep(struct events *events, enum decode_category category, const struct event *event,
                 const struct decode_fault *fault) {
    require(category >= DECODE_NOTHING && category < DECODE_CATEGORY_COUNT);
    require(category == DECODE_OK || category == DECODE_NOTHING || fault->detail[0] != '\0');
    if (category == DECODE_OK && events->count < EVENTS_MAX)
        events->items[events->count++] = *event;
}

static void read_whole(struct events *events, const struct decoder_type *decoder, const char *path,
                       struct slice text) {
    struct event event = {0};
    struct decode_fault fault = {0};
    struct decoder_input input = {.path = slice_of(path), .observed_ns = NOW, .is_file = true};
    void *state = memory_zero(1, decoder->state_size);
    decoder->begin(state, &input);
    enum decode_category category = decoder->decode(state, text, &events->arena, &event, &fault);
    keep(events, category, &event, &fault);
    memory_give(state);
}

static void read_line(struct events *events, struct slice line, uint32_t number) {
    struct event event = {0};
    struct decode_fault fault = {0};
    enum decode_category category = dcgm_tagged(NULL, line, &events->arena, &event, &fault);
    keep(events, category, &event, &fault);
    event = (struct event){0};
    category = sysfs_aer_tagged(NULL, line, &events->arena, &event, &fault);
    keep(events, category, &event, &fault);
    struct kernel_line *kernel = arena_zero(&events->arena, 1, sizeof *kernel);
    kernel->pid = -1;
    if (!kernel_aer_parse(line, kernel))
        return;
    require(kernel->kind == KERNEL_AER && kernel->bit < 32);
    event = (struct event){.time_ns = NOW + number * STEP,
                           .rank = RANK_NONE,
                           .node = intern(SLICE("node-a")),
                           .kind = EVENT_KERNEL,
                           .kernel = kernel};
    keep(events, DECODE_OK, &event, &fault);
}

static void read_all(struct events *events, struct slice text) {
    static const char *const paths[] = {"0000:29:00.0/aer_dev_correctable",
                                        "0000:29:00.0/aer_dev_fatal"};
    read_whole(events, &decoder_dcgm_text, "metrics", text);
    read_whole(events, &decoder_sysfs_aer, paths[text.size % 2], text);
    for (uint32_t number = 0; text.size > 0; number++) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        read_line(events, (struct slice){text.data, size}, number);
        size += end != NULL;
        text = (struct slice){text.data + size, text.size - size};
    }
}

// All events of all tagged lines, as receivers hand them on.
static void read_tagged(struct events *events, struct slice text) {
    void *state = memory_zero(1, decoder_tagged.state_size);
    while (text.size > 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        struct event event = {0};
        struct decode_fault fault = {0};
        enum decode_category category = decoder_tagged.decode(
            state, (struct slice){text.data, size}, &events->arena, &event, &fault);
        while (!decode_refused(category) && category != DECODE_END) {
            if (category == DECODE_OK && events->count < EVENTS_MAX)
                events->items[events->count++] = event;
            event = (struct event){0};
            category = decoder_tagged.next(state, &events->arena, &event, &fault);
        }
        size += end != NULL;
        text = (struct slice){text.data + size, text.size - size};
    }
    decoder_tagged.release(state);
    memory_give(state);
}

static void require_lines(struct slice lines) {
    while (lines.size > 0) {
        struct token token;
        struct json_fault fault;
        const char *end = memchr(lines.data, '\n', lines.size);
        require(end != NULL);
        require(json_scan_value(lines.data, end, 0, &token, &fault) == end);
        require(token.kind == TOKEN_OBJECT);
        size_t size = (size_t)(end - lines.data) + 1;
        lines = (struct slice){lines.data + size, lines.size - size};
    }
}

// The verdicts over all events, in batches of `size`, backwards when asked.
static void run(const struct component_type *type, const struct events *events, uint32_t size,
                bool backwards, struct buffer *lines) {
    void *config = fuzz_options(type), *instance = memory_zero(1, type->instance_size);
    struct component_context context = {.id = type->name, .site = type->name, .once = true};
    struct error error = {0};
    require(component_start(type, instance, config, &context, &error) == STATUS_OK);
    struct arena arena;
    arena_init(&arena, 1 << 16);
    uint64_t newest_ns = 0;
    struct event *items = memory_take(sizeof *items * EVENTS_MAX);
    for (uint32_t i = 0; i < events->count; i++) {
        items[i] = events->items[backwards ? events->count - 1 - i : i];
        newest_ns = items[i].time_ns > newest_ns ? items[i].time_ns : newest_ns;
    }
    for (uint32_t at = 0; at < events->count; at += size) {
        struct batch batch = {.events = items + at,
                              .event_count = events->count - at < size ? events->count - at : size,
                              .arena = &arena,
                              .newest_ns = newest_ns};
        type->processor.consume(instance, &batch);
        arena_reset(&arena);
    }
    struct batch last = {.arena = &arena,
                         .newest_ns = newest_ns,
                         .evaluate = true,
                         .as_of_ns = UINT64_MAX,
                         .last = true};
    type->processor.consume(instance, &last);
    for (uint32_t i = 0; i < last.verdicts.count; i++)
        verdict_encode(&last.verdicts.items[i], lines);
    require(!lines->failed);
    require_lines(buffer_slice(lines));
    component_stop(type, instance);
    arena_release(&arena);
    memory_give(items);
    memory_give(instance);
    memory_give(config);
}

static void compare(const struct component_type *type, const struct events *events) {
    struct buffer first, second;
    buffer_init(&first, 64u << 20);
    buffer_init(&second, 64u << 20);
    run(type, events, EVENTS_MAX, false, &first);
    run(type, events, 3, true, &second);
    require(slice_equal(buffer_slice(&first), buffer_slice(&second)));
    buffer_release(&first);
    buffer_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = memory_take(size + (size == 0));
    if (size > 0)
        memcpy(text, data, size);
    struct events *events = memory_zero(1, sizeof *events);
    arena_init(&events->arena, 1 << 16);
    read_all(events, (struct slice){text, size});
    compare(&processor_thermal_throttle, events);
    compare(&processor_pcie_aer, events);
    events->count = 0;
    read_tagged(events, (struct slice){text, size});
    compare(&processor_gpu_fault, events);
    compare(&processor_fabric_link, events);
    arena_release(&events->arena);
    memory_give(events);
    memory_give(text);
    metrics_release();
    intern_release();
    return 0;
}
