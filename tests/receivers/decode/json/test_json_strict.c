// SPDX-License-Identifier: Apache-2.0
// Numbers as doubles: the one that strtod gives, of every length and scale.
#include "receivers/decode/json/strict.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;

// xorshift64 (Marsaglia 2003)
static uint64_t next_random(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void check_text(const char *text) {
    struct token token = {.text = text, .size = strlen(text), .kind = TOKEN_DECIMAL};
    double wanted = strtod(text, NULL), got = json_number_double(&token);
    uint64_t wanted_bits, got_bits;
    memcpy(&wanted_bits, &wanted, sizeof wanted_bits);
    memcpy(&got_bits, &got, sizeof got_bits);
    ck_assert_msg(got_bits == wanted_bits, "%s: %a, not %a", text, got, wanted);
}

START_TEST(decimals_are_those_of_strtod) {
    char text[64];
    seed = 88172645463325252u;
    for (int i = 0; i < 400000; i++) {
        uint64_t digits = next_random() >> (next_random() % 60);
        unsigned behind = (unsigned)(next_random() % 20) + 1, size;
        size = (unsigned)snprintf(text, sizeof text, "%s%0*" PRIu64, i % 3 == 0 ? "-" : "",
                                  (int)behind + 1, digits);
        memmove(text + size - behind + 1, text + size - behind, behind + 1);
        text[size - behind] = '.';
        check_text(text);
    }
}
END_TEST

// Halves between two doubles, and next to them: where rounding twice would go wrong.
START_TEST(halves_are_rounded_once) {
    char text[64];
    seed = 1;
    for (int i = 0; i < 200000; i++) {
        uint64_t odd = (UINT64_C(1) << 53) + 1 + 2 * (next_random() % (UINT64_C(1) << 52));
        for (int beside = -1; beside <= 1; beside++) {
            snprintf(text, sizeof text, "%" PRIu64 ".%d", odd + (uint64_t)beside, i % 10);
            check_text(text);
        }
    }
    static const char *const texts[] = {"0.0",
                                        "-0.0",
                                        "0.5",
                                        "1795246120.1386724",
                                        "9007199254740993.0",
                                        "900719925474099.3",
                                        "123456789012345678",
                                        "1234567890123456789.5",
                                        "0.000000000000000000000001",
                                        "1e5",
                                        "NaN"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts - 1; i++)
        check_text(texts[i]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("json_strict");
    TCase *all = tcase_create("numbers");
    tcase_add_test(all, decimals_are_those_of_strtod);
    tcase_add_test(all, halves_are_rounded_once);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
