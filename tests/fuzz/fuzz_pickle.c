// SPDX-License-Identifier: Apache-2.0
// A pickle is read into plain data or refused where it is wrong, at a cost that its size bounds.
//
// The input lies in a block of its own, so that a read past its end is seen. What was read is
// walked a bounded way: every text lies in the input, every container holds what it counts. A
// second reading must say the same, and so must the dump decoder about whether it is a pickle at
// all.
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

    void *state = memory_zero(1, decoder_flight_pickle.state_size);
    struct event event = {0};
    struct decode_fault refusal = {0};
    decoder_flight_pickle.begin(state,
                                &(struct decoder_input){.path = SLICE("rank_0"), .is_file = true});
    enum decode_category category =
        decoder_flight_pickle.decode(state, input, &arena, &event, &refusal);
    require((category == DECODE_BAD_PICKLE || category == DECODE_TORN) == (value == NULL));
    require(category == DECODE_OK || strlen(refusal.detail) > 5);
    memory_give(state);
    arena_release(&arena);
    memory_give(copy);
    intern_release();
    return 0;
}
