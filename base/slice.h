// SPDX-License-Identifier: Apache-2.0
// A run of bytes that somebody else owns.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *data;
    size_t size;
};

#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

static inline struct slice slice_of(const char *text) {
    assert(text != NULL);
    return (struct slice){text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

// Order by bytes, a prefix before the longer one: for UTF-8 this is order by code point.
static inline int slice_compare(struct slice a, struct slice b) {
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0)
        return order;
    return (a.size > b.size) - (a.size < b.size);
}
