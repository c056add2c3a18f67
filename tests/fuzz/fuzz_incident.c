// SPDX-License-Identifier: Apache-2.0
// Any lines of logs, from bytes to the incident: decoders, detectors and the join of their verdicts
// stand them, and what is said does not depend on how the lines came.
//
// The input is a stream of records, a line each, told one by one as in a request. Each lies in a
// block of its own, so that a read past its end is seen. The detectors that look at logs take the
// events in one batch, then in small ones, backwards behind all telemetry, whose ranks speak one
// after the other. Both must come to the same bytes. Verdicts are whole, their evidence in its
// order, each line JSON.
#include "base/intern.h"
#include "base/metrics/metrics.h"
#include "cli/component_list.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/json/scan.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_options.h"

#include <stdio.h>

enum { EVENTS_MAX = 256, BLOCKS_MAX = 1024, STAGES = 7 };
static const uint64_t NOW = UINT64_C(1794992400000000000);

// `incident` comes last.
static const struct component_type *const STAGE_TYPES[STAGES] = {
    &processor_nccl_hang, &processor_first_exit,  &processor_gpu_fault, &processor_fabric_link,
    &processor_hbm_ecc,   &processor_pod_evicted, &processor_incident};

struct stream {
    void *state;
    struct arena arena;
    struct slice blocks[BLOCKS_MAX];
    uint32_t block_count;
    struct event events[EVENTS_MAX + 1]; // the last one is thrown away
    uint32_t count;
};

static void keep(struct stream *stream, enum decode_category category,
                 const struct decode_fault *fault) {
    require(category < DECODE_CATEGORY_COUNT);
    require(!decode_refused(category) || fault->detail[0] != '\0');
    if (category != DECODE_OK)
        return;
    const struct event *event = &stream->events[stream->count];
    require(event->kind < EVENT_KIND_COUNT && event_class_name(event_class(event)) != NULL);
    require(event->rank >= RANK_NONE && event->rank <= RANK_MAX && event->node != STRING_REFUSED);
    stream->count += stream->count < EVENTS_MAX;
}

static struct event *next_event(struct stream *stream, struct slice record) {
    struct event *event = &stream->events[stream->count];
    *event = (struct event){.position = stream->block_count, .lines = 1, .raw = record};
    return event;
}

static void take_others(struct stream *stream, struct slice record) {
    struct decode_fault fault;
    for (;;) {
        struct event *event = next_event(stream, record);
        enum decode_category category =
            decoder_any.next(stream->state, &stream->arena, event, &fault);
        if (category == DECODE_END)
            return;
        keep(stream, category, &fault);
    }
}

static void read_lines(struct stream *stream, struct fuzz_input left) {
    struct decoder_input input = {.path = SLICE("gpu-node-1/rank_3.log"),
                                  .observed_ns = NOW,
                                  .node = SLICE("gpu-node-1"),
                                  .world_size = 8};
    stream->state = memory_zero(1, decoder_any.state_size);
    decoder_any.begin(stream->state, &input);
    struct decode_fault fault;
    for (struct slice line; stream->block_count < BLOCKS_MAX && fuzz_piece(&left, '\n', &line);) {
        struct slice block = stream->blocks[stream->block_count++] = fuzz_block(line);
        struct event *event = next_event(stream, block);
        keep(stream, decoder_any.decode(stream->state, block, &stream->arena, event, &fault),
             &fault);
        take_others(stream, block);
    }
    decoder_any.finish(stream->state);
    take_others(stream, (struct slice){"", 0});
    require(!decoder_any.holds(stream->state));
    decoder_any.release(stream->state);
}

static void require_json(struct slice line) {
    struct token token;
    struct json_fault fault;
    const char *end = line.data + line.size - 1;
    require(line.size > 0 && *end == '\n');
    require(json_scan_value(line.data, end, 0, &token, &fault) == end);
    require(token.kind == TOKEN_OBJECT);
}

static void require_whole(const struct verdict *verdict) {
    require(verdict->headline.size > 0 && verdict->remediation.size > 0);
    require(verdict->evidence_count > 0);
    require(verdict->start_ns <= verdict->end_ns);
    // Its ranks come first in the evidence of a hang, and Xids in that of memory errors.
    bool by_time =
        strcmp(verdict->pattern, "nccl_hang") != 0 && strcmp(verdict->pattern, "hbm_ecc") != 0;
    for (uint32_t i = 1; i < verdict->evidence_count && by_time; i++) {
        const struct evidence *before = &verdict->evidence[i - 1], *piece = &verdict->evidence[i];
        require(before->has_time || !piece->has_time);
        require(!piece->has_time || before->time_ns <= piece->time_ns);
    }
    for (uint32_t i = 0; i < verdict->related_count; i++)
        require(strcmp(verdict->related[i].id, verdict->id) != 0);
}

