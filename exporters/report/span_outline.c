// SPDX-License-Identifier: Apache-2.0
// Chooses the spans of a tree that are worth a line.
//
// A node is one span, or siblings told together. The node with the most thread time among those
// that were not opened yet is opened next, as long as there are lines left, so that room goes where
// the time went. Answers are large and wanted for a moment only: they lie in an arena of their own
// that is emptied after each.
#include "exporters/report/span_outline.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/text/cut.h"

#include <assert.h>
#include <stdlib.h>

enum { ANSWER_BYTES = 64 << 10, WORK_BYTES = 64 << 10, ALIKE_MIN = 4 };

struct node {
    struct span_line line; // its names are copied for good when it is sure to have a line
    struct slice stem;
    const uint32_t *spans; // [span_count], in order
    uint32_t span_count;
    uint32_t order; // among its siblings
    bool opened;
    struct node *first; // its children, in order; the one for the rest is last
    struct node *next;
};

struct maker {
    const struct span_report *report;
    const struct span_outline_limits *limits;
    struct arena *arena;  // of what is handed out
    struct arena work;    // of names and numbers on the way there
    struct arena scratch; // of one answer
    struct node **nodes;  // all that have a line
    uint32_t node_count;
};

// Siblings, while it is found out which of them have lines.
struct family {
    struct node *items; // in order
    uint32_t count;
    uint32_t capacity;
};

struct slice span_stem(struct arena *arena, struct slice name) {
    char *stem = arena_take(arena, name.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (!text_is_digit(name.data[i]))
            stem[size++] = name.data[i];
        else if (i == 0 || !text_is_digit(name.data[i - 1]))
            stem[size++] = '#';
    }
    return (struct slice){stem, size};
}

// -- figures --------------------------------------------------------------------------------------

static double open_seconds(const struct span_answer *answer) {
    double seconds = 0;
    for (uint32_t i = 0; i < answer->interval_count; i++)
        seconds += answer->intervals[i].end_s - answer->intervals[i].begin_s;
    return answer->interval_count > 0 ? seconds : answer->stop_s - answer->enqueued_s;
}

// Asks for the figures of the node's spans; `answer` is good until the next one.
static void figures_ask(struct maker *maker, struct node *node, struct span_answer *answer) {
    assert(node->span_count > 0 && (node->line.kind != SPAN_LINE_ONE || node->span_count == 1));
    const struct span_report *report = maker->report;
    struct span_line *line = &node->line;
    arena_reset(&maker->scratch);
    if (line->kind == SPAN_LINE_ONE)
        report->ask->answer(report->tree, node->spans[0], report->now_s, &maker->scratch, answer);
    else
        report->ask->merge(report->tree, node->spans, node->span_count, report->now_s,
                           &maker->scratch, answer);
    line->count = node->span_count;
    line->seconds = open_seconds(answer);
    line->thread_s = answer->active_cpu_s;
    line->idle_s = answer->idle_s;
    line->measured = answer->metric_count > 1;
    line->busy_s = answer->duration_s;
    line->nbytes = answer->nbytes_total;
    line->done = answer->done;
    memcpy(line->states, answer->states, sizeof line->states);
}

static struct slice last_tag(const struct span_answer *answer) {
    return answer->name_count > 0 ? answer->name[answer->name_count - 1] : (struct slice){"", 0};
}

// -- siblings -------------------------------------------------------------------------------------

static void family_add(struct maker *maker, struct family *family, uint32_t span) {
    struct span_answer answer;
    uint32_t *own = arena_take(&maker->work, sizeof *own);
    *own = span;
    family->items =
        memory_room(family->items, &family->capacity, family->count, sizeof *family->items);
    struct node *node = &family->items[family->count];
    *node = (struct node){.spans = own, .span_count = 1, .order = family->count++};
    figures_ask(maker, node, &answer);
    node->line.name = arena_copy(&maker->work, last_tag(&answer));
    node->line.below = answer.child_count;
    node->stem = span_stem(&maker->work, node->line.name);
}

static int order_compare(const void *left, const void *right) {
    const struct node *a = left, *b = right;
    return COMPARE(a->order, b->order);
}

static int stem_compare(const void *left, const void *right) {
    const struct node *a = left, *b = right;
    return COMPARE_KEYS(slice_compare(a->stem, b->stem), COMPARE(a->order, b->order));
}

static int time_compare(const void *left, const void *right) {
    const struct node *a = left, *b = right;
    return COMPARE_KEYS(COMPARE(b->line.thread_s, a->line.thread_s),
                        COMPARE(b->line.seconds, a->line.seconds), COMPARE(a->order, b->order));
}

// Makes the first of `count` siblings one for all of them.
static void join(struct maker *maker, struct node *items, uint32_t count,
                 enum span_line_kind kind) {
    assert(count > 0 && kind != SPAN_LINE_ONE);
    struct node joined = {.line = {.kind = kind, .name = items[0].line.name, .longest_s = -1},
                          .order = items[0].order};
    for (uint32_t i = 0; i < count; i++)
        joined.span_count += items[i].span_count;
    uint32_t *spans = arena_take(&maker->work, joined.span_count * sizeof *spans);
    joined.spans = spans;
    for (uint32_t i = 0; i < count; i++) {
        const struct span_line *line = &items[i].line;
        memcpy(spans, items[i].spans, items[i].span_count * sizeof *spans);
        spans += items[i].span_count;
        joined.line.below += line->below;
        joined.line.last_name = line->name;
        if (line->seconds > joined.line.longest_s) {
            joined.line.longest_s = line->seconds;
            joined.line.longest = line->name;
        }
    }
    struct span_answer answer;
    figures_ask(maker, &joined, &answer);
    items[0] = joined;
}

