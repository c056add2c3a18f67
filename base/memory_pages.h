// SPDX-License-Identifier: Apache-2.0
// Zeroed memory that is large and soon used whole; counted like the rest (base/memory.h). Where the
// kernel has huge pages it comes in those, so that using it for the first time costs a fault for
// each 2 MiB and not for each 4 KiB.
#pragma once

#include <stddef.h>

enum { MEMORY_HUGE_PAGE = 2 << 20 };

// Never NULL, and begins at a multiple of MEMORY_HUGE_PAGE; `size` is one, too.
void *memory_take_pages(size_t size);
void memory_give_pages(void *pages, size_t size); // the size that was taken
