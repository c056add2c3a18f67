// SPDX-License-Identifier: Apache-2.0
// The one pass over a usual line, for a file that says how its bytes are looked at:
//
//   USUAL          name of the function
//   USUAL_BLOCK    bytes of a block, at most 32
//   usual_special  which bytes of a block a scan of a text has to look at: a quote, a backslash, a
//                  control character, the start of a character beyond ASCII; bit i for byte i
//   usual_decimal  reads a number of at most 16 digits without a sign, which is not more than 2^53
//                  but for its point: gives its bytes, its digits as one number and how many of
//                  them stand behind a point; 0 bytes: it was not read. USUAL_DECIMAL_ROOM bytes
//                  are there
//
// Each file of a level includes this once. All give the same answers.
#include "receivers/decode/json/block.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/strict.h"
#include "receivers/decode/spans/read.h"
#include "receivers/decode/spans/usual.h"

#include <assert.h>

enum {
    ITEMS_FIRST = 4,
    ITEMS_MAX = 64, // of a list; longer ones are left to the general way
    IDS_MAX = 8,    // of an annotation, since every two are compared
    TASKS_MAX = 4096,
};

// Small enough, and called from so few places, that a call would cost more than what it does.
#define IN_PLACE static inline __attribute__((always_inline))

// Where the reading is. Each function passes what it names and returns true, or returns false. The
// line has at least USUAL_BLOCK bytes.
struct walk {
    const char *at, *end;
    struct arena *arena;
};

IN_PLACE uint64_t word_difference(const char *a, const char *b) {
    uint64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left ^ right;
}

// A size that the compiler knows; the last word overlaps the one before.
IN_PLACE bool same_bytes(const char *a, const char *b, size_t size) {
    uint64_t different = 0;
    if (size < sizeof different)
        return memcmp(a, b, size) == 0;
    for (size_t i = 0; i + sizeof different <= size; i += sizeof different)
        different |= word_difference(a + i, b + i);
    if (size % sizeof different != 0)
        different |= word_difference(a + size - sizeof different, b + size - sizeof different);
    return different == 0;
}

IN_PLACE bool pass(struct walk *walk, const char *text, size_t size) {
    if ((size_t)(walk->end - walk->at) < size || !same_bytes(walk->at, text, size))
        return false;
    walk->at += size;
    return true;
}
#define PASS(walk, text) pass(walk, text, sizeof(text) - 1)

