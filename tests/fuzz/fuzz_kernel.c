// SPDX-License-Identifier: Apache-2.0
// Lines of a kernel log, in whatever transport, are answered, and mean the same with equal memory.
//
// The first byte says what is known beforehand: when the log was read, when the machine booted. The
// rest is lines of one source. Each lies in a block of its own, so that a read past its end is
// seen, and is decoded twice, with two memories that saw the same lines; both must agree.
#include "base/memory.h"
#include "base/text/utf8.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/kernel.h"

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
    require(event->kind == EVENT_KERNEL && event->time_ns != 0);
    require(event->node != STRING_REFUSED && event->rank == RANK_NONE);
    require(line->kind > KERNEL_OTHER && line->kind <= KERNEL_AER);
    require_text(line->text);
    require_text(line->process);
    require_text(line->detail);
    require_text(line->uuid);
    require_text(line->layer);
    require_text(line->driver);
    require_text(intern_slice(event->node));
    if (line->kind == KERNEL_XID || line->kind == KERNEL_GPU_LOST || line->kind == KERNEL_GPU_UUID)
        require(line->address != PCI_NONE && (line->address & 7) == 0);
    require(line->kind != KERNEL_XID || (line->code > 0 && line->code < 1000000));
}

struct reader {
    void *state;
    struct event event;
    struct decode_fault fault;
};

static enum decode_category take(struct reader *reader, struct slice line, struct arena *arena) {
    memset(&reader->event, 0, sizeof reader->event);
    reader->event.rank = RANK_NONE;
    reader->fault = (struct decode_fault){0};
    return decoder_kernel_log.decode(reader->state, line, arena, &reader->event, &reader->fault);
}

static void take_twice(struct reader readers[2], struct slice line, struct arena *arena) {
    char *copy = memory_take(line.size + (line.size == 0));
    if (line.size > 0)
        memcpy(copy, line.data, line.size);
    struct slice record = {copy, line.size};
    enum decode_category first = take(&readers[0], record, arena);
    enum decode_category second = take(&readers[1], record, arena);
    require(first == second && readers[0].event.time_ns == readers[1].event.time_ns);
    if (first == DECODE_OK) {
        require_sound(&readers[0].event);
        require(readers[0].event.node == readers[1].event.node);
        require(readers[0].event.kernel->kind == readers[1].event.kernel->kind);
        require(readers[0].event.kernel->address == readers[1].event.kernel->address);
        require(slice_equal(readers[0].event.kernel->text, readers[1].event.kernel->text));
    } else if (first != DECODE_NOTHING) {
        require(readers[0].fault.category == first && readers[0].fault.detail[0] != '\0');
    }
    memory_give(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    struct decoder_input input = {.path = SLICE("log"),
                                  .observed_ns =
                                      (data[0] & 1) != 0 ? UINT64_C(1794992400000000000) : 0};
    struct reader readers[2];
    struct arena arena;
    arena_init(&arena, 4096);
    for (int i = 0; i < 2; i++) {
        readers[i].state = memory_zero(1, decoder_kernel_log.state_size);
        decoder_kernel_log.begin(readers[i].state, &input);
        if ((data[0] & 2) != 0)
            kernel_log_set_place(readers[i].state, UINT64_C(1794990000000000000), STRING_NONE);
    }
    struct slice rest = {(const char *)data + 1, size - 1};
    uint64_t boot_ns;
    if (kernel_log_boot_of(rest, input.observed_ns, &boot_ns))
        require(boot_ns > 0 && boot_ns <= input.observed_ns);
    for (size_t at = 0; at <= rest.size;) {
        const char *newline = at < rest.size ? memchr(rest.data + at, '\n', rest.size - at) : NULL;
        size_t end = newline == NULL ? rest.size : (size_t)(newline - rest.data);
        take_twice(readers, (struct slice){rest.data + at, end - at}, &arena);
        arena_reset(&arena);
        at = end + 1;
    }
    memory_give(readers[0].state);
    memory_give(readers[1].state);
    arena_release(&arena);
    intern_release();
    return 0;
}
