// SPDX-License-Identifier: Apache-2.0
// Keeps when nodes reported that they are short of something.
//
// One row a node and condition, with its transitions by time; of the same moment and state the one
// whose words are lower by bytes, so that the order of telling does not matter. 1.3 KiB a row.
#include "processors/pod_evicted/node_conditions.h"

#include "base/sort.h"
#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/row_text.h"

enum { ROWS_PER_CHUNK = 16 };

struct condition_key {
    string_id node;
    uint32_t condition;
};

struct condition_row {
    struct row_head head;
    struct condition_key key;
    uint32_t count;
    uint64_t seen_ns;
    struct transition transitions[TRANSITIONS_MAX]; // oldest first; of one moment, True last
};

const char *node_condition_name(enum node_condition condition) {
    assert(condition < NODE_CONDITION_COUNT);
    static const char *const names[] = {"MemoryPressure", "DiskPressure", "PIDPressure"};
    return names[condition];
}

const struct row_type CONDITION_ROWS = {
    .size = sizeof(struct condition_row),
    .key_size = sizeof(struct condition_key),
    .rows_per_chunk = ROWS_PER_CHUNK,
    .strings = {offsetof(struct condition_row, key.node)},
};

static int compare_moments(const struct transition *a, const struct transition *b) {
    return COMPARE_KEYS(COMPARE(a->time_ns, b->time_ns), COMPARE(a->is_true, b->is_true));
}

static int compare_words(const struct transition *a, const struct transition *b) {
    int order = strcmp(a->reason, b->reason);
    return order != 0 ? order : strcmp(a->message, b->message);
}

static void add(struct condition_row *row, const struct transition *transition) {
    assert(row->count <= TRANSITIONS_MAX);
    struct transition *list = row->transitions;
    uint32_t at = row->count;
    while (at > 0 && compare_moments(&list[at - 1], transition) > 0)
        at--;
    if (at > 0 && compare_moments(&list[at - 1], transition) == 0) {
        if (compare_words(transition, &list[at - 1]) < 0)
            list[at - 1] = *transition;
        return;
    }
    if (row->count < TRANSITIONS_MAX) {
        memmove(&list[at + 1], &list[at], (row->count - at) * sizeof *list);
        list[at] = *transition;
        row->count++;
    } else if (at > 0) {
        memmove(&list[0], &list[1], (at - 1) * sizeof *list);
        list[at - 1] = *transition;
    }
}

static bool condition_of(struct slice type, enum node_condition *out) {
    for (uint32_t i = 0; i < NODE_CONDITION_COUNT; i++) {
        *out = (enum node_condition)i;
        if (slice_equal(type, slice_of(node_condition_name(*out))))
            return true;
    }
    return false;
}

void node_conditions_take(struct node_conditions *conditions, const struct event *event,
                          struct arena *scratch) {
    assert(event->kind == EVENT_KUBERNETES && conditions->bound.max > 0);
    const struct kubernetes_object *object = event->kubernetes;
    if (object->kind != KUBERNETES_NODE || object->watch == WATCH_DELETED ||
        event->node == STRING_NONE)
        return;
    for (uint32_t i = 0; i < object->condition_count; i++) {
        const struct kubernetes_condition *told = &object->conditions[i];
        enum node_condition condition;
        if (told->transition_ns == 0 || !condition_of(told->type, &condition))
            continue;
        struct condition_key key = {event->node, (uint32_t)condition};
        struct condition_row *row =
            row_bound_take(&conditions->rows, &conditions->bound, &key,
                           offsetof(struct condition_row, seen_ns), scratch);
        struct transition transition = {.time_ns = told->transition_ns,
                                        .is_true = slice_equal(told->status, SLICE("True"))};
        row_text_say(transition.reason, sizeof transition.reason, told->reason);
        row_text_say(transition.message, sizeof transition.message, told->message);
        add(row, &transition);
        if (event->time_ns > row->seen_ns)
            row->seen_ns = event->time_ns;
    }
}

static uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

// Whether another state followed the transition at `index` until `at_ns`.
static bool is_ended(const struct condition_row *row, uint32_t index, uint64_t at_ns) {
    assert(index < row->count);
    uint64_t began_ns = row->transitions[index].time_ns;
    for (uint32_t i = 0; i < row->count; i++) {
        const struct transition *other = &row->transitions[i];
        if (other->is_true == 0 && other->time_ns > began_ns && other->time_ns <= at_ns)
            return true;
    }
    return false;
}

const struct transition *node_conditions_find(const struct node_conditions *conditions,
                                              string_id node, enum node_condition condition,
                                              uint64_t at_ns, struct pressure_window window,
                                              const struct transition **older) {
    struct condition_key key = {node, (uint32_t)condition};
    const struct condition_row *row = keyed_rows_find(&conditions->rows, &key);
    const struct transition *nearest = NULL, *before = NULL;
    for (uint32_t i = 0; row != NULL && i < row->count; i++) {
        const struct transition *transition = &row->transitions[i];
        uint64_t apart_ns = distance(transition->time_ns, at_ns);
        bool after = transition->time_ns > at_ns;
        if (transition->is_true == 0 || is_ended(row, i, at_ns) ||
            (after && apart_ns > window.after_ns))
            continue;
        if (!after && apart_ns > window.before_ns)
            before = transition; // the last such one is the newest
        else if (nearest == NULL || apart_ns < distance(nearest->time_ns, at_ns))
            nearest = transition;
    }
    if (older != NULL)
        *older = before;
    return nearest;
}
