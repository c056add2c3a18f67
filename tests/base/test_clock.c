// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <check.h>
#include <string.h>

struct time_case {
    uint64_t unix_ns;
    const char *text;
};
static const struct time_case time_cases[] = {
    {0, "1970-01-01T00:00:00.000000000Z"},
    {1, "1970-01-01T00:00:00.000000001Z"},
    {UINT64_C(951827696999999999), "2000-02-29T12:34:56.999999999Z"},
    {UINT64_C(1769850904123456789), "2026-01-31T09:15:04.123456789Z"},
    {INT64_MAX, "2262-04-11T23:47:16.854775807Z"},
    {UINT64_MAX, "2554-07-21T23:34:33.709551615Z"},
};

START_TEST(rfc3339) {
    char text[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(time_cases[_i].unix_ns, text);
    ck_assert_str_eq(text, time_cases[_i].text);
}
END_TEST

START_TEST(clocks_move_forward) {
    uint64_t first = clock_monotonic_ns();
    ck_assert_uint_gt(clock_unix_ns(), UINT64_C(1600000000) * 1000000000);
    clock_sleep_ns(0);
    clock_sleep_ns(1000000);
    ck_assert_uint_ge(clock_monotonic_ns(), first + 1000000);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("clock");
    TCase *cases = tcase_create("clock");
    tcase_add_loop_test(cases, rfc3339, 0, 6);
    tcase_add_test(cases, clocks_move_forward);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
