// SPDX-License-Identifier: Apache-2.0
// A table with one place for each remainder of the writer's key: a writer that meets another one's
// place forgets what that one wrote. O(BEFORE_SIZE_MAX) a line.
#include "receivers/decode/line/before.h"

#include "base/memory.h"
#include "base/text/cut.h"

#include <assert.h>

enum { PLACES = 64 };

struct last_line {
    uint64_t key;
    uint8_t size; // 0: nothing
    char text[BEFORE_SIZE_MAX];
};

struct before {
    struct last_line lines[PLACES];
    char shown[BEFORE_SIZE_MAX];
};

struct before *before_make(void) {
    return memory_zero(1, sizeof(struct before));
}

void before_free(struct before *before) {
    memory_give(before);
}

static struct last_line *place_of(struct before *before, uint64_t key) {
    return &before->lines[(key ^ key >> 32 ^ key >> 16) % PLACES];
}

struct slice before_swap(struct before *before, uint64_t key, struct slice message) {
    struct last_line *line = place_of(before, key);
    struct slice shown = {NULL, 0};
    assert(line->size <= BEFORE_SIZE_MAX);
    if (line->size > 0 && line->key == key) {
        memcpy(before->shown, line->text, line->size);
        shown = (struct slice){before->shown, line->size};
    }
    if (message.size > BEFORE_SIZE_MAX)
        message.size = BEFORE_SIZE_MAX;
    if (text_trim(message).size > 0) {
        memcpy(line->text, message.data, message.size);
        line->size = (uint8_t)message.size;
        line->key = key;
    }
    return shown;
}

void before_forget(struct before *before) {
    for (int i = 0; before != NULL && i < PLACES; i++)
        before->lines[i].size = 0;
}
