// SPDX-License-Identifier: Apache-2.0
// Keeps the rows of trees of spans: how they are found, added and taken away. All O(1) but for
// dropping a tree.
#include "processors/spans/forest.h"

#include <assert.h>

enum { SCRATCH_BLOCK = 64 * 1024 };

static const struct row_type TREES =
    KEYED_ROW_TYPE(struct span_tree_row, key, 16, offsetof(struct span_tree_row, key.source),
                   offsetof(struct span_tree_row, key.job), offsetof(struct span_tree_row, job));
static const struct row_type SPANS = KEYED_ROW_TYPE(struct span_row, key, 256);
static const struct row_type PATHS = KEYED_ROW_TYPE(struct span_path_row, key, 256);
static const struct row_type TASKS = KEYED_ROW_TYPE(struct span_task_row, key, 1024);
static const struct row_type LIVE_GROUPS = KEYED_ROW_TYPE(struct span_live_group_row, key, 256);
static const struct row_type WORKERS = KEYED_ROW_TYPE(struct span_worker_row, key, 64);
static const struct row_type ITEMS = ROW_TYPE(struct span_item_row, 256);
static const struct row_type ACTIONS = ROW_TYPE(struct span_action_row, 256);
static const struct row_type GROUPS = ROW_TYPE(struct span_group_row, 256);
static const struct row_type TEXTS = ROW_TYPE(struct span_text_row, 64);
static const struct row_type POINTS = ROW_TYPE(struct span_point_row, 64);
static const struct row_type REFUSED = ROW_TYPE(struct span_refused_row, 64);

static const struct state_row STATE[] = {
    STATE_ROWS(struct span_forest, trees, "spans.trees", TREES),
    STATE_PART(struct span_forest, names, "spans.names", span_names_part),
    STATE_ROWS(struct span_forest, spans, "spans.spans", SPANS),
    STATE_ROWS(struct span_forest, paths, "spans.paths", PATHS),
    STATE_ROWS(struct span_forest, tasks, "spans.tasks", TASKS),
    STATE_ROWS(struct span_forest, live_groups, "spans.live_groups", LIVE_GROUPS),
    STATE_ROWS(struct span_forest, workers, "spans.workers", WORKERS),
    STATE_ROWS(struct span_forest, items.table, "spans.items", ITEMS),
    STATE_ROWS(struct span_forest, groups, "spans.groups", GROUPS),
    STATE_ROWS(struct span_forest, actions.table, "spans.actions", ACTIONS),
    STATE_ROWS(struct span_forest, texts, "spans.texts", TEXTS),
    STATE_ROWS(struct span_forest, points, "spans.points", POINTS),
    STATE_ROWS(struct span_forest, refused, "spans.refused", REFUSED),
};

static void forest_init(void *part, const char *name) {
    (void)name;
    arena_init(&((struct span_forest *)part)->scratch, SCRATCH_BLOCK);
}

static void forest_release(void *part) {
    struct span_forest *forest = part;
    named_rows_release(&forest->items);
    named_rows_release(&forest->actions);
    arena_release(&forest->scratch);
}

static void forest_restored(void *part) {
    struct span_forest *forest = part;
    named_rows_restored(&forest->items);
    named_rows_restored(&forest->actions);
    forest->recent = NULL;
    assert(forest->unsettled == 0);
}

const struct state_part span_forest_part = {.rows = STATE,
                                            .row_count = STATE_ROW_COUNT(STATE),
                                            .init = forest_init,
                                            .release = forest_release,
                                            .restored = forest_restored};

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
    assert(forest->limits.trees > 0);
    struct span_tree_row *tree = forest->recent;
    if (tree == NULL || tree->key.source != key.source || tree->key.job != key.job)
        tree = keyed_rows_find(&forest->trees, &key);
    if (tree == NULL) {
        if (keyed_rows_count(&forest->trees) >= forest->limits.trees)
            span_forest_drop_tree(forest, least_recent(forest));
        tree = keyed_rows_add(&forest->trees, &key);
        tree->points = tree->refusals = tree->made = tree->roots = ROW_LIST_EMPTY;
        tree->newest_default = SPAN_NONE;
    }
    if (time_ns > tree->last_ns)
        tree->last_ns = time_ns;
    if (forest->recent != tree) {
        forest->recent = tree;
        forest->recent_number = keyed_rows_number(&forest->trees, tree);
    }
    return tree;
}

uint32_t span_tree_number(const struct span_forest *forest, const struct span_tree_row *tree) {
    assert(tree != NULL && tree->head.live != 0);
    return tree == forest->recent ? forest->recent_number : keyed_rows_number(&forest->trees, tree);
}

// -- names of spans -----------------------------------------------------------------------------

