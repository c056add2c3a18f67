// SPDX-License-Identifier: Apache-2.0
// Questions about spans that were written down beforehand: a file of them, each with the line after
// which it is to be answered (docs/spans.md, "Questions"). For inputs that end: answers are kept in
// memory until then. One thread.
#pragma once

#include "base/status.h"
#include "processors/spans/answer.h"

struct span_query;
struct span_query_turn;

struct span_queries {
    struct arena arena; // of the file
    struct span_query *items;
    uint32_t count;
    double
        now_s; // the clock of the spans at the end of the stream, of no query; 0: that of the tree
    struct span_query_turn *order; // by `after`
    struct span_answers **answers; // one a tree
    uint32_t answers_count;
    uint32_t answers_capacity;
};

// STATUS_NOT_FOUND, STATUS_IO, or STATUS_BAD_DATA with the place in the file and what would be
// right.
enum status span_queries_load(struct span_queries *queries, const char *path, struct error *error);
void span_queries_release(struct span_queries *queries);

// Answers all that are due before this line of the tree's source takes effect; UINT64_MAX: all that
// are left.
void span_queries_reach(struct span_queries *queries, const struct span_tree *tree, uint64_t line);
// In the order of the file; they live as long as `queries`.
const struct span_query_answer *span_queries_answers(struct span_queries *queries,
                                                     const struct span_tree *tree);
