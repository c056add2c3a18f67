// SPDX-License-Identifier: Apache-2.0
// The walk with vectors of 32 bytes. Built with AVX2, BMI and BMI2 (CMakeLists.txt).
#ifdef __AVX2__
#include "receivers/decode/json/vector.h"

#define WALK         telemetry_walk_avx2
#define WALK_BLOCK   VECTOR_BLOCK
#define walk_special vector_special
#define walk_others  vector_others
#define walk_digits  vector_digits

static inline bool walk_same(const char *at, const char *text, size_t size, size_t left) {
    if (__builtin_expect(left < size + WALK_BLOCK, 0))
        return memcmp(at, text, size) == 0;
    for (; size >= WALK_BLOCK; size -= WALK_BLOCK) {
        if (vector_equal(at, text) != UINT32_MAX)
            return false;
        at += WALK_BLOCK;
        text += WALK_BLOCK;
    }
    return _bzhi_u32(~vector_equal(at, text), (uint32_t)size) == 0;
}

#include "receivers/decode/telemetry/walk_common.h"
#else
#include "receivers/decode/telemetry/walk.h"
#endif
