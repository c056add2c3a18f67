// SPDX-License-Identifier: Apache-2.0
// Which vector instructions this processor has, and which of them are used.
//
// The program is built for the oldest processor of its architecture. A few functions for which it
// was measured to matter are built for newer ones as well, give the same answers, and are chosen by
// simd_level() when they are called.
#pragma once

// Each level has what those before it have.
enum simd_level {
    SIMD_BASELINE, // SSE2 on x86-64
    SIMD_AVX2,     // AVX2, BMI, BMI2: x86-64-v3
    SIMD_AVX512,   // and AVX-512 F, BW, DQ, VL, VBMI: Ice Lake, Zen 4 and later
    SIMD_LEVEL_COUNT
};

// What is used: all that the processor has, unless simd_limit says less. Any thread.
enum simd_level simd_level(void);
// For tests: use no more than `most` from now on. Any thread; what runs at that time may still use
// more.
void simd_limit(enum simd_level most);
// "baseline", "AVX2", "AVX-512"; static text.
const char *simd_level_name(enum simd_level level);
