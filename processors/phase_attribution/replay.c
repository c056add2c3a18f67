// SPDX-License-Identifier: Apache-2.0
// Replays the boundaries of one process thread by thread: an exit ends the scope that its thread
// entered last, if that is the one it names; other exits are ignored. Of the scopes open at a
// moment the deepest of each thread count.
#include "processors/phase_attribution/replay.h"

#include "base/sort.h"

#include <assert.h>

static int compare_boundaries(const void *left, const void *right) {
    const struct loaded_boundary *a = left;
    const struct loaded_boundary *b = right;
    return COMPARE_KEYS(COMPARE(a->row->time_ns, b->row->time_ns),
                        COMPARE(a->row->sequence, b->row->sequence),
                        slice_compare(a->scope_id, b->scope_id));
}

static int compare_spans(const void *left, const void *right) {
    const struct phase_span *a = left;
    const struct phase_span *b = right;
    return COMPARE_KEYS(COMPARE(a->start_ns, b->start_ns), COMPARE(a->end_ns, b->end_ns),
                        COMPARE(a->order, b->order));
}

// A boundary in the order of threads.
struct turn {
    int64_t thread_id; // first, for compare_by_i64
    size_t index;      // among the boundaries
};

struct replay {
    struct loaded_boundary *boundaries;
    size_t count;
    struct loaded_boundary **open; // enters of one thread
    struct phase_span *spans;
    size_t span_count;
};

static void add_span(struct replay *replay, struct loaded_boundary *enter,
                     const struct loaded_boundary *exit, size_t order) {
    assert(replay->span_count < replay->count && enter->row->is_enter);
    replay->spans[replay->span_count++] =
        (struct phase_span){.start_ns = enter->row->time_ns,
                            .end_ns = exit == NULL ? UINT64_MAX : exit->row->time_ns,
                            .enter = enter,
                            .exit = exit,
                            .order = order};
}

// Of spans with the same times those that were left come first, as they were; then those never
// left, in the order in which the stacks of their threads began, outermost first.
static void replay_thread(struct replay *replay, const struct turn *turns, size_t count) {
    size_t depth = 0, began = 0;
    bool has_begun = false;
    for (size_t i = 0; i < count; i++) {
        struct loaded_boundary *boundary = &replay->boundaries[turns[i].index];
        if (!has_begun)
            began = turns[i].index;
        has_begun = true;
        if (boundary->row->is_enter) {
            replay->open[depth++] = boundary;
        } else if (depth > 0 &&
                   slice_equal(replay->open[depth - 1]->scope_id, boundary->scope_id)) {
            add_span(replay, replay->open[--depth], boundary, turns[i].index);
            has_begun = depth > 0;
        }
    }
    for (size_t i = 0; i < depth; i++)
        add_span(replay, replay->open[i], NULL, replay->count + began);
}

static bool is_repeat(const struct loaded_boundary *a, const struct loaded_boundary *b) {
    return a->row->is_enter == b->row->is_enter && a->row->thread_id == b->row->thread_id &&
           a->row->label == b->row->label && a->row->depth == b->row->depth;
}

size_t phase_distinct(struct loaded_boundary *boundaries, size_t count, struct arena *arena) {
    enum { LOOKED_AT = 64 }; // of the boundaries of one moment and scope
    struct loaded_boundary *repeats = arena_take(arena, count * sizeof *repeats);
    size_t kept = 0, repeat_count = 0;
    sort_stable(boundaries, count, sizeof *boundaries, arena, compare_boundaries);
    for (size_t i = 0; i < count; i++) {
        size_t at = kept;
        while (at > 0 && kept - at < LOOKED_AT &&
               compare_boundaries(&boundaries[at - 1], &boundaries[i]) == 0 &&
               !is_repeat(&boundaries[at - 1], &boundaries[i]))
            at--;
        bool repeats_one = at > 0 && kept - at < LOOKED_AT &&
                           compare_boundaries(&boundaries[at - 1], &boundaries[i]) == 0;
        if (repeats_one)
            repeats[repeat_count++] = boundaries[i];
        else
            boundaries[kept++] = boundaries[i];
    }
    memcpy(boundaries + kept, repeats, repeat_count * sizeof *repeats);
    return kept;
}

