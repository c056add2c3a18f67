// SPDX-License-Identifier: Apache-2.0
// The frames of a thread, innermost first, as the facts of a reading.
#pragma once

#include "receivers/decode/line/reading.h"

enum { STACK_TEXT_MAX = 1024 };

struct stack {
    char text[STACK_TEXT_MAX]; // the frames, joined by " < "
    size_t size;
    struct slice frame; // the innermost that is Python's, else the innermost
    bool has_line;      // … and names a line of a file
    bool full;
};

// "all_reduce (train.py:6)"; the text must live until stack_facts.
void stack_add(struct stack *stack, struct slice frame);
// Whether a thread is told of; begins the reading if so. `state` is py-spy's word: "idle",
// "active", "active+gil".
bool stack_begin(struct reading *reading, struct slice thread, bool is_main, struct slice state);
void stack_facts(struct reading *reading, struct stack *stack);
