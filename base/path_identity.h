// SPDX-License-Identifier: Apache-2.0
// Do two paths name the same file, whether it is there yet or not?
#pragma once

#include "base/arena.h"

#include <stdbool.h>

// A text that is the same for all paths that lead to one file: other spellings, relative paths,
// links. For one that is not there yet it is made of its directory and its name. With `look` false
// the disk is not asked and only spellings are told to be the same. NULL: a device or a pipe, which
// many may write to.
const char *path_identity(struct arena *arena, const char *path, bool look);
