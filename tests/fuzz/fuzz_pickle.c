// SPDX-License-Identifier: Apache-2.0
// A pickle is read into plain data or refused where it is wrong, at a cost that its size bounds.
//
// The input lies in a block of its own, so that a read past its end is seen. What was read is
// walked a bounded way: every text lies in the input, every container holds what it counts. A
// second reading must say the same, and so must the dump decoder about whether it is a pickle at
// all. As one of protocol 3, which PyTorch does not write, the same bytes are not read straight,
// and must be refused in the same words or give the same dump.
#include "base/intern.h"
#include "base/memory.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"
#include "receivers/decode/flight_recorder/pickle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 20000, DEPTH_MAX = 64 };

static void require(bool holds) {
    if (!holds)
        abort();
}

static bool is_container(const struct pickle_value *value) {
    return value->kind >= PICKLE_LIST;
}

static void require_sound(const struct pickle_value *value, struct slice input) {
    require(value != NULL && value->kind <= PICKLE_DICT);
    if (value->kind == PICKLE_TEXT && value->text.size > 0)
        require(value->text.data >= input.data &&
                value->text.data + value->text.size <= input.data + input.size);
}

// Values may be shared or hold themselves: so many steps and so deep, not further.
static void walk(const struct pickle_value *root, struct slice input) {
    const struct pickle_value *open[DEPTH_MAX] = {root};
    uint32_t next[DEPTH_MAX] = {0};
    unsigned depth = is_container(root) ? 1 : 0;
    require_sound(root, input);
    for (unsigned step = 0; depth > 0 && step < STEPS_MAX; step++) {
        const struct pickle_value *top = open[depth - 1];
        uint32_t items = top->kind == PICKLE_DICT ? 2 * top->count : top->count;
        if (next[depth - 1] == items) {
            depth--;
            continue;
        }
        const struct pickle_value *item = top->items[next[depth - 1]++];
        require_sound(item, input);
        if (!is_container(item) || depth == DEPTH_MAX)
            continue;
        open[depth] = item;
        next[depth++] = 0;
    }
}

static enum decode_category decode(struct slice input, struct arena *arena, struct event *event,
                                   struct decode_fault *fault) {
    void *state = memory_zero(1, decoder_flight_pickle.state_size);
    decoder_flight_pickle.begin(state,
                                &(struct decoder_input){.path = SLICE("rank_0"), .is_file = true});
    *event = (struct event){0};
    enum decode_category category = decoder_flight_pickle.decode(state, input, arena, event, fault);
    memory_give(state);
    return category;
}

static bool same_text(struct slice a, struct slice b) {
    return slice_equal(a, b) && (a.data == NULL) == (b.data == NULL);
}

static void require_same_dump(const struct flight_dump *a, const struct flight_dump *b) {
    require(a->entry_count == b->entry_count && a->group_count == b->group_count);
    require(a->counts_completed == b->counts_completed && same_text(a->version, b->version));
    for (uint32_t i = 0; i < a->group_count; i++) {
        const struct flight_group *one = &a->groups[i], *other = &b->groups[i];
        require(same_text(one->name, other->name) && same_text(one->desc, other->desc));
        require(one->member_count == other->member_count);
        for (uint32_t j = 0; j < one->member_count; j++)
            require(one->members[j] == other->members[j]);
    }
    for (uint32_t i = 0; i < a->entry_count; i++) {
        const struct flight_entry *one = &a->entries[i], *other = &b->entries[i];
        require(one->record_id == other->record_id && one->p2p_seq_id == other->p2p_seq_id &&
                one->collective_seq_id == other->collective_seq_id);
        require(one->created_ns == other->created_ns && one->started_ns == other->started_ns &&
                one->completed_ns == other->completed_ns);
        require(one->state == other->state && one->retired == other->retired &&
                one->is_p2p == other->is_p2p && one->timeout_ms == other->timeout_ms);
        require(same_text(one->group, other->group) && same_text(one->desc, other->desc) &&
                same_text(one->name, other->name));
        require(same_text(one->input_sizes, other->input_sizes) &&
                same_text(one->output_sizes, other->output_sizes));
        require(same_text(one->input_dtypes, other->input_dtypes) &&
                same_text(one->output_dtypes, other->output_dtypes));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = memory_take(size + 1);
    if (size > 0)
        memcpy(copy, data, size);
    copy = memory_resize(copy, size > 0 ? size : 1);
    struct slice input = {copy, size};
    struct arena arena;
    arena_init(&arena, 4096);
    struct pickle_fault fault, again;
    const struct pickle_value *value = pickle_read(input, &arena, &fault);
    if (value != NULL)
        walk(value, input);
    else
        require(fault.offset <= size && strlen(fault.why) > 5);
    require((pickle_read(input, &arena, &again) == NULL) == (value == NULL));
    require(again.offset == fault.offset && strcmp(again.why, fault.why) == 0);

    struct event event, other_event;
    struct decode_fault refusal = {0}, other_refusal = {0};
    enum decode_category category = decode(input, &arena, &event, &refusal);
    require((category == DECODE_BAD_PICKLE || category == DECODE_TORN) == (value == NULL));
    require(category == DECODE_OK || strlen(refusal.detail) > 5);
    if (size > 1 && copy[1] == 2) {
        char *other = memory_take(size);
        memcpy(other, copy, size);
        other[1] = 3;
        require(decode((struct slice){other, size}, &arena, &other_event, &other_refusal) ==
                category);
        require(strcmp(refusal.detail, other_refusal.detail) == 0 &&
                refusal.offset == other_refusal.offset);
        if (category == DECODE_OK)
            require_same_dump(event.flight, other_event.flight);
        memory_give(other);
    }
    arena_release(&arena);
    memory_give(copy);
    intern_release();
    return 0;
}
