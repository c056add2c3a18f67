// SPDX-License-Identifier: Apache-2.0
// Counts every call of malloc, calloc, realloc and their kin in this process, whoever makes it: a
// program that links this has functions of its own in front of the C library's.
#pragma once

#include <stdint.h>

// Since the program began; any thread.
uint64_t counted_calls(void);
