// SPDX-License-Identifier: Apache-2.0
// The pass with vectors of 32 bytes. Built with AVX2, BMI and BMI2 (CMakeLists.txt).
#ifdef __AVX2__
#include "receivers/decode/json/vector.h"

#define USUAL              span_read_usual_avx2
#define USUAL_BLOCK        VECTOR_BLOCK
#define USUAL_DECIMAL_ROOM (VECTOR_DECIMAL_ROOM + 1)
#define usual_special      vector_special

static inline __attribute__((always_inline)) unsigned
usual_decimal(const char *at, uint64_t *magnitude, unsigned *behind) {
    unsigned size = vector_decimal(at, magnitude, behind);
    if (size == 0 || *magnitude > UINT64_C(1) << 53)
        return 0;
    bool goes_on = size == VECTOR_DECIMAL_ROOM && (unsigned)(at[size] - '0') <= 9;
    return goes_on ? 0 : size;
}

#include "receivers/decode/spans/usual_common.h"
#else
#include "receivers/decode/spans/usual.h"
#endif
