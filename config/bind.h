// SPDX-License-Identifier: Apache-2.0
// From what a person wrote to a config struct, by option rows: defaults first, then values; every
// problem at once, each with its place, its key path and what would be right.
#pragma once

#include "config/bind_value.h"

struct bind_source {
    const struct node *node; // a map; NULL or empty: defaults only
    const char *key;         // its key path
    struct location where;   // where a missing key would have to be written
    bool optional;           // without a node, a required key is not missed
    const char *also_key;    // a key of the map that somebody else reads, or NULL
};

// Fills `config`, which is zeroed. False when an option has no valid value: its field then holds
// the default (zero without one), and rules between options must not be judged. Unknown keys alone
// do not make it false; one that is nearly a row's name is taken for it. What ${…} stands for is
// shown in no message.
bool bind_options(const struct binder *binder, const struct option *rows, size_t count,
                  const struct bind_source *source, void *config);

// Adds a problem for each key of the map that is none of `names`. One that is nearly a name which
// is not there is taken for it from then on.
void bind_check_keys(const struct binder *binder, const char *const *names, size_t count,
                     const struct bind_source *source);
