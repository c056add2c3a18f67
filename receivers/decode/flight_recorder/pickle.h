// SPDX-License-Identifier: Apache-2.0
// Plain data out of a pickle: dicts, lists, tuples, texts, numbers, True, False, None.
//
// Only op codes that build such data are known (those that PyTorch's recorder writes, and those
// that Python's pickle adds for the same data at protocols 2 to 5); every other one is refused by
// name and offset, so nothing can be imported, called or made. Shared values are one value, seen
// through several pointers, and a value may hold itself: whoever walks the result bounds depth and
// count. All memory is the arena's, linear in the record; nothing recursive. Any thread.
// Source: CPython, Lib/pickletools.py.
#pragma once

#include "base/arena.h"

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_FALSE,
    PICKLE_TRUE,
    PICKLE_INTEGER, // fits int64
    PICKLE_HUGE,    // an integer that does not
    PICKLE_DECIMAL,
    PICKLE_TEXT, // generalised UTF-8
    PICKLE_LIST,
    PICKLE_TUPLE,
    PICKLE_DICT,
};

struct pickle_value {
    enum pickle_kind kind;
    uint32_t count; // items of a list or tuple, pairs of a dict
    union {
        int64_t integer;
        double decimal;
        struct slice text;
        struct {
            const struct pickle_value **items; // of a dict: key, value, key, value …
            uint32_t capacity;                 // the reader's own
        };
    };
};

enum {
    PICKLE_VALUES_MAX =
        1 << 23,           // of one pickle: values made, and places on the stack or in containers
    PICKLE_MARKS_MAX = 64, // open at the same time: containers being filled in one another
    PICKLE_WHY_MAX = 120,
};

struct pickle_fault {
    size_t offset;            // of the op code that is wrong
    bool cut;                 // the pickle ended too early
    char why[PICKLE_WHY_MAX]; // a clause
};

// The value that the pickle stands for, or NULL with `fault` filled. Texts point into `bytes`.
const struct pickle_value *pickle_read(struct slice bytes, struct arena *arena,
                                       struct pickle_fault *fault);
// The last value under this text in a dict, or NULL.
const struct pickle_value *pickle_get(const struct pickle_value *dict, struct slice key);
