// SPDX-License-Identifier: Apache-2.0
// Lets an event take effect. First the checks that depend on what came before, in the order that
// docs/spans.md gives, then the effect: a refused event has none.
#include "pipeline/model/span_event.h"
#include "processors/spans/forest.h"

#include <assert.h>
#include <stdio.h>

enum {
    REFUSED_LISTED_MAX = 65536, // of a tree
    POINTS_MAX = 1 << 20,       // of all trees; so the others
    WORKERS_MAX = 1 << 20,
    ITEMS_MAX = 1 << 22,
};

// A task that the event names.
struct told_task {
    uint32_t hash; // of its key
    uint32_t row;  // SPAN_NONE: its key is not alive
};

struct applying {
    struct span_forest *forest;
    struct span_tree_row *tree;
    uint32_t tree_row;
    const struct span_event *event;
    struct told_task *told;  // in the order of the event
    struct slice group_text; // of the group that was named last; data NULL: none yet
    uint32_t group;
};

static void list_refused(struct applying *apply, uint64_t line, int64_t entry,
                         enum span_refusal refusal) {
    assert(refusal != SPAN_ACCEPTED && refusal < SPAN_REFUSAL_COUNT);
    struct span_tree_row *tree = apply->tree;
    struct table *table = &apply->forest->refused;
    tree->refused++;
    if (tree->listed == REFUSED_LISTED_MAX)
        return;
    tree->listed++;
    uint32_t row = table_add(table);
    *span_refused_at(apply->forest, row) =
        (struct span_refused_row){TABLE_NO_ROW, refusal, line, entry};
    table_append(table, offsetof(struct span_refused_row, next), &tree->refusals, row);
}

// -- threads ------------------------------------------------------------------------------------

static void add_point(struct applying *apply) {
    struct span_forest *forest = apply->forest;
    struct span_tree_row *tree = apply->tree;
    if (table_live(&forest->points) >= POINTS_MAX && tree->points.last != TABLE_NO_ROW) {
        // What it is from now on is known, only not since when.
        span_point_at(forest, tree->points.last)->threads = tree->threads;
        tree->points_left_out++;
        return;
    }
    uint32_t row = table_add(&forest->points);
    *span_point_at(forest, row) = (struct span_point_row){TABLE_NO_ROW, tree->point_count++,
                                                          apply->event->time_s, tree->threads};
    table_append(&forest->points, offsetof(struct span_point_row, next), &tree->points, row);
}

static struct span_worker_row *find_worker(const struct applying *apply) {
    const struct span_forest *forest = apply->forest;
    return span_find_row(forest, &forest->workers, apply->tree_row, apply->event->worker);
}

static enum span_refusal join(struct applying *apply) {
    struct span_forest *forest = apply->forest;
    if (find_worker(apply) != NULL)
        return SPAN_DUPLICATE_WORKER;
    if (keyed_rows_count(&forest->workers) >= WORKERS_MAX)
        return SPAN_LIMIT;
    struct span_named_key key = {apply->tree_row,
                                 span_names_take(&forest->names, apply->event->worker)};
    struct span_worker_row *worker = keyed_rows_add(&forest->workers, &key);
    worker->threads = apply->event->threads;
    if (__builtin_add_overflow(apply->tree->threads, worker->threads, &apply->tree->threads))
        apply->tree->threads = INT64_MAX;
    add_point(apply);
    return SPAN_ACCEPTED;
}

static enum span_refusal leave(struct applying *apply) {
    struct span_worker_row *worker = find_worker(apply);
    if (worker == NULL)
        return SPAN_UNKNOWN_WORKER;
    apply->tree->threads -= worker->threads;
    if (apply->tree->threads < 0)
        apply->tree->threads = 0;
    span_names_give(&apply->forest->names, worker->key.name);
    keyed_rows_remove(&apply->forest->workers, worker);
    add_point(apply);
    return SPAN_ACCEPTED;
}

static enum span_refusal set_threads(struct applying *apply) {
    apply->tree->threads = apply->event->threads;
    add_point(apply);
    return SPAN_ACCEPTED;
}

static enum span_refusal start(struct applying *apply) {
    apply->tree->started = 1;
    return set_threads(apply);
}

