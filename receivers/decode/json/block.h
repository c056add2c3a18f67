// SPDX-License-Identifier: Apache-2.0
// Sixteen bytes of JSON text at once: where a string ends, how many digits follow, is it this key.
//
// SSE2, which every x86-64 has, or plain C with the same answers. Every function reads exactly the
// bytes that it names; the caller makes sure that they are there.
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(JSON_BLOCK_PORTABLE)
#include <emmintrin.h>
#define JSON_BLOCK_SSE2 1
#endif

enum { JSON_BLOCK = 16 };

// A key as it stands in an object, `"name":`, padded so that 32 bytes can be compared at once.
struct json_key {
    char text[32];
    uint32_t mask; // one bit a byte of the text
    uint32_t size; // of the text, quotes and colon included
};

#define JSON_KEY(name)                                                                             \
    { "\"" name "\":", (uint32_t)((UINT64_C(1) << (sizeof(name) + 2)) - 1), sizeof(name) + 2 }

// The name without quotes.
static inline struct slice json_key_name(const struct json_key *key) {
    return (struct slice){key->text + 1, key->size - 3};
}

// How many of the 16 bytes at `text` come before the first one that a scan of a string has to look
// at: a quote, a backslash, a control character or the start of a character beyond ASCII.
static inline unsigned json_block_plain(const char *text);
// Which of the 16 bytes at `text` those are: bit i for byte i.
static inline unsigned json_block_special(const char *text);
// Which of the 16 bytes at `text` are no digits.
static inline unsigned json_block_others(const char *text);
// Which of the 16 bytes at `a` and `b` differ: bit i for byte i.
static inline unsigned json_block_differences(const char *a, const char *b);
// True when the bytes of `key` that `mask` names (bit i: byte i, 32 bytes) are those at `text`.
static inline bool json_block_matches(const char *text, const char *key, uint32_t mask);
// How many of the 8 bytes at `text` are digits before the first that is not, and the number that
// those digits write (0 when there are none).
static inline unsigned json_block_number(const char *text, uint64_t *number);

#ifdef JSON_BLOCK_SSE2

static inline unsigned json_block_special(const char *text) {
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)text);
    __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
    // Signed: below 0x20 are the control characters and everything from 0x80 up.
    __m128i other = _mm_cmplt_epi8(block, _mm_set1_epi8(0x20));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), other));
}

static inline unsigned json_block_plain(const char *text) {
    return (unsigned)__builtin_ctz(json_block_special(text) | 0x10000u);
}

static inline unsigned json_block_others(const char *text) {
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)text);
    __m128i value = _mm_sub_epi8(block, _mm_set1_epi8('0'));
    __m128i digits = _mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value);
    return (unsigned)_mm_movemask_epi8(digits) ^ 0xffffu;
}

static inline unsigned json_block_differences(const char *a, const char *b) {
    __m128i left = _mm_loadu_si128((const __m128i *)(const void *)a);
    __m128i right = _mm_loadu_si128((const __m128i *)(const void *)b);
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(left, right)) ^ 0xffffu;
}

static inline bool json_block_matches(const char *text, const char *key, uint32_t mask) {
    const __m128i *a = (const __m128i *)(const void *)text;
    const __m128i *b = (const __m128i *)(const void *)key;
    __m128i low = _mm_cmpeq_epi8(_mm_loadu_si128(a), _mm_loadu_si128(b));
    __m128i high = _mm_cmpeq_epi8(_mm_loadu_si128(a + 1), _mm_loadu_si128(b + 1));
    uint32_t same = (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16;
    return (same & mask) == mask;
}

// A byte is a digit when it is 0 to 9 after 0x30 is taken off, bit by bit. The digits are moved to
// the end of the word, and three multiplications add up neighbours: pairs, then fours, then eights.
static inline unsigned json_block_number(const char *text, uint64_t *number) {
    uint64_t word;
    memcpy(&word, text, sizeof word);
    word ^= UINT64_C(0x3030303030303030);
    uint64_t other = ((word + UINT64_C(0x0606060606060606)) | word) & UINT64_C(0xf0f0f0f0f0f0f0f0);
    unsigned count = 8;
    if (other != 0) {
        count = (unsigned)__builtin_ctzll(other) / 8;
        word = word << 8 << (56 - 8 * count);
    }
    word = (word * 10 + (word >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    word = (word * 100 + (word >> 16)) & UINT64_C(0x0000ffff0000ffff);
    *number = (word * 10000 + (word >> 32)) & UINT64_C(0xffffffff);
    return count;
}

#else

static inline unsigned json_block_plain(const char *text) {
    unsigned i = 0;
    while (i < JSON_BLOCK && text[i] != '"' && text[i] != '\\' && (unsigned char)text[i] >= 0x20 &&
           (unsigned char)text[i] < 0x80)
        i++;
    return i;
}

static inline unsigned json_block_special(const char *text) {
    unsigned special = 0;
    for (unsigned i = 0; i < JSON_BLOCK; i++) {
        unsigned char c = (unsigned char)text[i];
        special |= (unsigned)(c == '"' || c == '\\' || c < 0x20 || c >= 0x80) << i;
    }
    return special;
}

static inline unsigned json_block_others(const char *text) {
    unsigned others = 0;
    for (unsigned i = 0; i < JSON_BLOCK; i++)
        others |= (unsigned)(text[i] < '0' || text[i] > '9') << i;
    return others;
}

static inline unsigned json_block_differences(const char *a, const char *b) {
    unsigned differences = 0;
    for (unsigned i = 0; i < JSON_BLOCK; i++)
        differences |= (unsigned)(a[i] != b[i]) << i;
    return differences;
}

static inline bool json_block_matches(const char *text, const char *key, uint32_t mask) {
    for (unsigned i = 0; i < 32; i++) {
        if ((mask >> i & 1) != 0 && text[i] != key[i])
            return false;
    }
    return true;
}

static inline unsigned json_block_number(const char *text, uint64_t *number) {
    unsigned count = 0;
    *number = 0;
    while (count < 8 && text[count] >= '0' && text[count] <= '9')
        *number = *number * 10 + (uint64_t)(text[count++] - '0');
    return count;
}

#endif
