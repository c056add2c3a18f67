// SPDX-License-Identifier: Apache-2.0
// Sums over a tree of spans, and what they make of them. Order counts where doubles are added:
// spans in pre-order, of each span its own groups as they were attached.
#include "processors/spans/answer.h"

#include "base/sort.h"
#include "processors/spans/intervals.h"

// -- walking ------------------------------------------------------------------------------------

// The span after `at` in pre-order of the tree of `root`; SPAN_NONE at its end.
static uint32_t next_in_tree(const struct span_forest *forest, uint32_t root, uint32_t at) {
    const struct span_row *span = span_at(forest, at);
    if (span->first_child != SPAN_NONE)
        return span->first_child;
    while (at != root && span->next == SPAN_NONE) {
        at = span->parent;
        span = span_at(forest, at);
    }
    return at == root ? SPAN_NONE : span->next;
}

// All spans of the trees of several roots, one after another.
struct walk {
    const struct span_forest *forest;
    const uint32_t *roots;
    uint32_t root_count;
    uint32_t index;
    uint32_t at;
};

static struct walk walk_begin(const struct span_forest *forest, const uint32_t *roots,
                              uint32_t count) {
    return (struct walk){forest, roots, count, 0, SPAN_NONE};
}

static bool walk_next(struct walk *walk, uint32_t *span) {
    if (walk->at != SPAN_NONE)
        walk->at = next_in_tree(walk->forest, walk->roots[walk->index - 1], walk->at);
    if (walk->at == SPAN_NONE) {
        if (walk->index == walk->root_count)
            return false;
        walk->at = walk->roots[walk->index++];
    }
    *span = walk->at;
    return true;
}

// The groups of a span, that of its folded sums last.
static uint32_t first_group(const struct span_row *span) {
    return span->first_group != SPAN_NONE ? span->first_group : span->folded_group;
}
static uint32_t next_group(const struct span_forest *forest, const struct span_row *span,
                           uint32_t group) {
    if (group == span->folded_group)
        return SPAN_NONE;
    uint32_t next = span_group_at(forest, group)->next;
    return next != SPAN_NONE ? next : span->folded_group;
}

// -- groups -------------------------------------------------------------------------------------

// The place of each name in a list that grows.
struct places {
    uint32_t *slots; // place + 1; 0: free
    uint32_t *names;
    uint32_t slot_count; // a power of two, twice the capacity
    uint32_t count;
};

enum { PLACES_FIRST = 16 };

