// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/spans/usual.h"

#include "receivers/decode/json/block.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/strict.h"
#include "receivers/decode/spans/read.h"

#include <assert.h>

enum { ITEMS_FIRST = 4, ITEMS_MAX = 64 }; // of a list; longer ones are left to the general way

// Where the reading is. Each function passes what it names and returns true, or returns false.
struct walk {
    const char *at, *end;
    struct arena *arena;
};

static inline bool pass(struct walk *walk, const char *text, size_t size) {
    if ((size_t)(walk->end - walk->at) < size || memcmp(walk->at, text, size) != 0)
        return false;
    walk->at += size;
    return true;
}
#define PASS(walk, text) pass(walk, text, sizeof(text) - 1)

// The text behind a quote that was passed, and the quote that ends it.
static inline bool read_text(struct walk *walk, struct slice *out) {
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

// How many digits stand there, at most 18, and what they write; 0: none, more, or a zero before
// others where that is not allowed (`whole`).
static inline unsigned read_digits(const char *digits, const char *end, bool whole,
                                   uint64_t *magnitude) {
    unsigned count = 0;
    *magnitude = 0;
    if (end - digits >= 3 * 8) {
        for (unsigned more = 8; more == 8 && count <= 16; count += more) {
            uint64_t part;
            more = json_block_number(digits + count, &part);
            *magnitude = *magnitude * json_powers_of_ten[more] + part;
        }
    } else {
        while (digits + count < end && (unsigned char)(digits[count] - '0') <= 9 && count <= 18)
            *magnitude = *magnitude * 10 + (uint64_t)(digits[count++] - '0');
    }
    return count > 18 || (whole && count > 1 && *digits == '0') ? 0 : count;
}

struct number {
    bool whole;
    int64_t integer;
    double value;
};

// An integer of at most 18 digits, or a decimal of as many without exponent.
static inline bool read_number(struct walk *walk, struct number *out) {
    uint64_t magnitude, fraction = 0;
    bool negative = pass(walk, "-", 1);
    unsigned count = read_digits(walk->at, walk->end, true, &magnitude);
    if (count == 0)
        return false;
    walk->at += count;
    out->whole = !pass(walk, ".", 1);
    if (out->whole) {
        out->integer = negative ? -(int64_t)magnitude : (int64_t)magnitude;
        out->value = (double)out->integer;
    } else {
        unsigned behind = read_digits(walk->at, walk->end, false, &fraction);
        if (behind == 0 || behind > 18 - (magnitude == 0 ? 0 : count))
            return false;
        walk->at += behind;
        for (unsigned i = 0; i < behind; i++)
            magnitude *= 10;
        if (!json_decimal_double(magnitude + fraction, behind, &out->value))
            return false;
        out->value = negative ? -out->value : out->value;
    }
    unsigned char after = json_peek(walk->at, walk->end);
    return after == ',' || after == ']' || after == '}';
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
        if (actions == NULL || !PASS(walk, "[\"") || !read_text(walk, &name) || name.size == 0 ||
            !PASS(walk, ",") || !read_seconds(walk, &actions[count].start_s) || !PASS(walk, ",") ||
            !read_seconds(walk, &actions[count].stop_s) || !PASS(walk, "]"))
            return false;
        actions[count++].name = name;
    } while (PASS(walk, ","));
    event->actions = actions;
    event->action_count = count;
    return PASS(walk, "]");
}

static bool read_state(struct walk *walk, struct span_event *event) {
    struct slice name;
    if (!read_text(walk, &name))
        return false;
    for (int state = TASK_STATE_COUNT; state-- > 0;) {
        if (slice_equal(name, slice_of(task_state_name((enum task_state)state)))) {
            event->to = (enum task_state)state;
            return true;
        }
    }
    return false;
}

static bool read_transition(struct walk *walk, struct span_event *event) {
    event->kind = SPAN_TRANSITION;
    event->nbytes = -1;
    if (!PASS(walk, ",\"key\":\"") || !read_text(walk, &event->key) || event->key.size == 0 ||
        !PASS(walk, ",\"to\":\"") || !read_state(walk, event))
        return false;
    if (event->to != TASK_MEMORY)
        return true;
    if (PASS(walk, ",\"nbytes\":")) {
        struct number number;
        if (!read_number(walk, &number) || !number.whole || number.integer < 0)
            return false;
        event->nbytes = number.integer;
    }
    return !PASS(walk, ",\"actions\":[") || read_actions(walk, event);
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

bool span_read_usual(struct slice line, struct arena *arena, struct span_event *event) {
    assert(event->refused == SPAN_ACCEPTED && event->metrics == NULL);
    struct walk walk = {line.data, line.data + line.size, arena};
    bool transition = PASS(&walk, "{\"ev\":\"transition\",\"ts\":");
    if (!transition && !PASS(&walk, "{\"ev\":\"metrics\",\"ts\":"))
        return false;
    return read_seconds(&walk, &event->time_s) && event->time_s > 0 &&
           (transition ? read_transition(&walk, event) : read_metrics(&walk, event)) &&
           PASS(&walk, "}") && walk.at == walk.end;
}
