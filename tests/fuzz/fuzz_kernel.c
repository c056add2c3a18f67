// SPDX-License-Identifier: Apache-2.0
// Lines of a kernel log, in whatever transport, are answered, and mean the same with equal memory.
//
// The first byte says what is known beforehand: when the log was read, when the machine booted, a
// time zone, how many ranks there are. The rest is lines of one source. Each lies in a block of its
// own, so that a read past its end is seen, and is decoded twice, with two memories that saw the
// same lines; both must agree.
#include "base/memory.h"
#include "base/text/time_zone.h"
#include "base/text/utf8.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/log/log.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static void require_text(struct slice text) {
    uint32_t code;
    size_t length;
    for (size_t at = 0; at < text.size; at += length) {
        length = utf8_decode(text, at, &code);
        require(length > 0);
    }
}

static void require_sound(const struct event *event) {
    const struct kernel_line *line = event->kernel;
    require(event->time_ns != 0 && event->time_ns <= INT64_MAX);
    require(event->position > 0);
    require_text(intern_slice(event->node));
    if (event->kind != EVENT_KERNEL)
        return;
    require(event->node != STRING_REFUSED && event->rank == RANK_NONE);
    require(line->kind > KERNEL_OTHER && line->kind <= KERNEL_AER);
    require_text(line->text);
    require_text(line->process);
    require_text(line->detail);
    require_text(line->uuid);
    require_text(line->layer);
    require_text(line->driver);
    if (line->kind == KERNEL_XID || line->kind == KERNEL_GPU_LOST || line->kind == KERNEL_GPU_UUID)
        require(line->address != PCI_NONE && (line->address & 7) == 0);
    require(line->kind != KERNEL_XID || (line->code > 0 && line->code < 1000000));
}

struct reader {
    void *state;
    struct event event;
    struct decode_fault fault;
};

static void begin_event(struct reader *reader, uint64_t position) {
    memset(&reader->event, 0, sizeof reader->event);
    reader->event.rank = RANK_NONE;
    reader->event.position = position;
    reader->event.lines = 1;
    reader->fault = (struct decode_fault){0};
}

// Both gave the same.
static void require_same(const struct reader readers[2], enum decode_category first,
                         enum decode_category second) {
    const struct event *one = &readers[0].event, *other = &readers[1].event;
    require(first == second);
    if (first == DECODE_OK) {
        require_sound(one);
        require(one->time_ns == other->time_ns && one->node == other->node);
        require(one->kind == other->kind && one->position == other->position);
        require(one->lines == other->lines);
        if (one->kind == EVENT_KERNEL) {
            require(one->kernel->kind == other->kernel->kind);
            require(one->kernel->address == other->kernel->address);
            require(slice_equal(one->kernel->text, other->kernel->text));
        }
    } else if (decode_refused(first)) {
        require(readers[0].fault.category == first && readers[0].fault.detail[0] != '\0');
    }
}

// All that follows a line; at most so much as its bytes can say. Gives how many lines it was of.
static uint64_t take_rest(struct reader readers[2], uint64_t position, struct arena *arena) {
    uint64_t lines = 0;
    for (;;) {
        enum decode_category category[2];
        for (int i = 0; i < 2; i++) {
            begin_event(&readers[i], position);
            category[i] = decoder_kernel_log.next(readers[i].state, arena, &readers[i].event,
                                                  &readers[i].fault);
        }
        require_same(readers, category[0], category[1]);
        if (category[0] == DECODE_END)
            return lines;
        if (category[0] == DECODE_OK || category[0] == DECODE_NOTHING)
            lines += readers[0].event.lines;
    }
}

// Gives how many lines were answered.
static uint64_t take_twice(struct reader readers[2], struct slice line, uint64_t position,
                           struct arena *arena) {
    char *copy = memory_take(line.size + (line.size == 0));
    if (line.size > 0)
        memcpy(copy, line.data, line.size);
    enum decode_category category[2];
    for (int i = 0; i < 2; i++) {
        begin_event(&readers[i], position);
        category[i] = decoder_kernel_log.decode(readers[i].state, (struct slice){copy, line.size},
                                                arena, &readers[i].event, &readers[i].fault);
    }
    require_same(readers, category[0], category[1]);
    bool answered = category[0] == DECODE_OK || category[0] == DECODE_NOTHING;
    uint64_t lines = answered ? readers[0].event.lines : 0;
    lines += take_rest(readers, position, arena);
    memory_give(copy);
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    struct slice rest = {(const char *)data + 1, size - 1};
    struct time_zone *zone = (data[0] & 4) != 0 ? time_zone_open(SLICE("Europe/Berlin")) : NULL;
    struct decoder_input input = {.path = SLICE("log"),
                                  .zone = zone,
                                  .world_size = (data[0] & 8) != 0 ? 16 : 0,
                                  .observed_ns =
                                      (data[0] & 1) != 0 ? UINT64_C(1794992400000000000) : 0,
                                  .boot_ns = (data[0] & 2) != 0 ? UINT64_C(1794990000000000000) : 0,
                                  .tail = rest};
    struct reader readers[2];
    struct arena arena;
    arena_init(&arena, 4096);
    for (int i = 0; i < 2; i++) {
        readers[i].state = memory_zero(1, decoder_kernel_log.state_size);
        decoder_kernel_log.begin(readers[i].state, &input);
    }
    uint64_t position = 0, answered = 0;
    for (size_t at = 0; at <= rest.size;) {
        const char *newline = at < rest.size ? memchr(rest.data + at, '\n', rest.size - at) : NULL;
        size_t end = newline == NULL ? rest.size : (size_t)(newline - rest.data);
        answered +=
            take_twice(readers, (struct slice){rest.data + at, end - at}, ++position, &arena);
        arena_reset(&arena);
        at = end + 1;
    }
    for (int i = 0; i < 2; i++)
        decoder_kernel_log.finish(readers[i].state);
    answered += take_rest(readers, position, &arena);
    require(answered <= position);
    for (int i = 0; i < 2; i++) {
        require(!decoder_kernel_log.holds(readers[i].state));
        decoder_kernel_log.release(readers[i].state);
        memory_give(readers[i].state);
    }
    time_zone_close(zone);
    arena_release(&arena);
    intern_release();
    return 0;
}
