// SPDX-License-Identifier: Apache-2.0
// Paths and bytes of files, for both sinks and the export of a tracking run. Any thread.
#pragma once

#include "base/buffer.h"

// A formatted text of any length; from memory_take.
char *wandb_text(const char *format, ...) PRINTF_LIKE(1, 2);
// Without the slashes behind it, and its last part.
struct slice wandb_without_slashes(const char *path);
struct slice wandb_base_name(const char *path);
// All of it, where the descriptor stands. 0, or an errno value.
int wandb_write_all(int descriptor, struct slice bytes);
// From where it stands to its end, as far as `out` takes it (out->failed: it was longer). 0, or an
// errno value.
int wandb_read_all(int descriptor, struct buffer *out);
// Whether W&B takes the character in ids and names: [A-Za-z0-9._-].
bool wandb_is_name_character(char c);
