// SPDX-License-Identifier: Apache-2.0
// Reads the events `transition` and `metrics`.
//
// One walk over each list. Metrics are judged one by one; one that is wrong takes no other with it.
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/spans/read.h"

// -- transition ---------------------------------------------------------------------------------

static bool read_action_time(struct span_line *line, const struct token *token, double *out) {
    if (!span_token_is_number(token))
        return span_refuse_value(line, SPAN_BAD_FIELD, "", token, "seconds since 1970, a number");
    *out = json_number_double(token);
    if (*out >= -SPAN_SECONDS_MAX && *out <= SPAN_SECONDS_MAX)
        return true;
    return span_refuse(line, SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, "",
                       "found %g, expected seconds from -1e11 to 1e11", *out);
}

static bool read_action(struct span_line *line, const struct token *item, struct span_action *out) {
    struct token parts[3] = {{0}}, more;
    uint32_t count = 0;
    if (item->kind == TOKEN_ARRAY) {
        struct json_items items = json_items_of(item);
        while (json_items_next(&items, count < 3 ? &parts[count] : &more))
            count++;
    }
    if (count != 3)
        return span_refuse(line, SPAN_BAD_FIELD, DECODE_WRONG_TYPE, "",
                           "expected an array of three: name, start, stop");
    return span_read_text(line, SPAN_BAD_FIELD, "", &parts[0], false, &out->name) &&
           read_action_time(line, &parts[1], &out->start_s) &&
           read_action_time(line, &parts[2], &out->stop_s);
}

static bool refuse_elsewhere(struct span_line *line, const char *field) {
    return span_refuse(line, SPAN_BAD_FIELD, DECODE_OUT_OF_RANGE, field,
                       "only a task that goes to memory has it; this one goes to %s",
                       task_state_name(line->event->to));
}

static bool read_actions(struct span_line *line) {
    const struct token *array = &line->slots[SLOT_ACTIONS];
    struct span_action *actions = NULL;
    struct token item;
    uint32_t capacity = 0;
    if (!span_token_is_there(array))
        return true;
    if (line->event->to != TASK_MEMORY)
        return refuse_elsewhere(line, "actions");
    if (array->kind != TOKEN_ARRAY)
        return span_refuse_value(line, SPAN_BAD_FIELD, "actions", array, "an array of actions");
    struct json_items items = json_items_of(array);
    line->list = "actions";
    for (line->index = 0; json_items_next(&items, &item); line->index++) {
        actions = span_grow(line->arena, actions, line->index, &capacity, sizeof *actions, array);
        if (!read_action(line, &item, &actions[line->index]))
            return false;
    }
    line->list = NULL;
    line->event->actions = actions;
    line->event->action_count = line->index;
    return true;
}

static bool read_state(struct span_line *line) {
    const struct token *token = &line->slots[SLOT_TO];
    struct slice name;
    if (!span_read_text(line, SPAN_BAD_FIELD, "to", token, true, &name))
        return false;
    for (int state = 0; state < TASK_STATE_COUNT; state++) {
        if (slice_equal(name, slice_of(task_state_name((enum task_state)state)))) {
            line->event->to = (enum task_state)state;
            return true;
        }
    }
    return span_refuse_choice(line, SPAN_BAD_STATE, "to", token,
                              "released, waiting, no-worker, queued, processing, memory, erred or "
                              "forgotten");
}

bool span_read_transition(struct span_line *line) {
    struct span_event *event = line->event;
    const struct token *nbytes = &line->slots[SLOT_NBYTES];
    event->nbytes = -1;
    if (!span_read_text(line, SPAN_BAD_FIELD, "key", &line->slots[SLOT_KEY], false, &event->key) ||
        !read_state(line) || !read_actions(line))
        return false;
    if (!span_token_is_there(nbytes))
        return true;
    if (event->to != TASK_MEMORY)
        return refuse_elsewhere(line, "nbytes");
    return span_read_count(line, "nbytes", nbytes, &event->nbytes);
}

// -- metrics ------------------------------------------------------------------------------------

struct entry {
    struct arena *arena;
    char *key; // written as its parts come
    size_t key_size;
    uint32_t count; // of the items before `last`
    struct token last;
    bool right; // all that stands before `last`
};

static bool has_no_nul(const struct token *text, struct arena *arena) {
    struct slice decoded = text->escaped ? token_decode(text, arena) : (struct slice){NULL, 0};
    return decoded.size == 0 || memchr(decoded.data, '\0', decoded.size) == NULL;
}

// `last` turned out to be no value: the context, the span's id, or a label.
static void put_part(struct entry *entry, struct span_metric *metric) {
    const struct token *part = &entry->last;
    if (part->kind != TOKEN_STRING || !has_no_nul(part, entry->arena)) {
        entry->right = false;
    } else if (entry->count == 1) {
        metric->span_id = token_decode(part, entry->arena);
    } else {
        entry->key[entry->key_size++] = entry->count == 0 ? '[' : ',';
        entry->key_size += span_write_text(entry->key + entry->key_size, part, entry->arena);
    }
    entry->count++;
}

// False: a context that the format drops.
static bool is_kept(const struct token *context, bool *execute) {
    *execute = token_equals(context, SLICE("execute"));
    return *execute || token_equals(context, SLICE("p2p"));
}

static bool read_value(const struct token *token, struct span_metric *metric) {
    metric->whole = token->kind == TOKEN_INTEGER;
    if (metric->whole)
        metric->integer = token->integer;
    else if (token->kind == TOKEN_DECIMAL)
        metric->number = json_number_double(token);
    else
        return false;
    return true;
}

// False: it is dropped.
static bool read_entry(struct span_line *line, const struct token *item,
                       struct span_metric *metric) {
    struct entry entry = {.arena = line->arena, .right = true};
    struct token next;
    bool execute = false, more, seconds = false;
    metric->refused = SPAN_BAD_ENTRY;
    if (item->kind != TOKEN_ARRAY)
        return true;
    struct json_items items = json_items_of(item);
    if (!json_items_next(&items, &entry.last) || entry.last.kind != TOKEN_STRING)
        return true;
    more = json_items_next(&items, &next);
    if (!more)
        return true;
    if (!is_kept(&entry.last, &execute))
        return false;
    entry.key = arena_take(line->arena, item->size + 3);
    for (; more && entry.right; more = json_items_next(&items, &next)) {
        put_part(&entry, metric);
        seconds = entry.count > 2 && entry.right && token_equals(&entry.last, SLICE("seconds"));
        entry.last = next;
    }
    if (!entry.right || entry.count < 2 || !read_value(&entry.last, metric))
        return true;
    entry.key[entry.key_size++] = ']';
    metric->key = (struct slice){entry.key, entry.key_size};
    metric->is_known_time = execute && seconds;
    metric->refused = SPAN_ACCEPTED;
    return true;
}

bool span_read_metrics(struct span_line *line) {
    const struct token *array = &line->slots[SLOT_DATA];
    struct span_metric *metrics = NULL;
    struct token item;
    uint32_t count = 0, capacity = 0;
    if (array->kind != TOKEN_ARRAY)
        return span_refuse_value(line, SPAN_BAD_FIELD, "data", array, "an array of metrics");
    struct json_items items = json_items_of(array);
    for (uint32_t entry = 0; json_items_next(&items, &item); entry++) {
        metrics = span_grow(line->arena, metrics, count, &capacity, sizeof *metrics, array);
        metrics[count] = (struct span_metric){.entry = entry};
        count += read_entry(line, &item, &metrics[count]);
    }
    line->event->metrics = metrics;
    line->event->metric_count = count;
    return true;
}
