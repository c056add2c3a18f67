// SPDX-License-Identifier: Apache-2.0
// Which spans of a tree are worth a line?
//
// A node is one span, or siblings told together. The node with the most thread time among those
// that were not opened yet is opened next, as long as there are lines left, so that room goes where
// the time went. Answers are large and wanted for a moment only: they lie in an arena of their own
// that is emptied after each.
#include "exporters/report/span_outline.h"

#include "base/memory.h"

#include <stdlib.h>

enum { ANSWER_BYTES = 64 << 10, WORK_BYTES = 64 << 10, ALIKE_MIN = 4 };

struct node {
    struct span_line line;
    const uint32_t *spans; // [span_count], in order
    uint32_t span_count;
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

// A span, or several that were joined, while it is found out which of them have lines.
struct candidate {
    enum span_line_kind kind;
    uint32_t order; // among its siblings
    uint32_t span_count;
    uint32_t span;         // of one
    const uint32_t *spans; // of several
    struct slice name, stem, last_name, longest;
    double thread_s, seconds, longest_s;
    uint64_t below;
};

struct family {
    struct candidate *items; // in order
    uint32_t count;
    uint32_t capacity;
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

struct slice span_stem(struct arena *arena, struct slice name) {
    char *stem = arena_take(arena, name.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (!is_digit(name.data[i]))
            stem[size++] = name.data[i];
        else if (i == 0 || !is_digit(name.data[i - 1]))
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

static void read_figures(const struct span_answer *answer, struct span_line *line) {
    line->seconds = open_seconds(answer);
    line->thread_s = answer->active_cpu_s;
    line->idle_s = answer->idle_s;
    line->measured = answer->metric_count > 1;
    line->busy_s = answer->duration_s;
    line->nbytes = answer->nbytes_total;
    line->done = answer->done;
    line->folded = answer->folded;
    memcpy(line->states, answer->states, sizeof line->states);
}

static struct slice last_tag(const struct span_answer *answer) {
    return answer->name_count > 0 ? answer->name[answer->name_count - 1] : (struct slice){"", 0};
}

static void ask(struct maker *maker, const uint32_t *spans, uint32_t count, bool together,
                struct span_answer *answer) {
    const struct span_report *report = maker->report;
    arena_reset(&maker->scratch);
    if (together)
        report->ask->merge(report->tree, spans, count, report->now_s, &maker->scratch, answer);
    else
        report->ask->answer(report->tree, spans[0], report->now_s, &maker->scratch, answer);
}

// -- siblings -------------------------------------------------------------------------------------

static void family_add(struct maker *maker, struct family *family, uint32_t span) {
    struct span_answer answer;
    ask(maker, &span, 1, false, &answer);
    if (family->count == family->capacity) {
        family->capacity = family->capacity == 0 ? 16 : family->capacity * 2;
        family->items = memory_resize(family->items, family->capacity * sizeof *family->items);
    }
    struct slice name = arena_copy(&maker->work, last_tag(&answer));
    family->items[family->count] = (struct candidate){
        .kind = SPAN_LINE_ONE,
        .order = family->count,
        .span_count = 1,
        .span = span,
        .name = name,
        .stem = span_stem(&maker->work, name),
        .thread_s = answer.active_cpu_s,
        .seconds = open_seconds(&answer),
        .below = answer.child_count,
    };
    family->count++;
}

static int order_compare(const void *left, const void *right) {
    const struct candidate *a = left, *b = right;
    return (a->order > b->order) - (a->order < b->order);
}

static int stem_compare(const void *left, const void *right) {
    const struct candidate *a = left, *b = right;
    int order = slice_compare(a->stem, b->stem);
    return order != 0 ? order : order_compare(left, right);
}

static int time_compare(const void *left, const void *right) {
    const struct candidate *a = left, *b = right;
    if (a->thread_s != b->thread_s)
        return a->thread_s > b->thread_s ? -1 : 1;
    if (a->seconds != b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    return order_compare(left, right);
}

// Makes the first of `count` candidates one for all of them.
static void join(struct maker *maker, struct candidate *items, uint32_t count,
                 enum span_line_kind kind) {
    struct candidate joined = items[0];
    joined.kind = kind;
    joined.longest_s = -1;
    joined.span_count = 0;
    joined.below = 0;
    for (uint32_t i = 0; i < count; i++)
        joined.span_count += items[i].span_count;
    uint32_t *spans = arena_take(&maker->work, joined.span_count * sizeof *spans);
    joined.spans = spans;
    for (uint32_t i = 0; i < count; i++) {
        const struct candidate *item = &items[i];
        memcpy(spans, item->spans != NULL ? item->spans : &item->span,
               item->span_count * sizeof *spans);
        spans += item->span_count;
        joined.below += item->below;
        joined.last_name = item->name;
        if (item->seconds > joined.longest_s) {
            joined.longest_s = item->seconds;
            joined.longest = item->name;
        }
    }
    struct span_answer answer;
    ask(maker, joined.spans, joined.span_count, true, &answer);
    joined.thread_s = answer.active_cpu_s;
    joined.seconds = open_seconds(&answer);
    items[0] = joined;
}

// Those with one stem become one when there are `least` of them or more.
static void join_alike(struct maker *maker, struct family *family, uint32_t least) {
    struct candidate *items = family->items;
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
    struct candidate *items = family->items;
    if (family->count <= kept + 1)
        return; // a line for one is that one's
    qsort(items, family->count, sizeof *items, time_compare);
    join(maker, &items[kept], family->count - kept, SPAN_LINE_REST);
    items[kept].order = UINT32_MAX;
    family->count = kept + 1;
    qsort(items, family->count, sizeof *items, order_compare);
}

// -- the tree -------------------------------------------------------------------------------------

static struct node *node_make(struct maker *maker, const struct candidate *from, uint32_t depth) {
    struct node *node = arena_zero(&maker->work, 1, sizeof *node);
    uint32_t *own = arena_take(&maker->work, sizeof *own);
    *own = from->span;
    node->spans = from->spans != NULL ? from->spans : own;
    node->span_count = from->span_count;
    node->opened = from->kind == SPAN_LINE_REST;
    struct span_answer answer;
    ask(maker, node->spans, node->span_count, from->kind != SPAN_LINE_ONE, &answer);
    read_figures(&answer, &node->line);
    node->line.kind = from->kind;
    node->line.depth = depth;
    node->line.count = from->span_count;
    node->line.name = arena_copy(maker->arena, from->name);
    node->line.last_name = arena_copy(maker->arena, from->last_name);
    node->line.longest = arena_copy(maker->arena, from->longest);
    node->line.longest_s = from->longest_s;
    node->line.below = from->below;
    maker->nodes[maker->node_count++] = node;
    return node;
}

static struct node *family_end(struct maker *maker, struct family *family, uint32_t depth) {
    struct node *first = NULL, **at = &first;
    for (uint32_t i = 0; i < family->count; i++) {
        *at = node_make(maker, &family->items[i], depth);
        at = &(*at)->next;
    }
    memory_give(family->items);
    return first;
}

// How many siblings may have lines, beside one for the others.
static uint32_t room(const struct maker *maker) {
    uint32_t left = maker->limits->lines - maker->node_count - 1;
    return left > maker->limits->children ? maker->limits->children : left;
}

// Children of one span may be few and alike and are still told one by one; those of many are not.
static void open_node(struct maker *maker, struct node *node) {
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
        roots[i] = family.items[i].span;
    struct span_answer answer;
    ask(maker, roots, family.count, true, &answer);
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
