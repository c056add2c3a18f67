// SPDX-License-Identifier: Apache-2.0
// Are these the bytes that were written?
//
// x86-64 with SSE4.2: the crc32 instruction, eight bytes at a time. Everywhere else: eight tables
// of 256 (8 KiB, made once), which also take eight bytes at a time.
#include "base/hash/crc32c.h"

#include <assert.h>
#include <pthread.h>

#define POLYNOMIAL 0x82f63b78u

static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void tables_fill(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        tables[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int i = 1; i < 8; i++)
            tables[i][byte] = (tables[i - 1][byte] >> 8) ^ tables[0][tables[i - 1][byte] & 0xff];
}

static uint32_t little_endian(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint32_t crc32c_by_tables(uint32_t crc, struct slice bytes) {
    pthread_once(&tables_once, tables_fill);
    assert(bytes.data != NULL || bytes.size == 0);
    const unsigned char *at = (const unsigned char *)bytes.data;
    size_t left = bytes.size;
    crc = ~crc;
    for (; left >= 8; at += 8, left -= 8) {
        uint32_t low = crc ^ little_endian(at), high = little_endian(at + 4);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
              tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; left > 0; at++, left--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_by_instruction(uint32_t crc,
                                                                        struct slice bytes) {
    const char *at = bytes.data;
    size_t left = bytes.size;
    uint64_t sum = (uint32_t)~crc;
    for (; left >= 8; at += 8, left -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    uint32_t rest = (uint32_t)sum;
    for (; left > 0; at++, left--)
        rest = __builtin_ia32_crc32qi(rest, (unsigned char)*at);
    return ~rest;
}

uint32_t crc32c(uint32_t crc, struct slice bytes) {
    return __builtin_cpu_supports("sse4.2") ? crc32c_by_instruction(crc, bytes)
                                            : crc32c_by_tables(crc, bytes);
}
#else
uint32_t crc32c(uint32_t crc, struct slice bytes) {
    return crc32c_by_tables(crc, bytes);
}
#endif
