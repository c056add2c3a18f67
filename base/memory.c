// SPDX-License-Identifier: Apache-2.0
// malloc with three counters, each of them relaxed: they are read for reports and bounds.
#include "base/memory.h"

#include "base/memory_pages.h"

#include <assert.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static void count_bytes_in(uint64_t size) {
    atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
    uint64_t live = atomic_fetch_add_explicit(&live_bytes, size, memory_order_relaxed) + size;
    uint64_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (live > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, live))
        continue;
}

static void *count_in(void *block, size_t asked) {
    if (block == NULL)
        memory_exhausted(asked);
    count_bytes_in(malloc_usable_size(block));
    return block;
}

static void count_bytes_out(uint64_t size) {
    uint64_t before = atomic_fetch_sub_explicit(&live_bytes, size, memory_order_relaxed);
    assert(before >= size && "a block that was not taken here, or given back twice");
}

static void count_out(const void *block) {
    count_bytes_out(malloc_usable_size((void *)(uintptr_t)block));
}

void *memory_take(size_t size) {
    return count_in(malloc(size == 0 ? 1 : size), size);
}

void *memory_zero(size_t count, size_t size) {
    assert(size == 0 || count <= SIZE_MAX / size);
    return count_in(calloc(count == 0 ? 1 : count, size == 0 ? 1 : size), count * size);
}

void *memory_resize(void *block, size_t size) {
    if (block != NULL)
        count_out(block);
    return count_in(realloc(block, size == 0 ? 1 : size), size);
}

void *memory_room(void *items, uint32_t *capacity, uint32_t count, size_t item_size) {
    assert(count <= *capacity && *capacity <= UINT32_MAX / 2);
    if (count < *capacity)
        return items;
    *capacity = *capacity == 0 ? 16 : *capacity * 2;
    return memory_resize(items, *capacity * item_size);
}

void *memory_ring_room(void *ring, uint32_t *capacity, uint32_t first, uint32_t count,
                       size_t item_size) {
    assert(first == 0 || first < *capacity);
    if (count < *capacity)
        return ring;
    uint32_t before = *capacity;
    char *items = memory_room(ring, capacity, count, item_size);
    // Those that stood before the oldest one come behind the others.
    memcpy(items + before * item_size, items, first * item_size);
    return items;
}

void memory_give(void *block) {
    if (block == NULL)
        return;
    count_out(block);
    free(block);
}

void memory_keep(const void *block) {
    assert(block != NULL);
    count_out(block);
}

// One huge page more is mapped, and what stands before and behind the aligned part given back.
void *memory_take_pages(size_t size) {
    assert(size > 0 && size % MEMORY_HUGE_PAGE == 0 && size <= SIZE_MAX - MEMORY_HUGE_PAGE);
    char *mapped = mmap(NULL, size + MEMORY_HUGE_PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        memory_exhausted(size);
    size_t before = -(uintptr_t)mapped % MEMORY_HUGE_PAGE;
    char *pages = mapped + before;
    if (before > 0)
        munmap(mapped, before);
    munmap(pages + size, MEMORY_HUGE_PAGE - before);
    madvise(pages, size, MADV_HUGEPAGE); // a kernel without them gives small ones
    count_bytes_in(size);
    return pages;
}

void memory_give_pages(void *pages, size_t size) {
    assert(pages != NULL && (uintptr_t)pages % MEMORY_HUGE_PAGE == 0);
    count_bytes_out(size);
    munmap(pages, size);
}

char *memory_copy_text(const char *data, size_t size) {
    assert((data != NULL || size == 0) && size < SIZE_MAX);
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
