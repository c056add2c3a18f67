// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_uint_fast64_t allocation_count;
static atomic_uint_fast64_t live_bytes;
static atomic_uint_fast64_t peak_bytes;

_Noreturn void memory_exhausted(size_t size) {
    char message[96];
    int length =
        snprintf(message, sizeof message, "culprit: out of memory, asked for %zu bytes\n", size);
    if (length > 0 && write(STDERR_FILENO, message, (size_t)length) < 0)
        _exit(71);
    _exit(71);
}

static void *count_in(void *block, size_t asked) {
    if (block == NULL)
        memory_exhausted(asked);
    atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
    uint64_t size = malloc_usable_size(block);
    uint64_t live = atomic_fetch_add_explicit(&live_bytes, size, memory_order_relaxed) + size;
    uint64_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (live > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, live))
        continue;
    return block;
}

static void count_out(void *block) {
    atomic_fetch_sub_explicit(&live_bytes, malloc_usable_size(block), memory_order_relaxed);
}

void *memory_take(size_t size) {
    return count_in(malloc(size == 0 ? 1 : size), size);
}

void *memory_zero(size_t count, size_t size) {
    return count_in(calloc(count == 0 ? 1 : count, size == 0 ? 1 : size), count * size);
}

void *memory_resize(void *block, size_t size) {
    if (block != NULL)
        count_out(block);
    return count_in(realloc(block, size == 0 ? 1 : size), size);
}

void memory_give(void *block) {
    if (block == NULL)
        return;
    count_out(block);
    free(block);
}

char *memory_copy_text(const char *data, size_t size) {
    char *copy = memory_take(size + 1);
    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

struct memory_figures memory_figures(void) {
    return (struct memory_figures){
        .allocations = atomic_load_explicit(&allocation_count, memory_order_relaxed),
        .live_bytes = atomic_load_explicit(&live_bytes, memory_order_relaxed),
        .peak_bytes = atomic_load_explicit(&peak_bytes, memory_order_relaxed),
    };
}

void memory_reset_peak(void) {
    atomic_store(&peak_bytes, atomic_load(&live_bytes));
}
