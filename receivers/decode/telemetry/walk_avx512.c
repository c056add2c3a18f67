// SPDX-License-Identifier: Apache-2.0
// The walk with vectors of 64 bytes for the runs, whose lengths are masks. Built with AVX-512 F,
// BW, DQ, VL and VBMI (CMakeLists.txt).
#ifdef __AVX512BW__
#include "receivers/decode/telemetry/walk_vector.h"

#define WALK telemetry_walk_avx512

// Bytes outside of a mask are not read.
static inline bool walk_same(const char *at, const char *text, size_t size, size_t left) {
    (void)left;
    __mmask64 different = 0;
    for (; size > 64; size -= 64) {
        different |= _mm512_cmpneq_epi8_mask(_mm512_loadu_si512(at), _mm512_loadu_si512(text));
        at += 64;
        text += 64;
    }
    __mmask64 mask = _bzhi_u64(UINT64_MAX, (uint32_t)size);
    __m512i last = _mm512_maskz_loadu_epi8(mask, at);
    different |= _mm512_mask_cmpneq_epi8_mask(mask, last, _mm512_maskz_loadu_epi8(mask, text));
    return different == 0;
}

#include "receivers/decode/telemetry/walk_common.h"
#else
#include "receivers/decode/telemetry/walk.h"
#endif
