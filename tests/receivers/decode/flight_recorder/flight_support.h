// SPDX-License-Identifier: Apache-2.0
// For tests of the Flight Recorder decoders: a decoder with its memory, and dumps compared.
#pragma once

#include "base/memory.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const FLIGHT_SCENARIOS[] = {
    "gloo_all_fine",       "gloo_missing_rank",          "hooked_all_fine",
    "hooked_missing_rank", "hooked_silent_missing_rank", "hooked_wrapped_many_groups"};
enum { FLIGHT_SCENARIO_COUNT = 6 };

struct flight_reading {
    void *state;
    struct arena arena;
    struct event event;
    struct decode_fault fault;
    enum decode_category category;
};

static inline void flight_open(struct flight_reading *reading) {
    *reading = (struct flight_reading){.state = memory_zero(1, FLIGHT_STATE_SIZE)};
    arena_init(&reading->arena, 1 << 16);
}

static inline void flight_close(struct flight_reading *reading) {
    memory_give(reading->state);
    arena_release(&reading->arena);
}

// As a file of this path; NULL when it is refused.
static inline const struct flight_dump *flight_read(struct flight_reading *reading,
                                                    const struct decoder_type *decoder,
                                                    const char *path, struct slice record) {
    reading->event = (struct event){0};
    reading->fault.told = false;
    decoder->begin(reading->state,
                   &(struct decoder_input){.path = slice_of(path), .is_file = true});
    reading->category =
        decoder->decode(reading->state, record, &reading->arena, &reading->event, &reading->fault);
    return reading->category == DECODE_OK ? reading->event.flight : NULL;
}

static inline const struct flight_dump *flight_read_tagged(struct flight_reading *reading,
                                                           struct slice line) {
    reading->event = (struct event){0};
    reading->fault.told = false;
    reading->category =
        flight_tagged(reading->state, line, &reading->arena, &reading->event, &reading->fault);
    return reading->category == DECODE_OK ? reading->event.flight : NULL;
}

static inline struct slice flight_file(const char *path) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    char *data = memory_take(1 << 20);
    size_t size = fread(data, 1, 1 << 20, file);
    fclose(file);
    return (struct slice){data, size};
}

static inline void flight_file_close(struct slice file) {
    memory_give((char *)(uintptr_t)file.data);
}

static inline void assert_same_text(struct slice a, struct slice b) {
    ck_assert_msg(slice_equal(a, b) && (a.data == NULL) == (b.data == NULL),
                  "\"%.*s\" against \"%.*s\"", (int)a.size, a.data, (int)b.size, b.data);
}

static inline void assert_same_entry(const struct flight_entry *a, const struct flight_entry *b) {
    ck_assert_int_eq(a->record_id, b->record_id);
    ck_assert_int_eq(a->collective_seq_id, b->collective_seq_id);
    ck_assert_int_eq(a->p2p_seq_id, b->p2p_seq_id);
    assert_same_text(a->group, b->group);
    assert_same_text(a->desc, b->desc);
    assert_same_text(a->name, b->name);
    ck_assert_uint_eq(a->created_ns, b->created_ns);
    ck_assert_uint_eq(a->started_ns, b->started_ns);
    ck_assert_uint_eq(a->completed_ns, b->completed_ns);
    ck_assert_int_eq(a->state, b->state);
    ck_assert_int_eq(a->retired, b->retired);
    ck_assert_int_eq(a->is_p2p, b->is_p2p);
    ck_assert_int_eq(a->timeout_ms, b->timeout_ms);
    assert_same_text(a->input_sizes, b->input_sizes);
    assert_same_text(a->output_sizes, b->output_sizes);
    assert_same_text(a->input_dtypes, b->input_dtypes);
    assert_same_text(a->output_dtypes, b->output_dtypes);
}

static inline const struct flight_group *flight_find_group(const struct flight_dump *dump,
                                                           struct slice name) {
    for (uint32_t i = 0; i < dump->group_count; i++)
        if (slice_equal(dump->groups[i].name, name))
            return &dump->groups[i];
    return NULL;
}

// Groups may stand in another order.
static inline void assert_same_dump(const struct flight_dump *a, const struct flight_dump *b) {
    ck_assert_int_eq(a->rank, b->rank);
    ck_assert_int_eq(a->whole, b->whole);
    ck_assert_int_eq(a->reports_states, b->reports_states);
    ck_assert_int_eq(a->counts_completed, b->counts_completed);
    assert_same_text(a->version, b->version);
    assert_same_text(a->backend, b->backend);
    ck_assert_uint_eq(a->group_count, b->group_count);
    for (uint32_t i = 0; i < a->group_count; i++) {
        const struct flight_group *one = &a->groups[i];
        const struct flight_group *other = flight_find_group(b, one->name);
        ck_assert_ptr_nonnull(other);
        assert_same_text(one->desc, other->desc);
        ck_assert_uint_eq(one->member_count, other->member_count);
        ck_assert_ptr_nonnull(one->members);
        ck_assert_mem_eq(one->members, other->members, one->member_count * sizeof(int32_t));
    }
    ck_assert_uint_eq(a->entry_count, b->entry_count);
    for (uint32_t i = 0; i < a->entry_count; i++)
        assert_same_entry(&a->entries[i], &b->entries[i]);
}
