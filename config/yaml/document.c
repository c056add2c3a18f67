// SPDX-License-Identifier: Apache-2.0
// Finds values in the tree by key and by path.
//
// Maps are short, so keys are found by looking at each. A path is followed greedily: at each map,
// the longest key that begins the rest of it.
#include "config/yaml/document.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *node_type_name(enum node_type type) {
    assert((unsigned)type <= NODE_MAP);
    static const char *const NAMES[] = {"empty", "text", "list", "map"};
    return NAMES[type];
}

const struct node_entry *node_entry_find(const struct node *map, const char *key) {
    if (map == NULL || map->type != NODE_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->count; i++)
        if (strcmp(map->entries[i].key, key) == 0)
            return &map->entries[i];
    return NULL;
}

const struct node *node_child(const struct node *map, const char *key) {
    const struct node_entry *entry = node_entry_find(map, key);
    return entry == NULL ? NULL : entry->value;
}

static const struct node_entry *map_step(const struct node *map, const char **path) {
    assert(map->type == NODE_MAP);
    const struct node_entry *best = NULL;
    size_t best_length = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        size_t length = strlen(map->entries[i].key);
        char end = strncmp(*path, map->entries[i].key, length) == 0 ? (*path)[length] : '?';
        if ((end == '\0' || end == '.' || end == '[') && (best == NULL || length > best_length)) {
            best = &map->entries[i];
            best_length = length;
        }
    }
    if (best != NULL)
        *path += best_length;
    return best;
}

static const struct node_entry *list_step(const struct node *list, const char **path) {
    assert(list->type == NODE_LIST && **path == '[');
    char *end;
    unsigned long index = strtoul(*path + 1, &end, 10);
    if (*end != ']' || index >= list->count)
        return NULL;
    *path = end + 1;
    return &list->entries[index];
}

// One step down; NULL when there is none.
static const struct node_entry *path_step(const struct node *node, const char **path) {
    if (node->type == NODE_LIST && **path == '[')
        return list_step(node, path);
    if (node->type != NODE_MAP || **path == '[')
        return NULL;
    if (**path == '.')
        (*path)++;
    return map_step(node, path);
}

const struct node *document_find(const struct node *root, const char *path) {
    assert(path != NULL);
    const struct node *node = root;
    while (node != NULL && *path != '\0') {
        const struct node_entry *entry = path_step(node, &path);
        node = entry == NULL ? NULL : entry->value;
    }
    return node;
}

struct location document_locate(const struct node *root, const char *path) {
    assert(path != NULL);
    if (root == NULL)
        return (struct location){0};
    const struct node *node = root;
    struct location where = root->where;
    while (*path != '\0') {
        const struct node_entry *entry = path_step(node, &path);
        if (entry == NULL)
            return where;
        node = entry->value;
        where = entry->key != NULL ? entry->key_where : node->where;
    }
    bool pointed = node->type == NODE_TEXT || node->type == NODE_LIST;
    return pointed ? node->where : where;
}
