// SPDX-License-Identifier: Apache-2.0
// All heap memory of culprit's own code comes from here and is counted.
//
// Running out of memory ends the process with a message and exit code 71: what was accepted is in
// the files, topics or store it came from, so a restart loses nothing, and no caller needs a path
// for it. What input may cost is bounded before it is allocated, by the limits of each component.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Never NULL. memory_zero's bytes are zero; memory_resize keeps the first min(old, new) bytes.
void *memory_take(size_t size);
void *memory_zero(size_t count, size_t size);
void *memory_resize(void *block, size_t size);
// An array's block with room for one more than its `count` items: the same, or larger by doubling.
void *memory_room(void *items, uint32_t *capacity, uint32_t count, size_t item_size);
// The same for a ring whose oldest item is at `first`: its order stays, numbers of items may
// change.
void *memory_ring_room(void *ring, uint32_t *capacity, uint32_t first, uint32_t count,
                       size_t item_size);
void memory_give(void *block); // NULL is fine
// The block stays until the process ends: it counts as live no more.
void memory_keep(const void *block);
char *memory_copy_text(const char *data, size_t size); // adds a terminating zero

// Ends the process with its message: for a library that said it has no memory. `size` is what was
// asked for.
_Noreturn void memory_exhausted(size_t size);

struct memory_figures {
    uint64_t allocations; // calls that took memory since the start of the process
    uint64_t live_bytes;  // usable bytes held now
    uint64_t peak_bytes;  // the most ever held at once
};

// A consistent enough view from any thread.
struct memory_figures memory_figures(void);
// Starts a new peak at what is live now.
void memory_reset_peak(void);
