// SPDX-License-Identifier: Apache-2.0
// Each scan against a plain reading of its definition, on random series that grow, swing and fall,
// with thresholds that rise while samples come in.
#include "processors/rank_group/rows.h"
#include "processors/spike_detect/growth_scan.h"

#include <check.h>
#include <stdlib.h>

enum { COUNT_MAX = 400 };

static struct series_store store;
static const struct state_row STORE = {.name = "store", .part = &series_store_part};
static struct rank_series series;
static int64_t used[COUNT_MAX];
static size_t count;

static void setup(void) {
    memset(&store, 0, sizeof store);
    state_rows_init(&STORE, 1, &store);
    series = (struct rank_series){.last_origin = TABLE_NO_ROW};
    count = 0;
}

static void teardown(void) {
    rows_release(&series);
    state_rows_release(&STORE, 1, &store);
}

static void put(int64_t bytes) {
    struct sample row = {.time_ns = count + 1, .used_bytes = bytes};
    rows_insert(&store, &series, &row, false);
    used[count++] = bytes;
}

static struct growth_source source(void) {
    return (struct growth_source){&store, &series, UINT64_MAX, false};
}

// The window that begins after sample `base`: up to its first sample that reaches the threshold.
static bool window_at(size_t base, int64_t threshold, struct spike *out, size_t *end) {
    bool reached = false;
    size_t i = base + 1;
    for (; i < count && used[i] > used[i - 1]; i++) {
        if (reached || used[i] - used[base] < threshold)
            continue;
        reached = true;
        *out = (struct spike){.found = true,
                              .time_ns = i + 1,
                              .window_ns = base + 1,
                              .base_bytes = used[base],
                              .growth_bytes = used[i] - used[base],
                              .samples = i - base};
    }
    *end = i; // the sample that ended it, or the end
    return reached;
}

static struct spike reference_first(int64_t threshold) {
    struct spike spike = {0};
    for (size_t base = 0; base + 1 < count;) {
        size_t end;
        if (window_at(base, threshold, &spike, &end))
            return spike;
        base = end;
    }
    return spike;
}

static struct spike reference_kept(int64_t threshold) {
    for (size_t base = 0; base + 1 < count;) {
        struct spike spike = {0};
        size_t end;
        bool reached = window_at(base, threshold, &spike, &end);
        bool fell = false;
        for (size_t i = end; reached && i < count; i++)
            fell |= used[i] <= spike.base_bytes + spike.growth_bytes / 2;
        if (reached && !fell)
            return spike;
        base = end;
    }
    return (struct spike){0};
}

static void check_same(struct spike got, struct spike want) {
    ck_assert_int_eq(got.found, want.found);
    ck_assert_uint_eq(got.time_ns, want.time_ns);
    ck_assert_uint_eq(got.window_ns, want.window_ns);
    ck_assert_int_eq(got.base_bytes, want.base_bytes);
    ck_assert_int_eq(got.growth_bytes, want.growth_bytes);
    ck_assert_uint_eq(got.samples, want.samples);
}

static int64_t next_value(int64_t now, int style) {
    int step = rand() % 100;
    if (style == 0)
        return now + rand() % 21 - 10;
    if (style == 1) // swings
        return step < 60 ? now + rand() % 30 : 100 + rand() % 50;
    if (style == 2) // a staircase that climbs
        return step < 70 ? now + rand() % 5 : now - rand() % 10;
    return step < 90 ? now + 1 + rand() % 9 : now - rand() % 40; // long growth
}

START_TEST(test_scans_agree_with_their_definition_at_every_step) {
    srand((unsigned)_i);
    struct first_scan first;
    struct kept_scan kept;
    first_scan_begin(&first, series_begin(&series));
    kept_scan_begin(&kept, series_begin(&series));
    int64_t now = 1000;
    int64_t threshold = 10 + rand() % 40;
    struct growth_source all = source();
    while (count < COUNT_MAX) {
        size_t more = 1 + (size_t)rand() % 9;
        while (more-- > 0 && count < COUNT_MAX) {
            put(now);
            now = next_value(now, _i % 4);
            if (now < 0)
                now = 0;
        }
        if (rand() % 3 == 0)
            threshold += rand() % 15;
        first_scan_advance(&first, &all, threshold);
        kept_scan_advance(&kept, &all, threshold);
        check_same(first_scan_spike(&first), reference_first(threshold));
        check_same(kept_scan_spike(&kept), reference_kept(threshold));
    }
}
END_TEST

START_TEST(test_equal_values_end_a_window) {
    const int64_t values[] = {10, 20, 20, 30, 40};
    for (size_t i = 0; i < 5; i++)
        put(values[i]);
    struct first_scan scan;
    first_scan_begin(&scan, series_begin(&series));
    struct growth_source all = source();
    first_scan_advance(&scan, &all, 20);
    struct spike spike = first_scan_spike(&scan);
    ck_assert_uint_eq(spike.time_ns, 5);
    ck_assert_int_eq(spike.growth_bytes, 20);
    ck_assert_uint_eq(spike.samples, 2);
    ck_assert_int_eq(spike.base_bytes, 20);
}
END_TEST

START_TEST(test_falling_to_half_is_falling_back) {
    const int64_t values[] = {100, 200, 151};
    for (size_t i = 0; i < 3; i++)
        put(values[i]);
    struct kept_scan scan;
    kept_scan_begin(&scan, series_begin(&series));
    struct growth_source all = source();
    kept_scan_advance(&scan, &all, 100);
    ck_assert(kept_scan_spike(&scan).found);
    put(150);
    kept_scan_advance(&scan, &all, 100);
    ck_assert(!kept_scan_spike(&scan).found);
}
END_TEST

START_TEST(test_growth_over_the_whole_range_does_not_overflow) {
    put(0);
    put(INT64_MAX);
    put(0);
    put(INT64_MAX);
    struct first_scan first;
    struct kept_scan kept;
    first_scan_begin(&first, series_begin(&series));
    kept_scan_begin(&kept, series_begin(&series));
    struct growth_source all = source();
    first_scan_advance(&first, &all, INT64_MAX);
    kept_scan_advance(&kept, &all, INT64_MAX);
    ck_assert_int_eq(first_scan_spike(&first).growth_bytes, INT64_MAX);
    ck_assert_uint_eq(first_scan_spike(&first).time_ns, 2);
    ck_assert_uint_eq(kept_scan_spike(&kept).time_ns, 4);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("growth_scan");
    TCase *tests = tcase_create("scans");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, test_scans_agree_with_their_definition_at_every_step, 0, 100);
    tcase_add_test(tests, test_equal_values_end_a_window);
    tcase_add_test(tests, test_falling_to_half_is_falling_back);
    tcase_add_test(tests, test_growth_over_the_whole_range_does_not_overflow);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
