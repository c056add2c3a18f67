// SPDX-License-Identifier: Apache-2.0
// One value of one option: see bind.h.
#pragma once

#include "config/bind.h"

// Puts the row's default, if any, into its field. The row is ours: a default that cannot be read is
// our mistake.
void bind_default(const struct binder *binder, const struct option *row, void *field);
// Puts the value into the field, or adds problems under `key` and returns false. Not for groups.
bool bind_value(const struct binder *binder, const struct option *row, const struct node *node,
                struct location key_where, const char *key, void *field);
