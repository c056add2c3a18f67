// SPDX-License-Identifier: Apache-2.0
// Makes room: sums of finished spans without children go to their parents and
// those of idle groups to their span, the oldest first. One pass frees an eighth of the bound, so
// that each span is looked at some eight times in its life.
#include "pipeline/model/span_event.h"
#include "processors/spans/forest.h"

#include <assert.h>

enum { FREED_AT_ONCE = 8 }; // a part of the bound

// -- taking up ----------------------------------------------------------------------------------

static void add_group(struct span_forest *forest, uint32_t into_row, uint32_t from_row) {
    struct span_group_row *into = span_group_at(forest, into_row);
    const struct span_group_row *from = span_group_at(forest, from_row);
    assert(into_row != from_row && into->in_use && from->in_use);
    for (int i = 0; i < TASK_STATE_COUNT; i++)
        into->states[i] += from->states[i];
    into->nbytes += from->nbytes;
    if (from->stop_s > into->stop_s)
        into->stop_s = from->stop_s;
    if (from->start_s != 0 && (into->start_s == 0 || from->start_s < into->start_s))
        into->start_s = from->start_s;
    for (uint32_t at = from->actions.first; at != TABLE_NO_ROW;) {
        const struct span_action_row *action = span_action_at(forest, at);
        span_group_act(forest, into_row, action->head.name, action->us);
        at = action->head.next;
    }
}

static void forget_tasks(struct span_forest *forest, uint32_t group_row) {
    const struct span_group_row *group = span_group_at(forest, group_row);
    while (group->first_task != SPAN_NONE)
        span_task_forget(forest, span_task_at(forest, group->first_task));
    assert(group->alive == 0);
}

static uint32_t folded_group(struct span_forest *forest, uint32_t span_row) {
    struct span_row *span = span_at(forest, span_row);
    if (span->folded_group == SPAN_NONE)
        span->folded_group = span_group_new(forest, span->key.tree, NAME_NONE);
    return span->folded_group;
}

// The group's sums go to `span`, unless that is SPAN_NONE, and it is gone.
static void take_up_group(struct span_forest *forest, uint32_t group, uint32_t span) {
    forget_tasks(forest, group);
    if (span != SPAN_NONE)
        add_group(forest, folded_group(forest, span), group);
    span_group_free(forest, group);
}

static void take_up_groups(struct span_forest *forest, struct span_row *span, uint32_t into) {
    for (uint32_t at = span->groups.first; at != SPAN_NONE;) {
        uint32_t next = span_group_at(forest, at)->next;
        take_up_group(forest, at, into);
        at = next;
    }
    if (span->folded_group != SPAN_NONE)
        take_up_group(forest, span->folded_group, into);
}

static void take_up_items(struct span_forest *forest, struct span_row *span, uint32_t into) {
    for (uint32_t at = span->items.first; at != TABLE_NO_ROW;) {
        const struct span_item_row *item = span_item_at(forest, at);
        struct span_number value = {item->whole, item->integer, item->number};
        if (into != SPAN_NONE && item->head.kind == SPAN_ITEM_METRIC)
            span_item_add(forest, into, SPAN_ITEM_METRIC, item->head.name, &value,
                          item->is_known_time);
        span_names_give(&forest->names, item->head.name);
        at = item->head.next;
    }
    named_rows_free(&forest->items, &span->items);
    const struct span_text_row *text;
    for (uint32_t at = span->texts.first; at != TABLE_NO_ROW; at = text->next) {
        text = span_text_at(forest, at);
        span_names_give(&forest->names, text->name);
    }
    table_free_list(&forest->texts, offsetof(struct span_text_row, next), &span->texts.first);
}

// -- spans --------------------------------------------------------------------------------------

