// SPDX-License-Identifier: Apache-2.0
// For tests of decoders: one record, decoded from a block of its own size, so that a read past its
// end is seen; and records broken in every way that is cheap to make.
#pragma once

#include "base/memory.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/node_event.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

struct decoded {
    const struct decoder_type *type;
    void *state;
    char *record;
    struct arena arena;
    struct event event;
    struct decode_fault fault;
    enum decode_category category;
};

static inline struct decoded decoded_open(const struct decoder_type *type, uint64_t observed_ns) {
    struct decoded decoded = {.type = type, .state = memory_zero(1, type->state_size + 1)};
    arena_init(&decoded.arena, 4096);
    struct decoder_input input = {
        .path = SLICE("input"), .observed_ns = observed_ns, .is_file = true};
    if (type->begin != NULL)
        type->begin(decoded.state, &input);
    return decoded;
}

static inline void decoded_close(struct decoded *decoded) {
    if (decoded->type->release != NULL)
        decoded->type->release(decoded->state);
    memory_give(decoded->record);
    if (decoded->type->release != NULL)
        decoded->type->release(decoded->state);
    memory_give(decoded->state);
    arena_release(&decoded->arena);
}

// What is decoded stays until the next record.
static inline enum decode_category decoded_run(struct decoded *decoded, struct slice record) {
    decoder_drop_held(decoded->type, decoded->state, &decoded->arena);
    memory_give(decoded->record);
    arena_reset(&decoded->arena);
    decoded->record = memory_take(record.size + (record.size == 0));
    if (record.size > 0)
        memcpy(decoded->record, record.data, record.size);
    memset(&decoded->event, 0, sizeof decoded->event);
    decoded->event.lines = 1;
    memset(&decoded->fault, 0, sizeof decoded->fault);
    decoded->category =
        decoded->type->decode(decoded->state, (struct slice){decoded->record, record.size},
                              &decoded->arena, &decoded->event, &decoded->fault);
    if (decoded->category == DECODE_OK) {
        ck_assert_uint_ne(decoded->event.time_ns, 0);
    } else if (decode_refused(decoded->category)) {
        ck_assert_int_eq(decoded->fault.category, decoded->category);
        ck_assert_uint_gt(strlen(decoded->fault.detail), 0);
    }
    return decoded->category;
}

static inline void decoded_ok(struct decoded *decoded, const char *record) {
    ck_assert_msg(decoded_run(decoded, slice_of(record)) == DECODE_OK, "%d: %s: %s in %s",
                  decoded->category, decoded->fault.field, decoded->fault.detail, record);
}

static inline void decoded_nothing(struct decoded *decoded, const char *record) {
    ck_assert_msg(decoded_run(decoded, slice_of(record)) == DECODE_NOTHING, "%s is something",
                  record);
}

// Refused so, with this field and these words in the detail.
static inline void decoded_refused(struct decoded *decoded, const char *record,
                                   enum decode_category category, const char *field,
                                   const char *words) {
    decoded_run(decoded, slice_of(record));
    ck_assert_msg(decoded->category == category, "%d: %s: %s in %s", decoded->category,
                  decoded->fault.field, decoded->fault.detail, record);
    ck_assert_str_eq(decoded->fault.field, field);
    ck_assert_msg(strstr(decoded->fault.detail, words) != NULL, "\"%s\" is not in \"%s\"", words,
                  decoded->fault.detail);
}

static inline void decoded_text(struct slice text, const char *expected) {
    if (expected == NULL) {
        ck_assert_msg(text.data == NULL, "\"%.*s\" instead of nothing", (int)text.size, text.data);
        return;
    }
    ck_assert_msg(slice_equal(text, slice_of(expected)), "\"%.*s\" instead of \"%s\"",
                  (int)text.size, text.data, expected);
}

// Every prefix, every byte changed to some others, and bytes by chance: nothing but an answer.
static inline void decoded_torture(struct decoded *decoded, const char *record) {
    struct slice whole = slice_of(record);
    ck_assert_uint_gt(whole.size, 0);
    static const char bytes[] = {'"', '{', '}', '[', ']', ',', ':', '\\', '0', '-', '\0', '\xff'};
    char *copy = memory_take(whole.size + 1);
    for (size_t size = 0; size < whole.size; size++) {
        enum decode_category category = decoded_run(decoded, (struct slice){whole.data, size});
        ck_assert_msg(whole.data[0] != '{' || category > DECODE_OK, "%.*s is taken", (int)size,
                      whole.data);
    }
    for (size_t at = 0; at < whole.size; at++) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            memcpy(copy, whole.data, whole.size);
            copy[at] = bytes[i];
            decoded_run(decoded, (struct slice){copy, whole.size});
        }
    }
    uint64_t seed = 3;
    for (int round = 0; round < 2000; round++) {
        size_t size = (size_t)round % whole.size;
        for (size_t i = 0; i < size; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            copy[i] = round % 2 == 0 ? (char)(seed >> 56) : bytes[(seed >> 56) % sizeof bytes];
        }
        decoded_run(decoded, (struct slice){copy, size});
    }
    memory_give(copy);
}
