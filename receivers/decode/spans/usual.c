// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/spans/usual.h"

#include "receivers/decode/json/block.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/strict.h"
#include "receivers/decode/spans/read.h"

#include <assert.h>

enum {
    ITEMS_FIRST = 4,
    ITEMS_MAX = 64, // of a list; longer ones are left to the general way
    IDS_MAX = 8,    // of an annotation, since every two are compared
    TASKS_MAX = 4096,
};

// Small enough, and called from so few places, that a call would cost more than what it does.
#define IN_PLACE static inline __attribute__((always_inline))

// Where the reading is. Each function passes what it names and returns true, or returns false.
struct walk {
    const char *at, *end;
    struct arena *arena;
};

IN_PLACE bool pass(struct walk *walk, const char *text, size_t size) {
    if ((size_t)(walk->end - walk->at) < size || memcmp(walk->at, text, size) != 0)
        return false;
    walk->at += size;
    return true;
}
#define PASS(walk, text) pass(walk, text, sizeof(text) - 1)

// The text behind a quote that was passed, and the quote that ends it.
IN_PLACE bool read_text(struct walk *walk, struct slice *out) {
    const char *begin = walk->at;
    for (;;) {
        if (walk->end - walk->at < JSON_BLOCK)
            break;
        unsigned plain = json_block_plain(walk->at);
        walk->at += plain;
        if (plain < JSON_BLOCK)
            break;
    }
    // A quote, what the general way has to look at, or the last bytes of the line.
    while (walk->at < walk->end && (unsigned char)*walk->at >= 0x20 &&
           (unsigned char)*walk->at < 0x80 && *walk->at != '"' && *walk->at != '\\')
        walk->at++;
    if (json_peek(walk->at, walk->end) != '"')
        return false;
    *out = (struct slice){begin, (size_t)(walk->at - begin)};
    walk->at++;
    return true;
}

// Texts of at least one character.
IN_PLACE bool read_name(struct walk *walk, struct slice *out) {
    return read_text(walk, out) && out->size > 0;
}

struct number {
    bool whole;
    int64_t integer;
    double value;
};

enum { DIGITS_MAX = 18, NUMBER_ROOM = 48 };

// An integer of at most 18 digits, or a decimal of as many without exponent; NUMBER_ROOM bytes may
// be read. Returns where it ends; NULL: it is none of these.
IN_PLACE const char *read_digits(const char *at, struct number *out) {
    bool negative = *at == '-';
    uint64_t magnitude, more;
    at += negative;
    unsigned count = json_read_digits(at, &magnitude);
    if (count == 0 || count > DIGITS_MAX)
        return NULL;
    at += count;
    out->whole = *at != '.';
    if (out->whole) {
        out->integer = negative ? -(int64_t)magnitude : (int64_t)magnitude;
        out->value = (double)out->integer;
        return at;
    }
    unsigned behind = json_block_number(++at, &more);
    if (behind == 0)
        return NULL;
    unsigned room = DIGITS_MAX - (magnitude == 0 ? 0 : count), part = behind;
    uint64_t fraction = more;
    for (unsigned blocks = 1; part == 8 && blocks < 3; blocks++) {
        magnitude *= json_powers_of_ten[8];
        part = json_block_number(at + behind, &more);
        fraction = fraction * json_powers_of_ten[part] + more;
        behind += part;
    }
    // With more digits than there is room for both are meaningless.
    if (behind > room ||
        !json_decimal_double(magnitude * json_powers_of_ten[part] + fraction, behind, &out->value))
        return NULL;
    out->value = negative ? -out->value : out->value;
    return at + behind;
}

// The same at the end of the line, of which no byte behind its last may be read.
static const char *read_last_digits(const char *at, const char *end, struct number *out) {
    char copy[NUMBER_ROOM] = {0};
    assert(end - at < NUMBER_ROOM);
    memcpy(copy, at, (size_t)(end - at));
    const char *after = read_digits(copy, out);
    return after == NULL ? NULL : at + (after - copy);
}

static bool read_number(struct walk *walk, struct number *out) {
    const char *after = walk->end - walk->at >= NUMBER_ROOM
                            ? read_digits(walk->at, out)
                            : read_last_digits(walk->at, walk->end, out);
    if (after == NULL)
        return false;
    walk->at = after;
    unsigned char next = json_peek(after, walk->end);
    return next == ',' || next == ']' || next == '}';
}

static inline bool read_seconds(struct walk *walk, double *out) {
    struct number number;
    if (!read_number(walk, &number))
        return false;
    *out = number.value;
    return *out >= -SPAN_SECONDS_MAX && *out <= SPAN_SECONDS_MAX;
}

