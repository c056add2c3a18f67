// SPDX-License-Identifier: Apache-2.0
// Which scopes were open at a moment, and which of them names what the process was doing? One stack
// a thread: an exit closes the top scope if it is that scope's, else it is ignored. Of the open
// scopes the deepest of each thread counts; one thread with one label is a unique answer, anything
// else is ambiguous. Cost: O(n log n) in the boundaries. Rules and tie-breaks: stormlog 0.4.3,
// phase replay.
#include "processors/phase_attribution/replay.h"

#include "base/sort.h"
#include "base/table/table.h"

static int compare_int64(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_uint64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_boundaries(const void *left, const void *right) {
    const struct phase_boundary *a = left;
    const struct phase_boundary *b = right;
    int order = compare_uint64(a->time_ns, b->time_ns);
    if (order == 0)
        order = compare_int64(a->sequence, b->sequence);
    return order != 0 ? order : slice_compare(a->scope_id, b->scope_id);
}

static int compare_spans(const void *left, const void *right) {
    const struct phase_span *a = left;
    const struct phase_span *b = right;
    int order = compare_uint64(a->start_ns, b->start_ns);
    return order != 0 ? order : compare_uint64(a->end_ns, b->end_ns);
}

// The open scopes of one thread, as a chain of enters; `created` orders threads by first boundary.
struct thread_stack {
    int64_t thread_id;
    size_t top; // index of an enter among the boundaries, or NO_SCOPE
    size_t created;
    bool live;
};
static const size_t NO_SCOPE = SIZE_MAX;

struct replay {
    const struct phase_boundary *boundaries;
    size_t *below;               // for each enter: the enter under it on the stack
    struct thread_stack *stacks; // open addressing by thread id
    size_t stacks_size;
    size_t created;
    struct phase_span *spans;
    size_t span_count;
};

static size_t thread_hash(int64_t thread_id) {
    return (size_t)((uint64_t)thread_id * UINT64_C(0x9e3779b97f4a7c15) >> 20);
}

// Slots of an open-addressing table that stays half empty.
static size_t table_size_for(size_t count) {
    size_t size = 16;
    while (size < count * 2)
        size *= 2;
    return size;
}

static struct thread_stack *stack_of(struct replay *replay, int64_t thread_id) {
    size_t at = thread_hash(thread_id) & (replay->stacks_size - 1);
    while (replay->stacks[at].created != 0 && replay->stacks[at].thread_id != thread_id)
        at = (at + 1) & (replay->stacks_size - 1);
    struct thread_stack *stack = &replay->stacks[at];
    if (!stack->live)
        *stack = (struct thread_stack){thread_id, NO_SCOPE, ++replay->created, true};
    return stack;
}

static void add_span(struct replay *replay, const struct phase_boundary *enter,
                     const struct phase_boundary *exit) {
    replay->spans[replay->span_count++] =
        (struct phase_span){.start_ns = enter->time_ns,
                            .end_ns = exit == NULL ? UINT64_MAX : exit->time_ns,
                            .sequence = enter->sequence,
                            .thread_id = enter->thread_id,
                            .thread_id_is_bool = enter->thread_id_is_bool,
                            .label = enter->label,
                            .thread_name = exit == NULL ? enter->thread_name : exit->thread_name,
                            .depth = enter->depth,
                            .scope_id = enter->scope_id,
                            .enter_row = enter->row,
                            .exit_row = exit == NULL ? TABLE_NO_ROW : exit->row};
}

static void replay_boundary(struct replay *replay, size_t index) {
    const struct phase_boundary *boundary = &replay->boundaries[index];
    struct thread_stack *stack = stack_of(replay, boundary->thread_id);
    if (boundary->is_enter) {
        replay->below[index] = stack->top;
        stack->top = index;
        return;
    }
    if (stack->top == NO_SCOPE ||
        !slice_equal(replay->boundaries[stack->top].scope_id, boundary->scope_id))
        return;
    add_span(replay, &replay->boundaries[stack->top], boundary);
    stack->top = replay->below[stack->top];
    // An emptied stack is gone; the thread's next one is created last.
    stack->live = stack->top != NO_SCOPE;
}

static int compare_created(const void *left, const void *right) {
    const struct thread_stack *a = left;
    const struct thread_stack *b = right;
    return (a->created > b->created) - (a->created < b->created);
}

// Scopes that were never left, stack by stack in order of creation, outermost first.
static void add_left_over(struct replay *replay, struct arena *arena, size_t count) {
    sort_stable(replay->stacks, replay->stacks_size, sizeof *replay->stacks, arena,
                compare_created);
    size_t *open = arena_take(arena, count * sizeof *open);
    for (size_t i = 0; i < replay->stacks_size; i++) {
        if (!replay->stacks[i].live)
            continue;
        size_t depth = 0;
        for (size_t at = replay->stacks[i].top; at != NO_SCOPE; at = replay->below[at])
            open[depth++] = at;
        while (depth > 0)
            add_span(replay, &replay->boundaries[open[--depth]], NULL);
    }
}

size_t phase_replay(struct phase_boundary *boundaries, size_t count, struct arena *arena,
                    struct phase_span **spans) {
    *spans = NULL;
    if (count == 0)
        return 0;
    sort_stable(boundaries, count, sizeof *boundaries, arena, compare_boundaries);
    size_t stacks_size = table_size_for(count);
    struct replay replay = {
        .boundaries = boundaries,
        .below = arena_take(arena, count * sizeof(size_t)),
        .stacks = arena_zero(arena, stacks_size, sizeof(struct thread_stack)),
        .stacks_size = stacks_size,
        .spans = arena_take(arena, count * sizeof(struct phase_span)),
    };
    for (size_t i = 0; i < count; i++)
        replay_boundary(&replay, i);
    add_left_over(&replay, arena, count);
    sort_stable(replay.spans, replay.span_count, sizeof *replay.spans, arena, compare_spans);
    *spans = replay.spans;
    return replay.span_count;
}

// Whether `a` is the more recent of two scopes; a tie keeps the one seen first.
static bool more_recent(const struct phase_span *a, const struct phase_span *b) {
    if (a->sequence != b->sequence)
        return a->sequence > b->sequence;
    return slice_compare(a->scope_id, b->scope_id) > 0;
}

// What one thread was doing: the deepest open scopes.
struct thread_answer {
    int64_t thread_id;
    uint32_t depth;
    const struct phase_span *match; // most recent of the deepest
    bool several_labels;
};

// The scopes that are open at the moment, and what each thread of theirs was doing.
struct activity {
    const struct phase_span **spans;
    uint32_t *answer_of; // [span_count]
    size_t span_count;
    struct thread_answer *answers; // in order of their first span
    size_t answer_count;
    uint32_t *index; // open addressing by thread id: answer + 1
    size_t index_size;
};

static uint32_t find_answer(struct activity *activity, int64_t thread_id) {
    size_t at = thread_hash(thread_id) & (activity->index_size - 1);
    for (; activity->index[at] != 0; at = (at + 1) & (activity->index_size - 1))
        if (activity->answers[activity->index[at] - 1].thread_id == thread_id)
            return activity->index[at] - 1;
    activity->answers[activity->answer_count++] = (struct thread_answer){.thread_id = thread_id};
    activity->index[at] = (uint32_t)activity->answer_count;
    return (uint32_t)activity->answer_count - 1;
}

static void answer_add(struct thread_answer *answer, const struct phase_span *span) {
    if (answer->match == NULL || span->depth > answer->depth) {
        answer->depth = span->depth;
        answer->match = span;
        answer->several_labels = false;
        return;
    }
    if (span->depth < answer->depth)
        return;
    if (span->label != answer->match->label)
        answer->several_labels = true;
    if (more_recent(span, answer->match))
        answer->match = span;
}

static int compare_labels(const void *left, const void *right) {
    return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

// Sorted by code point, each once.
static uint32_t distinct_labels(struct slice *labels, size_t count, struct arena *arena) {
    sort_stable(labels, count, sizeof *labels, arena, compare_labels);
    uint32_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !slice_equal(labels[kept - 1], labels[i]))
            labels[kept++] = labels[i];
    return kept;
}

static struct phase_attribution unique_answer(const struct phase_span *match, struct arena *arena) {
    struct slice *path = arena_take(arena, sizeof *path);
    *path = intern_slice(match->label);
    return (struct phase_attribution){.resolution = PHASE_UNIQUE,
                                      .paths = path,
                                      .path_count = 1,
                                      .path = *path,
                                      .scope_id = match->scope_id,
                                      .thread_id = match->thread_id,
                                      .thread_id_is_bool = match->thread_id_is_bool,
                                      .thread_name = intern_slice(match->thread_name)};
}

static struct phase_attribution ambiguous_answer(const struct activity *activity,
                                                 struct arena *arena) {
    struct slice *labels = arena_take(arena, activity->span_count * sizeof *labels);
    size_t count = 0;
    const struct phase_span *latest = activity->spans[0];
    for (size_t i = 0; i < activity->span_count; i++) {
        const struct phase_span *span = activity->spans[i];
        if (more_recent(span, latest))
            latest = span;
        if (activity->answers[activity->answer_of[i]].depth == span->depth)
            labels[count++] = intern_slice(span->label);
    }
    struct phase_attribution answer = {.resolution = PHASE_AMBIGUOUS, .paths = labels};
    answer.path_count = distinct_labels(labels, count, arena);
    if (answer.path_count >= 2)
        answer.summary = intern_slice(latest->label);
    return answer;
}

static void find_active(struct activity *activity, const struct phase_span *spans, size_t count,
                        uint64_t time_ns, struct arena *arena) {
    activity->spans = arena_take(arena, (count + 1) * sizeof(*activity->spans));
    for (size_t i = 0; i < count && spans[i].start_ns <= time_ns; i++)
        if (time_ns <= spans[i].end_ns)
            activity->spans[activity->span_count++] = &spans[i];
}

static void find_answers(struct activity *activity, struct arena *arena) {
    size_t count = activity->span_count;
    activity->index_size = table_size_for(count);
    activity->index = arena_zero(arena, activity->index_size, sizeof(uint32_t));
    activity->answers = arena_take(arena, count * sizeof(struct thread_answer));
    activity->answer_of = arena_take(arena, count * sizeof(uint32_t));
    for (size_t i = 0; i < count; i++) {
        activity->answer_of[i] = find_answer(activity, activity->spans[i]->thread_id);
        answer_add(&activity->answers[activity->answer_of[i]], activity->spans[i]);
    }
}

struct phase_attribution phase_attribute(const struct phase_span *spans, size_t count,
                                         uint64_t time_ns, struct arena *arena) {
    struct activity activity = {0};
    find_active(&activity, spans, count, time_ns, arena);
    if (activity.span_count == 0)
        return (struct phase_attribution){.resolution = PHASE_NONE};
    find_answers(&activity, arena);
    if (activity.answer_count == 1 && !activity.answers[0].several_labels)
        return unique_answer(activity.answers[0].match, arena);
    return ambiguous_answer(&activity, arena);
}