// -- spans --------------------------------------------------------------------------------------

// `path` is handed over.
static uint32_t make_span(struct applying *apply, uint32_t parent, uint32_t path, struct slice id) {
    struct span_forest *forest = apply->forest;
    struct span_key key = {apply->tree_row, span_names_take(&forest->names, id)};
    struct span_row *span = keyed_rows_add(&forest->spans, &key);
    uint32_t row = keyed_rows_number(&forest->spans, span);
    span->path = path;
    span->parent = parent;
    span->children = span->groups = span->items = span->texts = ROW_LIST_EMPTY;
    span->folded_group = SPAN_NONE;
    span->point = apply->tree->points.last;
    span->enqueued_s = apply->event->time_s;
    struct table *spans = &forest->spans.table;
    table_link(spans, offsetof(struct span_row, made), &apply->tree->made, row);
    table_link(spans, offsetof(struct span_row, sibling),
               span_siblings(forest, apply->tree, parent), row);
    apply->tree->span_count++;
    span_names_point(&forest->names, key.id, row);
    const struct span_path_row *name = span_path_at(forest, path);
    if (name->depth == 1 && span_names_is(&forest->names, name->key.tag, SLICE("default")))
        apply->tree->newest_default = row;
    return row;
}

static uint32_t ensure_span(struct applying *apply, const struct span_annotation *annotation) {
    assert(annotation->count > 0);
    struct span_forest *forest = apply->forest;
    uint32_t span = span_find(forest, apply->tree, annotation->ids[annotation->count - 1]);
    if (span != SPAN_NONE)
        return span;
    uint32_t path = SPAN_NONE;
    for (uint32_t i = 0; i < annotation->count; i++) {
        uint32_t parent_path = path, parent = span;
        path = span_path_take(forest, parent_path, annotation->tags[i]);
        span_path_give(forest, parent_path);
        span = span_find(forest, apply->tree, annotation->ids[i]);
        if (span != SPAN_NONE)
            continue;
        span_path_at(forest, path)->keepers++;
        span = make_span(apply, parent, path, annotation->ids[i]);
    }
    span_path_give(forest, path);
    return span;
}

static uint32_t default_span(struct applying *apply) {
    struct span_forest *forest = apply->forest;
    struct span_tree_row *tree = apply->tree;
    span_settle(forest);
    if (tree->newest_default != SPAN_NONE && span_at(forest, tree->newest_default)->active > 0)
        return tree->newest_default;
    struct slice id = apply->event->default_id;
    char counted[32];
    while (id.data == NULL) {
        int size = snprintf(counted, sizeof counted, "default-%u", ++tree->default_number);
        id = (struct slice){counted, (size_t)size};
        if (span_find(forest, tree, id) != SPAN_NONE)
            id.data = NULL;
    }
    return make_span(apply, SPAN_NONE, span_path_take(forest, SPAN_NONE, SLICE("default")), id);
}

void span_settle(struct span_forest *forest) {
    int64_t count = forest->unsettled;
    if (count == 0)
        return;
    forest->unsettled = 0;
    for (uint32_t at = forest->unsettled_span; at != SPAN_NONE;) {
        struct span_row *span = span_at(forest, at);
        assert(count > 0 || span->active >= (uint64_t)-count);
        span->active += (uint64_t)count;
        at = span->parent;
    }
}

// Changes of one span that come one after another are told to those above it at once.
static void add_active(struct span_forest *forest, uint32_t span, int64_t count) {
    if (span == SPAN_NONE)
        return;
    if (span != forest->unsettled_span) {
        span_settle(forest);
        forest->unsettled_span = span;
    }
    forest->unsettled += count;
}

static void attach(struct span_forest *forest, uint32_t group_row, uint32_t span_row) {
    struct span_group_row *group = span_group_at(forest, group_row);
    assert(group->span == SPAN_NONE && group->in_use);
    group->span = span_row;
    table_append(&forest->groups, offsetof(struct span_group_row, next),
                 &span_at(forest, span_row)->groups, group_row);
    if (group->active > 0)
        add_active(forest, span_row, group->active);
}

// -- tasks --------------------------------------------------------------------------------------

