// SPDX-License-Identifier: Apache-2.0
// Memory in a chain of blocks; what is taken lies behind what was taken before.
#include "base/arena.h"

#include "base/memory.h"
#include "base/text/number.h"

#include <assert.h>
#include <stdio.h>

struct arena_block {
    struct arena_block *next;
    size_t capacity;
    size_t used;
    _Alignas(16) char bytes[];
};

void arena_init(struct arena *arena, size_t block_size) {
    assert(block_size > 0);
    *arena = (struct arena){.block_size = block_size};
}

void arena_reset(struct arena *arena) {
    for (struct arena_block *block = arena->first; block != NULL; block = block->next)
        block->used = 0;
    arena->current = arena->first;
}

void arena_release(struct arena *arena) {
    struct arena_block *block = arena->first;
    while (block != NULL) {
        struct arena_block *next = block->next;
        memory_give(block);
        block = next;
    }
    arena->first = arena->current = NULL;
}

void arena_keep(const struct arena *arena) {
    for (const struct arena_block *block = arena->first; block != NULL; block = block->next)
        memory_keep(block);
}

// A little more than asked for, so that a request that grows from reset to reset finds the block of
// the one before.
static size_t capacity_for(size_t size) {
    size_t step = 1;
    while (step <= size / 8)
        step *= 2;
    return size <= SIZE_MAX - step ? (size + step - 1) / step * step : size;
}

// The next block with room for `size`; what comes after `current` is empty after a reset.
static struct arena_block *block_with_room(struct arena *arena, size_t size) {
    assert(arena->block_size > 0 && "arena_init comes first");
    struct arena_block *last = arena->current;
    while (last != NULL && last->capacity - last->used < size && last->next != NULL)
        last = last->next;
    if (last != NULL && last->capacity - last->used >= size)
        return last;
    size_t capacity = size > arena->block_size ? capacity_for(size) : arena->block_size;
    struct arena_block *block = memory_take(sizeof *block + capacity);
    *block = (struct arena_block){.capacity = capacity};
    if (last == NULL)
        arena->first = block;
    else
        last->next = block;
    return block;
}

void *arena_take(struct arena *arena, size_t size) {
    assert(size <= SIZE_MAX - 15);
    size = (size + 15) & ~(size_t)15;
    struct arena_block *block = arena->current;
    if (block == NULL || block->capacity - block->used < size)
        block = arena->current = block_with_room(arena, size);
    void *taken = block->bytes + block->used;
    block->used += size;
    assert(block->used <= block->capacity);
    return taken;
}

void *arena_zero(struct arena *arena, size_t count, size_t size) {
    assert(size == 0 || count <= SIZE_MAX / size);
    void *taken = arena_take(arena, count * size);
    if (count * size > 0)
        memset(taken, 0, count * size);
    return taken;
}

void *arena_enlarge(struct arena *arena, const void *items, size_t count, size_t capacity,
                    size_t item_size) {
    assert(count <= capacity && capacity <= SIZE_MAX / item_size);
    void *larger = arena_take(arena, capacity * item_size);
    if (count > 0)
        memcpy(larger, items, count * item_size);
    return larger;
}

struct slice arena_copy(struct arena *arena, struct slice text) {
    return (struct slice){arena_text(arena, text), text.size};
}

char *arena_text(struct arena *arena, struct slice text) {
    assert(text.data != NULL || text.size == 0);
    char *copy = arena_take(arena, text.size + 1);
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return copy;
}

char *arena_format_list(struct arena *arena, const char *format, va_list arguments) {
    assert(format != NULL);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    assert(length >= 0);
    char *text = arena_take(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

char *arena_format(struct arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = arena_format_list(arena, format, arguments);
    va_end(arguments);
    return text;
}

char *arena_number(struct arena *arena, __int128 value) {
    char digits[NUMBER_TEXT_MAX];
    return arena_text(arena, number_text(value, digits));
}
