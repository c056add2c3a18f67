// SPDX-License-Identifier: Apache-2.0
// Skips JSON objects and arrays, as scan.h and strict.h offer it: with one bit a level instead of
// recursion. One pass, constant memory.
#include "receivers/decode/json/strict.h"

// Which of the open containers are objects: bit `depth - 1`.
struct nest {
    uint64_t objects;
    unsigned depth;
    unsigned outside; // depth at which the walk is over
};

static bool in_object(const struct nest *nest) {
    return (nest->objects >> (nest->depth - 1) & 1) != 0;
}

// At the start of a value. Opens it when it is a container, else reads past it.
static inline const char *enter_value(struct nest *nest, bool *opened, const char *at,
                                      const char *end, bool strict, struct json_fault *fault) {
    unsigned char c = json_peek(at, end);
    *opened = c == '{' || c == '[';
    if (!*opened) {
        struct token scalar;
        at = json_scan_scalar(at, end, &scalar, fault);
        return !strict || at == NULL || json_token_is_strict(&scalar, end, fault) ? at : NULL;
    }
    if (nest->depth == JSON_SCAN_DEPTH_MAX)
        return json_fail(fault, at, "objects and arrays nested more than 64 deep");
    uint64_t bit = UINT64_C(1) << nest->depth;
    nest->objects = c == '{' ? nest->objects | bit : nest->objects & ~bit;
    nest->depth++;
    return at + 1;
}

// In front of an item of the innermost container: past its key, to its value.
static inline const char *enter_item(const struct nest *nest, const char *at, const char *end,
                                     bool strict, struct json_fault *fault) {
    if (!in_object(nest))
        return at;
    struct token key;
    if (json_peek(at, end) != '"')
        return json_fail(fault, at, "no key in quotes where one must be");
    at = json_scan_string(at + 1, end, &key, fault);
    if (at == NULL || (strict && !json_token_is_strict(&key, end, fault)))
        return NULL;
    at = json_skip_space(at, end);
    if (json_peek(at, end) != ':')
        return json_fail(fault, at, "no colon after a key");
    return json_skip_space(at + 1, end);
}

// Inlined once for each `strict`.
static inline const char *walk_container(const char *at, const char *end, unsigned depth,
                                         bool strict, struct json_fault *fault) {
    struct nest nest = {.depth = depth - 1, .outside = depth - 1};
    bool opened = false;
    at = enter_value(&nest, &opened, at, end, strict, fault);
    while (at != NULL && nest.depth > nest.outside) {
        at = json_skip_space(at, end);
        unsigned char c = json_peek(at, end);
        if (c == (in_object(&nest) ? '}' : ']')) {
            nest.depth--;
            opened = false;
            at++;
            continue;
        }
        if (!opened) {
            if (c != ',')
                return json_fail(fault, at, "no comma or closing bracket after a value");
            at = json_skip_space(at + 1, end);
        }
        at = enter_item(&nest, at, end, strict, fault);
        if (at != NULL)
            at = enter_value(&nest, &opened, at, end, strict, fault);
    }
    return at;
}

const char *json_skip_container(const char *at, const char *end, unsigned depth,
                                struct json_fault *fault) {
    return walk_container(at, end, depth, false, fault);
}

const char *json_skip_strict_container(const char *at, const char *end, unsigned depth,
                                       struct json_fault *fault) {
    return walk_container(at, end, depth, true, fault);
}
