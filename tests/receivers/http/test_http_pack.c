// SPDX-License-Identifier: Apache-2.0
// Rows of the journal come back as they were, and no bytes that are not a block are taken for one.
#include "receivers/http/pack.h"

#include "base/memory.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct pack_places places;

// Packs and unpacks; returns the size of the block. Memory of the exact size: what is read or
// written beyond it is found.
static size_t there_and_back(const char *bytes, size_t size) {
    char *in = memory_take(size), *block = memory_take(pack_room(size)), *out = memory_take(size);
    if (size > 0)
        memcpy(in, bytes, size);
    size_t packed = http_pack((struct slice){in, size}, &places, block);
    ck_assert_uint_le(packed, pack_room(size));
    char *exact = memory_take(packed);
    memcpy(exact, block, packed);
    ck_assert(http_unpack((struct slice){exact, packed}, out, size));
    ck_assert(size == 0 || memcmp(in, out, size) == 0);
    // Of another length it is refused, and so is a part of it.
    if (size > 0)
        ck_assert(!http_unpack((struct slice){exact, packed}, out, size - 1));
    for (size_t cut = packed < 64 ? packed : 64; cut > 0; cut--)
        ck_assert(!http_unpack((struct slice){exact, packed - cut}, out, size));
    memory_give(exact);
    memory_give(in);
    memory_give(block);
    memory_give(out);
    return packed;
}

START_TEST(test_lines_that_are_alike_shrink) {
    enum { LINES = 300, LINE_MAX = 256 };
    char *lines = memory_take((size_t)LINES * LINE_MAX);
    size_t size = 0;
    srand(1);
    for (int i = 0; i < LINES; i++)
        size += (size_t)snprintf(
            lines + size, LINE_MAX,
            "{\"schema_version\":3,\"timestamp_ns\":17600000%011d,\"event_type\":\"sample\","
            "\"host\":\"node%d\",\"rank\":%d,\"device_used_bytes\":%d,\"metadata\":{}}\n",
            i * 100000, i % 8, i % 64, rand());
    ck_assert_uint_lt(there_and_back(lines, size), size / 3);
    memory_give(lines);
}
END_TEST

// All sizes around those at which the format has rules of its own.
START_TEST(test_every_size_comes_back) {
    char bytes[700];
    for (size_t kind = 0; kind < 4; kind++) {
        srand((unsigned)kind);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(kind == 0 ? 'a' : kind == 1 ? rand() : rand() % (kind == 2 ? 2 : 20));
        for (size_t size = 0; size <= sizeof bytes; size++)
            there_and_back(bytes, size);
    }
}
END_TEST

START_TEST(test_large_and_mixed) {
    size_t size = (size_t)1 << 20;
    char *bytes = memory_take(size);
    srand((unsigned)_i);
    for (size_t at = 0; at < size;) {
        size_t run = 1 + (size_t)rand() % (rand() % 50 == 0 ? 100000 : 300);
        if (run > size - at)
            run = size - at;
        size_t back = at == 0 ? 0 : 1 + (size_t)rand() % (at < 70000 ? at : 70000);
        for (size_t i = 0; i < run; i++)
            bytes[at + i] = back == 0 || _i == 0 ? (char)rand() : bytes[at + i - back];
        at += run;
    }
    size_t packed = there_and_back(bytes, size);
    if (_i > 0)
        ck_assert_uint_lt(packed, size / 2);
    memory_give(bytes);
}
END_TEST

// Written by hand after the description of the format.
START_TEST(test_blocks_of_the_format) {
    char out[64];
    ck_assert(http_unpack(SLICE("\x50hello"), out, 5) && memcmp(out, "hello", 5) == 0);
    // One literal, then 19 + 4 bytes that repeat it, then five literals.
    static const char run[] =
        "\x1f"
        "a\x01\x00\x04\x50"
        "bcdef";
    ck_assert(http_unpack(SLICE(run), out, 29));
    ck_assert(memcmp(out, "aaaaaaaaaaaaaaaaaaaaaaaabcdef", 29) == 0);
    // Sixteen literals: the length goes on in a byte of its own.
    ck_assert(http_unpack(SLICE("\xf0\x01"
                                "0123456789abcdef"),
                          out, 16));
    ck_assert(memcmp(out, "0123456789abcdef", 16) == 0);
    ck_assert(http_unpack(SLICE("\x00"), out, 0));
}
END_TEST

START_TEST(test_what_is_no_block_is_refused) {
    static const struct {
        struct slice block;
        size_t size;
    } wrong[] = {
        {{"", 0}, 0},                       // nothing
        {{"\x50hell", 5}, 5},               // literals end early
        {{"\x50hello", 6}, 4},              // there is no room
        {{"\xf0", 1}, 15},                  // the length ends early
        {{"\xf0\xff\xff", 3}, 525},         // likewise
        {{"\x10z\x00\x00\x10z", 6}, 6},     // a reference to nothing: 0 bytes back
        {{"\x10z\x02\x00\x10z", 6}, 6},     // … and before the beginning
        {{"\x10z\x01", 3}, 5},              // a reference that ends early
        {{"\x1fz\x01\x00", 4}, 20},         // … its length
        {{"\x1fz\x01\x00\x04\x10z", 7}, 8}, // … longer than there is room
        {{"\x10z\x01\x00", 4}, 5},          // nothing behind a reference
        {{"\x11z", 2}, 1},                  // the last literals, and yet a reference
    };
    char out[1024];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!http_unpack(wrong[i].block, out, wrong[i].size), "block %zu", i);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("http_pack");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_lines_that_are_alike_shrink);
    tcase_add_test(tests, test_every_size_comes_back);
    tcase_add_loop_test(tests, test_large_and_mixed, 0, 4);
    tcase_add_test(tests, test_blocks_of_the_format);
    tcase_add_test(tests, test_what_is_no_block_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
