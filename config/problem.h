// SPDX-License-Identifier: Apache-2.0
// Everything that is wrong with a configuration, collected so that a person sees it all at once.
#pragma once

#include "base/arena.h"
#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

// A place in a text that a person wrote. `file` NULL: from the command line (`--set`), then `line`
// is 0.
struct location {
    const char *file;
    uint32_t line;   // 1-based
    uint32_t column; // 1-based, in bytes
};

struct problem {
    struct location where;
    const char *key;  // "processors.rank_group.retention"; "" for the document
    const char *text; // what is wrong, what would be right
};

// Finds where the value of a key path was written; set by the loader.
typedef struct location problem_locate(void *context, const char *key);

struct problem_list {
    struct arena *arena; // holds the texts
    struct problem *items;
    uint32_t count;
    uint32_t capacity;
    const char *prefix; // put before the keys given to problem_add ("processors.align."); or NULL
    problem_locate *locate; // used by problem_add; or NULL
    void *locate_context;
};

void problem_list_init(struct problem_list *list, struct arena *arena);
void problem_add(struct problem_list *list, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void problem_add_at(struct problem_list *list, struct location where, const char *key,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
// True when further problems are no longer kept: there is no use in working them out.
bool problem_list_full(const struct problem_list *list);
// Whether something is wrong with the value under this key path.
bool problem_list_names(const struct problem_list *list, const char *key);
// One line each, in order of file, line and column: "culprit.yaml:14:7: key: text".
void problem_list_print(struct problem_list *list, struct buffer *out);
