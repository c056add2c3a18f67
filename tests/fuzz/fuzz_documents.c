// SPDX-License-Identifier: Apache-2.0
// Documents and reports of NCCL's RAS and Inspector, of py-spy, of Slurm, counters of network
// cards: answered, with facts that are sound, and the same when they are decoded once more.
//
// The first byte says which decoder reads what follows, as one record or line by line. Every event
// is asked for, with the arena emptied in between, as a batch that is full does. All lines must be
// accounted for: those of events, of refusals and of no interest.
#include "base/arena.h"
#include "base/hash/hash.h"
#include "base/intern.h"
#include "base/text/utf8.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/log/log.h"
#include "receivers/decode/nccl_inspector/nccl_inspector.h"
#include "receivers/decode/nccl_ras/nccl_ras.h"
#include "receivers/decode/py_spy/py_spy.h"
#include "receivers/decode/tagged/tagged.h"
#include "tests/fuzz/fuzz.h"

static const uint64_t NOW = UINT64_C(1794992400000000000);

static const struct {
    const struct decoder_type *type;
    bool is_record; // all of it
} DECODERS[] = {
    {&decoder_nccl_ras, true}, {&decoder_nccl_inspector, false},
    {&decoder_py_spy, true},   {&decoder_tagged, false},
    {&decoder_log, false},     {&decoder_any, false},
    {&decoder_any, true},
};
enum { DECODER_COUNT = sizeof DECODERS / sizeof *DECODERS };

struct run {
    const struct decoder_type *type;
    void *state;
    struct arena arena;
    uint64_t told;  // a hash over everything that came out
    uint64_t lines; // that were accounted for
};

static void require_text(struct slice text) {
    uint32_t code;
    size_t length;
    for (size_t at = 0; at < text.size; at += length) {
        length = utf8_decode(text, at, &code);
        require(length > 0);
    }
}

static void take_number(struct run *run, uint64_t number) {
    run->told = hash_more(run->told, (const char *)&number, sizeof number);
}

static void take_observation(struct run *run, const struct observation *observation) {
    require(observation->kind > OBSERVATION_NONE && observation->kind < OBSERVATION_KIND_COUNT);
    require_text(observation->text);
    take_number(run, observation->kind);
    for (uint32_t i = 0; i < observation->fact_count; i++) {
        const struct fact *fact = &observation->facts[i];
        require(fact->key < FACT_KEY_COUNT && (i == 0 || fact->key > fact[-1].key));
        take_number(run, fact->key);
        if (fact_type(fact->key) == FACT_NUMBER)
            take_number(run, (uint64_t)fact->number);
        if (fact_type(fact->key) != FACT_TEXT)
            continue;
        require_text(fact->text);
        run->told = hash_more(run->told, fact->text.data, fact->text.size);
    }
}

static void settle(struct run *run, enum decode_category category, const struct event *event,
                   const struct decode_fault *fault) {
    require(category >= DECODE_HELD && category < DECODE_CATEGORY_COUNT);
    if (category == DECODE_HELD)
        return;
    run->lines += event->lines;
    take_number(run, (uint64_t)category);
    if (decode_refused(category))
        require(fault->category == category && fault->detail[0] != '\0');
    if (category != DECODE_OK)
        return;
    require(event->time_ns != 0 && event->kind < EVENT_KIND_COUNT && event->telemetry != NULL);
    require(event->node != STRING_REFUSED && event->job != STRING_REFUSED);
    require(event->rank >= RANK_NONE && event->rank <= RANK_MAX);
    take_number(run, event->time_ns);
    take_number(run, event->position);
    if (event->kind == EVENT_OBSERVATION)
        take_observation(run, event->observation);
}

static struct event fresh(uint64_t position) {
    return (struct event){.position = position, .lines = 1, .rank = RANK_NONE};
}

static void take_more(struct run *run, uint64_t position) {
    enum decode_category category = run->type->next == NULL ? DECODE_END : DECODE_OK;
    while (category != DECODE_END) {
        struct event event = fresh(position);
        struct decode_fault fault = {0};
        arena_reset(&run->arena);
        category = run->type->next(run->state, &run->arena, &event, &fault);
        if (category != DECODE_END)
            settle(run, category, &event, &fault);
    }
    arena_reset(&run->arena);
}

static void take_record(struct run *run, struct slice record, uint64_t position) {
    struct event event = fresh(position);
    struct decode_fault fault = {0};
    struct slice block = fuzz_block(record);
    event.raw = block;
    enum decode_category category =
        run->type->decode(run->state, block, &run->arena, &event, &fault);
    settle(run, category, &event, &fault);
    take_more(run, position);
    fuzz_block_give(block);
}

static uint64_t run_through(const struct decoder_type *type, struct slice text, bool is_record,
                            uint64_t observed_ns) {
    struct run run = {.type = type, .state = memory_zero(1, type->state_size + 1)};
    struct decoder_input input = {.path = SLICE("input"), .observed_ns = observed_ns};
    struct fuzz_input rest = {text.data, text.size};
    uint64_t records = 0;
    arena_init(&run.arena, 4096);
    if (type->begin != NULL)
        type->begin(run.state, &input);
    if (is_record)
        take_record(&run, text, ++records);
    else
        for (struct slice line; fuzz_piece(&rest, '\n', &line);)
            take_record(&run, line, ++records);
    if (type->finish != NULL) {
        type->finish(run.state);
        take_more(&run, 0);
    }
    require(type->holds == NULL || !type->holds(run.state));
    require(run.lines == records);
    if (type->release != NULL)
        type->release(run.state);
    memory_give(run.state);
    arena_release(&run.arena);
    return run.told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    // Letters, so that seeds can be written.
    size_t which = (size_t)data[0] % 16;
    uint64_t observed_ns = (data[0] & 16) != 0 ? 0 : NOW;
    if (which >= DECODER_COUNT)
        which = DECODER_COUNT - 1;
    bool is_record = DECODERS[which].is_record;
    uint64_t first = run_through(DECODERS[which].type, text, is_record, observed_ns);
    uint64_t again = run_through(DECODERS[which].type, text, is_record, observed_ns);
    require(first == again);
    intern_release();
    return 0;
}
