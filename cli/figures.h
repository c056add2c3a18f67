// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.
#pragma once

#include "base/buffer.h"
#include "config/option.h"

// "812 B", "1.1 MiB".
void figures_append_bytes(struct buffer *out, uint64_t bytes);
// "1 file", "4 files"; the plural adds an s.
void figures_append_count(struct buffer *out, uint64_t count, const char *noun);
// "10s", "1h30m", "250ms": as it would be written in YAML.
void figures_append_duration(struct buffer *out, struct duration duration, const char *special);