// Those with one stem become one when there are `least` of them or more.
static void join_alike(struct maker *maker, struct family *family, uint32_t least) {
    struct node *items = family->items;
    if (family->count < 2)
        return;
    qsort(items, family->count, sizeof *items, stem_compare);
    uint32_t kept = 0;
    for (uint32_t i = 0, end; i < family->count; i = end) {
        end = i + 1;
        while (end < family->count && slice_equal(items[end].stem, items[i].stem))
            end++;
        bool alike = end - i >= least;
        if (alike)
            join(maker, &items[i], end - i, SPAN_LINE_MANY);
        for (uint32_t j = i; j < (alike ? i + 1 : end); j++)
            items[kept++] = items[j];
    }
    family->count = kept;
    qsort(items, family->count, sizeof *items, order_compare);
}

// Behind the `kept` with the most thread time all are told in one line, the last.
static void join_rest(struct maker *maker, struct family *family, uint32_t kept) {
    struct node *items = family->items;
    if (family->count <= kept + 1)
        return; // a line for one is that one's
    qsort(items, family->count, sizeof *items, time_compare);
    join(maker, &items[kept], family->count - kept, SPAN_LINE_REST);
    items[kept].order = UINT32_MAX;
    family->count = kept + 1;
    qsort(items, family->count, sizeof *items, order_compare);
}

// -- the tree -------------------------------------------------------------------------------------

// The family has its lines; returns the first of them.
static struct node *family_end(struct maker *maker, struct family *family, uint32_t depth) {
    assert(maker->node_count + family->count <= maker->limits->lines);
    struct node *first = NULL, **at = &first;
    for (uint32_t i = 0; i < family->count; i++, at = &(*at)->next) {
        struct node *node = *at = arena_take(&maker->work, sizeof *node);
        *node = family->items[i];
        node->opened = node->line.kind == SPAN_LINE_REST;
        node->line.depth = depth;
        node->line.name = arena_copy(maker->arena, node->line.name);
        node->line.last_name = arena_copy(maker->arena, node->line.last_name);
        node->line.longest = arena_copy(maker->arena, node->line.longest);
        maker->nodes[maker->node_count++] = node;
    }
    memory_give(family->items);
    return first;
}

// How many siblings may have lines, beside one for the others.
static uint32_t room(const struct maker *maker) {
    assert(maker->node_count < maker->limits->lines);
    uint32_t left = maker->limits->lines - maker->node_count - 1;
    return left > maker->limits->children ? maker->limits->children : left;
}

// Children of one span may be few and alike and are still told one by one; those of many are not.
static void open_node(struct maker *maker, struct node *node) {
    assert(!node->opened && node->span_count > 0);
    struct family family = {0};
    node->opened = true;
    for (uint32_t i = 0; i < node->span_count; i++) {
        uint32_t at = 0, child;
        while (maker->report->ask->next_child(maker->report->tree, node->spans[i], &at, &child))
            family_add(maker, &family, child);
    }
    join_alike(maker, &family, node->span_count > 1 ? 2 : ALIKE_MIN);
    join_rest(maker, &family, room(maker));
    node->first = family_end(maker, &family, node->line.depth + 1);
    node->line.below = 0;
}

static struct node *next_to_open(const struct maker *maker) {
    struct node *best = NULL;
    if (maker->node_count == maker->limits->lines)
        return NULL;
    for (uint32_t i = 0; i < maker->node_count; i++) {
        struct node *node = maker->nodes[i];
        if (node->opened || node->line.below == 0 || node->line.depth + 1 >= maker->limits->depth)
            continue;
        if (best == NULL || node->line.thread_s > best->line.thread_s)
            best = node;
    }
    return best;
}

static void list_lines(const struct node *node, struct span_line *lines, uint32_t *count) {
    for (; node != NULL; node = node->next) {
        lines[(*count)++] = node->line;
        list_lines(node->first, lines, count);
    }
}

static struct node *roots_open(struct maker *maker, struct span_outline *outline) {
    struct family family = {0};
    uint32_t at = 0, root;
    while (maker->report->ask->next_root(maker->report->tree, &at, &root))
        family_add(maker, &family, root);
    if (family.count == 0)
        return NULL;
    uint32_t *roots = arena_take(&maker->work, family.count * sizeof *roots);
    for (uint32_t i = 0; i < family.count; i++)
        roots[i] = family.items[i].spans[0];
    struct node all = {.line.kind = SPAN_LINE_MANY, .spans = roots, .span_count = family.count};
    struct span_answer answer;
    figures_ask(maker, &all, &answer);
    outline->thread_s = answer.active_cpu_s;
    outline->begin_s = answer.enqueued_s;
    outline->end_s = answer.stop_s;
    join_alike(maker, &family, ALIKE_MIN);
    join_rest(maker, &family, room(maker));
    return family_end(maker, &family, 0);
}

void span_outline_make(const struct span_report *report, const struct span_outline_limits *limits,
                       struct arena *arena, struct span_outline *outline) {
    struct maker maker = {.report = report, .limits = limits, .arena = arena};
    assert(limits->lines > 0 && limits->depth > 0);
    *outline = (struct span_outline){0};
    arena_init(&maker.scratch, ANSWER_BYTES);
    arena_init(&maker.work, WORK_BYTES);
    maker.nodes = arena_take(&maker.work, limits->lines * sizeof(struct node *));
    struct node *roots = roots_open(&maker, outline);
    for (struct node *node; (node = next_to_open(&maker)) != NULL;)
        open_node(&maker, node);
    struct span_line *lines = arena_take(arena, (maker.node_count + 1) * sizeof *lines);
    list_lines(roots, lines, &outline->count);
    outline->lines = lines;
    arena_release(&maker.scratch);
    arena_release(&maker.work);
}
