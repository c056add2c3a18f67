// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/sort.h"

#include <check.h>

struct item {
    uint32_t number;
    int place;
};

START_TEST(equal_items_stay_in_order) {
    struct arena arena;
    struct item items[100];
    arena_init(&arena, 4096);
    for (int i = 0; i < 100; i++)
        items[i] = (struct item){(uint32_t)(i * 37 % 10), i};
    sort_stable(items, 100, sizeof items[0], &arena, compare_by_u32);
    for (int i = 1; i < 100; i++)
        ck_assert(items[i - 1].number < items[i].number ||
                  (items[i - 1].number == items[i].number && items[i - 1].place < items[i].place));
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}
END_TEST

START_TEST(keys_compare_in_order) {
    ck_assert_int_eq(COMPARE_KEYS(COMPARE(1, 1), COMPARE(2, 1), COMPARE(1, 2)), 1);
    ck_assert_int_eq(COMPARE_KEYS(COMPARE(1, 1), COMPARE(1, 2)), -1);
    ck_assert_int_eq(COMPARE_KEYS(COMPARE(1, 1)), 0);
}
END_TEST

START_TEST(numbers_compare_by_value) {
    const uint32_t u32[] = {1, UINT32_MAX};
    const int32_t i32[] = {INT32_MIN, 1};
    const uint64_t u64[] = {1, UINT64_MAX};
    const int64_t i64[] = {INT64_MIN, 1};
    const double numbers[] = {-0.5, 0.25};
    ck_assert_int_eq(compare_by_u32(&u32[0], &u32[1]), -1);
    ck_assert_int_eq(compare_by_i32(&i32[0], &i32[1]), -1);
    ck_assert_int_eq(compare_by_u64(&u64[1], &u64[0]), 1);
    ck_assert_int_eq(compare_by_i64(&i64[1], &i64[0]), 1);
    ck_assert_int_eq(compare_by_double(&numbers[0], &numbers[1]), -1);
    ck_assert_int_eq(compare_by_double(&numbers[1], &numbers[1]), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sort");
    TCase *cases = tcase_create("sort");
    tcase_add_test(cases, equal_items_stay_in_order);
    tcase_add_test(cases, keys_compare_in_order);
    tcase_add_test(cases, numbers_compare_by_value);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
