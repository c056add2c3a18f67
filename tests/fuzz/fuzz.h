// SPDX-License-Identifier: Apache-2.0
// What fuzz targets share: a promise that ends the program when it does not hold, and ways to take
// an input apart.
//
// A target says what must be true of any input with `require`; libFuzzer and the replay program
// (replay.c) report the input. Pieces are copied into blocks of their own, so that
// AddressSanitizer sees a read past their end.
#pragma once

#include "base/memory.h"
#include "base/slice.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argument_count, char ***arguments);

static inline void require(bool holds) {
    if (!holds)
        abort();
}

struct fuzz_input {
    const char *at;
    size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz_input *input) {
    if (input->left == 0)
        return 0;
    input->left--;
    return (uint8_t)*input->at++;
}

static inline uint32_t fuzz_number(struct fuzz_input *input, unsigned bytes) {
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | fuzz_byte(input);
    return value;
}

// Up to `end`, which is passed over, or all that is left. False when nothing is left.
static inline bool fuzz_piece(struct fuzz_input *input, char end, struct slice *piece) {
    if (input->left == 0)
        return false;
    const char *found = memchr(input->at, end, input->left);
    size_t size = found == NULL ? input->left : (size_t)(found - input->at);
    *piece = (struct slice){input->at, size};
    size += found != NULL;
    input->at += size;
    input->left -= size;
    return true;
}

// To be given back with memory_give((void *)copy.data).
static inline struct slice fuzz_block(struct slice bytes) {
    char *block = memory_take(bytes.size);
    if (bytes.size > 0)
        memcpy(block, bytes.data, bytes.size);
    return (struct slice){block, bytes.size};
}

static inline void fuzz_block_give(struct slice block) {
    memory_give((void *)(uintptr_t)block.data);
}
