// SPDX-License-Identifier: Apache-2.0
// What a person wrote as a configuration: a tree of maps, lists and texts, each with its place.
//
// YAML is read for its structure only: which type a text is to be is the option rows' business. A
// tree is never changed once it is made, but for `document_expand`, which fills in ${…}, and for
// binding, which puts the key that was meant in the place of a misspelt one; merging
// makes new maps that share what is below. Everything lies in the arena it was made in. Bounded:
// DOCUMENT_SIZE_MAX bytes, DOCUMENT_LINE_MAX in a line, depth DOCUMENT_DEPTH_MAX,
// DOCUMENT_NODES_MAX nodes with aliases counted as what they stand for, DOCUMENT_KEYS_MAX keys in a
// map, DOCUMENT_ALIASES_MAX aliases. One thread.
#pragma once

#include "config/problem.h"

#include <stdbool.h>

enum {
    DOCUMENT_SIZE_MAX = 1 << 20,
    DOCUMENT_LINE_MAX = 64 << 10,
    DOCUMENT_DEPTH_MAX = 64,
    DOCUMENT_NODES_MAX = 1 << 16,
    DOCUMENT_KEYS_MAX = 1024,
    DOCUMENT_KEY_LENGTH_MAX = 256,
    DOCUMENT_ALIASES_MAX = 100,
    DOCUMENT_FILE_VALUE_MAX = 64 << 10, // of a file named by ${file:…}
};

enum node_type { NODE_NULL, NODE_TEXT, NODE_LIST, NODE_MAP };

struct node_entry {
    const char *key; // NULL in a list
    struct location key_where;
    struct node *value;
};

struct node {
    enum node_type type;
    struct location where; // a map's: of its first key; a quoted text's: of the quote
    uint32_t depth;        // levels below, itself included
    uint32_t weight;       // nodes below, itself included
    // NODE_TEXT
    const char *text;    // with ${…} filled in once document_expand has run
    const char *written; // as it stands in the configuration; may be shown where `text` may not
    bool quoted;
    bool expanded;  // held ${…}: never show `text` in a message
    bool from_file; // held ${file:…}
    bool unknown;   // held ${…} that was not looked up
    // NODE_LIST, NODE_MAP: in order of appearance
    struct node_entry *entries;
    uint32_t count;
};

// "map", "list", "text", "empty": what a message calls it.
const char *node_type_name(enum node_type type);
// The value under `key`, or NULL; `map` may be NULL or something else than a map.
const struct node *node_child(const struct node *map, const char *key);
const struct node_entry *node_entry_find(const struct node *map, const char *key);

// Reads one YAML document. NULL when it cannot be read on (syntax, a bound passed); problems that
// leave the rest readable (a key given twice) are added and the tree is returned. An empty document
// is an empty map. `text` may be gone afterwards; `name` is copied. `name` NULL: every place in it
// is the command line's.
struct node *document_parse(struct arena *arena, const char *name, struct slice text,
                            struct problem_list *problems);

// `over` laid over `base`: maps are joined, everything else is replaced. Neither is changed. The
// result is bounded by the sum of both.
struct node *document_merge(struct arena *arena, struct node *base, struct node *over);

// Applies "a.b.c=value": dots part the keys, "\." is a dot in a key, the value is YAML. `ordinal`
// counts the assignments from 1, for messages. Returns `base` when the assignment is wrong. The
// value is in no message.
struct node *document_set(struct arena *arena, struct node *base, const char *assignment,
                          uint32_t ordinal, struct problem_list *problems);

// Fills in ${env:NAME}, ${env:NAME:-default}, ${file:/path} and $$ in all texts, once; what was
// filled in is never read as YAML. With `no_environment` nothing is looked up: such texts are
// marked `unknown` and stay as written, but for those with a default; nor is anything below those
// top-level keys that are in `unused` (NULL-terminated; NULL: none), for parts that something else
// takes the place of. Below those in `literal` (likewise) a `$` stands for itself. A value that an
// alias shares with another part is looked up.
void document_expand(struct node *root, struct arena *arena, const char *const *unused,
                     const char *const *literal, bool no_environment,
                     struct problem_list *problems);

// The value at a key path ("exporters.json.rotation.max_size", "brokers[1]"), or NULL. A key that
// holds dots is found too.
const struct node *document_find(const struct node *root, const char *path);
// Where that value was written; the nearest key above it when it is not there.
struct location document_locate(const struct node *root, const char *path);
