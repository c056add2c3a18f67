// SPDX-License-Identifier: Apache-2.0
// Rows of the journal come back as they were packed, and any bytes may be unpacked.
//
// The input is two bytes that say a length, and a block. What is unpacked of it must be packed and
// come back the same, and so must the input itself.
#include "base/memory.h"
#include "receivers/http/pack.h"
#include "tests/fuzz/fuzz.h"

static struct pack_places places;

static void there_and_back(struct slice bytes) {
    char *block = memory_take(pack_room(bytes.size)), *again = memory_take(bytes.size + 1);
    size_t packed = http_pack(bytes, &places, block);
    require(packed <= pack_room(bytes.size));
    require(http_unpack((struct slice){block, packed}, again, bytes.size));
    require(bytes.size == 0 || memcmp(again, bytes.data, bytes.size) == 0);
    memory_give(block);
    memory_give(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    size_t length = data[0] | (size_t)data[1] << 8;
    char *out = memory_take(length + 1);
    struct slice block = {(const char *)data + 2, size - 2};
    if (http_unpack(block, out, length))
        there_and_back((struct slice){out, length});
    there_and_back(block);
    memory_give(out);
    return 0;
}
