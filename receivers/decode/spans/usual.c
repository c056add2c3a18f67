// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/spans/usual.h"

#include "base/simd.h"

bool span_read_usual(struct slice line, struct arena *arena, struct span_event *event) {
    if (line.size < SPAN_USUAL_MIN)
        return false;
#ifdef __x86_64__
    if (simd_level() >= SIMD_AVX2)
        return span_read_usual_avx2(line, arena, event);
#endif
    return span_read_usual_baseline(line, arena, event);
}