static void encode(const struct batch *batch, struct buffer *lines) {
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        size_t before = lines->size;
        require_whole(&batch->verdicts.items[i]);
        verdict_encode(&batch->verdicts.items[i], lines);
        require(!lines->failed);
        require_json((struct slice){lines->data + before, lines->size - before});
    }
}

struct chain {
    void *configs[STAGES], *instances[STAGES];
    struct arena arena;
};

static void chain_start(struct chain *chain) {
    static const struct component_set all = {STAGE_TYPES, STAGES};
    arena_init(&chain->arena, 1 << 16);
    for (int i = 0; i < STAGES; i++) {
        const struct component_type *type = STAGE_TYPES[i];
        struct component_context context = {
            .id = type->name, .site = type->name, .components = &all, .once = true};
        struct error error = {0};
        chain->configs[i] = fuzz_options(type);
        chain->instances[i] = memory_zero(1, type->instance_size);
        require(component_start(type, chain->instances[i], chain->configs[i], &context, &error) ==
                STATUS_OK);
    }
}

static void chain_stop(struct chain *chain) {
    for (int i = 0; i < STAGES; i++) {
        component_stop(STAGE_TYPES[i], chain->instances[i]);
        memory_give(chain->instances[i]);
        memory_give(chain->configs[i]);
    }
    arena_release(&chain->arena);
}

static void chain_pass(struct chain *chain, struct batch *batch) {
    batch->arena = &chain->arena;
    for (int i = 0; i < STAGES; i++)
        STAGE_TYPES[i]->processor.consume(chain->instances[i], batch);
}

static void order(const struct stream *stream, bool backwards, struct event *events) {
    uint32_t first = 0, behind = stream->count;
    for (uint32_t i = 0; i < stream->count; i++) {
        bool is_turned = backwards && stream->events[i].kind != EVENT_TELEMETRY;
        events[is_turned ? --behind : first++] = stream->events[i];
    }
}

// The verdicts over all events in batches of `size`.
static void run(const struct stream *stream, uint32_t size, bool backwards, struct buffer *lines) {
    struct chain chain;
    struct event *events = memory_take(sizeof *events * EVENTS_MAX);
    uint64_t newest_ns = 0;
    order(stream, backwards, events);
    for (uint32_t i = 0; i < stream->count; i++)
        newest_ns = events[i].time_ns > newest_ns ? events[i].time_ns : newest_ns;
    chain_start(&chain);
    for (uint32_t at = 0; at < stream->count; at += size) {
        uint32_t left = stream->count - at;
        struct batch batch = {.events = events + at,
                              .event_count = left < size ? left : size,
                              .newest_ns = newest_ns};
        chain_pass(&chain, &batch);
        arena_reset(&chain.arena);
    }
    struct batch last = {
        .newest_ns = newest_ns, .evaluate = true, .as_of_ns = UINT64_MAX, .last = true};
    chain_pass(&chain, &last);
    encode(&last, lines);
    chain_stop(&chain);
    memory_give(events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct stream *stream = memory_zero(1, sizeof *stream);
    arena_init(&stream->arena, 1 << 16);
    read_lines(stream, (struct fuzz_input){(const char *)data, size});
    struct buffer first, second;
    buffer_init(&first, 64u << 20);
    buffer_init(&second, 64u << 20);
    run(stream, EVENTS_MAX, false, &first);
    run(stream, 3, true, &second);
    if (!slice_equal(buffer_slice(&first), buffer_slice(&second)))
        fprintf(stderr, "%.*s\nbackwards:\n%.*s\n", (int)first.size, first.data, (int)second.size,
                second.data);
    require(slice_equal(buffer_slice(&first), buffer_slice(&second)));
    buffer_release(&first);
    buffer_release(&second);
    for (uint32_t i = 0; i < stream->block_count; i++)
        fuzz_block_give(stream->blocks[i]);
    arena_release(&stream->arena);
    memory_give(stream->state);
    memory_give(stream);
    metrics_release();
    intern_release();
    return 0;
}
