// SPDX-License-Identifier: Apache-2.0
// What is kept of spans: the rows, how they are found, added and taken away. All O(1) but for
// dropping a tree.
#include "processors/spans/forest.h"

#include <assert.h>

enum { SCRATCH_BLOCK = 64 * 1024 };

void span_forest_init(struct span_forest *forest, const struct span_limits *limits) {
    *forest = (struct span_forest){.limits = *limits};
    span_names_init(&forest->names);
    keyed_rows_init(&forest->trees, "spans.trees", sizeof(struct span_tree_row),
                    sizeof(struct span_tree_key), 16);
    keyed_rows_init(&forest->spans, "spans.spans", sizeof(struct span_row), sizeof(struct span_key),
                    256);
    keyed_rows_init(&forest->paths, "spans.paths", sizeof(struct span_path_row),
                    sizeof(struct span_path_key), 256);
    keyed_rows_init(&forest->tasks, "spans.tasks", sizeof(struct span_task_row),
                    sizeof(struct span_named_key), 1024);
    keyed_rows_init(&forest->live_groups, "spans.live_groups", sizeof(struct span_live_group_row),
                    sizeof(struct span_named_key), 256);
    keyed_rows_init(&forest->workers, "spans.workers", sizeof(struct span_worker_row),
                    sizeof(struct span_named_key), 64);
    keyed_rows_init(&forest->items, "spans.items", sizeof(struct span_item_row),
                    sizeof(struct span_item_key), 256);
    table_init(&forest->groups, "spans.groups", sizeof(struct span_group_row), 256);
    keyed_rows_init(&forest->actions, "spans.actions", sizeof(struct span_action_row),
                    sizeof(struct span_action_key), 256);
    table_init(&forest->texts, "spans.texts", sizeof(struct span_text_row), 64);
    table_init(&forest->points, "spans.points", sizeof(struct span_point_row), 64);
    table_init(&forest->refused, "spans.refused", sizeof(struct span_refused_row), 64);
    arena_init(&forest->scratch, SCRATCH_BLOCK);
}

void span_forest_release(struct span_forest *forest) {
    span_names_release(&forest->names);
    keyed_rows_release(&forest->trees);
    keyed_rows_release(&forest->spans);
    keyed_rows_release(&forest->paths);
    keyed_rows_release(&forest->tasks);
    keyed_rows_release(&forest->live_groups);
    keyed_rows_release(&forest->workers);
    keyed_rows_release(&forest->items);
    table_release(&forest->groups);
    keyed_rows_release(&forest->actions);
    table_release(&forest->texts);
    table_release(&forest->points);
    table_release(&forest->refused);
    arena_release(&forest->scratch);
}

void span_forest_state(struct span_forest *forest, struct state_list *list) {
    struct state_entry *trees = state_list_table(list, &forest->trees.table);
    state_entry_string(trees, offsetof(struct span_tree_row, key.source));
    state_entry_string(trees, offsetof(struct span_tree_row, key.job));
    state_entry_string(trees, offsetof(struct span_tree_row, job));
    state_list_table(list, &forest->names.rows);
    state_list_table(list, &forest->names.pieces);
    state_list_table(list, &forest->spans.table);
    state_list_table(list, &forest->paths.table);
    state_list_table(list, &forest->tasks.table);
    state_list_table(list, &forest->live_groups.table);
    state_list_table(list, &forest->workers.table);
    state_list_table(list, &forest->items.table);
    state_list_table(list, &forest->groups);
    state_list_table(list, &forest->actions.table);
    state_list_table(list, &forest->texts);
    state_list_table(list, &forest->points);
    state_list_table(list, &forest->refused);
}

void span_forest_restored(struct span_forest *forest) {
    span_names_restored(&forest->names);
    keyed_rows_restored(&forest->trees);
    keyed_rows_restored(&forest->spans);
    keyed_rows_restored(&forest->paths);
    keyed_rows_restored(&forest->tasks);
    keyed_rows_restored(&forest->live_groups);
    keyed_rows_restored(&forest->workers);
    keyed_rows_restored(&forest->items);
    keyed_rows_restored(&forest->actions);
}

// -- trees --------------------------------------------------------------------------------------

static struct span_tree_row *least_recent(const struct span_forest *forest) {
    struct span_tree_row *oldest = NULL, *tree;
    for (uint32_t at = 0; (tree = keyed_rows_next(&forest->trees, &at)) != NULL;)
        if (oldest == NULL || tree->last_ns < oldest->last_ns)
            oldest = tree;
    return oldest;
}

struct span_tree_row *span_forest_tree(struct span_forest *forest, struct span_tree_key key,
                                       uint64_t time_ns) {
    struct span_tree_row *tree = keyed_rows_find(&forest->trees, &key);
    if (tree == NULL) {
        if (keyed_rows_count(&forest->trees) >= forest->limits.trees)
            span_forest_drop_tree(forest, least_recent(forest));
        tree = keyed_rows_add(&forest->trees, &key);
        tree->first_point = tree->last_point = TABLE_NO_ROW;
        tree->first_refused = tree->last_refused = TABLE_NO_ROW;
        tree->first_made = tree->last_made = SPAN_NONE;
        tree->first_root = tree->last_root = SPAN_NONE;
        tree->newest_default = SPAN_NONE;
    }
    if (time_ns > tree->last_ns)
        tree->last_ns = time_ns;
    return tree;
}

// -- names of spans -----------------------------------------------------------------------------

