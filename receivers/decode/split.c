// SPDX-License-Identifier: Apache-2.0
// Finds where each record of a document begins and ends.
//
// A state machine over bytes: what stands between records is checked, inside a record only quotes
// and the balance of brackets are followed. It stops at each record and at the end of the window,
// and goes on where it stopped. Bound: the caller keeps one record at most `record_max` long; cost
// linear, no allocation.
#include "receivers/decode/split.h"

#include "receivers/decode/json/block.h"

#include <assert.h>

enum state {
    AT_START,
    AT_ITEM_OR_END, // in the array, after its bracket
    AT_ITEM,        // in the array, after a comma
    IN_ITEM,
    AFTER_ITEM,
    AT_KEY_OR_END, // in the wrapper, after its brace
    AT_KEY,
    IN_KEY,
    AT_COLON,
    AT_VALUE,
    IN_VALUE, // of a key that is skipped
    AFTER_VALUE,
    AT_NEXT, // between records that stand one after another
    AFTER_END,
    FAULTY,
};

void splitter_begin(struct splitter *split, enum format_layout layout, size_t record_max) {
    assert(layout != LAYOUT_LINES);
    *split = (struct splitter){.layout = layout, .record_max = record_max, .state = AT_START};
    if (layout == LAYOUT_OBJECT)
        split->state = AT_NEXT;
}

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Moves to the next byte that is no white space; false when the window ends first.
static bool find_byte(struct splitter *split, struct slice window, char *byte) {
    while (split->at < window.size && is_space(window.data[split->at]))
        split->at++;
    if (split->at == window.size)
        return false;
    *byte = window.data[split->at];
    return true;
}

static enum split_step fail(struct splitter *split, const char *why) {
    split->state = FAULTY;
    split->fault = why;
    split->fault_at = split->base + split->at;
    return SPLIT_FAULT;
}

// Inside a string: to its closing quote and past it.
static void pass_string(struct splitter *split, struct slice window) {
    while (split->at < window.size) {
        const char *text = window.data + split->at;
        if (!split->escaped && window.size - split->at >= JSON_BLOCK) {
            unsigned plain = json_block_plain(text);
            if (plain > 0) {
                split->at += plain;
                continue;
            }
        }
        split->at++;
        if (split->escaped) {
            split->escaped = false;
        } else if (*text == '\\') {
            split->escaped = true;
        } else if (*text == '"') {
            split->in_string = false;
            return;
        }
    }
}

static void begin_value(struct splitter *split) {
    split->record = split->at;
    split->depth = 0;
    split->in_string = split->escaped = split->scalar = split->skipping = false;
}

// Goes on inside a value; true when it ended, with `at` past it.
static bool pass_value(struct splitter *split, struct slice window) {
    while (split->at < window.size) {
        if (split->in_string) {
            pass_string(split, window);
            if (!split->in_string && split->depth == 0)
                return true;
            continue;
        }
        char c = window.data[split->at];
        if (split->scalar && (is_space(c) || c == ',' || c == ']' || c == '}'))
            return true;
        split->at++;
        if (c == '"' && !split->scalar)
            split->in_string = true;
        else if (c == '{' || c == '[')
            split->depth++;
        else if ((c == '}' || c == ']') && --split->depth == 0)
            return true;
        else if (split->depth == 0)
            split->scalar = true;
    }
    return false;
}

static enum split_step begin_item(struct splitter *split) {
    assert(split->state != IN_ITEM);
    begin_value(split);
    split->item++;
    split->state = IN_ITEM;
    return SPLIT_MORE;
}

// Between records of an array. SPLIT_MORE: go on.
static enum split_step step_array(struct splitter *split, char byte) {
    bool at_item = split->state != AFTER_ITEM;
    if (byte == ']') {
        if (split->state == AT_ITEM)
            return fail(split, "a comma stands in front of the closing bracket");
        split->at++;
        split->state = split->layout == LAYOUT_WRAPPER ? AFTER_VALUE : AFTER_END;
        return SPLIT_MORE;
    }
    if (byte == ',') {
        split->at++;
        split->state = AT_ITEM;
        if (at_item) {
            split->item++;
            return SPLIT_EMPTY;
        }
        return SPLIT_MORE;
    }
    if (!at_item)
        return fail(split, "a comma is missing between two records");
    if (byte == '}')
        return fail(split, "a brace closes what is open as an array");
    return begin_item(split);
}

static bool key_is(const struct splitter *split, const char *name) {
    return split->key_size == strlen(name) && memcmp(split->key, name, split->key_size) == 0;
}

// Between the members of a wrapper. SPLIT_MORE: go on.
static enum split_step step_wrapper(struct splitter *split, char byte) {
    bool may_end = split->state == AT_KEY_OR_END || split->state == AFTER_VALUE;
    if (may_end && byte == '}') {
        split->state = AFTER_END;
    } else if (split->state == AFTER_VALUE) {
        if (byte != ',')
            return fail(split, "a comma is missing between two keys");
        split->state = AT_KEY;
    } else if (split->state == AT_COLON) {
        if (byte != ':')
            return fail(split, "a colon is missing after a key");
        split->state = AT_VALUE;
    } else {
        if (byte != '"')
            return fail(split, "a key is missing");
        split->key_size = 0;
        split->escaped = false;
        split->state = IN_KEY;
    }
    split->at++;
    return SPLIT_MORE;
}

