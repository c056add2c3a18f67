// SPDX-License-Identifier: Apache-2.0
// Which events say that a state is over.
#include "processors/unexplained/states.h"

#include "pipeline/model/node_event.h"

enum { ENDS_MAX = 4 }; // of one state, the latest

struct state_key {
    string_id node;
    string_id source;           // STRING_NONE where the node is known
    uint32_t who_high, who_low; // as in sign_key
    uint32_t kind;              // enum observation_kind
};

struct state_ends {
    struct row_head head;
    struct state_key key;
    uint32_t count;
    uint64_t newest_ns;
    uint64_t ends_ns[ENDS_MAX]; // ascending
};

KEYED_ROW_CHECK(struct state_ends, key);

const struct row_type STATE_END_ROWS =
    KEYED_ROW_TYPE(struct state_ends, key, 16, offsetof(struct state_ends, key.node),
                   offsetof(struct state_ends, key.source));

static void keep_end(struct state_ends *row, uint64_t end_ns) {
    uint64_t *list = row->ends_ns;
    uint32_t at = row->count;
    while (at > 0 && list[at - 1] > end_ns)
        at--;
    if (at > 0 && list[at - 1] == end_ns)
        return;
    if (row->count < ENDS_MAX) {
        memmove(&list[at + 1], &list[at], (row->count - at) * sizeof *list);
        list[at] = end_ns;
        row->count++;
    } else if (at > 0) {
        memmove(&list[0], &list[1], (at - 1) * sizeof *list);
        list[at - 1] = end_ns;
    }
    row->newest_ns = list[row->count - 1];
}

static struct state_key key_of(const struct event *event, enum observation_kind kind,
                               uint64_t who) {
    return (struct state_key){.node = event->node,
                              .source = event->node == STRING_NONE ? event->source : STRING_NONE,
                              .who_high = (uint32_t)(who >> 32),
                              .who_low = (uint32_t)who,
                              .kind = (uint32_t)kind};
}

static void take_end(struct keyed_rows *ends, struct row_bound *bound, const struct state_key *key,
                     uint64_t end_ns, struct arena *scratch) {
    keep_end(row_bound_take(ends, bound, key, offsetof(struct state_ends, newest_ns), scratch),
             end_ns);
}

// Those that are named after what is well are True then, the others name what is wrong.
static bool is_well(const struct kubernetes_condition *condition) {
    static const struct slice ready = {"Ready", 5};
    struct slice type = condition->type;
    bool names_well = type.size >= ready.size &&
                      memcmp(type.data + type.size - ready.size, ready.data, ready.size) == 0;
    return slice_equal(condition->status, slice_of(names_well ? "True" : "False"));
}

static void take_node(struct keyed_rows *ends, struct row_bound *bound, const struct event *event,
                      struct arena *scratch) {
    const struct kubernetes_object *object = event->kubernetes;
    if (object->kind != KUBERNETES_NODE || object->watch == WATCH_DELETED)
        return;
    for (uint32_t i = 0; i < object->condition_count; i++) {
        const struct kubernetes_condition *told = &object->conditions[i];
        if (told->transition_ns == 0 || !is_well(told))
            continue;
        const struct fact name = {.key = FACT_CONDITION, .text = told->type};
        const struct observation said = {
            .kind = OBSERVATION_NODE_CONDITION, .facts = &name, .fact_count = 1};
        struct state_key key = key_of(event, said.kind, sign_who(&said));
        take_end(ends, bound, &key, told->transition_ns, scratch);
    }
}

void state_ends_take(struct keyed_rows *ends, struct row_bound *bound, const struct event *event,
                     struct arena *scratch) {
    if (event->kind == EVENT_KUBERNETES)
        take_node(ends, bound, event, scratch);
    if (event->kind != EVENT_OBSERVATION || event->timeless || !sign_is_end(event->observation))
        return;
    const struct observation *observation = event->observation;
    struct state_key key = key_of(event, observation->kind, sign_who(observation));
    take_end(ends, bound, &key, event->time_ns, scratch);
}

uint64_t state_end_of(const struct keyed_rows *ends, const struct sign *sign) {
    if ((sign->flags & (SIGN_STATE | SIGN_TIMELESS)) != SIGN_STATE)
        return 0;
    const struct state_key key = {.node = sign->key.node,
                                  .source = sign->key.source,
                                  .who_high = sign->key.who_high,
                                  .who_low = sign->key.who_low,
                                  .kind = sign->key.kind};
    const struct state_ends *row = keyed_rows_find(ends, &key);
    for (uint32_t i = 0; row != NULL && i < row->count; i++)
        if (row->ends_ns[i] >= sign->last_ns)
            return row->ends_ns[i];
    return 0;
}
