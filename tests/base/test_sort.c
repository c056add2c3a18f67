// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/sort.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

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

// Runs up and down, of all lengths, equal items among them: as an insertion sort would.
START_TEST(runs_are_merged_and_equal_items_stay_in_order) {
    enum { MOST = 70 };
    uint32_t state = 7;
    for (int round = 0; round < 400; round++) {
        struct arena arena;
        struct item items[MOST], expected[MOST];
        int count = round % MOST, step = 1;
        uint32_t number = 100;
        for (int i = 0; i < count; i++) {
            state = state * 1664525 + 1013904223;
            step = (state >> 28) == 0 ? -step : step;
            number += (uint32_t)step * (state >> 20) % 3;
            int at = i;
            for (; at > 0 && expected[at - 1].number > number; at--)
                expected[at] = expected[at - 1];
            expected[at] = items[i] = (struct item){number, i};
        }
        arena_init(&arena, 4096);
        sort_stable(items, (size_t)count, sizeof items[0], &arena, compare_by_u32);
        for (int i = 0; i < count; i++)
            ck_assert_int_eq(items[i].place, expected[i].place);
        arena_release(&arena);
    }
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

// Against sorting: clusters, duplicates, and values at both ends of the range.
START_TEST(a_place_is_selected_as_sorting_would) {
    enum { MOST = 3000 };
    static int64_t values[MOST], sorted[MOST];
    uint64_t state = 0x9e3779b97f4a7c15 + (uint64_t)_i;
    for (uint32_t round = 0; round < 50; round++) {
        size_t count = 1 + (state >> 33) % MOST;
        unsigned shift = (unsigned)(state >> 20 & 63);
        for (size_t i = 0; i < count; i++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            values[i] = (int64_t)(state >> shift) * (state & 1 ? 1 : -1);
            if (state >> 60 == 0)
                values[i] = state >> 59 & 1 ? INT64_MAX : INT64_MIN;
        }
        memcpy(sorted, values, count * sizeof *values);
        qsort(sorted, count, sizeof *sorted, compare_by_i64);
        size_t k = (size_t)(state >> 7) % count;
        ck_assert_int_eq(select_i64(values, count, k), sorted[k]);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sort");
    TCase *cases = tcase_create("sort");
    tcase_add_test(cases, equal_items_stay_in_order);
    tcase_add_test(cases, runs_are_merged_and_equal_items_stay_in_order);
    tcase_add_test(cases, keys_compare_in_order);
    tcase_add_test(cases, numbers_compare_by_value);
    tcase_add_loop_test(cases, a_place_is_selected_as_sorting_would, 0, 10);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
