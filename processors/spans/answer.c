// SPDX-License-Identifier: Apache-2.0
// Sums over a tree of spans, and the answers made of them. Order counts where doubles are added:
// spans in pre-order, of each span its own groups as they were attached.
#include "processors/spans/answer.h"

#include "base/buffer.h"
#include "base/sort.h"
#include "pipeline/model/span_event.h"
#include "processors/spans/intervals.h"

#include <assert.h>

// -- walking ------------------------------------------------------------------------------------

// The span after `at` in pre-order of the tree of `root`; SPAN_NONE at its end.
static uint32_t next_in_tree(const struct span_forest *forest, uint32_t root, uint32_t at) {
    const struct span_row *span = span_at(forest, at);
    if (span->children.first != SPAN_NONE)
        return span->children.first;
    while (at != root && span->sibling.next == SPAN_NONE) {
        at = span->parent;
        span = span_at(forest, at);
    }
    return at == root ? SPAN_NONE : span->sibling.next;
}

// The groups of a span, that of its folded sums last.
static uint32_t first_group(const struct span_row *span) {
    return span->groups.first != SPAN_NONE ? span->groups.first : span->folded_group;
}
static uint32_t next_group(const struct span_forest *forest, const struct span_row *span,
                           uint32_t group) {
    if (group == span->folded_group)
        return SPAN_NONE;
    uint32_t next = span_group_at(forest, group)->next;
    return next != SPAN_NONE ? next : span->folded_group;
}

// -- groups -------------------------------------------------------------------------------------

// An item for each of several names, in order of first appearance.
struct by_name {
    size_t item_size;
    char *items;
    uint32_t *names;     // of the items
    uint32_t *slots;     // open addressing by name: number of the item, plus 1
    uint32_t slot_count; // a power of two, twice the room for items
    uint32_t count;
    uint32_t likely; // item that is asked for next: names mostly come in the same order
};

enum { BY_NAME_FIRST = 16 };

