// SPDX-License-Identifier: Apache-2.0
// The walk with vectors of 32 bytes. Built with AVX2, BMI and BMI2 (CMakeLists.txt).
#ifdef __AVX2__
#include "receivers/decode/telemetry/walk_vector.h"

#define WALK telemetry_walk_avx2

static inline bool walk_same(const char *at, const char *text, size_t size, size_t left) {
    uint32_t different = 0;
    if (left < size + WALK_BLOCK)
        return memcmp(at, text, size) == 0;
    for (; size >= WALK_BLOCK; size -= WALK_BLOCK) {
        different |= ~walk_equal(at, text);
        at += WALK_BLOCK;
        text += WALK_BLOCK;
    }
    return (different | _bzhi_u32(~walk_equal(at, text), (uint32_t)size)) == 0;
}

#include "receivers/decode/telemetry/walk_common.h"
#else
#include "receivers/decode/telemetry/walk.h"
#endif
