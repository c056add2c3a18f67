// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli; RFC 3720 section 12.1, reflected polynomial 0x82f63b78): tells damaged bytes
// from whole ones. With the processor's instruction about 8 bytes in 3 cycles, else by tables.
#pragma once

#include "base/slice.h"

#include <stdint.h>

// The checksum of what `crc` stands for with `bytes` behind it; 0 stands for nothing. Any thread.
uint32_t crc32c(uint32_t crc, struct slice bytes);
// The same without the instruction: what crc32c does on a processor that lacks it.
uint32_t crc32c_by_tables(uint32_t crc, struct slice bytes);
