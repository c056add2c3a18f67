// SPDX-License-Identifier: Apache-2.0
// Merges documents, and applies --set.
//
// Maps that both have are joined into a new map, all else is shared: with a list of the joins still
// to be made instead of recursion. Cost: O(keys * keys) a map, bounded by DOCUMENT_KEYS_MAX for
// each document.
#include "config/yaml/document.h"

#include <assert.h>
#include <string.h>

struct join {
    struct join *next;
    struct node **slot; // where the joined map goes
    const struct node *base, *over;
};

static void join_later(struct arena *arena, struct join **joins, struct node **slot,
                       const struct node *base, const struct node *over) {
    struct join *join = arena_take(arena, sizeof *join);
    *join = (struct join){*joins, slot, base, over};
    *joins = join;
}

static struct node_entry *entry_in(struct node *map, const char *key) {
    return (struct node_entry *)node_entry_find(map, key);
}

// A map holds what its parts hold; a place where both speak keeps the one that spoke first.
static void join_make(struct arena *arena, const struct join *join, struct join **joins) {
    assert(join->base->type == NODE_MAP && join->over->type == NODE_MAP);
    const struct node *base = join->base, *over = join->over;
    struct node *joined = arena_take(arena, sizeof *joined);
    *joined = *base;
    joined->weight += over->weight;
    joined->entries =
        arena_take(arena, ((size_t)base->count + over->count + 1) * sizeof *joined->entries);
    if (base->count > 0)
        memcpy(joined->entries, base->entries, base->count * sizeof *joined->entries);
    for (uint32_t i = 0; i < over->count; i++) {
        const struct node_entry *entry = &over->entries[i];
        struct node_entry *known = entry_in(joined, entry->key);
        if (known == NULL)
            joined->entries[joined->count++] = *entry;
        else if (known->value->type == NODE_MAP && entry->value->type == NODE_MAP)
            join_later(arena, joins, &known->value, known->value, entry->value);
        else
            *known = *entry;
    }
    *join->slot = joined;
}

struct node *document_merge(struct arena *arena, struct node *base, struct node *over) {
    if (base == NULL || over == NULL)
        return over == NULL ? base : over;
    if (base->type != NODE_MAP || over->type != NODE_MAP)
        return over;
    struct node *result = NULL;
    struct join *joins = NULL;
    join_later(arena, &joins, &result, base, over);
    while (joins != NULL) {
        struct join *join = joins;
        joins = join->next;
        join_make(arena, join, &joins);
    }
    return result;
}

// The next key of a path, its "\." made dots; NULL when it is empty. Stops at '.' or the end.
static const char *path_key(struct arena *arena, const char **path, const char *end) {
    assert(*path <= end);
    char *key = arena_take(arena, (size_t)(end - *path) + 1);
    size_t length = 0;
    const char *at = *path;
    for (; at < end && *at != '.'; at++) {
        if (at[0] == '\\' && at + 1 < end && at[1] == '.')
            at++;
        key[length++] = *at;
    }
    key[length] = '\0';
    *path = at;
    return length == 0 || length > DOCUMENT_KEY_LENGTH_MAX ? NULL : key;
}

// A map that holds one key.
static struct node *map_around(struct arena *arena, const char *key, struct node *value) {
    assert(key != NULL && value != NULL);
    struct node *map = arena_zero(arena, 1, sizeof *map);
    struct node_entry *entry = arena_zero(arena, 1, sizeof *entry);
    *entry = (struct node_entry){.key = key, .value = value};
    *map = (struct node){.type = NODE_MAP,
                         .entries = entry,
                         .count = 1,
                         .depth = value->depth + 1,
                         .weight = value->weight + 1};
    return map;
}

struct node *document_set(struct arena *arena, struct node *base, const char *assignment,
                          uint32_t ordinal, struct problem_list *problems) {
    assert(assignment != NULL && ordinal > 0);
    static const struct location COMMAND_LINE = {0};
    const char *equals = strchr(assignment, '=');
    if (equals == NULL) {
        problem_add_at(problems, COMMAND_LINE, "",
                       "assignment %u has no '='; write --set key.path=value", ordinal);
        return base;
    }
    const char *keys[DOCUMENT_DEPTH_MAX];
    uint32_t count = 0;
    for (const char *at = assignment;; at++) {
        const char *key = count < DOCUMENT_DEPTH_MAX ? path_key(arena, &at, equals) : NULL;
        if (key == NULL) {
            problem_add_at(problems, COMMAND_LINE, "",
                           "assignment %u has an empty key, a key over %d bytes or over %d keys; "
                           "write --set key.path=value, with \\. for a dot inside a key",
                           ordinal, DOCUMENT_KEY_LENGTH_MAX, DOCUMENT_DEPTH_MAX);
            return base;
        }
        keys[count++] = key;
        if (at == equals)
            break;
    }
    struct node *over = document_parse(arena, NULL, slice_of(equals + 1), problems);
    if (over == NULL)
        return base;
    while (count > 0)
        over = map_around(arena, keys[--count], over);
    return document_merge(arena, base, over);
}
