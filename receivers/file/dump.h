// SPDX-License-Identifier: Apache-2.0
// Leaves out out-of-memory dumps whose session is read from a sink anyway.
//
// A dump repeats the last events of its session in another shape; counted twice they would change
// the answer. Sessions are those that the dump's metadata.json and manifest.json and the sinks'
// manifest.json name.
#pragma once

#include "receivers/file/find/find.h"

enum { DUMP_MANIFEST_MAX = 4 << 20 }; // bytes of a manifest that are looked at

// Removes the dumps' events from `list` and notes each.
void dump_leave_out_repeated(struct found_list *list);
// Whether the events of one dump are read from a sink of the list too.
bool dump_is_repeated(const struct found_list *list, struct slice path);
