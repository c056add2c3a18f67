// SPDX-License-Identifier: Apache-2.0
// The walk with vectors of 64 bytes for the runs, whose lengths are masks. Built with AVX-512 F,
// BW, DQ, VL and VBMI (CMakeLists.txt).
#ifdef __AVX512BW__
#include "receivers/decode/json/vector.h"

#define WALK         telemetry_walk_avx512
#define WALK_BLOCK   VECTOR_BLOCK
#define walk_special vector_special
#define walk_others  vector_others
#define walk_digits  vector_digits

static inline __mmask64 differences(const char *at, const char *text, size_t size) {
    __mmask64 mask = _bzhi_u64(UINT64_MAX, (uint32_t)size);
    // Bytes outside of the mask are not read.
    __m512i bytes = _mm512_maskz_loadu_epi8(mask, at);
    return _mm512_mask_cmpneq_epi8_mask(mask, bytes, _mm512_loadu_si512(text));
}

static inline bool walk_same(const char *at, const char *text, size_t size, size_t left) {
    (void)left;
    while (__builtin_expect(size > 64, 0)) {
        if (differences(at, text, 64) != 0)
            return false;
        at += 64;
        text += 64;
        size -= 64;
    }
    return differences(at, text, size) == 0;
}

#include "receivers/decode/telemetry/walk_common.h"
#else
#include "receivers/decode/telemetry/walk.h"
#endif
