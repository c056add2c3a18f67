// SPDX-License-Identifier: Apache-2.0
// Puts the value of one option into its field of a config struct.
#pragma once

#include "config/option.h"
#include "config/yaml/document.h"

// What the readers of one configuration share.
struct binder {
    struct arena *arena; // holds texts and lists of the config struct
    struct problem_list *problems;
    struct problem_list *warnings; // a secret written out
};

// Puts the row's default, if any, into its field. The row is ours: a default that cannot be read is
// our mistake.
void bind_default(const struct binder *binder, const struct option *row, void *field);
// Puts the value into the field, or adds problems under `key` and returns false. Not for groups.
bool bind_value(const struct binder *binder, const struct option *row, const struct node *node,
                struct location key_where, const char *key, void *field);
