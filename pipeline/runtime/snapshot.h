// SPDX-License-Identifier: Apache-2.0
// The blobs of one moment in memory: read from a store at the start, or handed from one service to
// the next at a reload. Not thread-safe.
#pragma once

#include "base/intern.h"
#include "pipeline/component/storage.h"

struct snapshot;

struct snapshot *snapshot_new(void);
void snapshot_free(struct snapshot *snapshot); // NULL is fine

// Copies. A later blob of the same space, name and number takes the place of the earlier one. Those
// of STORAGE_STRINGS are what ids in the blobs stand for, by their number; without any, and without
// snapshot_set_foreign, ids are those of this process.
void snapshot_put(struct snapshot *snapshot, enum storage_space space, const char *name,
                  uint64_t number, struct slice bytes);
// Of any space but STORAGE_STRINGS.
bool snapshot_get(const struct snapshot *snapshot, enum storage_space space, const char *name,
                  uint64_t number, struct slice *bytes);
// The name of the blob that was put as the `*at`th of this space, which moves on; NULL at the end.
const char *snapshot_next(const struct snapshot *snapshot, enum storage_space space, uint32_t *at);
bool snapshot_is_empty(const struct snapshot *snapshot);

// Whether another process made it.
void snapshot_set_foreign(struct snapshot *snapshot);
bool snapshot_is_foreign(const struct snapshot *snapshot);
// Whether an id of its blobs stands for a string; the id that this string has here, STRING_NONE
// when there is no room for it.
bool snapshot_knows_string(const struct snapshot *snapshot, string_id id);
string_id snapshot_string(struct snapshot *snapshot, string_id id);
