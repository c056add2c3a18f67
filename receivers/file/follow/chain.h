// SPDX-License-Identifier: Apache-2.0
// Tells which files are over because another one goes on where they end: the segments of a
// telemetry sink before its last, and what log rotation put aside.
//
// Such a file is complete once it was read to its end, and must not hold back what is judged until
// it counts as silent. A line that comes all the same is read like any other.
#pragma once

#include "receivers/file/find/find.h"
#include "receivers/file/follow/track.h"

enum { CHAIN_PATH_MAX = 4096 };

// Whether rotation keeps under the name `older` what was at `newer` before: run.jsonl.1,
// run.jsonl-20260131, run-20260131.jsonl, each also with .gz, beside run.jsonl.
bool chain_names_fit(struct slice older, struct slice newer);
// The next name that a file may have had before it was rotated to the path `older`; `*at` begins at
// 0. False when there is none any more.
bool chain_next_base(struct slice older, size_t *at, char out[CHAIN_PATH_MAX], size_t *size);
// Sets `successor` of all files, from what a search found. Pointers hold until a file is removed.
void chain_link(struct track_table *table, const struct found_list *found);
// The same for one file that was rotated, by what is known of it or else by its name.
void chain_link_rotated(const struct track_table *table, struct tracked_file *file);
// Whether the file was read to its end and one that comes after it has begun.
bool chain_is_complete(const struct tracked_file *file);
