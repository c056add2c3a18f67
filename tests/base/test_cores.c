// SPDX-License-Identifier: Apache-2.0
// How many cores may be used: limits of control groups, and affinity.
#include "base/cores.h"

#include <check.h>
#include <sched.h>

START_TEST(limits) {
    ck_assert_uint_eq(cores_of_limit("max 100000\n"), 0);
    ck_assert_uint_eq(cores_of_limit("200000 100000\n"), 2);
    ck_assert_uint_eq(cores_of_limit("150000 100000"), 2);
    ck_assert_uint_eq(cores_of_limit("1000 100000"), 1);
    ck_assert_uint_eq(cores_of_limit("0 100000"), 1);
    ck_assert_uint_eq(cores_of_limit(""), 0);
    ck_assert_uint_eq(cores_of_limit("100000"), 0);
    ck_assert_uint_eq(cores_of_limit("100000 0"), 0);
    ck_assert_uint_eq(cores_of_limit("18446744073709551615 1"), UINT32_MAX);
}
END_TEST

START_TEST(affinity) {
    cpu_set_t all, one;
    ck_assert_uint_ge(cores_usable(), 1);
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    ck_assert_uint_le(cores_usable(), (uint32_t)CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_uint_eq(cores_usable(), 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cores");
    TCase *all = tcase_create("cores");
    tcase_add_test(all, limits);
    tcase_add_test(all, affinity);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
