// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.
#pragma once

#include "base/buffer.h"

#include <stdint.h>

// "812 B", "1.10 MiB" (base/text/human.h).
void figures_append_bytes(struct buffer *out, uint64_t bytes);
// "1 file", "4 files"; the plural adds an s.
void figures_append_count(struct buffer *out, uint64_t count, const char *noun);
