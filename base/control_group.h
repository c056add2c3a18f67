// SPDX-License-Identifier: Apache-2.0
// Control groups (version 1 and 2) that this process is in: its own, and those around it, as far as
// they are mounted here. What one of them allows, none below it may exceed.
//
// `root` is what the paths below /proc and /sys stand in: "" but in tests. Everything is looked up
// each time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Calls `look` with the folder of each group that limits what this controller ("memory", "cpu")
// counts, from the process's own to the outermost. A folder may not exist.
void control_groups_each(const char *root, const char *controller,
                         void (*look)(void *context, const char *folder), void *context);

// What a file of a group holds, as a text, cut at `room`. False: it cannot be read, or is empty.
bool control_group_text(const char *folder, const char *name, char *text, size_t room);

// The least memory that any of them allows; 0: no limit.
uint64_t control_groups_memory(const char *root);