static void remove_span(struct span_forest *forest, struct span_tree_row *tree,
                        struct span_row *span, uint32_t into) {
    uint32_t row = keyed_rows_number(&forest->spans, span);
    struct table *spans = &forest->spans.table;
    assert(span->children.first == SPAN_NONE && tree->span_count > 0 && forest->unsettled == 0);
    take_up_groups(forest, span, into);
    take_up_items(forest, span, into);
    table_unlink(spans, offsetof(struct span_row, sibling),
                 span_siblings(forest, tree, span->parent), row);
    table_unlink(spans, offsetof(struct span_row, made), &tree->made, row);
    if (tree->newest_default == row)
        tree->newest_default = SPAN_NONE;
    tree->span_count--;
    span_names_give(&forest->names, span->key.id);
    span_path_give(forest, span->path);
    keyed_rows_remove(&forest->spans, span);
}

static uint32_t fold_in_tree(struct span_forest *forest, struct span_tree_row *tree,
                             uint32_t wanted) {
    uint32_t done = 0;
    for (uint32_t at = tree->made.first; at != SPAN_NONE && done < wanted;) {
        struct span_row *span = span_at(forest, at);
        at = span->made.next;
        if (span->active > 0 || span->children.first != SPAN_NONE)
            continue;
        if (span->parent != SPAN_NONE)
            span_at(forest, span->parent)->folded += 1 + span->folded;
        tree->folded++;
        done++;
        remove_span(forest, tree, span, span->parent);
    }
    return done;
}

uint32_t span_fold_tree(struct span_forest *forest, struct span_tree_row *tree, uint32_t wanted) {
    uint32_t done = 0;
    span_settle(forest);
    // Parents become leaves when their children went.
    for (uint32_t now = 1; now > 0 && done < wanted; done += now)
        now = fold_in_tree(forest, tree, wanted - done);
    assert(done <= wanted);
    return done;
}

void span_forget_tasks(struct span_forest *forest, uint32_t span) {
    for (uint32_t at = span_at(forest, span)->groups.first; at != SPAN_NONE;
         at = span_group_at(forest, at)->next)
        forget_tasks(forest, at);
}

// The tree that was not `seen` yet with the largest number at `offset` of its row; it is seen then.
static struct span_tree_row *largest(const struct span_forest *forest, bool *seen, size_t offset) {
    struct span_tree_row *most = NULL, *tree;
    uint32_t count, most_count = 0, most_row = 0;
    for (uint32_t at = 0; (tree = keyed_rows_next(&forest->trees, &at)) != NULL;) {
        memcpy(&count, (const char *)tree + offset, sizeof count);
        if (seen[at - 1] || (most != NULL && count <= most_count))
            continue;
        most = tree;
        most_count = count;
        most_row = at - 1;
    }
    if (most != NULL)
        seen[most_row] = true;
    return most;
}

bool span_fold_spans(struct span_forest *forest, uint32_t wanted) {
    uint32_t limit = forest->limits.spans, count = keyed_rows_count(&forest->spans);
    uint32_t goal = limit / FREED_AT_ONCE > wanted ? limit / FREED_AT_ONCE : wanted, done = 0;
    bool *seen = arena_zero(&forest->scratch, forest->trees.table.used + 1, sizeof *seen);
    struct span_tree_row *tree;
    while (done < goal &&
           (tree = largest(forest, seen, offsetof(struct span_tree_row, span_count))) != NULL)
        done += span_fold_tree(forest, tree, goal - done);
    assert(keyed_rows_count(&forest->spans) == count - done);
    return count - done + wanted <= limit;
}

// -- tasks and groups ---------------------------------------------------------------------------

static bool keys_fit(const struct span_forest *forest, uint32_t wanted) {
    return (uint64_t)keyed_rows_count(&forest->tasks) + wanted <= forest->limits.tasks;
}

bool span_tasks_fit(const struct span_forest *forest, uint32_t wanted) {
    uint64_t groups = (uint64_t)table_live(&forest->groups) + wanted;
    return keys_fit(forest, wanted) &&
           groups <= (uint64_t)forest->limits.tasks + forest->limits.spans;
}

