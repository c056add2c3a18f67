// SPDX-License-Identifier: Apache-2.0
// How processes ended, in logs of ranks and launchers and in error files: any bytes are answered,
// twice the same, what they become is sound, and no line is lost.
//
// The input is a log, and an error file. Lines that begin with "[rank3]: " are another writer's
// than the rest. Each lies in a block of its own, so that a read past its end is seen.
#include "base/intern.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "base/text/utf8.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/launcher/error_file.h"
#include "receivers/decode/log/log.h"
#include "tests/fuzz/fuzz.h"

static const struct decoder_input INPUT = {.path = {"/e/attempt_0/3/error.json", 25},
                                           .observed_ns = UINT64_C(1794992400000000000)};

struct reader {
    void *state;
    struct arena arena;
    struct event event;
    struct decode_fault fault;
    enum decode_category category;
    uint64_t lines;
};

static void require_text(struct slice text) {
    uint32_t code;
    size_t length;
    for (size_t at = 0; at < text.size; at += length) {
        length = utf8_decode(text, at, &code);
        require(length > 0);
    }
}

static void require_fact(const struct fact *fact) {
    if (fact_type(fact->key) == FACT_TEXT)
        require_text(fact->text);
    if (fact->key == FACT_SIGNAL)
        require(fact->number > 0);
    if (fact->key == FACT_LOCAL_RANK)
        require(fact->number >= 0 && fact->number <= RANK_MAX);
    if (fact->key == FACT_PID || fact->key == FACT_TRIED_BYTES || fact->key == FACT_FREE_BYTES ||
        fact->key == FACT_TOTAL_BYTES || fact->key == FACT_EXIT_CODE)
        require(fact->number >= 0);
}

static void require_sound(struct reader *reader) {
    const struct event *event = &reader->event;
    if (decode_refused(reader->category))
        require(reader->fault.category == reader->category && reader->fault.detail[0] != '\0');
    if (reader->category != DECODE_HELD)
        reader->lines += event->lines;
    if (reader->category != DECODE_OK)
        return;
    require(event->time_ns != 0 && event->node != STRING_REFUSED);
    require(event->rank >= RANK_NONE && event->rank <= RANK_MAX);
    if (event->kind != EVENT_OBSERVATION)
        return;
    const struct observation *said = event->observation;
    require(said->kind > OBSERVATION_NONE && said->kind < OBSERVATION_KIND_COUNT);
    require_text(said->text);
    for (uint32_t i = 0; i < said->fact_count; i++) {
        require(i == 0 || said->facts[i - 1].key < said->facts[i].key);
        require_fact(&said->facts[i]);
    }
}

static bool same_fact(const struct fact *a, const struct fact *b) {
    if (a->key != b->key)
        return false;
    if (fact_type(a->key) == FACT_TEXT)
        return slice_equal(a->text, b->text);
    return fact_type(a->key) == FACT_YES_NO ? a->yes == b->yes : a->number == b->number;
}

static void check(struct reader readers[2]) {
    const struct event *a = &readers[0].event, *b = &readers[1].event;
    require_sound(&readers[0]);
    require_sound(&readers[1]);
    require(readers[0].category == readers[1].category);
    if (readers[0].category != DECODE_OK)
        return;
    require(a->kind == b->kind && a->time_ns == b->time_ns && a->rank == b->rank);
    require(a->node == b->node && a->position == b->position && a->lines == b->lines);
    if (a->kind != EVENT_OBSERVATION)
        return;
    require(a->observation->kind == b->observation->kind);
    require(a->observation->fact_count == b->observation->fact_count);
    for (uint32_t i = 0; i < a->observation->fact_count; i++)
        require(same_fact(&a->observation->facts[i], &b->observation->facts[i]));
}

static void clear(struct reader *reader, uint64_t position) {
    reader->event = (struct event){.position = position, .rank = RANK_NONE};
    reader->fault = (struct decode_fault){0};
}

static struct frame frame_of(struct slice line, uint64_t position) {
    struct frame frame;
    struct slice rest = line;
    uint64_t rank;
    frame_clear(&frame, line, position);
    if (text_skip(&rest, SLICE("[rank")) && text_take_number(&rest, 1, 5, &rank) &&
        text_skip(&rest, SLICE("]: "))) {
        frame.message = rest;
        frame.rank = (int32_t)rank;
        frame.key = rank + 1;
        frame.has_writer = true;
    }
    return frame;
}

static void take_rest(struct reader readers[2]) {
    do {
        for (int i = 0; i < 2; i++) {
            clear(&readers[i], 0);
            readers[i].category =
                log_next(readers[i].state, &readers[i].arena, &readers[i].event, &readers[i].fault);
        }
        check(readers);
    } while (readers[0].category != DECODE_END);
    arena_reset(&readers[0].arena);
    arena_reset(&readers[1].arena);
}

static void take_line(struct reader readers[2], struct slice line, uint64_t position, bool last) {
    char *copy = memory_take(line.size + (line.size == 0));
    if (line.size > 0)
        memcpy(copy, line.data, line.size);
    for (int i = 0; i < 2; i++) {
        struct frame frame = frame_of((struct slice){copy, line.size}, position);
        frame.truncated = last;
        clear(&readers[i], position);
        readers[i].category = log_decode_message(readers[i].state, &frame, false, &readers[i].arena,
                                                 &readers[i].event, &readers[i].fault);
    }
    check(readers);
    take_rest(readers);
    memory_give(copy);
}

static void read_log(struct reader readers[2], struct slice text) {
    uint64_t position = 0;
    for (int i = 0; i < 2; i++) {
        readers[i].state = memory_zero(1, LOG_STATE_SIZE);
        log_begin(readers[i].state, &INPUT, FORM_PROGRAM);
    }
    while (text.size > 0) {
        bool cut = memchr(text.data, '\n', text.size) == NULL;
        take_line(readers, text_take_line(&text), ++position, cut);
    }
    log_finish(readers[0].state);
    log_finish(readers[1].state);
    take_rest(readers);
    require(readers[0].lines == position && readers[1].lines == position);
    for (int i = 0; i < 2; i++) {
        require(!log_holds(readers[i].state));
        log_release(readers[i].state);
        memory_give(readers[i].state);
    }
}

static void read_document(struct reader readers[2], struct slice text) {
    char *copy = memory_take(text.size + (text.size == 0));
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    for (int i = 0; i < 2; i++) {
        void *state = memory_zero(1, decoder_error_file.state_size);
        decoder_error_file.begin(state, &INPUT);
        clear(&readers[i], 1);
        readers[i].category =
            decoder_error_file.decode(state, (struct slice){copy, text.size}, &readers[i].arena,
                                      &readers[i].event, &readers[i].fault);
        memory_give(state);
    }
    check(readers);
    memory_give(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct reader readers[2] = {{.lines = 0}, {.lines = 0}};
    struct slice text = {(const char *)data, size};
    arena_init(&readers[0].arena, 4096);
    arena_init(&readers[1].arena, 4096);
    read_log(readers, text);
    read_document(readers, text);
    arena_release(&readers[0].arena);
    arena_release(&readers[1].arena);
    intern_release();
    return 0;
}
