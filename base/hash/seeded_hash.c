// SPDX-License-Identifier: Apache-2.0
// Sixteen bytes a step by one wide multiplication; the last step overlaps the one before, so that
// nothing past the end is read.
#include "base/hash/seeded_hash.h"

#include <assert.h>
#include <sys/random.h>

static uint64_t bytes_load8(const char *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static uint64_t bytes_load4(const char *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

// Both halves of the 128-bit product, folded: each input bit reaches the whole result.
static uint64_t hash_fold(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Odd constants with half of their bits set.
#define HASH_K0 UINT64_C(0x9e6c63d0876a9a47)
#define HASH_K1 UINT64_C(0xc5a308d313198a2f)
#define HASH_K2 UINT64_C(0xa24baed4963ee407)

uint64_t hash_seed(void) {
    uint64_t seed = HASH_K1;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed ^= (uintptr_t)&seed; // address layout is random as well
    return seed;
}

uint64_t hash_seeded(struct slice text, uint64_t seed) {
    assert(text.data != NULL || text.size == 0);
    const char *at = text.data;
    size_t size = text.size;
    uint64_t a = 0, b = 0, hash = seed ^ size * HASH_K2;
    if (size > 16) {
        for (const char *last = at + size - 16; at < last; at += 16)
            hash = hash_fold(bytes_load8(at) ^ HASH_K0, bytes_load8(at + 8) ^ hash);
        a = bytes_load8(text.data + size - 16);
        b = bytes_load8(text.data + size - 8);
    } else if (size >= 8) {
        a = bytes_load8(at);
        b = bytes_load8(at + size - 8);
    } else if (size >= 4) {
        a = bytes_load4(at);
        b = bytes_load4(at + size - 4);
    } else if (size > 0) {
        a = (uint64_t)(unsigned char)at[0] << 16 | (uint64_t)(unsigned char)at[size / 2] << 8 |
            (unsigned char)at[size - 1];
    }
    hash = hash_fold(a ^ HASH_K1, b ^ hash);
    return hash_fold(hash ^ HASH_K0, HASH_K2);
}