// Groups of a span that have no tasks any more, or (`idle`) none under way; how many tasks they
// lose is counted.
static void fold_groups(struct span_forest *forest, struct span_tree_row *tree, uint32_t span_row,
                        bool idle) {
    struct span_row *span = span_at(forest, span_row);
    uint32_t before = SPAN_NONE;
    for (uint32_t at = span->groups.first; at != SPAN_NONE;) {
        const struct span_group_row *group = span_group_at(forest, at);
        uint32_t next = group->next;
        if (idle ? group->active > 0 : group->alive > 0) {
            before = at;
        } else {
            tree->dropped_tasks += group->alive;
            take_up_group(forest, at, span_row);
            *(before == SPAN_NONE ? &span->groups.first : &span_group_at(forest, before)->next) =
                next;
            if (next == SPAN_NONE)
                span->groups.last = before;
        }
        at = next;
    }
}

static void fold_groups_of(struct span_forest *forest, struct span_tree_row *tree, uint32_t goal,
                           bool idle) {
    for (uint32_t at = tree->made.first; at != SPAN_NONE && !span_tasks_fit(forest, goal);
         at = span_at(forest, at)->made.next)
        fold_groups(forest, tree, at, idle);
}

// Data that no span ever asked for.
static void drop_loose_groups(struct span_forest *forest, uint32_t wanted) {
    for (uint32_t i = 0; i < forest->groups.used && !span_tasks_fit(forest, wanted); i++) {
        const struct span_group_row *group = span_group_at(forest, i);
        if (group->in_use == 0 || group->span != SPAN_NONE || group->active > 0 ||
            group->name == NAME_NONE)
            continue;
        span_tree_at(forest, group->tree)->dropped_tasks += group->alive;
        take_up_group(forest, i, SPAN_NONE);
    }
}

bool span_fold_tasks(struct span_forest *forest, uint32_t wanted) {
    uint32_t part = forest->limits.tasks / FREED_AT_ONCE, goal = part > wanted ? part : wanted;
    bool *seen = arena_zero(&forest->scratch, forest->trees.table.used + 1, sizeof *seen);
    struct span_tree_row *tree;
    while (!span_tasks_fit(forest, goal) &&
           (tree = largest(forest, seen, offsetof(struct span_tree_row, task_count))) != NULL) {
        if (keys_fit(forest, goal))
            fold_groups_of(forest, tree, goal, false);
        fold_groups_of(forest, tree, goal, true);
    }
    drop_loose_groups(forest, goal);
    return span_tasks_fit(forest, wanted);
}

// -- trees --------------------------------------------------------------------------------------

void span_forest_drop_tree(struct span_forest *forest, struct span_tree_row *tree) {
    uint32_t row = keyed_rows_number(&forest->trees, tree);
    span_settle(forest);
    while (tree->made.last != SPAN_NONE) // children before their parents
        remove_span(forest, tree, span_at(forest, tree->made.last), SPAN_NONE);
    for (uint32_t i = 0; i < forest->groups.used; i++) {
        const struct span_group_row *group = span_group_at(forest, i);
        if (group->in_use != 0 && group->tree == row)
            take_up_group(forest, i, SPAN_NONE);
    }
    assert(tree->span_count == 0 && tree->task_count == 0);
    struct span_worker_row *worker;
    for (uint32_t at = 0; (worker = keyed_rows_next(&forest->workers, &at)) != NULL;) {
        if (worker->key.tree != row)
            continue;
        span_names_give(&forest->names, worker->key.name);
        keyed_rows_remove(&forest->workers, worker);
    }
    table_free_list(&forest->points, offsetof(struct span_point_row, next), &tree->points.first);
    table_free_list(&forest->refused, offsetof(struct span_refused_row, next),
                    &tree->refusals.first);
    if (forest->recent == tree)
        forest->recent = NULL;
    keyed_rows_remove(&forest->trees, tree);
}
