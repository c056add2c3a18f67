// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them in a headline.
#pragma once

#include <stdint.h>

enum { HUMAN_MAX = 48 };

// "512 B", "1.25 GiB", "812.3 MiB", "1002 MiB"; a minus sign when negative.
void human_bytes(int64_t bytes, char out[HUMAN_MAX]);
// "250 ms", "1.93 s", "4 min 10 s", "3 h 20 min"; a minus sign when negative.
void human_duration(__int128 duration_ns, char out[HUMAN_MAX]);