// The group that is alive under this name, made when there is none. The event's own stands in each
// of its tasks.
static uint32_t group_named(struct applying *apply, struct slice text) {
    struct span_forest *forest = apply->forest;
    if (text.data == apply->group_text.data && text.size == apply->group_text.size)
        return apply->group;
    struct span_named_key name = {apply->tree_row, span_names_take(&forest->names, text)};
    bool is_new;
    struct span_live_group_row *live = keyed_rows_get(&forest->live_groups, &name, &is_new);
    if (is_new)
        live->group = span_group_new(forest, apply->tree_row, name.name);
    else
        span_names_give(&forest->names, name.name);
    apply->group_text = text;
    apply->group = live->group;
    return live->group;
}

static uint32_t make_task(struct applying *apply, uint32_t index) {
    const struct span_task *told = &apply->event->tasks[index];
    assert(told->key.data != NULL && told->group.data != NULL);
    struct span_forest *forest = apply->forest;
    uint32_t group_row = group_named(apply, told->group);
    struct span_group_row *group = span_group_at(forest, group_row);
    struct span_named_key key = {apply->tree_row, span_names_take_hashed(&forest->names, told->key,
                                                                         apply->told[index].hash)};
    struct span_task_row *task = keyed_rows_add(&forest->tasks, &key);
    uint32_t row = keyed_rows_number(&forest->tasks, task);
    span_names_point(&forest->names, key.name, row);
    task->group = group_row;
    task->state = TASK_RELEASED;
    task->nbytes = -1;
    task->before = SPAN_NONE;
    task->next = group->first_task;
    if (task->next != SPAN_NONE)
        span_task_at(forest, task->next)->before = row;
    group->first_task = row;
    group->alive++;
    group->states[TASK_RELEASED]++;
    apply->tree->task_count++;
    return row;
}

static void set_state(struct span_forest *forest, struct span_task_row *task, enum task_state to) {
    struct span_group_row *group = span_group_at(forest, task->group);
    int change = (int)task_state_is_active(to) - (int)task_state_is_active(task->state);
    assert(group->states[task->state] > 0 && to < TASK_STATE_COUNT);
    group->states[task->state]--;
    group->states[to]++;
    task->state = to;
    if (change != 0) {
        group->active += (uint32_t)change;
        add_active(forest, group->span, change);
    }
    if (to == TASK_FORGOTTEN)
        span_task_forget(forest, task);
}

static void set_bytes(struct span_forest *forest, struct span_task_row *task, int64_t nbytes) {
    assert(task->nbytes >= -1);
    if (nbytes < 0)
        return;
    struct span_group_row *group = span_group_at(forest, task->group);
    group->nbytes += nbytes - (task->nbytes > 0 ? task->nbytes : 0);
    task->nbytes = nbytes;
}

static uint32_t find_told(const struct applying *apply, uint32_t index) {
    const struct span_forest *forest = apply->forest;
    uint32_t name = span_names_find_hashed(&forest->names, apply->event->tasks[index].key,
                                           apply->told[index].hash);
    return span_task_named(forest, apply->tree_row, name);
}

// Which of the event's tasks are alive.
static void find_tasks(struct applying *apply) {
    uint32_t count = apply->event->task_count;
    apply->told = arena_take(&apply->forest->scratch, count * sizeof *apply->told);
    const uint32_t *hashes = span_ahead_hashes(apply->forest, apply->event);
    // All are on their way from memory before the first is looked at.
    for (uint32_t i = 0; i < count; i++) {
        if (hashes != NULL && i < AHEAD_KEYS) {
            apply->told[i].hash = hashes[i];
            continue;
        }
        apply->told[i].hash = span_names_hash(&apply->forest->names, apply->event->tasks[i].key);
        span_names_expect(&apply->forest->names, apply->told[i].hash);
    }
    for (uint32_t i = 0; i < count; i++)
        apply->told[i].row = find_told(apply, i);
}

