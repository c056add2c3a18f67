// SPDX-License-Identifier: Apache-2.0
// The idea is that of Wu and Manber's search for many patterns (A Fast Algorithm for Multi-Pattern
// Searching, 1994): a block of bytes is looked up at places that lie as far apart as the shortest
// pattern allows.
#include "receivers/decode/forms/needles.h"

#include <assert.h>

enum { BITMAP_BITS = 17 };

struct entry {
    uint32_t gram;
    uint32_t needle;
    uint32_t offset; // of the gram in the needle
    uint32_t next;   // entry of the same slot, and 1; 0: none
};

struct needles {
    const char *const *texts;
    uint32_t mask;   // of slots
    uint32_t *slots; // entry and 1; 0: none
    struct entry *entries;
    uint8_t bitmap[(1 << BITMAP_BITS) / 8];
};

static inline uint32_t gram_at(const char *data) {
    uint32_t gram;
    memcpy(&gram, data, sizeof gram);
    return gram;
}

static inline uint32_t bit_of(uint32_t gram) {
    return gram * UINT32_C(0x9E3779B1) >> (32 - BITMAP_BITS);
}

struct needles *needles_make(const char *const *texts, uint32_t count, struct arena *arena) {
    struct needles *needles = arena_zero(arena, 1, sizeof *needles);
    uint32_t slots = 64;
    while (slots < count * NEEDLE_GRAMS * 2)
        slots *= 2;
    needles->texts = texts;
    needles->mask = slots - 1;
    needles->slots = arena_zero(arena, slots, sizeof *needles->slots);
    needles->entries = arena_zero(arena, count * NEEDLE_GRAMS + 1, sizeof *needles->entries);
    uint32_t made = 0;
    // Backwards, so that a walk gives the first of equal needles first.
    for (uint32_t i = count; i-- > 0;)
        for (uint32_t offset = 0; offset < NEEDLE_GRAMS; offset++) {
            uint32_t gram = gram_at(texts[i] + offset), bit = bit_of(gram);
            uint32_t *slot = &needles->slots[bit & needles->mask];
            needles->bitmap[bit / 8] |= (uint8_t)(1 << bit % 8);
            needles->entries[made] = (struct entry){gram, i, offset, *slot};
            *slot = ++made;
        }
    return needles;
}

static inline bool may_be(const struct needles *needles, uint32_t bit) {
    return (needles->bitmap[bit / 8] >> bit % 8 & 1) != 0;
}

bool needles_next(const struct needles *needles, struct slice text, struct needle_walk *walk,
                  uint32_t *needle, size_t *begins) {
    size_t at = walk->at;
    uint32_t next = walk->next;
    for (; at + NEEDLE_GRAM <= text.size; at += NEEDLE_GRAMS, next = 0) {
        uint32_t gram = gram_at(text.data + at);
        if (next == 0) {
            uint32_t bit = bit_of(gram);
            if (!may_be(needles, bit))
                continue;
            if (walk->looks > NEEDLE_LOOKS_MIN + NEEDLE_LOOKS_A_BYTE * (uint64_t)at)
                continue;
            next = needles->slots[bit & needles->mask];
        }
        while (next != 0) {
            const struct entry *entry = &needles->entries[next - 1];
            next = entry->next;
            walk->looks++;
            if (entry->gram != gram || at < entry->offset)
                continue;
            size_t from = at - entry->offset;
            if (from + NEEDLE_SIZE > text.size ||
                memcmp(text.data + from, needles->texts[entry->needle], NEEDLE_SIZE) != 0)
                continue;
            *needle = entry->needle;
            *begins = from;
            // The last of its slot: the walk goes on at the next place.
            walk->at = next == 0 ? at + NEEDLE_GRAMS : at;
            walk->next = next;
            return true;
        }
    }
    walk->at = at;
    walk->next = 0;
    return false;
}
