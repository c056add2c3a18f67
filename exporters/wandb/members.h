// SPDX-License-Identifier: Apache-2.0
// JSON objects member by member, as text: values stay as they were written, so that a bare NaN,
// which is no JSON, survives.
#pragma once

#include "base/buffer.h"
#include "base/hash/hash_index.h"

// Takes the next `"key":value` off the front of `members`, which is the inside of an object. `key`
// keeps its quotes. False at the end, and when what follows is no member.
bool wandb_member_next(struct slice *members, struct slice *key, struct slice *value);
// The inside of an object; empty when `text` is none.
struct slice wandb_object_inside(struct slice text);
// The value of a member whose key is plain text; empty when there is none.
struct slice wandb_member_find(struct slice members, const char *key);
// A finite number, or `otherwise`.
double wandb_number_or(struct slice value, double otherwise);
double wandb_member_number_or(struct slice members, const char *key, double otherwise);

// Values by key, the last one said wins. One allocation a key, and more when its value grows.
struct wandb_value {
    char *key; // with quotes, as json_append_string writes it
    char *text;
    uint32_t key_size, text_size, text_capacity; // text_size 0: it was removed
};

struct wandb_values {          // empty when all zero
    struct wandb_value *items; // in the order of their first appearance
    uint32_t count, capacity;
    struct hash_index index; // of `items`, by their keys
    uint64_t bytes;
};

enum { WANDB_VALUES_BYTES_MAX = 10 << 20, WANDB_VALUES_MAX = 1 << 18 };

void wandb_values_release(struct wandb_values *values);
// An empty `value` removes the key. False when there is no room for it.
bool wandb_values_set(struct wandb_values *values, struct slice key, struct slice value);
// All of `members`. With `explicit_update` null and NaN remove their keys.
bool wandb_values_apply(struct wandb_values *values, struct slice members, bool explicit_update);
void wandb_values_append(const struct wandb_values *values, struct buffer *out); // `{…}`
