// SPDX-License-Identifier: Apache-2.0
// For tests of the kernel log's decoder: one source with its memory.
#pragma once

#include "base/memory.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/log/log.h"
#include "tests/receivers/decode/found.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

struct kernel_source {
    void *state;
    char *line;
    uint64_t position;
    struct arena arena;
    struct event event;
    struct decode_fault fault;
    enum decode_category category;
};

// 2026-01-31T09:15:04Z
#define KERNEL_MORNING UINT64_C(1769850904000000000)

static inline struct kernel_source kernel_open_input(const struct decoder_input *input) {
    struct kernel_source source = {.state = memory_zero(1, decoder_kernel_log.state_size)};
    decoder_kernel_log.begin(source.state, input);
    arena_init(&source.arena, 16 << 10);
    return source;
}

static inline struct kernel_source kernel_open(uint64_t observed_ns) {
    return kernel_open_input(&(struct decoder_input){
        .path = SLICE("dmesg.txt"), .observed_ns = observed_ns, .is_file = true});
}

static inline void kernel_close(struct kernel_source *source) {
    decoder_kernel_log.release(source->state);
    memory_give(source->state);
    free(source->line);
    arena_release(&source->arena);
}

// What the decoder has besides: the first event or refusal is the answer when there was none.
static inline void kernel_take_rest(struct kernel_source *source) {
    for (;;) {
        struct event event = {.position = source->position, .lines = 1, .rank = RANK_NONE};
        struct decode_fault fault = {0};
        enum decode_category category =
            decoder_kernel_log.next(source->state, &source->arena, &event, &fault);
        if (category == DECODE_END)
            return;
        bool answered = source->category == DECODE_OK || decode_refused(source->category);
        if (category == DECODE_HELD || answered)
            continue;
        source->category = category;
        source->event = event;
        source->fault = fault;
    }
}

// One line of several. It lies in a block of its own size, so that a read past its end is seen.
static inline const struct kernel_line *kernel_give(struct kernel_source *source,
                                                    struct slice line) {
    free(source->line);
    source->line = malloc(line.size == 0 ? 1 : line.size);
    if (line.size > 0)
        memcpy(source->line, line.data, line.size);
    source->event = (struct event){.position = ++source->position, .lines = 1, .rank = RANK_NONE};
    source->fault = (struct decode_fault){0};
    source->category =
        decoder_kernel_log.decode(source->state, (struct slice){source->line, line.size},
                                  &source->arena, &source->event, &source->fault);
    found_by_search(&decoder_kernel_log, line, source->category);
    kernel_take_rest(source);
    return source->category == DECODE_OK ? source->event.kernel : NULL;
}

// A line behind which nothing comes.
static inline const struct kernel_line *kernel_take(struct kernel_source *source,
                                                    struct slice line) {
    kernel_give(source, line);
    if (decoder_kernel_log.holds(source->state)) {
        decoder_kernel_log.finish(source->state);
        kernel_take_rest(source);
    }
    ck_assert(!decoder_kernel_log.holds(source->state));
    return source->category == DECODE_OK ? source->event.kernel : NULL;
}

static inline const struct kernel_line *kernel_take_text(struct kernel_source *source,
                                                         const char *line) {
    const struct kernel_line *taken = kernel_take(source, slice_of(line));
    ck_assert_msg(taken == NULL || source->event.kind == EVENT_KERNEL, "%s", line);
    return taken;
}

static inline void kernel_check_text(struct slice text, const char *want) {
    ck_assert_msg(slice_equal(text, slice_of(want)), "\"%.*s\" is not \"%s\"", (int)text.size,
                  text.data == NULL ? "" : text.data, want);
}

static inline void kernel_check_address(pci_address address, const char *want) {
    char text[PCI_TEXT_MAX];
    ck_assert_uint_ne(address, PCI_NONE);
    pci_format_function(address, text);
    ck_assert_str_eq(text, want);
}
