// SPDX-License-Identifier: Apache-2.0
// JSON objects in which carriers of logs pack lines, told and opened by the rows of envelopes.
//
// A path names a value by its keys with a dot between two, however these are cut: "kubernetes.host"
// is the key `host` of the object `kubernetes`, and the key `kubernetes.host`. An array of objects
// with `key` and `value` (OTLP's attributes), and texts "name:value" in an array or with commas
// between them (Datadog's tags), are read as members, too. Of an array that is a record its items
// are called 0, 1 ….
//
// A row with lists holds many lines: each item of the innermost list is one, and what the objects
// around it say is said of it, too. One pass over the object; at most ENVELOPE_FOUND_MAX values of
// paths that some row knows are looked at, and no objects that no path leads into.
#pragma once

#include "receivers/decode/forms/rows.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"

enum { ENVELOPE_FOUND_MAX = 64, ENVELOPE_DEPTH_MAX = 8 };

struct envelopes;

// What is found by the rows' paths; lies in `arena`.
struct envelopes *envelopes_make(const struct form_rows *rows, struct arena *arena);

struct envelope {
    const struct envelopes *rows;
    const struct form *form; // NULL: no row knows the object
    bool has_words;          // … though it says something under a key as those of messages
    // The walk's own:
    bool given;
    uint32_t depth, lists;
    struct json_items items[FORM_LISTS_MAX];
    uint32_t counts[FORM_LISTS_MAX]; // of `found`, without what this list's items say
    uint32_t count;
    struct {
        uint16_t path;
        struct token value;
    } found[ENVELOPE_FOUND_MAX];
};

// Looks which row knows the object. False: it is no whole JSON object, and `fault` says why.
bool envelope_open(struct envelope *envelope, const struct envelopes *rows, struct slice object,
                   struct json_fault *fault);
// The next line of an object that a row knows; false: there is none. O(size of the line's item).
bool envelope_next(struct envelope *envelope);
// What the line at hand says; false: nothing. Tokens lie in the object.
bool envelope_value(const struct envelope *envelope, enum form_target target, struct token *value);