// Room for item `count`; NULL: there are too many.
static void *grow(struct arena *arena, void *items, uint32_t count, size_t size) {
    if (count == ITEMS_MAX)
        return NULL;
    if (count < ITEMS_FIRST ? count > 0 : (count & (count - 1)) != 0)
        return items;
    return arena_enlarge(arena, items, count, count == 0 ? ITEMS_FIRST : 2 * count, size);
}

// -- transition ---------------------------------------------------------------------------------

static bool read_actions(struct walk *walk, struct span_event *event) {
    struct span_action *actions = NULL;
    struct slice name;
    uint32_t count = 0;
    do {
        actions = grow(walk->arena, actions, count, sizeof *actions);
        if (actions == NULL || !PASS(walk, "[\"") || !read_name(walk, &name) || !PASS(walk, ",") ||
            !read_seconds(walk, &actions[count].start_s) || !PASS(walk, ",") ||
            !read_seconds(walk, &actions[count].stop_s) || !PASS(walk, "]"))
            return false;
        actions[count++].name = name;
    } while (PASS(walk, ","));
    event->actions = actions;
    event->action_count = count;
    return PASS(walk, "]");
}

// Behind the quote that begins it.
IN_PLACE bool read_state(struct walk *walk, enum task_state *out) {
    switch (json_peek(walk->at, walk->end)) {
    case 'r':
        *out = TASK_RELEASED;
        return PASS(walk, "released\"");
    case 'w':
        *out = TASK_WAITING;
        return PASS(walk, "waiting\"");
    case 'n':
        *out = TASK_NO_WORKER;
        return PASS(walk, "no-worker\"");
    case 'q':
        *out = TASK_QUEUED;
        return PASS(walk, "queued\"");
    case 'p':
        *out = TASK_PROCESSING;
        return PASS(walk, "processing\"");
    case 'm':
        *out = TASK_MEMORY;
        return PASS(walk, "memory\"");
    case 'e':
        *out = TASK_ERRED;
        return PASS(walk, "erred\"");
    case 'f':
        *out = TASK_FORGOTTEN;
        return PASS(walk, "forgotten\"");
    default:
        return false;
    }
}

static bool read_bytes(struct walk *walk, int64_t *out) {
    struct number number;
    if (!read_number(walk, &number) || !number.whole || number.integer < 0)
        return false;
    *out = number.integer;
    return true;
}

// `nbytes` and `actions` may stand in either order.
IN_PLACE bool read_transition(struct walk *walk, struct span_event *event) {
    event->kind = SPAN_TRANSITION;
    event->nbytes = -1;
    if (!PASS(walk, ",\"key\":\"") || !read_name(walk, &event->key) || !PASS(walk, ",\"to\":\"") ||
        !read_state(walk, &event->to))
        return false;
    if (event->to != TASK_MEMORY)
        return true;
    bool counted = PASS(walk, ",\"nbytes\":");
    if (counted && !read_bytes(walk, &event->nbytes))
        return false;
    if (PASS(walk, ",\"actions\":[") && !read_actions(walk, event))
        return false;
    return counted || !PASS(walk, ",\"nbytes\":") || read_bytes(walk, &event->nbytes);
}

// -- metrics ------------------------------------------------------------------------------------

// `["execute","span","label","seconds",0.5]`: its key is all texts but the second.
static bool read_entry(struct walk *walk, struct span_metric *metric) {
    const char *begin = walk->at;
    struct slice context, last;
    struct number value;
    if (!PASS(walk, "[\"") || !read_text(walk, &context) || !PASS(walk, ",\""))
        return false;
    bool execute = slice_equal(context, SLICE("execute"));
    if (!execute && !slice_equal(context, SLICE("p2p")))
        return false;
    size_t before = (size_t)(walk->at - 2 - begin);
    if (!read_text(walk, &metric->span_id))
        return false;
    const char *labels = walk->at;
    last = (struct slice){NULL, 0};
    while (PASS(walk, ",\""))
        if (!read_text(walk, &last))
            return false;
    size_t behind = (size_t)(walk->at - labels);
    if (!PASS(walk, ",") || !read_number(walk, &value) || !PASS(walk, "]"))
        return false;
    char *key = arena_take(walk->arena, before + behind + 1);
    memcpy(key, begin, before);
    memcpy(key + before, labels, behind);
    key[before + behind] = ']';
    metric->key = (struct slice){key, before + behind + 1};
    metric->is_known_time = execute && slice_equal(last, SLICE("seconds"));
    metric->whole = value.whole;
    metric->integer = value.whole ? value.integer : 0;
    metric->number = value.whole ? 0 : value.value;
    return true;
}