static uint32_t slot_of(const struct places *places, uint32_t name) {
    uint32_t mask = places->slot_count - 1;
    uint32_t slot = (uint32_t)(name * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (places->slots[slot] != 0 && places->names[places->slots[slot] - 1] != name)
        slot = (slot + 1) & mask;
    return slot;
}

static void *enlarge(const void *items, uint32_t count, uint32_t capacity, size_t size,
                     struct arena *arena) {
    void *larger = arena_take(arena, capacity * size);
    if (count > 0)
        memcpy(larger, items, count * size);
    return larger;
}

// The place of this name, the next one when it has none yet. `items`, of that size each, grow with
// the list.
static uint32_t place_of(struct places *places, uint32_t name, void *items, size_t size,
                         struct arena *arena) {
    if (places->count * 2 == places->slot_count) {
        uint32_t capacity = places->count == 0 ? PLACES_FIRST : places->count * 2;
        void *list; // `items` points to a pointer to items of any type
        memcpy(&list, items, sizeof list);
        list = enlarge(list, places->count, capacity, size, arena);
        memcpy(items, &list, sizeof list);
        places->names = enlarge(places->names, places->count, capacity, sizeof(uint32_t), arena);
        places->slot_count = capacity * 2;
        places->slots = arena_zero(arena, places->slot_count, sizeof(uint32_t));
        for (uint32_t i = 0; i < places->count; i++)
            places->slots[slot_of(places, places->names[i])] = i + 1;
    }
    uint32_t slot = slot_of(places, name);
    if (places->slots[slot] == 0) {
        places->names[places->count] = name;
        places->slots[slot] = ++places->count;
    }
    return places->slots[slot] - 1;
}

struct durations {
    struct span_duration *items;
    struct places places;
};

static void add_duration(struct durations *sums, const struct span_forest *forest, uint32_t name,
                         double seconds, struct arena *arena) {
    uint32_t before = sums->places.count;
    uint32_t place = place_of(&sums->places, name, &sums->items, sizeof *sums->items, arena);
    if (sums->places.count > before)
        sums->items[place] =
            (struct span_duration){span_names_text(&forest->names, name, arena), seconds};
    else
        sums->items[place].seconds += seconds;
}

// Whole microseconds, divided once a group.
static double add_durations(const struct span_forest *forest, const struct span_group_row *group,
                            struct durations *sums, struct arena *arena) {
    double total = 0;
    for (uint32_t at = group->first_action; at != TABLE_NO_ROW;) {
        const struct span_action_row *action = span_action_at(forest, at);
        double seconds = (double)action->us / 1e6;
        add_duration(sums, forest, action->key.name, seconds, arena);
        total += seconds;
        at = action->next;
    }
    return total;
}

static void answer_group(const struct span_forest *forest, const struct span_group_row *group,
                         struct arena *arena, struct span_group_answer *answer) {
    struct durations sums = {0};
    *answer = (struct span_group_answer){
        .name = span_names_text(&forest->names, group->name, arena),
        .start_s = group->start_s,
        .stop_s = group->stop_s,
        .done = group->active == 0,
        .nbytes = group->nbytes,
    };
    memcpy(answer->states, group->states, sizeof answer->states);
    answer->duration_s = add_durations(forest, group, &sums, arena);
    answer->durations = sums.items;
    answer->duration_count = sums.places.count;
}

static int compare_made(const void *a, const void *b) {
    const struct span_group_row *left = *(const struct span_group_row *const *)a;
    const struct span_group_row *right = *(const struct span_group_row *const *)b;
    return (left->made > right->made) - (left->made < right->made);
}

// They hang on the span as they were attached, which data can be long after it was placed.
static void answer_groups(const struct span_forest *forest, const struct span_row *span,
                          struct arena *arena, struct span_answer *answer) {
    uint32_t count = 0;
    for (uint32_t at = span->first_group; at != SPAN_NONE; at = span_group_at(forest, at)->next)
        count++;
    const struct span_group_row **rows = arena_take(arena, count * sizeof *rows + 1);
    bool sorted = true;
    count = 0;
    for (uint32_t at = span->first_group; at != SPAN_NONE; at = rows[count - 1]->next) {
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

struct span_times {
    double start_s; // smallest that is not 0; 0: none
    double stop_s;  // largest; 0: none
};

static struct span_times sum_groups(const struct span_forest *forest, const uint32_t *roots,
                                    uint32_t root_count, struct arena *arena,
                                    struct span_answer *answer) {
    struct span_times times = {0, 0};
    struct durations sums = {0};
    struct walk walk = walk_begin(forest, roots, root_count);
    for (uint32_t row; walk_next(&walk, &row);) {
        const struct span_row *span = span_at(forest, row);
        answer->folded += span->folded;
        for (uint32_t at = first_group(span); at != SPAN_NONE; at = next_group(forest, span, at)) {
            const struct span_group_row *group = span_group_at(forest, at);
            for (int i = 0; i < TASK_STATE_COUNT; i++)
                answer->states[i] += group->states[i];
            answer->nbytes_total += group->nbytes;
            answer->duration_s += add_durations(forest, group, &sums, arena);
            if (group->stop_s > times.stop_s)
                times.stop_s = group->stop_s;
            if (group->start_s != 0 && (times.start_s == 0 || group->start_s < times.start_s))
                times.start_s = group->start_s;
        }
    }
    answer->durations = sums.items;
    answer->duration_count = sums.places.count;
    return times;
}

struct metric_place {
    struct span_number value;
    bool is_known_time;
};

// Metrics and code of the tree; what is known of the time its threads had is returned.
static double sum_items(const struct span_forest *forest, const uint32_t *roots,
                        uint32_t root_count, struct arena *arena, struct span_answer *answer) {
    struct places places = {0}, stacks = {0};
    struct metric_place *sums = NULL;
    char *nothing = NULL; // stacks have no more than a name
    struct walk walk = walk_begin(forest, roots, root_count);
    for (uint32_t row; walk_next(&walk, &row);) {
        for (uint32_t at = span_at(forest, row)->first_item; at != TABLE_NO_ROW;
             at = span_item_at(forest, at)->next) {
            const struct span_item_row *item = span_item_at(forest, at);
            if (item->key.kind == SPAN_ITEM_CODE) {
                place_of(&stacks, item->key.name, &nothing, 1, arena);
                continue;
            }
            uint32_t before = places.count;
            uint32_t place = place_of(&places, item->key.name, &sums, sizeof *sums, arena);
            if (places.count > before)
                sums[place] = (struct metric_place){{.whole = true}, item->is_known_time != 0};
            struct span_number value = {item->whole != 0, item->integer, item->number};
            span_number_add(&sums[place].value, &value);
        }
    }
    struct slice *code = arena_take(arena, stacks.count * sizeof *code + 1);
    for (uint32_t i = 0; i < stacks.count; i++)
        code[i] = span_names_text(&forest->names, stacks.names[i], arena);
    answer->code = code;
    answer->code_count = stacks.count;
    // One more for the idle time.
    struct span_metric_sum *metrics = arena_take(arena, (places.count + 1) * sizeof *metrics);
    struct span_number known = {.whole = true};
    for (uint32_t i = 0; i < places.count; i++) {
        metrics[i] = (struct span_metric_sum){
            span_names_text(&forest->names, places.names[i], arena), sums[i].value};
        if (sums[i].is_known_time)
            span_number_add(&known, &sums[i].value);
    }
    answer->metrics = metrics;
    answer->metric_count = places.count;
    return span_number_value(&known);
}

static void set_idle(struct span_answer *answer, double known_s) {
    static const struct slice key =
        SLICE("[\"execute\",\"N/A\",\"idle or other spans\",\"seconds\"]");
    double idle_s = answer->active_cpu_s - known_s;
    if (!(idle_s > 0))
        idle_s = 0;
    struct span_metric_sum *sums = (struct span_metric_sum *)answer->metrics;
    uint32_t place = 0;
    while (place < answer->metric_count && !slice_equal(sums[place].key, key))
        place++;
    if (place == answer->metric_count)
        answer->metric_count++;
    sums[place] = (struct span_metric_sum){key, {.whole = false, .number = idle_s}};
    answer->idle_s = idle_s;
}

static bool is_done(const struct span_forest *forest, const uint32_t *roots, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (span_at(forest, roots[i])->active > 0)
            return false;
    return true;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void answer_times(const struct span_times *times, double now_s, struct span_answer *answer) {
    answer->start_s = times->start_s == 0 ? 0 : larger(times->start_s, answer->enqueued_s);
    answer->stop_s = larger(answer->done ? times->stop_s : now_s, answer->enqueued_s);
}

// -- one ----------------------------------------------------------------------------------------

struct slice span_id_text(const struct span_tree *tree, uint32_t span, struct arena *arena) {
    return span_names_text(&tree->forest->names, span_at(tree->forest, span)->key.id, arena);
}

static void answer_name(const struct span_tree *tree, uint32_t row, struct arena *arena,
                        struct span_answer *answer) {
    const struct span_forest *forest = tree->forest;
    const struct span_row *span = span_at(forest, row);
    uint32_t path = span->path, depth = span_path_at(forest, path)->depth;
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

static void answer_children(const struct span_tree *tree, const uint32_t *children, uint32_t count,
                            struct arena *arena, struct span_answer *answer) {
    struct slice *ids = arena_take(arena, count * sizeof *ids + 1);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = span_id_text(tree, children[i], arena);
    answer->children = ids;
    answer->child_count = count;
}

static struct span_numbers children_of(const struct span_tree *tree, uint32_t row,
                                       struct arena *arena) {
    const struct span_forest *forest = tree->forest;
    struct span_numbers children = {0};
    uint32_t first = span_at(forest, row)->first_child;
    for (uint32_t at = first; at != SPAN_NONE; at = span_at(forest, at)->next)
        children.count++;
    children.items = arena_take(arena, children.count * sizeof(uint32_t) + 1);
    children.count = 0;
    for (uint32_t at = first; at != SPAN_NONE; at = span_at(forest, at)->next)
        children.items[children.count++] = at;
    return children;
}

static void answer_metadata(const struct span_tree *tree, const struct span_row *span,
                            struct arena *arena, struct span_answer *answer) {
    const struct span_forest *forest = tree->forest;
    const struct span_text_row *text;
    uint32_t count = 0;
    size_t size = 0;
    answer->has_metadata = span->has_metadata != 0;
    for (uint32_t at = span->first_text; at != TABLE_NO_ROW; at = text->next) {
        text = table_row(&forest->texts, at);
        count++;
    }
    struct slice *parts = arena_take(arena, count * sizeof *parts + 1);
    count = 0;
    for (uint32_t at = span->first_text; at != TABLE_NO_ROW; at = text->next) {
        text = table_row(&forest->texts, at);
        parts[count] = span_names_text(&forest->names, text->name, arena);
        size += parts[count++].size + 1;
    }
    char *joined = arena_take(arena, size + 1);
    answer->collections.data = joined;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(joined, parts[i].data, parts[i].size);
        joined += parts[i].size;
        if (i + 1 < count)
            *joined++ = ',';
    }
    answer->collections.size = (size_t)(joined - answer->collections.data);
}

void span_answer_one(const struct span_tree *tree, uint32_t row, double now_s, struct arena *arena,
                     struct span_answer *answer) {
    const struct span_forest *forest = tree->forest;
    const struct span_row *span = span_at(forest, row);
    *answer = (struct span_answer){.enqueued_s = span->enqueued_s, .done = span->active == 0};
    answer_name(tree, row, arena, answer);
    struct span_numbers children = children_of(tree, row, arena);
    answer_children(tree, children.items, children.count, arena, answer);
    struct span_times times = sum_groups(forest, &row, 1, arena, answer);
    answer_times(&times, now_s, answer);
    struct span_activity activity[] = {{answer->enqueued_s, true}, {answer->stop_s, false}};
    span_intervals(forest, span->point, activity, 2, arena, answer);
    set_idle(answer, sum_items(forest, &row, 1, arena, answer));
    answer_metadata(tree, span, arena, answer);
    answer_groups(forest, span, arena, answer);
}

// -- several ------------------------------------------------------------------------------------

struct change {
    double time_s;
    int delta;
};

static int compare_changes(const void *a, const void *b) {
    double left = ((const struct change *)a)->time_s, right = ((const struct change *)b)->time_s;
    return (left > right) - (left < right);
}

// When any of the items is under way.
static struct span_activity *activity_of(const struct span_forest *forest,
                                         const struct span_numbers *items, double now_s,
                                         struct arena *arena, uint32_t *count) {
    struct change *changes = arena_take(arena, items->count * 2 * sizeof *changes);
    struct span_activity *activity = arena_take(arena, items->count * 2 * sizeof *activity);
    for (uint32_t i = 0; i < items->count; i++) {
        struct span_answer answer = {.enqueued_s = span_at(forest, items->items[i])->enqueued_s,
                                     .done = span_at(forest, items->items[i])->active == 0};
        struct span_times times = sum_groups(forest, &items->items[i], 1, arena, &answer);
        answer_times(&times, now_s, &answer);
        changes[i * 2] = (struct change){answer.enqueued_s, 1};
        changes[i * 2 + 1] = (struct change){answer.stop_s, -1};
    }
    sort_stable(changes, items->count * 2, sizeof *changes, arena, compare_changes);
    int active = 0;
    *count = 0;
    for (uint32_t i = 0; i < items->count * 2; i++) {
        if (active == 0)
            activity[(*count)++] = (struct span_activity){changes[i].time_s, true};
        active += changes[i].delta;
        if (active == 0)
            activity[(*count)++] = (struct span_activity){changes[i].time_s, false};
    }
    return activity;
}

void span_answer_merged(const struct span_tree *tree, const uint32_t *spans, uint32_t count,
                        double now_s, struct arena *arena, struct span_answer *answer) {
    static const struct slice name = SLICE("(merged)");
    const struct span_forest *forest = tree->forest;
    struct span_numbers items = {(uint32_t *)spans, count};
    *answer = (struct span_answer){.id = name,
                                   .name = &name,
                                   .name_count = 1,
                                   .enqueued_s = span_at(forest, spans[0])->enqueued_s,
                                   .done = is_done(forest, spans, count)};
    uint32_t point = span_at(forest, spans[0])->point;
    for (uint32_t i = 1; i < count; i++) {
        const struct span_row *span = span_at(forest, spans[i]);
        if (span->enqueued_s < answer->enqueued_s)
            answer->enqueued_s = span->enqueued_s;
        if (span_point_at(forest, span->point)->number < span_point_at(forest, point)->number)
            point = span->point;
    }
    answer_children(tree, spans, count, arena, answer);
    struct span_times times = sum_groups(forest, spans, count, arena, answer);
    answer_times(&times, now_s, answer);
    uint32_t changes;
    struct span_activity *activity = activity_of(forest, &items, now_s, arena, &changes);
    span_intervals(forest, point, activity, changes, arena, answer);
    set_idle(answer, sum_items(forest, spans, count, arena, answer));
}
