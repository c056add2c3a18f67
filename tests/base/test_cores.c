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

static void *wait_for_end(void *end) {
    pthread_mutex_lock(end);
    pthread_mutex_unlock(end);
    return NULL;
}

// A thread that helps is kept off one core, and off none where that is the only one.
START_TEST(keeping_off) {
    static pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
    cpu_set_t all, one, of_helper;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    size_t first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_SET(first, &one);
    pthread_t helper;
    pthread_mutex_lock(&end);
    ck_assert_int_eq(pthread_create(&helper, NULL, wait_for_end, &end), 0);
    core_avoid((int)first, helper);
    ck_assert_int_eq(pthread_getaffinity_np(helper, sizeof of_helper, &of_helper), 0);
    ck_assert_int_eq(CPU_ISSET(first, &of_helper), CPU_COUNT(&all) == 1);
    ck_assert_int_eq(CPU_COUNT(&of_helper), CPU_COUNT(&all) == 1 ? 1 : CPU_COUNT(&all) - 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    int core = -1;
    ck_assert(core_changed(&core));
    ck_assert_int_eq(core, (int)first);
    ck_assert(!core_changed(&core));
    core_avoid(core, helper); // the caller may use no other
    cpu_set_t after;
    ck_assert_int_eq(pthread_getaffinity_np(helper, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&after, &of_helper));
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
    pthread_mutex_unlock(&end);
    ck_assert_int_eq(pthread_join(helper, NULL), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cores");
    TCase *all = tcase_create("cores");
    tcase_add_test(all, limits);
    tcase_add_test(all, affinity);
    tcase_add_test(all, keeping_off);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
