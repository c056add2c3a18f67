// SPDX-License-Identifier: Apache-2.0
// Lists spans: all of them, and those that bear tags. All O(spans), in order of creation.
#include "base/sort.h"
#include "processors/spans/answer.h"

#include <assert.h>

static struct span_numbers numbers_for(uint32_t most, struct arena *arena) {
    return (struct span_numbers){arena_take(arena, most * sizeof(uint32_t) + 1), 0};
}

struct span_numbers span_all(const struct span_tree *tree, struct arena *arena) {
    struct span_numbers all = numbers_for(tree->row->span_count, arena);
    for (uint32_t at = tree->row->made.first; at != SPAN_NONE;
         at = span_at(tree->forest, at)->made.next)
        all.items[all.count++] = at;
    return all;
}

struct span_numbers span_roots(const struct span_tree *tree, struct arena *arena) {
    struct span_numbers roots = numbers_for(tree->row->span_count, arena);
    for (uint32_t at = tree->row->roots.first; at != SPAN_NONE;
         at = span_at(tree->forest, at)->sibling.next)
        roots.items[roots.count++] = at;
    return roots;
}

// SPAN_NONE when no span can have this name.
static uint32_t find_path(const struct span_forest *forest, const struct slice *tags,
                          uint32_t count) {
    uint32_t path = SPAN_NONE;
    for (uint32_t i = 0; i < count; i++) {
        const struct span_path_row *row = span_find_row(forest, &forest->paths, path, tags[i]);
        if (row == NULL)
            return SPAN_NONE;
        path = keyed_rows_number(&forest->paths, row);
    }
    return path;
}

struct span_numbers span_find_by_name(const struct span_tree *tree, const struct slice *tags,
                                      uint32_t count, struct arena *arena) {
    struct span_numbers found = numbers_for(tree->row->span_count, arena);
    uint32_t path = find_path(tree->forest, tags, count);
    for (uint32_t at = tree->row->made.first; path != SPAN_NONE && at != SPAN_NONE;
         at = span_at(tree->forest, at)->made.next)
        if (span_at(tree->forest, at)->path == path)
            found.items[found.count++] = at;
    return found;
}

// -- by tags ------------------------------------------------------------------------------------

struct bearer {
    uint32_t depth; // first, for compare_by_u32
    uint32_t span;
};

static uint32_t times_borne(const struct span_forest *forest, uint32_t path, uint32_t tag) {
    uint32_t times = 0;
    for (; path != SPAN_NONE; path = span_path_at(forest, path)->key.parent)
        times += span_path_at(forest, path)->key.tag == tag;
    return times;
}

// Adds those who bear the tag to `bearers`, when that is there; returns how many they are.
static uint32_t list_bearers(const struct span_tree *tree, struct slice text,
                             struct bearer *bearers) {
    const struct span_forest *forest = tree->forest;
    uint32_t tag = span_names_find(&forest->names, text), count = 0;
    for (uint32_t at = tree->row->made.first; tag != NAME_NONE && at != SPAN_NONE;
         at = span_at(forest, at)->made.next) {
        uint32_t path = span_at(forest, at)->path;
        for (uint32_t times = times_borne(forest, path, tag); times > 0; times--) {
            if (bearers != NULL)
                bearers[count] = (struct bearer){span_path_at(forest, path)->depth, at};
            count++;
        }
    }
    return count;
}

struct span_numbers span_find_by_tags(const struct span_tree *tree, const struct slice *tags,
                                      uint32_t tag_count, struct arena *arena) {
    const struct span_forest *forest = tree->forest;
    uint32_t count = 0;
    for (uint32_t i = 0; i < tag_count; i++)
        count += list_bearers(tree, tags[i], NULL);
    struct bearer *bearers = arena_take(arena, count * sizeof *bearers + 1);
    count = 0;
    for (uint32_t i = 0; i < tag_count; i++)
        count += list_bearers(tree, tags[i], bearers + count);
    sort_stable(bearers, count, sizeof *bearers, arena, compare_by_u32);
    bool *seen = arena_zero(arena, forest->spans.table.used + 1, sizeof *seen);
    struct span_numbers found = numbers_for(count, arena);
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        for (end = begin; end < count && bearers[end].depth == bearers[begin].depth; end++)
            seen[bearers[end].span] = true;
        for (uint32_t i = begin; i < end; i++) {
            uint32_t parent = span_at(forest, bearers[i].span)->parent;
            if (parent == SPAN_NONE || !seen[parent])
                found.items[found.count++] = bearers[i].span;
        }
    }
    assert(found.count <= count);
    return found;
}

// -- for exporters ------------------------------------------------------------------------------

// `*at` is the number of the span behind the last one, plus one; 0 at the beginning.
static bool step(uint32_t next, uint32_t *at, uint32_t *span) {
    *span = next;
    *at = next + 1;
    return next != SPAN_NONE;
}

static bool ask_next(const struct span_tree *tree, uint32_t *at, uint32_t *span) {
    return step(*at == 0 ? tree->row->made.first : span_at(tree->forest, *at - 1)->made.next, at,
                span);
}

static bool ask_next_root(const struct span_tree *tree, uint32_t *at, uint32_t *span) {
    return step(*at == 0 ? tree->row->roots.first : span_at(tree->forest, *at - 1)->sibling.next,
                at, span);
}

static bool ask_next_child(const struct span_tree *tree, uint32_t parent, uint32_t *at,
                           uint32_t *child) {
    return step(*at == 0 ? span_at(tree->forest, parent)->children.first
                         : span_at(tree->forest, *at - 1)->sibling.next,
                at, child);
}

const struct span_asker span_asker = {
    .next = ask_next,
    .next_root = ask_next_root,
    .next_child = ask_next_child,
    .answer = span_answer_one,
    .merge = span_answer_merged,
};
