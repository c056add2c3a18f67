// SPDX-License-Identifier: Apache-2.0
// The walk with what every processor of the architecture has.
#include "receivers/decode/json/block.h"

#define WALK         telemetry_walk_baseline
#define WALK_BLOCK   JSON_BLOCK
#define walk_special json_block_special
#define walk_others  json_block_others
#define walk_digits  json_read_digits

static inline bool walk_same(const char *at, const char *text, size_t size, size_t left) {
    unsigned different = 0;
    if (left < size + JSON_BLOCK)
        return memcmp(at, text, size) == 0;
    for (size_t blocks = size / JSON_BLOCK; blocks > 0; blocks--) {
        different |= json_block_differences(at, text);
        at += JSON_BLOCK;
        text += JSON_BLOCK;
    }
    return (different | (json_block_differences(at, text) << (31 - size % JSON_BLOCK) << 1)) == 0;
}

#include "receivers/decode/telemetry/walk_common.h"
