// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/py_spy/stack.h"

#include "base/text/cut.h"

#include <assert.h>

enum { FRAME_TEXT_MAX = 400 };
static const struct slice BETWEEN = {" < ", 3}, LEFT_OUT = {" < ...", 6};

static bool names_line(struct slice frame) {
    size_t at = frame.size;
    if (at == 0 || frame.data[at - 1] != ')')
        return false;
    for (at--; at > 0 && text_is_digit(frame.data[at - 1]);)
        at--;
    return at > 0 && at + 1 < frame.size && frame.data[at - 1] == ':';
}

static void put(struct stack *stack, struct slice text) {
    assert(text.size <= STACK_TEXT_MAX - stack->size);
    memcpy(stack->text + stack->size, text.data, text.size);
    stack->size += text.size;
}

void stack_add(struct stack *stack, struct slice frame) {
    if (frame.size == 0)
        return;
    if (frame.size > FRAME_TEXT_MAX)
        frame.size = FRAME_TEXT_MAX;
    bool has_line = names_line(frame);
    if (stack->frame.data == NULL || (has_line && !stack->has_line)) {
        stack->frame = frame;
        stack->has_line = has_line;
    }
    if (stack->full)
        return;
    if (frame.size + BETWEEN.size + LEFT_OUT.size > STACK_TEXT_MAX - stack->size) {
        stack->full = true;
        put(stack, LEFT_OUT);
        return;
    }
    if (stack->size > 0)
        put(stack, BETWEEN);
    put(stack, frame);
}

bool stack_begin(struct reading *reading, struct slice thread, bool is_main, struct slice state) {
    struct slice behind;
    if (!is_main && !text_find(state, SLICE("gil"), &behind))
        return false;
    reading_begin(reading, OBSERVATION_STACK);
    if (thread.size > 0)
        reading_text(reading, FACT_THREAD, thread);
    if (state.size > 0)
        reading_text(reading, FACT_STATE, state);
    return true;
}

void stack_facts(struct reading *reading, struct stack *stack) {
    if (stack->frame.data == NULL)
        return;
    reading_text(reading, FACT_FRAME, stack->frame);
    reading_text(reading, FACT_STACK,
                 arena_copy(reading->arena, (struct slice){stack->text, stack->size}));
}