// A key of the event that is alive in, or was named earlier in it with, another group.
static bool groups_differ(const struct applying *apply) {
    const struct span_forest *forest = apply->forest;
    const struct span_event *event = apply->event;
    for (uint32_t i = 0; i < event->task_count; i++) {
        const struct span_task *told = &event->tasks[i];
        uint32_t row = apply->told[i].row;
        if (told->first != i && !slice_equal(told->group, event->tasks[told->first].group))
            return true;
        if (row == SPAN_NONE)
            continue;
        uint32_t group = span_task_at(forest, row)->group;
        if (!span_names_is(&forest->names, span_group_at(forest, group)->name, told->group))
            return true;
    }
    return false;
}

// Makes room for tasks, whereby those of the event may lose their keys.
static bool fold_tasks(struct applying *apply) {
    bool fits = span_fold_tasks(apply->forest, apply->event->task_count);
    for (uint32_t i = 0; i < apply->event->task_count; i++)
        apply->told[i].row = find_told(apply, i);
    return fits;
}

static bool fold_spans(struct applying *apply, uint32_t wanted) {
    bool fits = span_fold_spans(apply->forest, wanted);
    for (uint32_t i = 0; i < apply->event->task_count; i++)
        apply->told[i].row = find_told(apply, i);
    return fits;
}

// Room for all that the event may make, whether it exists already or not.
static bool has_room(struct applying *apply) {
    struct span_forest *forest = apply->forest;
    const struct span_event *event = apply->event;
    uint64_t spans = 1;
    const struct span_annotation *before = NULL;
    for (uint32_t i = 0; i < event->task_count; i++) {
        const struct span_annotation *annotation = event->tasks[i].annotation;
        if (annotation != NULL && annotation != before)
            spans += annotation->count;
        before = annotation;
    }
    uint32_t most_spans = forest->limits.spans;
    if (spans > most_spans || event->task_count > forest->limits.tasks)
        return false;
    if (keyed_rows_count(&forest->spans) + spans > most_spans &&
        !fold_spans(apply, (uint32_t)spans))
        return false;
    if (!span_tasks_fit(forest, event->task_count) && !fold_tasks(apply))
        return false;
    return forest->names.bytes <= forest->limits.text_bytes ||
           (fold_spans(apply, most_spans / 16 + 1) &&
            forest->names.bytes <= forest->limits.text_bytes);
}

static void give_metadata(struct applying *apply, uint32_t span_row) {
    struct span_forest *forest = apply->forest;
    struct span_row *span = span_at(forest, span_row);
    if (apply->event->collections.data == NULL || span->marked == apply->tree->serial)
        return;
    span->marked = apply->tree->serial;
    span->has_metadata = 1;
    if (apply->event->collections.size == 0)
        return;
    uint32_t row = table_add(&forest->texts);
    span_text_at(forest, row)->name = span_names_take(&forest->names, apply->event->collections);
    table_append(&forest->texts, offsetof(struct span_text_row, next), &span->texts, row);
}

static enum span_refusal submit(struct applying *apply) {
    struct span_forest *forest = apply->forest;
    const struct span_event *event = apply->event;
    assert(event->task_count == 0 || apply->told != NULL);
    if (event->default_id.data != NULL &&
        span_find(forest, apply->tree, event->default_id) != SPAN_NONE)
        return SPAN_BAD_SPAN;
    if (!has_room(apply))
        return SPAN_LIMIT;
    bool *is_new = arena_zero(&forest->scratch, event->task_count + 1, sizeof *is_new);
    for (uint32_t i = 0; i < event->task_count; i++) {
        is_new[i] = apply->told[i].row == SPAN_NONE && event->tasks[i].first == i;
        if (is_new[i])
            apply->told[i].row = make_task(apply, i);
    }
    uint32_t code =
        event->code.data == NULL ? NAME_NONE : span_names_take(&forest->names, event->code);
    uint32_t opened = SPAN_NONE;
    for (uint32_t i = 0; i < event->task_count; i++) {
        const struct span_task *told = &event->tasks[i];
        uint32_t group = span_task_at(forest, apply->told[told->first].row)->group;
        uint32_t span = span_group_at(forest, group)->span;
        if (span == SPAN_NONE) {
            if (is_new[i] && told->annotation != NULL)
                span = ensure_span(apply, told->annotation);
            else
                span = opened = opened != SPAN_NONE ? opened : default_span(apply);
            attach(forest, group, span);
        }
        if (code != NAME_NONE)
            span_item_add(forest, span, SPAN_ITEM_CODE, code, NULL, false);
        give_metadata(apply, span);
    }
    span_names_give(&forest->names, code);
    return SPAN_ACCEPTED;
}