static uint32_t slot_of(const struct by_name *list, uint32_t name) {
    uint32_t mask = list->slot_count - 1;
    uint32_t slot = (uint32_t)(name * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (list->slots[slot] != 0 && list->names[list->slots[slot] - 1] != name)
        slot = (slot + 1) & mask;
    return slot;
}

static void enlarge(struct by_name *list, struct arena *arena) {
    assert(list->item_size > 0 && list->count * 2 == list->slot_count);
    uint32_t room = list->count == 0 ? BY_NAME_FIRST : list->count * 2;
    list->items = arena_enlarge(arena, list->items, list->count, room, list->item_size);
    list->names = arena_enlarge(arena, list->names, list->count, room, sizeof *list->names);
    list->slot_count = room * 2;
    list->slots = arena_zero(arena, list->slot_count, sizeof *list->slots);
    for (uint32_t i = 0; i < list->count; i++)
        list->slots[slot_of(list, list->names[i])] = i + 1;
}

static void *item_at(struct by_name *list, uint32_t index) {
    assert(index < list->count);
    list->likely = index + 1 < list->count ? index + 1 : 0;
    return list->items + index * list->item_size;
}

// The item of this name, which is not set yet when it is new.
static void *find_item(struct by_name *list, uint32_t name, struct arena *arena, bool *is_new) {
    if (list->count * 2 == list->slot_count)
        enlarge(list, arena);
    uint32_t *slot = &list->slots[slot_of(list, name)];
    *is_new = *slot == 0;
    if (*is_new) {
        list->names[list->count] = name;
        *slot = ++list->count;
    }
    return item_at(list, *slot - 1);
}

static inline void *item_of(struct by_name *list, uint32_t name, struct arena *arena,
                            bool *is_new) {
    if (list->count == 0 || list->names[list->likely] != name)
        return find_item(list, name, arena, is_new);
    *is_new = false;
    return item_at(list, list->likely);
}

// Converting 128 bits takes a call, which hardly any sum needs.
static inline double seconds_of(span_wide us) {
    return ((int64_t)us == us ? (double)(int64_t)us : (double)us) / 1e6;
}

// Whole microseconds, divided once a group. `sums`: struct span_duration.
static double add_durations(const struct span_forest *forest, const struct span_group_row *group,
                            struct by_name *sums, struct arena *arena) {
    double total = 0;
    const struct span_action_row *action;
    for (uint32_t at = group->actions.first; at != TABLE_NO_ROW; at = action->head.next) {
        action = span_action_at(forest, at);
        double seconds = seconds_of(action->us);
        bool is_new;
        struct span_duration *sum = item_of(sums, action->head.name, arena, &is_new);
        if (is_new)
            *sum = (struct span_duration){span_names_text(&forest->names, action->head.name, arena),
                                          0};
        sum->seconds += seconds;
        total += seconds;
    }
    return total;
}

static void answer_group(const struct span_forest *forest, const struct span_group_row *group,
                         struct arena *arena, struct span_group_answer *answer) {
    struct by_name sums = {.item_size = sizeof(struct span_duration)};
    *answer = (struct span_group_answer){
        .name = span_names_text(&forest->names, group->name, arena),
        .start_s = group->start_s,
        .stop_s = group->stop_s,
        .done = group->active == 0,
        .nbytes = group->nbytes,
    };
    memcpy(answer->states, group->states, sizeof answer->states);
    answer->duration_s = add_durations(forest, group, &sums, arena);
    answer->durations = (const struct span_duration *)(void *)sums.items;
    answer->duration_count = sums.count;
}

static int compare_made(const void *a, const void *b) {
    const struct span_group_row *left = *(const struct span_group_row *const *)a;
    const struct span_group_row *right = *(const struct span_group_row *const *)b;
    return COMPARE(left->made, right->made);
}

// They hang on the span as they were attached, which data can be long after it was placed.
static void answer_groups(const struct span_forest *forest, const struct span_row *span,
                          struct arena *arena, struct span_answer *answer) {
    uint32_t count = 0;
    for (uint32_t at = span->groups.first; at != SPAN_NONE; at = span_group_at(forest, at)->next)
        count++;
    const struct span_group_row **rows = arena_take(arena, count * sizeof *rows + 1);
    bool sorted = true;
    count = 0;
    for (uint32_t at = span->groups.first; at != SPAN_NONE; at = rows[count - 1]->next) {
        rows[count++] = span_group_at(forest, at);
        sorted = sorted && (count == 1 || rows[count - 2]->made < rows[count - 1]->made);
    }
    if (!sorted)
        sort_stable(rows, count, sizeof(struct span_group_row *), arena, compare_made);
    struct span_group_answer *groups = arena_take(arena, count * sizeof *groups + 1);
    answer->groups = groups;
    answer->group_count = count;
    for (uint32_t i = 0; i < count; i++)
        answer_group(forest, rows[i], arena, &groups[i]);
}

// -- sums over a tree ---------------------------------------------------------------------------

static double larger(double a, double b) {
    return a > b ? a : b;
}

struct metric_sum {
    struct span_number value;
    bool is_known_time;
};

// What is added up in one walk over a tree, or over several one after another.
struct sums {
    const struct span_forest *forest;
    struct arena *arena;
    struct span_answer *answer; // its counts of groups are added to
    double start_s, stop_s;     // the smallest that is not 0, the largest
    struct by_name durations;   // struct span_duration
    struct by_name metrics;     // struct metric_sum
    struct by_name stacks;      // struct slice
};

static void add_group(struct sums *sums, const struct span_group_row *group) {
    struct span_answer *answer = sums->answer;
    for (int i = 0; i < TASK_STATE_COUNT; i++)
        answer->states[i] += group->states[i];
    answer->nbytes_total += group->nbytes;
    answer->duration_s += add_durations(sums->forest, group, &sums->durations, sums->arena);
    if (group->start_s != 0 && (sums->start_s == 0 || group->start_s < sums->start_s))
        sums->start_s = group->start_s;
}

static void add_item(struct sums *sums, const struct span_item_row *item) {
    bool is_new;
    if (item->head.kind == SPAN_ITEM_CODE) {
        struct slice *text = item_of(&sums->stacks, item->head.name, sums->arena, &is_new);
        if (is_new)
            *text = span_names_text(&sums->forest->names, item->head.name, sums->arena);
        return;
    }
    struct metric_sum *sum = item_of(&sums->metrics, item->head.name, sums->arena, &is_new);
    if (is_new)
        *sum = (struct metric_sum){{.whole = true}, item->is_known_time != 0};
    struct span_number value = {item->whole != 0, item->integer, item->number};
    span_number_add(&sum->value, &value);
}

// Returns when the tree of `root` by itself stopped.
static double add_tree(struct sums *sums, uint32_t root, double now_s) {
    const struct span_forest *forest = sums->forest;
    double stop_s = 0;
    for (uint32_t row = root; row != SPAN_NONE; row = next_in_tree(forest, root, row)) {
        const struct span_row *span = span_at(forest, row);
        sums->answer->folded += span->folded;
        for (uint32_t at = first_group(span); at != SPAN_NONE; at = next_group(forest, span, at)) {
            const struct span_group_row *group = span_group_at(forest, at);
            add_group(sums, group);
            stop_s = larger(group->stop_s, stop_s);
        }
        const struct span_item_row *item;
        for (uint32_t at = span->items.first; at != TABLE_NO_ROW; at = item->head.next) {
            item = span_item_at(forest, at);
            add_item(sums, item);
        }
    }
    sums->stop_s = larger(stop_s, sums->stop_s);
    const struct span_row *span = span_at(forest, root);
    return larger(span->active == 0 ? stop_s : now_s, span->enqueued_s);
}

// Sets the sums, and the times from those of the groups; `enqueued_s` and `done` are there. `stops`
// has room for when each of the roots, by itself, stopped. What is known of the time its threads
// had is returned.
static double sum_trees(const struct span_forest *forest, const struct span_numbers *roots,
                        double now_s, double *stops, struct arena *arena,
                        struct span_answer *answer) {
    struct sums sums = {.forest = forest,
                        .arena = arena,
                        .answer = answer,
                        .durations = {.item_size = sizeof(struct span_duration)},
                        .metrics = {.item_size = sizeof(struct metric_sum)},
                        .stacks = {.item_size = sizeof(struct slice)}};
    for (uint32_t i = 0; i < roots->count; i++)
        stops[i] = add_tree(&sums, roots->items[i], now_s);
    answer->stop_s = larger(answer->done ? sums.stop_s : now_s, answer->enqueued_s);
    answer->start_s = sums.start_s == 0 ? 0 : larger(sums.start_s, answer->enqueued_s);
    answer->durations = (const struct span_duration *)(void *)sums.durations.items;
    answer->duration_count = sums.durations.count;
    answer->code = (const struct slice *)(void *)sums.stacks.items;
    answer->code_count = sums.stacks.count;
    // One more for the idle time.
    uint32_t count = sums.metrics.count;
    struct span_metric_sum *metrics = arena_take(arena, (count + 1) * sizeof *metrics);
    const struct metric_sum *all = (const struct metric_sum *)(void *)sums.metrics.items;
    struct span_number known = {.whole = true};
    for (uint32_t i = 0; i < count; i++) {
        metrics[i] = (struct span_metric_sum){
            span_names_text(&forest->names, sums.metrics.names[i], arena), all[i].value};
        if (all[i].is_known_time)
            span_number_add(&known, &all[i].value);
    }
    answer->metrics = metrics;
    answer->metric_count = count;
    return span_number_value(&known);
}

static void set_idle(struct span_answer *answer, double known_s) {
    static const struct slice key =
        SLICE("[\"execute\",\"N/A\",\"idle or other spans\",\"seconds\"]");
    double idle_s = larger(answer->active_cpu_s - known_s, 0);
    struct span_metric_sum *sums = (struct span_metric_sum *)answer->metrics;
    uint32_t place = 0;
    while (place < answer->metric_count && !slice_equal(sums[place].key, key))
        place++;
    if (place == answer->metric_count)
        answer->metric_count++;
    sums[place] = (struct span_metric_sum){key, {.whole = false, .number = idle_s}};
    answer->idle_s = idle_s;
}

// -- one ----------------------------------------------------------------------------------------

struct slice *span_ids(const struct span_tree *tree, const struct span_numbers *spans,
                       struct arena *arena) {
    struct slice *ids = arena_take(arena, spans->count * sizeof *ids);
    for (uint32_t i = 0; i < spans->count; i++)
        ids[i] = span_id_text(tree, spans->items[i], arena);
    return ids;
}

struct slice span_id_text(const struct span_tree *tree, uint32_t span, struct arena *arena) {
    return span_names_text(&tree->forest->names, span_at(tree->forest, span)->key.id, arena);
}

static void answer_name(const struct span_tree *tree, uint32_t row, struct arena *arena,
                        struct span_answer *answer) {
    const struct span_forest *forest = tree->forest;
    const struct span_row *span = span_at(forest, row);
    uint32_t path = span->path, depth = span_path_at(forest, path)->depth;
    assert(depth > 0);
    struct slice *tags = arena_take(arena, depth * sizeof *tags);
    for (uint32_t i = depth; i > 0; path = span_path_at(forest, path)->key.parent)
        tags[--i] = span_names_text(&forest->names, span_path_at(forest, path)->key.tag, arena);
    answer->name = tags;
    answer->name_count = depth;
    answer->annotated = depth != 1 || !slice_equal(tags[0], SLICE("default"));
    uint32_t count = 0;
    for (uint32_t at = row; at != SPAN_NONE; at = span_at(forest, at)->parent)
        count++;
    struct slice *ids = arena_take(arena, count * sizeof *ids);
    answer->annotation_ids = ids;
    answer->annotation_id_count = count;
    for (uint32_t at = row; at != SPAN_NONE; at = span_at(forest, at)->parent)
        ids[--count] = span_id_text(tree, at, arena);
    answer->id = ids[answer->annotation_id_count - 1];
    if (answer->annotation_id_count > 1)
        answer->parent = ids[answer->annotation_id_count - 2];
}

static struct span_numbers children_of(const struct span_tree *tree, const struct span_row *span,
                                       struct arena *arena) {
    const struct span_forest *forest = tree->forest;
    struct span_numbers children = {0};
    for (uint32_t at = span->children.first; at != SPAN_NONE;
         at = span_at(forest, at)->sibling.next)
        children.count++;
    children.items = arena_take(arena, children.count * sizeof *children.items);
    children.count = 0;
    for (uint32_t at = span->children.first; at != SPAN_NONE;
         at = span_at(forest, at)->sibling.next)
        children.items[children.count++] = at;
    return children;
}

static void answer_metadata(const struct span_tree *tree, const struct span_row *span,
                            struct arena *arena, struct span_answer *answer) {
    const struct span_forest *forest = tree->forest;
    const struct span_text_row *row;
    struct buffer joined;
    buffer_init(&joined, SIZE_MAX);
    for (uint32_t at = span->texts.first; at != TABLE_NO_ROW; at = row->next) {
        row = span_text_at(forest, at);
        if (at != span->texts.first)
            buffer_append_char(&joined, ',');
        buffer_append(&joined, span_names_text(&forest->names, row->name, arena));
    }
    answer->has_metadata = span->has_metadata != 0;
    answer->collections = arena_copy(arena, buffer_slice(&joined));
    buffer_release(&joined);
}

void span_answer_one(const struct span_tree *tree, uint32_t row, double now_s, struct arena *arena,
                     struct span_answer *answer) {
    const struct span_forest *forest = tree->forest;
    const struct span_row *span = span_at(forest, row);
    *answer = (struct span_answer){.enqueued_s = span->enqueued_s, .done = span->active == 0};
    answer_name(tree, row, arena, answer);
    struct span_numbers children = children_of(tree, span, arena), self = {&row, 1};
    answer->children = span_ids(tree, &children, arena);
    answer->child_count = children.count;
    double stop_s, known_s = sum_trees(forest, &self, now_s, &stop_s, arena, answer);
    assert(stop_s == answer->stop_s);
    struct span_activity activity[] = {{answer->enqueued_s, true}, {answer->stop_s, false}};
    span_intervals(forest, span->point, activity, 2, arena, answer);
    set_idle(answer, known_s);
    answer_metadata(tree, span, arena, answer);
    answer_groups(forest, span, arena, answer);
}

// -- several ------------------------------------------------------------------------------------

struct change {
    double time_s; // first, for compare_by_double
    int delta;
};

// When any of the items is under way.
static struct span_activity *activity_of(const struct span_forest *forest,
                                         const struct span_numbers *items, const double *stops,
                                         struct arena *arena, uint32_t *count) {
    struct change *changes = arena_take(arena, items->count * 2 * sizeof *changes);
    struct span_activity *activity = arena_take(arena, items->count * 2 * sizeof *activity);
    for (uint32_t i = 0; i < items->count; i++) {
        changes[i * 2] = (struct change){span_at(forest, items->items[i])->enqueued_s, 1};
        changes[i * 2 + 1] = (struct change){stops[i], -1};
    }
    sort_stable(changes, items->count * 2, sizeof *changes, arena, compare_by_double);
    int active = 0;
    *count = 0;
    for (uint32_t i = 0; i < items->count * 2; i++) {
        if (active == 0)
            activity[(*count)++] = (struct span_activity){changes[i].time_s, true};
        active += changes[i].delta;
        if (active == 0)
            activity[(*count)++] = (struct span_activity){changes[i].time_s, false};
    }
    assert(active == 0 && *count % 2 == 0);
    return activity;
}

void span_answer_merged(const struct span_tree *tree, const uint32_t *spans, uint32_t count,
                        double now_s, struct arena *arena, struct span_answer *answer) {
    static const struct slice name = SLICE("(merged)");
    const struct span_forest *forest = tree->forest;
    const struct span_numbers items = {(uint32_t *)spans, count};
    assert(count > 0);
    const struct span_row *first = span_at(forest, spans[0]);
    *answer = (struct span_answer){.id = name,
                                   .name = &name,
                                   .name_count = 1,
                                   .children = span_ids(tree, &items, arena),
                                   .child_count = count,
                                   .enqueued_s = first->enqueued_s,
                                   .done = true};
    uint32_t point = first->point;
    for (uint32_t i = 0; i < count; i++) {
        const struct span_row *span = span_at(forest, spans[i]);
        answer->done = answer->done && span->active == 0;
        if (span->enqueued_s < answer->enqueued_s)
            answer->enqueued_s = span->enqueued_s;
        if (span_point_at(forest, span->point)->number < span_point_at(forest, point)->number)
            point = span->point;
    }
    double *stops = arena_take(arena, count * sizeof *stops);
    double known_s = sum_trees(forest, &items, now_s, stops, arena, answer);
    uint32_t changes;
    struct span_activity *activity = activity_of(forest, &items, stops, arena, &changes);
    span_intervals(forest, point, activity, changes, arena, answer);
    set_idle(answer, known_s);
}
