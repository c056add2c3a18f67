// SPDX-License-Identifier: Apache-2.0
#include "bench/counted_calls.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_uint_fast64_t calls;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void count_call(void) {
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
    count_call();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    count_call();
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    count_call();
    return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count_call();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    count_call();
    *block = __libc_memalign(alignment, size);
    return *block == NULL ? ENOMEM : 0;
}

uint64_t counted_calls(void) {
    return atomic_load(&calls);
}
