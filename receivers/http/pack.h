// SPDX-License-Identifier: Apache-2.0
// Makes rows of the journal smaller, at the speed of memory: records of one job are nearly alike.
//
// The packed bytes are a block in the sense of LZ4's block format (lz4_Block_format.md, beside the
// reference implementation): runs of literals and references to at most 64 KiB before. Only what
// is known to be a block with a length that is kept beside it is unpacked, and nothing is trusted:
// a block that is not whole, refers to what is not there or is of another length is refused.
#pragma once

#include "base/slice.h"

#include <stdint.h>

enum { PACK_PLACES_BITS = 12, PACK_MAX = 64 << 20 };

// Scratch of http_pack: where the bytes with each hash stood last. Need not be cleared.
struct pack_places {
    uint32_t at[1 << PACK_PLACES_BITS];
};

// Room that a block of `size` bytes needs at most.
static inline size_t pack_room(size_t size) {
    return size + size / 255 + 16;
}

// Writes the block of `bytes`, at most PACK_MAX, to `out`, which has pack_room; returns its size.
size_t http_pack(struct slice bytes, struct pack_places *places, char *out);
// Reads a block that holds exactly `size` bytes; false when it does not. `out` has room for them.
bool http_unpack(struct slice block, char *out, size_t size);
