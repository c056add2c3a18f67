// SPDX-License-Identifier: Apache-2.0
#include "processors/rank_group/interval_median.h"

#include "processors/rank_group/rows.h"

#include <check.h>
#include <stdlib.h>

enum { RANKS = 3, COUNT_MAX = 3000 };

static struct series_store store;
static const struct state_row STORE = {.name = "store", .part = &series_store_part};
static struct rank_series series[RANKS];
static struct rank_view views[RANKS];
static struct arena arena;

static void setup(void) {
    memset(&store, 0, sizeof store);
    state_rows_init(&STORE, 1, &store);
    arena_init(&arena, 65536);
    for (int i = 0; i < RANKS; i++) {
        series[i] = (struct rank_series){.rank = i, .last_origin = TABLE_NO_ROW};
        views[i] = (struct rank_view){.series = &series[i]};
    }
}

static void teardown(void) {
    for (int i = 0; i < RANKS; i++)
        rows_release(&series[i]);
    state_rows_release(&STORE, 1, &store);
    arena_release(&arena);
}

static void put(int rank, uint64_t time_ns, int64_t claimed_ms) {
    struct telemetry telemetry = {.sampling_interval_ms = claimed_ms};
    struct origin_key key = {.telemetry = &telemetry};
    struct sample row = {.time_ns = time_ns, .origin = rows_origin(&store, TABLE_NO_ROW, &key)};
    rows_insert(&store, &series[rank], &row, false);
}

static struct evaluation all(void) {
    for (int i = 0; i < RANKS; i++)
        views[i].sample_count = series[i].sample_count;
    return (struct evaluation){
        .as_of_ns = UINT64_MAX, .store = &store, .rank_count = RANKS, .ranks = views};
}

static int compare(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static __int128 sorted_median(uint64_t *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    if (count % 2 == 1)
        return values[count / 2];
    return median_of_middle(values[count / 2 - 1], values[count / 2]);
}

START_TEST(test_agrees_with_sorting_in_both_forms) {
    static uint64_t intervals[COUNT_MAX];
    size_t count = 0;
    srand((unsigned)_i);
    struct order_statistic set;
    set = (struct order_statistic){0};
    int samples = 2 + rand() % 600;
    for (int rank = 0; rank < RANKS; rank++) {
        uint64_t time_ns = (uint64_t)rand();
        for (int i = 0; i < samples; i++) {
            put(rank, time_ns, 100);
            // From nanoseconds to centuries, with ties and zero steps.
            uint64_t step = (uint64_t)rand() % (UINT64_C(1) << (_i % 40 + 1));
            if (step > 0 && i + 1 < samples) {
                intervals[count++] = step;
                order_add(&set, step);
            }
            time_ns += step;
        }
    }
    struct evaluation evaluation = all();
    __int128 want = count == 0 ? 100000000 : sorted_median(intervals, count);
    ck_assert(interval_median_of_samples(&evaluation, NULL, &arena) == want);
    ck_assert(interval_median_of_set(&evaluation, &set, &arena) == want);
    order_release(&set);
}
END_TEST

// More than are sorted, some at the same time, with one beyond 32 bits or none.
START_TEST(test_many_intervals_agree_with_sorting_at_any_number_of_threads) {
    enum { MANY = 150000 };
    static uint64_t intervals[RANKS * MANY];
    size_t count = 0;
    srand((unsigned)_i);
    for (int rank = 0; rank < RANKS; rank++) {
        uint64_t time_ns = 1;
        for (int i = 0; i < MANY / (rank + 1); i++) {
            put(rank, time_ns, 100);
            uint64_t step = 1000000 + (uint64_t)rand() % (rank == 0 ? 100 : 200000000);
            step = rand() % 10 == 0 ? 0 : step;
            if (_i == 2 && i == 70 && rank == 1)
                step = UINT64_C(1) << 33;
            if (step > 0 && i + 1 < MANY / (rank + 1))
                intervals[count++] = step;
            time_ns += step;
        }
    }
    __int128 want = sorted_median(intervals, count);
    struct evaluation evaluation = all();
    static const uint32_t threads[] = {1, 2, 7};
    for (int i = 0; i < 3; i++) {
        struct workers *workers = workers_new(threads[i]);
        ck_assert(interval_median_of_samples(&evaluation, workers, &arena) == want);
        workers_free(workers);
    }
}
END_TEST

START_TEST(test_largest_intervals) {
    put(0, 0, 0);
    put(0, UINT64_MAX, 0);
    struct evaluation evaluation = all();
    ck_assert(interval_median_of_samples(&evaluation, NULL, &arena) == UINT64_MAX);
}
END_TEST

START_TEST(test_samples_after_the_moment_do_not_count) {
    put(0, 0, 0);
    put(0, 10, 0);
    put(0, 1000, 0);
    struct evaluation evaluation = all();
    evaluation.as_of_ns = 999;
    ck_assert(interval_median_of_samples(&evaluation, NULL, &arena) == 10);
}
END_TEST

START_TEST(test_claims_are_used_when_no_time_passes) {
    put(0, 5, 100);
    put(0, 5, 100);
    put(1, 5, 300);
    put(1, 5, 0);
    struct evaluation evaluation = all();
    ck_assert(interval_median_of_samples(&evaluation, NULL, &arena) == 100000000);
    put(2, 5, 300);
    evaluation = all();
    ck_assert(interval_median_of_samples(&evaluation, NULL, &arena) == 200000000);
}
END_TEST

START_TEST(test_huge_claims_do_not_overflow) {
    put(0, 5, INT64_MAX);
    struct evaluation evaluation = all();
    ck_assert(interval_median_of_samples(&evaluation, NULL, &arena) ==
              (__int128)INT64_MAX * 1000000);
}
END_TEST

START_TEST(test_nothing_known_is_zero) {
    struct evaluation evaluation = all();
    ck_assert(interval_median_of_samples(&evaluation, NULL, &arena) == 0);
    put(0, 5, 0);
    evaluation = all();
    ck_assert(interval_median_of_samples(&evaluation, NULL, &arena) == 0);
}
END_TEST

START_TEST(test_half_is_truncated_and_rounded_above_2_53) {
    ck_assert(median_of_middle(1, 2) == 1);
    ck_assert(median_of_middle(3, 4) == 3);
    unsigned __int128 big = (unsigned __int128)1 << 53;
    ck_assert(median_of_middle(big + 1, big + 3) == (__int128)((double)(2 * big + 4) / 2));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("interval_median");
    TCase *tests = tcase_create("median");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, test_agrees_with_sorting_in_both_forms, 0, 80);
    tcase_add_loop_test(tests, test_many_intervals_agree_with_sorting_at_any_number_of_threads, 0,
                        3);
    tcase_add_test(tests, test_largest_intervals);
    tcase_add_test(tests, test_samples_after_the_moment_do_not_count);
    tcase_add_test(tests, test_claims_are_used_when_no_time_passes);
    tcase_add_test(tests, test_huge_claims_do_not_overflow);
    tcase_add_test(tests, test_nothing_known_is_zero);
    tcase_add_test(tests, test_half_is_truncated_and_rounded_above_2_53);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
