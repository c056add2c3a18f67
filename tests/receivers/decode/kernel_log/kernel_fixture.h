// SPDX-License-Identifier: Apache-2.0
// For tests of the kernel log's decoder: one source with its memory.
#pragma once

#include "base/memory.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/kernel.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

struct kernel_source {
    void *state;
    struct arena arena;
    struct event event;
    struct decode_fault fault;
    enum decode_category category;
};

// 2026-01-31T09:15:04Z
#define KERNEL_MORNING UINT64_C(1769850904000000000)

static inline struct kernel_source kernel_open(uint64_t observed_ns) {
    struct kernel_source source = {.state = memory_zero(1, decoder_kernel_log.state_size)};
    struct decoder_input input = {
        .path = SLICE("dmesg.txt"), .observed_ns = observed_ns, .is_file = true};
    decoder_kernel_log.begin(source.state, &input);
    arena_init(&source.arena, 16 << 10);
    return source;
}

static inline void kernel_close(struct kernel_source *source) {
    memory_give(source->state);
    arena_release(&source->arena);
}

// The line lies in a block of its own size, so that a read past its end is seen.
static inline const struct kernel_line *kernel_take(struct kernel_source *source,
                                                    struct slice line) {
    char *copy = malloc(line.size == 0 ? 1 : line.size);
    if (line.size > 0)
        memcpy(copy, line.data, line.size);
    struct slice record = arena_copy(&source->arena, line);
    memset(&source->event, 0, sizeof source->event);
    source->fault = (struct decode_fault){0};
    // Once for the sanitizer, with memory of its own, and once for the answer.
    void *other = memory_take(decoder_kernel_log.state_size);
    memcpy(other, source->state, decoder_kernel_log.state_size);
    struct event ignored = {0};
    struct decode_fault fault;
    enum decode_category category = decoder_kernel_log.decode(
        other, (struct slice){copy, line.size}, &source->arena, &ignored, &fault);
    source->category = decoder_kernel_log.decode(source->state, record, &source->arena,
                                                 &source->event, &source->fault);
    ck_assert_int_eq(category, source->category);
    memory_give(other);
    free(copy);
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
