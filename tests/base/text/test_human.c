// SPDX-License-Identifier: Apache-2.0
#include "base/text/human.h"

#include <check.h>
#include <stdlib.h>

static const char *bytes(int64_t value) {
    static char text[HUMAN_MAX];
    human_bytes(value, text);
    return text;
}

static const char *duration(__int128 value_ns) {
    static char text[HUMAN_MAX];
    human_duration(value_ns, text);
    return text;
}

START_TEST(sizes) {
    ck_assert_str_eq(bytes(0), "0 B");
    ck_assert_str_eq(bytes(1023), "1023 B");
    ck_assert_str_eq(bytes(1024), "1.00 KiB");
    ck_assert_str_eq(bytes(1153434), "1.10 MiB");
    ck_assert_str_eq(bytes(INT64_C(812) << 20), "812.0 MiB");
    ck_assert_str_eq(bytes(INT64_C(1002) << 20), "1002 MiB");
    ck_assert_str_eq(bytes(INT64_MAX), "8.00 EiB");
    ck_assert_str_eq(bytes(-(INT64_C(64) << 20)), "-64.0 MiB");
    ck_assert_str_eq(bytes(INT64_MIN), "-8.00 EiB");
}
END_TEST

START_TEST(rounding_never_prints_a_whole_next_unit) {
    ck_assert_str_eq(bytes((1 << 20) - 1), "1.00 MiB");
    ck_assert_str_eq(bytes(10 * 1024 - 1), "10.0 KiB");
    ck_assert_str_eq(bytes(1000 * 1024 - 1), "1000 KiB");
}
END_TEST

START_TEST(durations) {
    ck_assert_str_eq(duration(0), "0 s");
    ck_assert_str_eq(duration(250000), "250 us");
    ck_assert_str_eq(duration(250000000), "250 ms");
    ck_assert_str_eq(duration(999600000), "1.00 s");
    ck_assert_str_eq(duration(1931531008), "1.93 s");
    ck_assert_str_eq(duration(-17300000000), "-17.3 s");
    ck_assert_str_eq(duration(59999000000), "1 min 0 s");
    ck_assert_str_eq(duration((__int128)250 * 1000000000), "4 min 10 s");
    ck_assert_str_eq(duration((__int128)12000 * 1000000000), "3 h 20 min");
    ck_assert_str_eq(duration((__int128)UINT64_MAX * 2), "3.69e+10 s");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("human");
    TCase *cases = tcase_create("human");
    tcase_add_test(cases, sizes);
    tcase_add_test(cases, rounding_never_prints_a_whole_next_unit);
    tcase_add_test(cases, durations);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
