// SPDX-License-Identifier: Apache-2.0
// Answers of a span, or of several merged (docs/spans.md). Everything is worked out when it is
// asked, since an unfinished span changes as time goes on.
#pragma once

#include "processors/spans/forest.h"

// What exporters hold (pipeline/model/span_report.h).
struct span_tree {
    const struct span_forest *forest;
    const struct span_tree_row *row;
};

extern const struct span_asker span_asker;

// All lies in the arena. O(its tree + thread history · log).
void span_answer_one(const struct span_tree *tree, uint32_t span, double now_s, struct arena *arena,
                     struct span_answer *answer);
// `count` at least 1; one that is named twice counts twice.
void span_answer_merged(const struct span_tree *tree, const uint32_t *spans, uint32_t count,
                        double now_s, struct arena *arena, struct span_answer *answer);

// In the arena; SPAN_NONE ends no list: `count` does.
struct span_numbers {
    uint32_t *items;
    uint32_t count;
};
struct span_numbers span_all(const struct span_tree *tree, struct arena *arena);
struct span_numbers span_roots(const struct span_tree *tree, struct arena *arena);
struct span_numbers span_find_by_name(const struct span_tree *tree, const struct slice *tags,
                                      uint32_t count, struct arena *arena);
// Spans that bear any of the tags, but for those whose parent does; once for each time.
struct span_numbers span_find_by_tags(const struct span_tree *tree, const struct slice *tags,
                                      uint32_t count, struct arena *arena);
struct slice *span_ids(const struct span_tree *tree, const struct span_numbers *spans,
                       struct arena *arena);
struct slice span_id_text(const struct span_tree *tree, uint32_t span, struct arena *arena);
