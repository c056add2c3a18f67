// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits: for short keys, and to recognise bytes that were seen before. Not for input that
// an attacker chooses in bulk (intern.c has a seed). Source: Fowler, Noll and Vo.
#pragma once

#include "base/slice.h"

#include <stdint.h>
#include <string.h>

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

// The same for keys of numbers: eight bytes at a time, and another hash than that of hash_more.
// Both halves of each product are used: the lower one alone knows nothing of a word's upper bits.
static inline uint64_t hash_words(const void *key, size_t size) {
    const char *at = key;
    uint64_t hash = HASH_START, word;
    for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        memcpy(&word, at, sizeof word);
        unsigned __int128 product = (unsigned __int128)(hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    return hash_more(hash, at, size);
}

// All bits in the lower half, for tables whose size is a power of two.
static inline uint32_t hash_folded(uint64_t hash) {
    return (uint32_t)(hash ^ hash >> 32);
}
