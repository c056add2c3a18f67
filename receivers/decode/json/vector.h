// SPDX-License-Identifier: Apache-2.0
// Strings 32 bytes, digits 16 bytes at a time, with AVX2: for files that are built with it
// (CMakeLists.txt) and whose functions are called where base/simd.h says that the processor has it.
// Every function reads exactly the bytes that it names; the caller makes sure that they are there.
#pragma once

#include "receivers/decode/json/block.h"
#include "receivers/decode/json/scan.h"

#include <immintrin.h>

enum { VECTOR_BLOCK = 32 };

// Called would cost more than it does: the constants stay in registers.
#define VECTOR_INLINE static inline __attribute__((always_inline))

static inline uint32_t vector_equal(const char *a, const char *b) {
    __m256i left = _mm256_loadu_si256((const __m256i *)(const void *)a);
    __m256i right = _mm256_loadu_si256((const __m256i *)(const void *)b);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(left, right));
}

VECTOR_INLINE uint32_t vector_special(const char *text) {
    __m256i block = _mm256_loadu_si256((const __m256i *)(const void *)text);
    __m256i quote = _mm256_cmpeq_epi8(block, _mm256_set1_epi8('"'));
    __m256i backslash = _mm256_cmpeq_epi8(block, _mm256_set1_epi8('\\'));
    // Signed: below 0x20 are the control characters and everything from 0x80 up.
    __m256i other = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), block);
    return (uint32_t)_mm256_movemask_epi8(
        _mm256_or_si256(_mm256_or_si256(quote, backslash), other));
}

static inline uint32_t vector_others(const char *text) {
    __m256i block = _mm256_loadu_si256((const __m256i *)(const void *)text);
    __m256i value = _mm256_sub_epi8(block, _mm256_set1_epi8('0'));
    __m256i digits = _mm256_cmpeq_epi8(_mm256_min_epu8(value, _mm256_set1_epi8(9)), value);
    return ~(uint32_t)_mm256_movemask_epi8(digits);
}

// From its byte `count` on, 16 bytes say which digits are moved where so that `count` of them stand
// at the end, with zeros before them.
static const uint8_t vector_to_end[32] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
};

// 16 bytes less '0'; which of them are digits.
VECTOR_INLINE __m128i vector_values(const char *text, unsigned *digits) {
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)text);
    __m128i values = _mm_sub_epi8(block, _mm_set1_epi8('0'));
    __m128i valid = _mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values);
    *digits = (unsigned)_mm_movemask_epi8(valid);
    return values;
}

// The number of the first `count` values. Neighbours are added up: pairs, fours, eights.
VECTOR_INLINE uint64_t vector_sum(__m128i values, unsigned count) {
    const void *order = vector_to_end + count;
    __m128i moved = _mm_shuffle_epi8(values, _mm_loadu_si128((const __m128i *)order));
    __m128i pairs = _mm_maddubs_epi16(moved, _mm_set1_epi16(1 << 8 | 10));
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 << 16 | 100));
    __m128i words = _mm_packus_epi32(fours, fours);
    __m128i eights = _mm_madd_epi16(words, _mm_set1_epi32(1 << 16 | 10000));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    return (both & UINT32_MAX) * 100000000 + (both >> 32);
}

// Like json_read_digits.
static inline unsigned vector_digits(const char *digits, uint64_t *magnitude) {
    unsigned valid;
    __m128i values = vector_values(digits, &valid);
    unsigned count = (unsigned)__builtin_ctz(~valid);
    *magnitude = vector_sum(values, count);
    if (*digits == '0' && count > 1)
        return 0;
    if (count < 16)
        return count;
    uint64_t more;
    unsigned next = json_block_number(digits + 16, &more);
    *magnitude = *magnitude * json_powers_of_ten[next] + more;
    return next > 3 ? 0 : count + next;
}

// From its byte 16 - `point` on, 16 bytes choose the first `point` bytes of one vector and the rest
// of another.
static const uint8_t vector_behind_point[32] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

enum { VECTOR_DECIMAL_ROOM = 17 };

// At most 16 digits, of which `*behind` stand behind a point, at the first VECTOR_DECIMAL_ROOM
// bytes of `text`: how many bytes they are, and `*magnitude` without the point. 0: it is no such
// number. One of that many bytes may go on behind them.
VECTOR_INLINE unsigned vector_decimal(const char *text, uint64_t *magnitude, unsigned *behind) {
    unsigned valid, shifted_valid;
    __m128i values = vector_values(text, &valid);
    __m128i shifted = vector_values(text + 1, &shifted_valid);
    unsigned others = ~(valid | (shifted_valid & 0x8000) << 1);
    unsigned point = (unsigned)__builtin_ctz(others), end = point, count = point;
    *behind = 0;
    if (point < VECTOR_DECIMAL_ROOM && text[point] == '.') {
        end = (unsigned)__builtin_ctz(others & (others - 1));
        count = end - 1;
        *behind = count - point;
        if (*behind == 0)
            return 0;
        const void *from = vector_behind_point + 16 - point;
        values = _mm_blendv_epi8(values, shifted, _mm_loadu_si128((const __m128i *)from));
    }
    if (point == 0 || count > 16 || (*text == '0' && point > 1))
        return 0;
    *magnitude = vector_sum(values, count);
    return end;
}
