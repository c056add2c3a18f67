// SPDX-License-Identifier: Apache-2.0
// Asks the processor once; the answer is one relaxed load after that.
#include "base/simd.h"

#include <assert.h>
#include <stdatomic.h>

enum { NOT_ASKED = -1 };

static atomic_int chosen = NOT_ASKED;

static enum simd_level level_of_processor(void) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2"))
        return SIMD_BASELINE;
    // Processors without VBMI lower their clock for vectors of 64 bytes.
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi"))
        return SIMD_AVX512;
    return SIMD_AVX2;
#else
    return SIMD_BASELINE;
#endif
}

enum simd_level simd_level(void) {
    int level = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (level == NOT_ASKED) {
        level = (int)level_of_processor();
        atomic_store_explicit(&chosen, level, memory_order_relaxed);
    }
    assert(level >= SIMD_BASELINE && level < SIMD_LEVEL_COUNT);
    return (enum simd_level)level;
}

void simd_limit(enum simd_level most) {
    assert(most < SIMD_LEVEL_COUNT);
    enum simd_level best = level_of_processor();
    atomic_store_explicit(&chosen, (int)(best < most ? best : most), memory_order_relaxed);
}

const char *simd_level_name(enum simd_level level) {
    static const char *const names[] = {"baseline", "AVX2", "AVX-512"};
    assert(level < SIMD_LEVEL_COUNT);
    return names[level];
}