static enum split_step step_value(struct splitter *split, char byte) {
    if (byte == '[' &&
        (key_is(split, "events") || key_is(split, "telemetry_events") || key_is(split, "items"))) {
        split->at++;
        split->state = AT_ITEM_OR_END;
        return SPLIT_MORE;
    }
    if (byte == ',' || byte == '}' || byte == ']')
        return fail(split, "a key has no value");
    begin_value(split);
    split->summary_size = 0;
    split->state = IN_VALUE;
    return SPLIT_MORE;
}

static enum split_step step_start(struct splitter *split, char byte) {
    bool array = split->layout == LAYOUT_ARRAY;
    if (byte != (array ? '[' : '{'))
        return fail(split, array ? "expected an array" : "expected an object");
    split->at++;
    split->state = array ? AT_ITEM_OR_END : AT_KEY_OR_END;
    return SPLIT_MORE;
}

static enum split_step step_next(struct splitter *split, char byte) {
    if (byte != '{' && byte != '[')
        return fail(split, "expected a record");
    return begin_item(split);
}

// A state that looks at one byte after white space.
static enum split_step step_byte(struct splitter *split, char byte) {
    switch ((enum state)split->state) {
    case AT_START:
        return step_start(split, byte);
    case AT_ITEM_OR_END:
    case AT_ITEM:
    case AFTER_ITEM:
        return step_array(split, byte);
    case AT_VALUE:
        return step_value(split, byte);
    case AT_NEXT:
        return step_next(split, byte);
    case AFTER_END:
        return fail(split, "something follows after the end of the document");
    default:
        return step_wrapper(split, byte);
    }
}

// Goes on in a record. SPLIT_MORE with state IN_ITEM: the window ended.
static enum split_step step_item(struct splitter *split, struct slice window,
                                 struct slice *record) {
    assert(split->record <= split->at || split->skipping);
    bool ended = pass_value(split, window);
    size_t size = split->at - split->record;
    bool skipped = split->skipping;
    if (ended)
        split->state = split->layout == LAYOUT_OBJECT ? AT_NEXT : AFTER_ITEM;
    if (!skipped && size > split->record_max) {
        split->skipping = true;
        *record = (struct slice){window.data + split->record, split->record_max};
        return SPLIT_TOO_LONG;
    }
    if (!ended || skipped)
        return SPLIT_MORE;
    *record = (struct slice){window.data + split->record, size};
    return SPLIT_RECORD;
}

static void step_key(struct splitter *split, struct slice window) {
    while (split->at < window.size) {
        char c = window.data[split->at++];
        if (c == '"' && !split->escaped) {
            split->state = AT_COLON;
            return;
        }
        split->escaped = c == '\\' && !split->escaped;
        if (split->key_size < SPLIT_KEY_MAX)
            split->key[split->key_size] = c;
        // One beyond the room is enough to be no known key.
        if (split->key_size <= SPLIT_KEY_MAX)
            split->key_size++;
    }
}

// Passes a value that holds no records; keeps the text of a session summary.
static void step_skipped(struct splitter *split, struct slice window) {
    size_t from = split->at;
    bool ended = pass_value(split, window);
    size_t size = split->at - from;
    if (key_is(split, "session_summary")) {
        if (split->summary_size + size <= SPLIT_SUMMARY_MAX) {
            memcpy(split->summary_text + split->summary_size, window.data + from, size);
            split->summary_size += size;
        } else {
            split->summary_size = SPLIT_SUMMARY_MAX + 1;
        }
    }
    if (!ended)
        return;
    split->state = AFTER_VALUE;
    if (key_is(split, "session_summary") && split->summary_size <= SPLIT_SUMMARY_MAX)
        split->summary = (struct slice){split->summary_text, split->summary_size};
}

enum split_step splitter_next(struct splitter *split, struct slice window, struct slice *record) {
    assert(split->at <= window.size);
    if (split->state == FAULTY)
        return SPLIT_FAULT;
    for (;;) {
        enum split_step step = SPLIT_MORE;
        char byte = '\0';
        if (split->state == IN_ITEM)
            step = step_item(split, window, record);
        else if (split->state == IN_KEY)
            step_key(split, window);
        else if (split->state == IN_VALUE)
            step_skipped(split, window);
        else if (find_byte(split, window, &byte))
            step = step_byte(split, byte);
        if (step != SPLIT_MORE)
            return step;
        if (split->at >= window.size)
            return SPLIT_MORE;
    }
}

size_t splitter_used(const struct splitter *split) {
    return split->state == IN_ITEM && !split->skipping ? split->record : split->at;
}

void splitter_drop(struct splitter *split, size_t size) {
    assert(size <= splitter_used(split));
    split->base += size;
    split->at -= size;
    if (split->state == IN_ITEM)
        split->record = split->record > size ? split->record - size : 0;
}

const char *splitter_end(const struct splitter *split) {
    switch ((enum state)split->state) {
    case AT_START:
    case AT_NEXT:
    case AFTER_END:
        return NULL;
    case IN_ITEM:
        return "it ends inside a record";
    case FAULTY:
        return split->fault;
    default:
        return "its closing bracket is missing";
    }
}