static enum span_refusal place_data(struct applying *apply) {
    struct span_forest *forest = apply->forest;
    if (!has_room(apply))
        return SPAN_LIMIT;
    for (uint32_t i = 0; i < apply->event->task_count; i++) {
        const struct span_task *told = &apply->event->tasks[i];
        struct told_task *found = &apply->told[told->first];
        if (found->row == SPAN_NONE)
            found->row = make_task(apply, told->first);
        struct span_task_row *task = span_task_at(forest, found->row);
        set_bytes(forest, task, told->nbytes);
        if (task->state != TASK_MEMORY)
            set_state(forest, task, TASK_MEMORY);
    }
    return SPAN_ACCEPTED;
}

// Rounded half to even; at most 2e17, since times are bounded.
static int64_t microseconds_of(const struct span_action *action) {
    static const double EXACT = 0x1p52; // from here on doubles are whole, and so a sum is rounded
    double us = (action->stop_s - action->start_s) * 1e6;
    if (!(us > 0))
        return 0;
    return (int64_t)(us < EXACT ? us + EXACT - EXACT : us);
}

// Tasks of a group mostly have the same actions in the same order: `likely` is the row of the next
// one.
static void act(struct span_forest *forest, uint32_t group_row, const struct span_action *action,
                uint32_t *likely) {
    struct span_group_row *group = span_group_at(forest, group_row);
    struct span_action_row *row = *likely == TABLE_NO_ROW ? NULL : span_action_at(forest, *likely);
    int64_t us = microseconds_of(action);
    if (row != NULL && span_names_is(&forest->names, row->head.name, action->name)) {
        assert(row->head.owner == group_row);
        row->us += us;
        *likely = row->head.next;
    } else {
        uint32_t name = span_names_take(&forest->names, action->name);
        span_group_act(forest, group_row, name, us);
        span_names_give(&forest->names, name);
    }
    if (!slice_equal(action->name, SLICE("compute")))
        return;
    if (action->stop_s > group->stop_s)
        group->stop_s = action->stop_s;
    if (group->start_s == 0 || group->start_s > action->start_s)
        group->start_s = action->start_s;
}

// Tasks of a group mostly change one after another, in the order in which they became known.
static struct span_task_row *find_changed(struct applying *apply) {
    struct span_forest *forest = apply->forest;
    struct span_task_row *task = NULL;
    if (forest->likely_task < forest->tasks.table.used)
        task = span_task_at(forest, forest->likely_task);
    if (task == NULL || task->head.live == 0 || task->key.tree != apply->tree_row ||
        !span_names_is(&forest->names, task->key.name, apply->event->key))
        task = span_find_task(forest, apply->tree, apply->event->key);
    if (task == NULL)
        return NULL;
    forest->likely_task = task->before;
    if (apply->event->to == TASK_FORGOTTEN && task->before != SPAN_NONE)
        span_names_leave(&forest->names, span_task_at(forest, task->before)->key.name);
    return task;
}

static enum span_refusal transition(struct applying *apply) {
    struct span_forest *forest = apply->forest;
    const struct span_event *event = apply->event;
    struct span_task_row *task = find_changed(apply);
    if (task == NULL)
        return SPAN_UNKNOWN_TASK;
    if (task->state == (uint32_t)event->to)
        return SPAN_ACCEPTED;
    if (table_live(&forest->actions.table) + event->action_count > ITEMS_MAX)
        return SPAN_LIMIT;
    uint32_t likely = span_group_at(forest, task->group)->actions.first;
    for (uint32_t i = 0; i < event->action_count; i++)
        act(forest, task->group, &event->actions[i], &likely);
    set_bytes(forest, task, event->nbytes);
    set_state(forest, task, event->to);
    return SPAN_ACCEPTED;
}

// Where entries are likely to be added: those of a line mostly are of one span, and in the order of
// the line before.
struct likely_item {
    struct slice span_id;
    uint32_t span; // SPAN_NONE: no span has this id
    uint32_t row;  // of an item of it; TABLE_NO_ROW: none
};