uint32_t span_path_take(struct span_forest *forest, uint32_t parent, struct slice tag) {
    struct span_path_key key = {parent, span_names_take(&forest->names, tag)};
    bool is_new;
    struct span_path_row *path = keyed_rows_get(&forest->paths, &key, &is_new);
    if (!is_new) {
        span_names_give(&forest->names, key.tag);
    } else {
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

void *span_find_row(const struct span_forest *forest, const struct keyed_rows *rows, uint32_t scope,
                    struct slice text) {
    const uint32_t key[] = {scope, span_names_find(&forest->names, text)};
    assert(rows->key_size == sizeof key);
    return key[1] == NAME_NONE ? NULL : keyed_rows_find(rows, key);
}

uint32_t span_find(const struct span_forest *forest, const struct span_tree_row *tree,
                   struct slice id) {
    struct span_key key = {span_tree_number(forest, tree), span_names_find(&forest->names, id)};
    if (key.id == NAME_NONE)
        return SPAN_NONE;
    uint32_t likely = span_names_hint(&forest->names, key.id);
    if (likely < forest->spans.table.used) {
        const struct span_row *span = span_at(forest, likely);
        if (span->head.live != 0 && span->key.tree == key.tree && span->key.id == key.id)
            return likely;
    }
    return keyed_rows_find_number(&forest->spans, &key);
}

uint32_t span_task_named(const struct span_forest *forest, uint32_t tree, uint32_t name) {
    if (name == NAME_NONE)
        return SPAN_NONE;
    struct span_named_key key = {tree, name};
    uint32_t likely = span_names_hint(&forest->names, name);
    if (likely < forest->tasks.table.used) {
        const struct span_task_row *task = span_task_at(forest, likely);
        if (task->head.live != 0 && task->key.tree == tree && task->key.name == name)
            return likely;
    }
    return keyed_rows_find_number(&forest->tasks, &key);
}

struct span_task_row *span_find_task(const struct span_forest *forest,
                                     const struct span_tree_row *tree, struct slice text) {
    uint32_t row = span_task_named(forest, span_tree_number(forest, tree),
                                   span_names_find(&forest->names, text));
    return row == SPAN_NONE ? NULL : span_task_at(forest, row);
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
    group->actions = ROW_LIST_EMPTY;
    return row;
}

void span_group_free(struct span_forest *forest, uint32_t row) {
    struct span_group_row *group = span_group_at(forest, row);
    assert(group->alive == 0);
    const struct span_action_row *action;
    for (uint32_t at = group->actions.first; at != TABLE_NO_ROW; at = action->head.next) {
        action = span_action_at(forest, at);
        span_names_give(&forest->names, action->head.name);
    }
    named_rows_free(&forest->actions, &group->actions);
    span_names_give(&forest->names, group->name);
    group->in_use = 0;
    table_free(&forest->groups, row);
}

void span_group_act(struct span_forest *forest, uint32_t group_row, uint32_t name, __int128 us) {
    struct span_group_row *group = span_group_at(forest, group_row);
    assert(us >= 0 && group->in_use);
    bool is_new;
    uint32_t row = named_rows_get(&forest->actions, &group->actions,
                                  (struct named_row){.owner = group_row, .name = name}, &is_new);
    if (is_new)
        span_names_keep(&forest->names, name);
    span_action_at(forest, row)->us += us;
}

static void unlink_task(struct span_forest *forest, const struct span_task_row *task) {
    assert(span_group_at(forest, task->group)->alive > 0);
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
    keyed_rows_remove(&forest->live_groups, keyed_rows_find(&forest->live_groups, &key));
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

struct span_item_row *span_item_add(struct span_forest *forest, uint32_t span,
                                    enum span_item_kind kind, uint32_t name,
                                    const struct span_number *value, bool is_known_time) {
    assert((kind == SPAN_ITEM_METRIC) == (value != NULL) && name != NAME_NONE);
    struct named_row key = {.owner = span, .kind = (uint8_t)kind, .name = name};
    bool is_new;
    struct span_item_row *item = span_item_at(
        forest, named_rows_get(&forest->items, &span_at(forest, span)->items, key, &is_new));
    if (is_new) {
        span_names_keep(&forest->names, name);
        item->whole = 1;
        item->is_known_time = is_known_time;
    }
    if (value != NULL)
        span_item_sum(item, value);
    return item;
}

void span_item_sum(struct span_item_row *item, const struct span_number *value) {
    assert(item->head.kind == SPAN_ITEM_METRIC);
    struct span_number sum = {item->whole, item->integer, item->number};
    span_number_add(&sum, value);
    item->whole = sum.whole;
    item->integer = sum.integer;
    item->number = sum.number;
}
