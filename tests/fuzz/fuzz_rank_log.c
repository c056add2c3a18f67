// SPDX-License-Identifier: Apache-2.0
// What process groups, NCCL, gloo and the store write into the log of a rank: any lines are
// answered, twice the same, and what they become is sound.
//
// The input is lines of one log. Each lies in a block of its own, so that a read past its end is
// seen, and is decoded by two decoders that saw the same lines; both must agree, also on what they
// held. Texts must be UTF-8 and inside the event, numbers such that can be.
#include "base/intern.h"
#include "base/text/utf8.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/log/log.h"
#include "tests/fuzz/fuzz.h"

static const uint64_t NOW = UINT64_C(1794992400000000000);

struct reader {
    void *state;
    struct arena arena;
    struct event event;
    struct decode_fault fault;
    enum decode_category category;
};

static void require_text(struct slice text) {
    uint32_t code;
    size_t length;
    for (size_t at = 0; at < text.size; at += length) {
        length = utf8_decode(text, at, &code);
        require(length > 0);
    }
}

static void require_line(const struct app_line *line) {
    require(line->rank >= RANK_NONE && line->rank <= RANK_MAX && line->group_rank >= -1);
    require(line->collective_seq_id >= -1 && line->timeout_ms >= -1 && line->ran_ms >= -1);
    require(line->last_enqueued >= APP_NUMBER_UNKNOWN);
    require(line->last_completed >= APP_NUMBER_UNKNOWN);
    require(line->last_enqueued < 0 || line->last_completed <= line->last_enqueued);
    require(line->operation.data == NULL || line->operation.size > 0);
    require_text(line->text);
    require_text(line->group);
    require_text(line->group_desc);
    require_text(line->operation);
}

static void require_facts(const struct observation *said) {
    int64_t number;
    require(said->kind > OBSERVATION_NONE && said->kind < OBSERVATION_KIND_COUNT);
    require_text(said->text);
    for (uint32_t i = 0; i < said->fact_count; i++) {
        require(i == 0 || said->facts[i - 1].key < said->facts[i].key);
        if (fact_type(said->facts[i].key) == FACT_TEXT)
            require_text(said->facts[i].text);
    }
    if (observation_number(said, FACT_WC_STATUS, &number))
        require(number >= 0 && number < 256);
    if (observation_number(said, FACT_NOTICED_BY_RANK, &number))
        require(number >= 0 && number <= RANK_MAX);
    if (observation_number(said, FACT_LAST_ENQUEUED, &number))
        require(number >= 0);
}

static void require_sound(const struct reader *reader) {
    const struct event *event = &reader->event;
    if (decode_refused(reader->category))
        require(reader->fault.category == reader->category && reader->fault.detail[0] != '\0');
    if (reader->category != DECODE_OK)
        return;
    require(event->time_ns != 0 && event->node != STRING_REFUSED);
    require(event->rank >= RANK_NONE && event->rank <= RANK_MAX);
    require(event->kind == EVENT_APP_LINE || event->kind == EVENT_OBSERVATION);
    if (event->kind == EVENT_APP_LINE)
        require_line(event->line);
    else
        require_facts(event->observation);
}

static bool same_fact(const struct fact *a, const struct fact *b) {
    if (a->key != b->key)
        return false;
    switch (fact_type(a->key)) {
    case FACT_NUMBER:
        return a->number == b->number;
    case FACT_TEXT:
        return slice_equal(a->text, b->text);
    case FACT_YES_NO:
        return a->yes == b->yes;
    case FACT_PCI_ADDRESS:
        break;
    }
    return a->address == b->address;
}

static void require_same(const struct reader *a, const struct reader *b) {
    require(a->category == b->category);
    if (a->category != DECODE_OK)
        return;
    require(a->event.kind == b->event.kind && a->event.time_ns == b->event.time_ns);
    require(a->event.rank == b->event.rank && a->event.node == b->event.node);
    if (a->event.kind == EVENT_APP_LINE) {
        require(slice_equal(a->event.line->text, b->event.line->text));
        require(a->event.line->ran_ms == b->event.line->ran_ms);
        return;
    }
    const struct observation *first = a->event.observation, *second = b->event.observation;
    require(first->kind == second->kind && first->fact_count == second->fact_count);
    for (uint32_t i = 0; i < first->fact_count; i++)
        require(same_fact(&first->facts[i], &second->facts[i]));
}

static void check(struct reader readers[2]) {
    require_sound(&readers[0]);
    require_same(&readers[0], &readers[1]);
}

static void clear(struct reader *reader) {
    reader->event = (struct event){.rank = RANK_NONE};
    reader->fault = (struct decode_fault){0};
}

static void take_others(struct reader readers[2]) {
    do {
        for (int i = 0; i < 2; i++) {
            clear(&readers[i]);
            readers[i].category = decoder_app_log.next(readers[i].state, &readers[i].arena,
                                                       &readers[i].event, &readers[i].fault);
        }
        check(readers);
    } while (readers[0].category != DECODE_END);
    for (int i = 0; i < 2; i++)
        arena_reset(&readers[i].arena);
}

static void take_line(struct reader readers[2], struct slice line) {
    struct slice blocks[2];
    for (int i = 0; i < 2; i++) {
        blocks[i] = fuzz_block(line);
        clear(&readers[i]);
        readers[i].category = decoder_app_log.decode(readers[i].state, blocks[i], &readers[i].arena,
                                                     &readers[i].event, &readers[i].fault);
    }
    check(readers);
    if (!decode_refused(readers[0].category))
        take_others(readers);
    for (int i = 0; i < 2; i++)
        fuzz_block_give(blocks[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct decoder_input input = {.path = SLICE("rank_3.log"), .observed_ns = NOW};
    struct fuzz_input left = {(const char *)data, size};
    struct reader readers[2];
    for (int i = 0; i < 2; i++) {
        readers[i].state = memory_zero(1, decoder_app_log.state_size);
        arena_init(&readers[i].arena, 4096);
        decoder_app_log.begin(readers[i].state, &input);
    }
    for (struct slice line; fuzz_piece(&left, '\n', &line);)
        take_line(readers, line);
    for (int i = 0; i < 2; i++)
        decoder_app_log.finish(readers[i].state);
    take_others(readers);
    for (int i = 0; i < 2; i++) {
        require(!decoder_app_log.holds(readers[i].state));
        decoder_app_log.release(readers[i].state);
        arena_release(&readers[i].arena);
        memory_give(readers[i].state);
    }
    intern_release();
    return 0;
}
