// SPDX-License-Identifier: Apache-2.0
// The pass with what every processor of the architecture has.
#include "receivers/decode/json/block.h"

#define USUAL              span_read_usual_baseline
#define USUAL_BLOCK        JSON_BLOCK
#define USUAL_DECIMAL_ROOM 1
#define usual_special      json_block_special

// Nothing is faster here than what reads any number.
static inline unsigned usual_decimal(const char *at, uint64_t *magnitude, unsigned *behind) {
    (void)at;
    *magnitude = 0;
    *behind = 0;
    return 0;
}

#include "receivers/decode/spans/usual_common.h"