static void find_metric_span(struct applying *apply, struct slice id, struct likely_item *likely) {
    if (likely->span != SPAN_NONE && slice_equal(id, likely->span_id))
        return;
    likely->span_id = id;
    likely->span = span_find(apply->forest, apply->tree, id);
    likely->row = likely->span == SPAN_NONE ? TABLE_NO_ROW
                                            : span_at(apply->forest, likely->span)->items.first;
}

static void take_metric(struct span_forest *forest, const struct span_metric *metric,
                        struct likely_item *likely) {
    struct span_number value = {metric->whole, metric->integer, metric->number};
    struct span_item_row *item =
        likely->row == TABLE_NO_ROW ? NULL : span_item_at(forest, likely->row);
    if (item != NULL && item->head.kind == SPAN_ITEM_METRIC &&
        span_names_is(&forest->names, item->head.name, metric->key)) {
        assert(item->head.owner == likely->span);
        span_item_sum(item, &value);
    } else {
        uint32_t name = span_names_take(&forest->names, metric->key);
        item = span_item_add(forest, likely->span, SPAN_ITEM_METRIC, name, &value,
                             metric->is_known_time);
        span_names_give(&forest->names, name);
    }
    likely->row = item->head.next;
}

static void take_metrics(struct applying *apply, uint64_t line) {
    struct span_forest *forest = apply->forest;
    struct likely_item likely = {.span = SPAN_NONE, .row = TABLE_NO_ROW};
    for (uint32_t i = 0; i < apply->event->metric_count; i++) {
        const struct span_metric *metric = &apply->event->metrics[i];
        enum span_refusal refusal = metric->refused;
        if (refusal == SPAN_ACCEPTED) {
            find_metric_span(apply, metric->span_id, &likely);
            if (likely.span == SPAN_NONE)
                refusal = SPAN_UNKNOWN_SPAN;
            else if (table_live(&forest->items.table) >= ITEMS_MAX)
                refusal = SPAN_LIMIT;
        }
        if (refusal != SPAN_ACCEPTED) {
            list_refused(apply, line, metric->entry, refusal);
            continue;
        }
        take_metric(forest, metric, &likely);
    }
}

// NULL: the event has none, or it comes after the event was counted.
static enum span_refusal (*const EFFECTS[])(struct applying *) = {
    [SPAN_START] = start,           [SPAN_JOIN] = join,    [SPAN_LEAVE] = leave,
    [SPAN_THREADS] = set_threads,   [SPAN_TASKS] = submit, [SPAN_DATA] = place_data,
    [SPAN_TRANSITION] = transition, [SPAN_METRICS] = NULL, [SPAN_NO_KIND] = NULL,
};

static enum span_refusal refusal_of(struct applying *apply) {
    const struct span_event *event = apply->event;
    if (event->refused_early)
        return event->refused;
    if (!apply->tree->started && event->kind != SPAN_START)
        return SPAN_NOT_STARTED;
    if (apply->tree->started && event->kind == SPAN_START)
        return SPAN_ALREADY_STARTED;
    if (event->kind == SPAN_TASKS || event->kind == SPAN_DATA) {
        find_tasks(apply);
        if (groups_differ(apply))
            return SPAN_GROUP_MISMATCH;
    }
    return event->refused;
}

enum span_refusal span_apply(struct span_forest *forest, struct span_tree_row *tree,
                             const struct span_event *event, uint64_t line) {
    struct applying apply = {
        .forest = forest, .tree = tree, .tree_row = span_tree_number(forest, tree), .event = event};
    assert((size_t)event->kind < sizeof EFFECTS / sizeof EFFECTS[0]);
    arena_reset(&forest->scratch);
    tree->serial++;
    enum span_refusal refusal = refusal_of(&apply);
    if (refusal == SPAN_ACCEPTED && EFFECTS[event->kind] != NULL)
        refusal = EFFECTS[event->kind](&apply);
    if (refusal != SPAN_ACCEPTED) {
        list_refused(&apply, line, -1, refusal);
        return refusal;
    }
    tree->accepted++;
    tree->now_s = event->time_s;
    if (event->kind == SPAN_METRICS)
        take_metrics(&apply, line);
    return SPAN_ACCEPTED;
}