static bool read_metrics(struct walk *walk, struct span_event *event) {
    struct span_metric *metrics = NULL;
    struct slice worker;
    uint32_t count = 0;
    event->kind = SPAN_METRICS;
    if (!PASS(walk, ",\"worker\":\"") || !read_text(walk, &worker) || !PASS(walk, ",\"data\":["))
        return false;
    do {
        metrics = grow(walk->arena, metrics, count, sizeof *metrics);
        if (metrics == NULL)
            return false;
        metrics[count] = (struct span_metric){.entry = count, .refused = SPAN_ACCEPTED};
        if (!read_entry(walk, &metrics[count]))
            return false;
        count++;
    } while (PASS(walk, ","));
    event->metrics = metrics;
    event->metric_count = count;
    return PASS(walk, "]");
}

// -- tasks --------------------------------------------------------------------------------------

static bool read_path(struct walk *walk, bool ids, const struct slice **out, uint32_t *out_count) {
    struct slice *texts = arena_take(walk->arena, IDS_MAX * sizeof *texts);
    uint32_t count = 0;
    do {
        if (count == IDS_MAX || !PASS(walk, "\"") || !read_text(walk, &texts[count]))
            return false;
        for (uint32_t i = 0; ids && i < count; i++)
            if (slice_equal(texts[i], texts[count]))
                return false;
        if (ids && (texts[count].size == 0 || slice_equal(texts[count], SLICE("(merged)"))))
            return false;
        count++;
    } while (PASS(walk, ","));
    *out = texts;
    *out_count = count;
    return PASS(walk, "]");
}

static bool read_span(struct walk *walk, const struct span_annotation **out) {
    struct span_annotation *annotation = arena_take(walk->arena, sizeof *annotation);
    uint32_t names;
    if (!PASS(walk, "{\"name\":[") || !read_path(walk, false, &annotation->tags, &names) ||
        !PASS(walk, ",\"ids\":[") || !read_path(walk, true, &annotation->ids, &annotation->count) ||
        names != annotation->count)
        return false;
    *out = annotation;
    return PASS(walk, "}");
}

// Keys, whose number is known well enough when the first one is.
static bool read_keys(struct walk *walk, struct span_event *event) {
    enum { SHORTER = 4 }; // others may be by so much
    struct span_task *tasks = NULL;
    size_t room = 1, count = 0;
    struct slice key;
    do {
        if (!PASS(walk, "\"") || !read_name(walk, &key))
            return false;
        if (tasks == NULL) {
            size_t least = key.size > 2 * SHORTER ? key.size - SHORTER : SHORTER;
            room += (size_t)(walk->end - walk->at) / least;
            room = room < TASKS_MAX ? room : TASKS_MAX;
            tasks = arena_take(walk->arena, room * sizeof *tasks);
        }
        if (count == room)
            return false;
        tasks[count++] = (struct span_task){.key = key, .nbytes = -1};
    } while (PASS(walk, ","));
    event->tasks = tasks;
    event->task_count = (uint32_t)count;
    return PASS(walk, "]");
}

// Its members in any order, each at most once.
static bool read_tasks(struct walk *walk, struct span_event *event) {
    const struct span_annotation *annotation = NULL;
    struct slice group = {NULL, 0};
    event->kind = SPAN_TASKS;
    while (json_peek(walk->at, walk->end) == ',') {
        if (event->tasks == NULL && PASS(walk, ",\"tasks\":[")) {
            if (!read_keys(walk, event))
                return false;
        } else if (group.data == NULL && PASS(walk, ",\"group\":\"")) {
            if (!read_name(walk, &group))
                return false;
        } else if (annotation != NULL || !PASS(walk, ",\"span\":") ||
                   !read_span(walk, &annotation)) {
            return false;
        }
    }
    if (event->tasks == NULL || group.data == NULL)
        return false;
    for (uint32_t i = 0; i < event->task_count; i++) {
        event->tasks[i].group = group;
        event->tasks[i].annotation = annotation;
    }
    span_find_first_tasks(event, walk->arena);
    return true;
}

bool span_read_usual(struct slice line, struct arena *arena, struct span_event *event) {
    assert(event->refused == SPAN_ACCEPTED && event->metrics == NULL);
    struct walk walk = {line.data, line.data + line.size, arena};
    bool read;
    if (PASS(&walk, "{\"ev\":\"transition\",\"ts\":"))
        read = read_seconds(&walk, &event->time_s) && read_transition(&walk, event);
    else if (PASS(&walk, "{\"ev\":\"metrics\",\"ts\":"))
        read = read_seconds(&walk, &event->time_s) && read_metrics(&walk, event);
    else if (PASS(&walk, "{\"ev\":\"tasks\",\"ts\":"))
        read = read_seconds(&walk, &event->time_s) && read_tasks(&walk, event);
    else
        return false;
    return read && event->time_s > 0 && PASS(&walk, "}") && walk.at == walk.end;
}
