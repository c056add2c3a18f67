// SPDX-License-Identifier: Apache-2.0
#include "base/hash/crc32c.h"

#include <check.h>

static unsigned char bytes[4096];

static struct slice run_of(size_t at, size_t size) {
    return (struct slice){(const char *)bytes + at, size};
}

static void check_both(struct slice input, uint32_t expected) {
    ck_assert_uint_eq(crc32c(0, input), expected);
    ck_assert_uint_eq(crc32c_by_tables(0, input), expected);
}

// RFC 3720, appendix B.4 (there in the order of the wire: lowest byte first).
START_TEST(vectors_of_the_rfc) {
    memset(bytes, 0, 32);
    check_both(run_of(0, 32), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    check_both(run_of(0, 32), 0x62a8ab43);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    check_both(run_of(0, 32), 0x46dd794e);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(31 - i);
    check_both(run_of(0, 32), 0x113fdb5c);
    static const unsigned char command[48] = {
        0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    memcpy(bytes, command, sizeof command);
    check_both(run_of(0, sizeof command), 0xd9963a56);
    check_both(SLICE("123456789"), 0xe3069283);
    check_both((struct slice){NULL, 0}, 0);
}
END_TEST

// Every length and alignment up to 64, and in two parts.
START_TEST(both_ways_agree) {
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof bytes; i++) {
        state = state * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(state >> 24);
    }
    for (size_t at = 0; at < 8; at++) {
        for (size_t size = 0; size < 64; size++) {
            uint32_t whole = crc32c(0, run_of(at, size));
            ck_assert_uint_eq(whole, crc32c_by_tables(0, run_of(at, size)));
            for (size_t cut = 0; cut <= size; cut++) {
                uint32_t first = crc32c(0, run_of(at, cut));
                ck_assert_uint_eq(crc32c(first, run_of(at + cut, size - cut)), whole);
                ck_assert_uint_eq(crc32c_by_tables(first, run_of(at + cut, size - cut)), whole);
            }
        }
    }
    ck_assert_uint_eq(crc32c(0, run_of(0, 4096)), crc32c_by_tables(0, run_of(0, 4096)));
}
END_TEST

START_TEST(each_flipped_bit_shows) {
    memset(bytes, 7, 100);
    uint32_t whole = crc32c(0, run_of(0, 100));
    for (unsigned bit = 0; bit < 800; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        ck_assert_uint_ne(crc32c(0, run_of(0, 100)), whole);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("crc32c");
    TCase *cases = tcase_create("crc32c");
    tcase_add_test(cases, vectors_of_the_rfc);
    tcase_add_test(cases, both_ways_agree);
    tcase_add_test(cases, each_flipped_bit_shows);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
