// SPDX-License-Identifier: Apache-2.0
// What the files of the hang store share.
#pragma once

#include "processors/nccl_hang/store.h"

// A keyed row and its number.
void *hang_rows_add(struct keyed_rows *rows, const void *key, uint32_t *self);

// nccl_hang_rows.c: groups, members, sets.
// Find or add; NULL when a bound is reached (counted).
struct hang_group *hang_take_group(struct hang_store *store, string_id job, string_id backend,
                                   string_id name, string_id desc);
struct hang_member *hang_take_member(struct hang_store *store, struct hang_group *group,
                                     int32_t rank);
// The set of these ranks gets one more reference; the one before loses it.
void hang_member_set(struct hang_store *store, struct hang_member *member, const int32_t *ranks,
                     uint32_t count);
void hang_member_clear_set(struct hang_store *store, struct hang_member *member);
// Makes room where a bound is reached: groups that were heard of least recently go.
void hang_make_room(struct hang_store *store, struct arena *scratch);

// nccl_hang_open.c: operations under way.
void hang_open_remove(struct hang_store *store, struct hang_member *member, bool p2p,
                      int64_t sequence);
void hang_open_clear(struct hang_store *store, struct hang_member *member);
// Adds it, or moves the one with the same key forward.
void hang_open_take(struct hang_store *store, struct hang_member *member,
                    const struct hang_open *open);
// Goes: what ended, by its number or because it is far below the last that did.
void hang_open_prune(struct hang_store *store, struct hang_member *member);