size_t phase_replay(struct loaded_boundary *boundaries, size_t count, struct arena *arena,
                    struct phase_span **spans) {
    struct replay replay = {.boundaries = boundaries,
                            .count = count,
                            .open = arena_take(arena, count * sizeof *replay.open),
                            .spans = arena_take(arena, count * sizeof *replay.spans)};
    struct turn *turns = arena_take(arena, count * sizeof *turns);
    sort_stable(boundaries, count, sizeof *boundaries, arena, compare_boundaries);
    for (size_t i = 0; i < count; i++)
        turns[i] = (struct turn){boundaries[i].row->thread_id, i};
    sort_stable(turns, count, sizeof *turns, arena, compare_by_i64);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin; end < count && turns[end].thread_id == turns[begin].thread_id;)
            end++;
        replay_thread(&replay, turns + begin, end - begin);
    }
    sort_stable(replay.spans, replay.span_count, sizeof *replay.spans, arena, compare_spans);
    *spans = replay.spans;
    return replay.span_count;
}

// A scope that is open at the moment.
struct open_scope {
    int64_t thread_id; // first, for compare_by_i64
    const struct phase_span *span;
};

// Whether `a` is the more recent of two scopes; a tie keeps the one seen first.
static bool more_recent(const struct phase_span *a, const struct phase_span *b) {
    return COMPARE_KEYS(COMPARE(a->enter->row->sequence, b->enter->row->sequence),
                        slice_compare(a->enter->scope_id, b->enter->scope_id)) > 0;
}

static const struct phase_span *most_recent(const struct open_scope *scopes, size_t count) {
    const struct phase_span *latest = scopes[0].span;
    for (size_t i = 1; i < count; i++)
        if (more_recent(scopes[i].span, latest))
            latest = scopes[i].span;
    return latest;
}

static size_t find_open(const struct phase_span *spans, size_t count, uint64_t time_ns,
                        struct open_scope *open) {
    size_t found = 0;
    for (size_t i = 0; i < count && spans[i].start_ns <= time_ns; i++)
        if (time_ns <= spans[i].end_ns)
            open[found++] = (struct open_scope){spans[i].enter->row->thread_id, &spans[i]};
    return found;
}

// Leaves the deepest of each thread, sorted by thread; how many they are.
static size_t keep_deepest(struct open_scope *open, size_t count, struct arena *arena) {
    size_t kept = 0;
    sort_stable(open, count, sizeof *open, arena, compare_by_i64);
    for (size_t begin = 0, end; begin < count; begin = end) {
        uint32_t depth = 0;
        for (end = begin; end < count && open[end].thread_id == open[begin].thread_id; end++)
            if (open[end].span->enter->row->depth > depth)
                depth = open[end].span->enter->row->depth;
        for (size_t i = begin; i < end; i++)
            if (open[i].span->enter->row->depth == depth)
                open[kept++] = open[i];
    }
    return kept;
}

static int compare_labels(const void *left, const void *right) {
    return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

// Sorted by code point, each once.
static uint32_t distinct_labels(const struct open_scope *scopes, size_t count, struct arena *arena,
                                struct slice *labels) {
    for (size_t i = 0; i < count; i++)
        labels[i] = intern_slice(scopes[i].span->enter->row->label);
    sort_stable(labels, count, sizeof *labels, arena, compare_labels);
    uint32_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !slice_equal(labels[kept - 1], labels[i]))
            labels[kept++] = labels[i];
    return kept;
}

struct phase_attribution phase_attribute(const struct phase_span *spans, size_t count,
                                         uint64_t time_ns, struct arena *arena) {
    struct open_scope *open = arena_take(arena, count * sizeof *open);
    size_t open_count = find_open(spans, count, time_ns, open);
    if (open_count == 0)
        return (struct phase_attribution){.resolution = PHASE_NONE};
    const struct phase_span *latest = most_recent(open, open_count);
    size_t deepest = keep_deepest(open, open_count, arena);
    struct phase_attribution answer = {.resolution = PHASE_AMBIGUOUS,
                                       .paths = arena_take(arena, deepest * sizeof *answer.paths)};
    answer.path_count = distinct_labels(open, deepest, arena, answer.paths);
    if (answer.path_count > 1)
        answer.summary = intern_slice(latest->enter->row->label);
    if (answer.path_count > 1 || open[0].thread_id != open[deepest - 1].thread_id)
        return answer;
    const struct phase_span *match = most_recent(open, deepest);
    const struct loaded_boundary *named = match->exit == NULL ? match->enter : match->exit;
    answer.resolution = PHASE_UNIQUE;
    answer.path = answer.paths[0];
    answer.scope_id = match->enter->scope_id;
    answer.thread_id = match->enter->row->thread_id;
    answer.thread_id_is_bool = match->enter->row->thread_id_is_bool;
    answer.thread_name = intern_slice(named->row->thread_name);
    return answer;
}
