// SPDX-License-Identifier: Apache-2.0
// Memory that is given back all at once: a batch's scratch, a config's strings.
//
// Blocks are kept across resets, so that a warmed-up arena allocates nothing. Not thread-safe.
#pragma once

#include "base/slice.h"

#include <stdarg.h>
#include <stdint.h>

struct arena_block;

struct arena {
    struct arena_block *first;
    struct arena_block *current;
    size_t block_size; // size of a new block; larger requests get one of their own
};

void arena_init(struct arena *arena, size_t block_size);
// Everything taken so far is gone; the memory stays for the next round.
void arena_reset(struct arena *arena);
void arena_release(struct arena *arena);
// It stays until the process ends, for tables that are made once; nothing more is taken from it.
void arena_keep(const struct arena *arena);

// Aligned to 16 bytes, not zeroed; valid until reset or release. Never NULL.
void *arena_take(struct arena *arena, size_t size);
void *arena_zero(struct arena *arena, size_t count, size_t size);
// A copy of `count` items with room for `capacity`: for arrays that grow.
void *arena_enlarge(struct arena *arena, const void *items, size_t count, size_t capacity,
                    size_t item_size);
struct slice arena_copy(struct arena *arena, struct slice text);
// With a terminating zero.
char *arena_text(struct arena *arena, struct slice text);
char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *arena_format_list(struct arena *arena, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
char *arena_number(struct arena *arena, __int128 value); // its decimal digits
