// SPDX-License-Identifier: Apache-2.0
// How many cores this process may use.
#pragma once

#include <stdint.h>

// By its CPU affinity and, in a container, the CPU limit of its control group, rounded up; at
// least 1. Looked up each time.
uint32_t cores_usable(void);

// What a limit in the words of cpu.max ("200000 100000", "max 100000") comes to, rounded up; 0: no
// limit, or not such words. For tests.
uint32_t cores_of_limit(const char *text);
