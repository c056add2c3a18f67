// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits: for short keys, and to recognise bytes that were seen before. Not for input that
// an attacker chooses in bulk (intern.c has a seed). Source: Fowler, Noll and Vo.
#pragma once

#include "base/slice.h"

#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

// The hash of what `hash` stands for, followed by these bytes.
static inline uint64_t hash_more(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t hash_slice(struct slice bytes) {
    return hash_more(HASH_START, bytes.data, bytes.size);
}

// All bits in the lower half, for tables whose size is a power of two.
static inline uint32_t hash_folded(uint64_t hash) {
    return (uint32_t)(hash ^ hash >> 32);
}