// The text behind a quote that was passed, and the quote that ends it. What the general way has to
// look at ends the reading.
IN_PLACE bool read_text(struct walk *walk, struct slice *out) {
    const char *begin = walk->at, *at = begin;
    uint32_t special;
    while (walk->end - at >= USUAL_BLOCK) {
        special = usual_special(at);
        if (__builtin_expect(special != 0, 1))
            goto found;
        at += USUAL_BLOCK;
    }
    // The last bytes of the line, in a block with those before them.
    if (at == walk->end)
        return false;
    special = usual_special(walk->end - USUAL_BLOCK) >> (USUAL_BLOCK - (walk->end - at));
    if (special == 0)
        return false;
found:
    at += __builtin_ctz(special);
    if (*at != '"')
        return false;
    *out = (struct slice){begin, (size_t)(at - begin)};
    walk->at = at + 1;
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
static const char *read_digits(const char *at, struct number *out) {
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

// Any of them, also at the end of the line, of which no byte behind its last may be read.
__attribute__((noinline)) static const char *read_any_digits(const char *at, const char *end,
                                                             struct number *out) {
    char copy[NUMBER_ROOM] = {0};
    if (end - at >= NUMBER_ROOM)
        return read_digits(at, out);
    memcpy(copy, at, (size_t)(end - at));
    const char *after = read_digits(copy, out);
    return after == NULL ? NULL : at + (after - copy);
}

// A number without a sign and of few digits, as most are. The rest is left to read_any_digits().
IN_PLACE const char *read_decimal(const char *at, const char *end, struct number *out) {
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t magnitude;
    unsigned behind, size = 0;
    if (end - at >= USUAL_DECIMAL_ROOM)
        size = usual_decimal(at, &magnitude, &behind);
    if (__builtin_expect(size == 0, 0)) {
        struct number any = {0}; // so that `out` need not lie in memory
        at = read_any_digits(at, end, &any);
        *out = any;
        return at;
    }
    out->whole = behind == 0;
    out->integer = (int64_t)magnitude;
    // Both are exact, so that the division rounds as it should.
    out->value = (double)(int64_t)magnitude / powers[behind];
    return at + size;
}

IN_PLACE bool read_number(struct walk *walk, struct number *out) {
    const char *after = read_decimal(walk->at, walk->end, out);
    if (after == NULL)
        return false;
    walk->at = after;
    unsigned char next = json_peek(after, walk->end);
    return next == ',' || next == ']' || next == '}';
}

IN_PLACE bool read_seconds(struct walk *walk, double *out) {
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

IN_PLACE bool read_end(struct walk *walk, const struct span_event *event) {
    return event->time_s > 0 && PASS(walk, "}") && walk->at == walk->end;
}

// -- transition ---------------------------------------------------------------------------------

IN_PLACE bool read_actions(struct walk *walk, struct span_event *event) {
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

IN_PLACE bool read_bytes(struct walk *walk, int64_t *out) {
    struct number number;
    if (!read_number(walk, &number) || !number.whole || number.integer < 0)
        return false;
    *out = number.integer;
    return true;
}

// `nbytes` and `actions` may stand in either order.
IN_PLACE bool read_change(struct walk *walk, struct span_event *event) {
    event->kind = SPAN_TRANSITION;
    event->nbytes = -1;
    if (!PASS(walk, ",\"key\":\"") || !read_name(walk, &event->key) || !PASS(walk, ",\"to\":\"") ||
        !read_state(walk, &event->to))
        return false;
    if (event->to != TASK_MEMORY)
        return true;
    bool counted = false;
    while (json_peek(walk->at, walk->end) == ',') {
        if (!counted && PASS(walk, ",\"nbytes\":")) {
            if (!read_bytes(walk, &event->nbytes))
                return false;
            counted = true;
        } else if (event->actions != NULL || !PASS(walk, ",\"actions\":[") ||
                   !read_actions(walk, event)) {
            return false;
        }
    }
    return true;
}

// Behind "ts"; the walk is its own, so that where it is need not lie in memory.
static bool read_transition(struct walk walk, struct span_event *event) {
    return read_seconds(&walk, &event->time_s) && read_change(&walk, event) &&
           read_end(&walk, event);
}

// -- metrics ------------------------------------------------------------------------------------

// `["execute","span","label","seconds",0.5]`: its key is all texts but the second.
IN_PLACE bool read_entry(struct walk *walk, struct span_metric *metric) {
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

IN_PLACE bool read_entries(struct walk *walk, struct span_event *event) {
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

static bool read_metrics(struct walk walk, struct span_event *event) {
    return read_seconds(&walk, &event->time_s) && read_entries(&walk, event) &&
           read_end(&walk, event);
}

// -- tasks --------------------------------------------------------------------------------------

IN_PLACE bool read_path(struct walk *walk, bool ids, const struct slice **out,
                        uint32_t *out_count) {
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

IN_PLACE bool read_span(struct walk *walk, const struct span_annotation **out) {
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
IN_PLACE bool read_keys(struct walk *walk, struct span_event *event) {
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
IN_PLACE bool read_submission(struct walk *walk, struct span_event *event) {
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

static bool read_tasks(struct walk walk, struct span_event *event) {
    return read_seconds(&walk, &event->time_s) && read_submission(&walk, event) &&
           read_end(&walk, event);
}

bool USUAL(struct slice line, struct arena *arena, struct span_event *event) {
    assert(event->refused == SPAN_ACCEPTED && line.size >= SPAN_USUAL_MIN);
    _Static_assert((int)USUAL_BLOCK <= (int)SPAN_USUAL_MIN, "a block fits");
    struct walk walk = {line.data, line.data + line.size, arena};
    if (PASS(&walk, "{\"ev\":\"transition\",\"ts\":"))
        return read_transition(walk, event);
    if (PASS(&walk, "{\"ev\":\"metrics\",\"ts\":"))
        return read_metrics(walk, event);
    return PASS(&walk, "{\"ev\":\"tasks\",\"ts\":") && read_tasks(walk, event);
}