uint32_t span_path_take(struct span_forest *forest, uint32_t parent, struct slice tag) {
    struct span_path_key key = {parent, span_names_take(&forest->names, tag)};
    struct span_path_row *path = keyed_rows_find(&forest->paths, &key);
    if (path != NULL) {
        span_names_give(&forest->names, key.tag);
    } else {
        path = keyed_rows_add(&forest->paths, &key);
        path->depth = parent == SPAN_NONE ? 1 : span_path_at(forest, parent)->depth + 1;
        if (parent != SPAN_NONE)
            span_path_at(forest, parent)->keepers++;
    }
    path->keepers++;
    return keyed_rows_number(&forest->paths, path);
}

void span_path_give(struct span_forest *forest, uint32_t row) {
    while (row != SPAN_NONE) {
        struct span_path_row *path = span_path_at(forest, row);
        assert(path->keepers > 0);
        if (--path->keepers > 0)
            return;
        row = path->key.parent;
        span_names_give(&forest->names, path->key.tag);
        keyed_rows_remove(&forest->paths, path);
    }
}

// -- finding ------------------------------------------------------------------------------------

uint32_t span_find(const struct span_forest *forest, const struct span_tree_row *tree,
                   struct slice id) {
    struct span_key key = {keyed_rows_number(&forest->trees, tree),
                           span_names_find(&forest->names, id)};
    if (key.id == NAME_NONE)
        return SPAN_NONE;
    const struct span_row *span = keyed_rows_find(&forest->spans, &key);
    return span == NULL ? SPAN_NONE : keyed_rows_number(&forest->spans, span);
}

struct span_task_row *span_find_task(const struct span_forest *forest,
                                     const struct span_tree_row *tree, struct slice text) {
    struct span_named_key key = {keyed_rows_number(&forest->trees, tree),
                                 span_names_find(&forest->names, text)};
    return key.name == NAME_NONE ? NULL : keyed_rows_find(&forest->tasks, &key);
}

// -- groups and tasks ---------------------------------------------------------------------------

uint32_t span_group_new(struct span_forest *forest, uint32_t tree, uint32_t name) {
    uint32_t row = table_add(&forest->groups);
    struct span_group_row *group = span_group_at(forest, row);
    group->in_use = 1;
    group->tree = tree;
    group->made = span_tree_at(forest, tree)->groups_made++;
    group->name = name;
    group->next = group->span = group->first_task = SPAN_NONE;
    group->first_action = group->last_action = TABLE_NO_ROW;
    return row;
}

void span_group_free(struct span_forest *forest, uint32_t row) {
    struct span_group_row *group = span_group_at(forest, row);
    assert(group->alive == 0);
    for (uint32_t at = group->first_action; at != TABLE_NO_ROW;) {
        struct span_action_row *action = span_action_at(forest, at);
        at = action->next;
        span_names_give(&forest->names, action->key.name);
        keyed_rows_remove(&forest->actions, action);
    }
    span_names_give(&forest->names, group->name);
    group->in_use = 0;
    table_free(&forest->groups, row);
}

void span_group_act(struct span_forest *forest, uint32_t group_row, uint32_t name, __int128 us) {
    struct span_action_key key = {group_row, name};
    struct span_action_row *action = keyed_rows_find(&forest->actions, &key);
    if (action == NULL) {
        struct span_group_row *group = span_group_at(forest, group_row);
        span_names_keep(&forest->names, name);
        action = keyed_rows_add(&forest->actions, &key);
        action->next = TABLE_NO_ROW;
        uint32_t row = keyed_rows_number(&forest->actions, action);
        if (group->last_action == TABLE_NO_ROW)
            group->first_action = row;
        else
            span_action_at(forest, group->last_action)->next = row;
        group->last_action = row;
    }
    action->us += us;
}

static void unlink_task(struct span_forest *forest, const struct span_task_row *task) {
    if (task->before == SPAN_NONE)
        span_group_at(forest, task->group)->first_task = task->next;
    else
        span_task_at(forest, task->before)->next = task->next;
    if (task->next != SPAN_NONE)
        span_task_at(forest, task->next)->before = task->before;
}

void span_task_forget(struct span_forest *forest, struct span_task_row *task) {
    struct span_group_row *group = span_group_at(forest, task->group);
    unlink_task(forest, task);
    span_tree_at(forest, task->key.tree)->task_count--;
    span_names_give(&forest->names, task->key.name);
    keyed_rows_remove(&forest->tasks, task);
    if (--group->alive > 0)
        return;
    struct span_named_key key = {group->tree, group->name};
    struct span_live_group_row *live = keyed_rows_find(&forest->live_groups, &key);
    keyed_rows_remove(&forest->live_groups, live);
}

// -- metrics and code ---------------------------------------------------------------------------

void span_number_add(struct span_number *sum, const struct span_number *value) {
    if (sum->whole && value->whole) {
        sum->integer += value->integer;
        return;
    }
    sum->number = span_number_value(sum) + span_number_value(value);
    sum->whole = false;
}

void span_item_add(struct span_forest *forest, uint32_t span_number, enum span_item_kind kind,
                   uint32_t name, const struct span_number *value, bool is_known_time) {
    struct span_item_key key = {span_number, kind, name};
    struct span_item_row *item = keyed_rows_find(&forest->items, &key);
    if (item == NULL) {
        struct span_row *span = span_at(forest, span_number);
        item = keyed_rows_add(&forest->items, &key);
        span_names_keep(&forest->names, name);
        item->next = TABLE_NO_ROW;
        item->whole = 1;
        item->is_known_time = is_known_time;
        uint32_t row = keyed_rows_number(&forest->items, item);
        if (span->last_item == TABLE_NO_ROW)
            span->first_item = row;
        else
            span_item_at(forest, span->last_item)->next = row;
        span->last_item = row;
    }
    if (value == NULL)
        return;
    struct span_number sum = {item->whole, item->integer, item->number};
    span_number_add(&sum, value);
    item->whole = sum.whole;
    item->integer = sum.integer;
    item->number = sum.number;
}
