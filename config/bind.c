// SPDX-License-Identifier: Apache-2.0
// Binds a map of the configuration to option rows: which keys are there, and which should be.
//
// One pass over the keys (what is unknown) and one over the rows (defaults, values, what is
// missing). Groups are rows below rows: the recursion follows our tables, not the input.
#include "config/bind.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 64, LISTED_MAX = 12, LIST_TEXT_MAX = 600 };

static const char *path_join(const struct binder *binder, const char *path, const char *key) {
    return arena_format(binder->arena, "%s%s%s", path, *path == '\0' ? "" : ".", key);
}

static bool bind_group(const struct binder *binder, const struct option *row,
                       const struct node_entry *entry, const char *key,
                       const struct bind_source *above, void *field) {
    assert(row->type == OPTION_GROUP && row->row_count <= ROWS_MAX);
    struct bind_source source = {
        .key = key, .where = above->where, .optional = above->optional || !row->required};
    if (entry != NULL) {
        source.node = entry->value;
        source.where = entry->key_where;
    }
    return bind_options(binder, row->rows, row->row_count, &source, field);
}

static bool bind_row(const struct binder *binder, const struct option *row,
                     const struct bind_source *source, void *field) {
    assert(row->name != NULL && (!row->required || row->help != NULL));
    const struct node_entry *entry = node_entry_find(source->node, row->name);
    const char *key = path_join(binder, source->key, row->name);
    if (row->type == OPTION_GROUP)
        return bind_group(binder, row, entry, key, source, field);
    bind_default(binder, row, field);
    if (entry != NULL)
        return bind_value(binder, row, entry->value, entry->key_where, key, field);
    if (!row->required || (source->node == NULL && source->optional))
        return true;
    problem_add_at(binder->problems, source->where, key, "is required (%s): %s",
                   option_type_name(row->type), row->help);
    return false;
}

// The group that has a row of this name, for a key that stands one level too high.
static const struct option *group_with(const struct option *rows, size_t count, const char *key) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; rows[i].type == OPTION_GROUP && j < rows[i].row_count; j++)
            if (strcmp(rows[i].rows[j].name, key) == 0)
                return &rows[i];
    return NULL;
}

static void names_list(const char *const *names, size_t count, char out[LIST_TEXT_MAX]) {
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count && used < LIST_TEXT_MAX; i++)
        used += (size_t)snprintf(out + used, LIST_TEXT_MAX - used, "%s%s", i == 0 ? "" : ", ",
                                 names[i]);
}

struct known_keys {
    const char *const *names;
    size_t count;
    const struct option *rows; // for hints at groups; may be NULL
    size_t row_count;
};

static void unknown_key(const struct binder *binder, const struct known_keys *known,
                        const struct bind_source *source, const struct node_entry *entry) {
    const char *key = path_join(binder, source->key, entry->key);
    const char *near = option_nearest(entry->key, known->names, known->count);
    const struct option *group = group_with(known->rows, known->row_count, entry->key);
    char listed[LIST_TEXT_MAX];
    names_list(known->names, known->count, listed);
    if (known->count == 0)
        problem_add_at(binder->problems, entry->key_where, key,
                       "unknown key; there are no options here");
    else if (near != NULL && known->count > LISTED_MAX)
        problem_add_at(binder->problems, entry->key_where, key, "unknown key; did you mean '%s'?",
                       near);
    else if (near != NULL)
        problem_add_at(binder->problems, entry->key_where, key,
                       "unknown key; did you mean '%s'? Valid keys: %s", near, listed);
    else if (group != NULL)
        problem_add_at(binder->problems, entry->key_where, key,
                       "unknown key; did you mean '%s.%s'?", group->name, entry->key);
    else
        problem_add_at(binder->problems, entry->key_where, key, "unknown key; valid keys: %s",
                       listed);
}

static bool key_known(const char *key, const struct known_keys *known) {
    for (size_t i = 0; i < known->count; i++)
        if (strcmp(known->names[i], key) == 0)
            return true;
    return false;
}

// From here on the key that was meant stands there, so that what is below it is checked, too, and
// nothing is missed that is there under a misspelt name.
static void key_mend(const struct known_keys *known, const struct bind_source *source,
                     struct node_entry *entry) {
    const char *near = option_nearest(entry->key, known->names, known->count);
    if (near != NULL && node_entry_find(source->node, near) == NULL)
        entry->key = near;
}

static void keys_check(const struct binder *binder, const struct known_keys *known,
                       const struct bind_source *source) {
    for (uint32_t i = 0; i < source->node->count; i++) {
        struct node_entry *entry = &source->node->entries[i];
        if (key_known(entry->key, known) || problem_list_full(binder->problems))
            continue;
        unknown_key(binder, known, source, entry);
        key_mend(known, source, entry);
    }
}

void bind_check_keys(const struct binder *binder, const char *const *names, size_t count,
                     const struct bind_source *source) {
    const struct known_keys known = {.names = names, .count = count};
    keys_check(binder, &known, source);
}

static void option_keys_check(const struct binder *binder, const struct option *rows, size_t count,
                              const struct bind_source *source) {
    const char *names[ROWS_MAX + 1];
    assert(count <= ROWS_MAX);
    struct known_keys known = {.names = names, .rows = rows, .row_count = count};
    for (size_t i = 0; i < count; i++)
        names[known.count++] = rows[i].name;
    if (source->also_key != NULL)
        names[known.count++] = source->also_key;
    keys_check(binder, &known, source);
}

bool bind_options(const struct binder *binder, const struct option *rows, size_t count,
                  const struct bind_source *source, void *config) {
    assert(config != NULL && source->key != NULL && (rows != NULL || count == 0));
    struct bind_source from = *source;
    bool good = true;
    if (from.node != NULL && from.node->type == NODE_NULL) {
        from.node = NULL;
        from.optional = false;
    } else if (from.node != NULL && from.node->type != NODE_MAP) {
        problem_add_at(binder->problems, from.node->where, from.key,
                       "must be a map of options, not a %s", node_type_name(from.node->type));
        good = false;
        from.node = NULL;
        from.optional = true;
    }
    if (from.node != NULL)
        option_keys_check(binder, rows, count, &from);
    for (size_t i = 0; i < count; i++)
        if (!bind_row(binder, &rows[i], &from, (char *)config + rows[i].offset))
            good = false;
    return good;
}
