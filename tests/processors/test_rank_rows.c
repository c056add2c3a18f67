// SPDX-License-Identifier: Apache-2.0
#include "processors/rank_rows.h"

#include "base/memory.h"

#include <check.h>
#include <stdlib.h>

enum { BUCKETS = 64 };

static struct series_store store;
static struct rank_series series;
static uint32_t buckets[BUCKETS];

static void setup(void) {
    rows_store_init(&store);
    series = (struct rank_series){.last_origin = TABLE_NO_ROW};
    memset(buckets, 0xff, sizeof buckets);
}

static void teardown(void) {
    rows_release(&series);
    rows_store_release(&store);
    intern_release();
}

static uint32_t origin(const char *host, int64_t pid) {
    struct telemetry telemetry = {.host = intern(slice_of(host)), .pid = pid, .world_size = 4};
    return rows_origin(&store, buckets, BUCKETS, TABLE_NO_ROW, &telemetry);
}

static struct row_place put(uint64_t time_ns, int64_t used, uint32_t from, bool by_value) {
    struct sample row = {.time_ns = time_ns, .used_bytes = used, .origin = from};
    return rows_insert(&store, &series, &row, by_value);
}

static void check_order(const int64_t *used, size_t count) {
    struct series_cursor cursor = series_begin(&series);
    for (size_t i = 0; i < count; i++) {
        const struct sample *row = series_next(&store, &series, &cursor, UINT64_MAX);
        ck_assert_ptr_nonnull(row);
        ck_assert_int_eq(row->used_bytes, used[i]);
    }
    ck_assert_ptr_null(series_next(&store, &series, &cursor, UINT64_MAX));
}

START_TEST(test_ties_go_by_pid_then_host_then_arrival) {
    uint32_t b2 = origin("b", 2);
    uint32_t a2 = origin("a", 2);
    uint32_t z1 = origin("z", 1);
    put(5, 0, b2, false);
    put(5, 1, a2, false);
    put(5, 2, z1, false);
    put(5, 3, b2, false);
    put(4, 4, b2, false);
    check_order((int64_t[]){4, 2, 1, 0, 3}, 5);
}
END_TEST

START_TEST(test_by_value_order_does_not_depend_on_arrival) {
    uint32_t from = origin("a", 1);
    put(5, 3, from, true);
    put(5, 1, from, true);
    put(5, 2, from, true);
    check_order((int64_t[]){1, 2, 3}, 3);
}
END_TEST

START_TEST(test_same_origin_is_one_row) {
    ck_assert_uint_eq(origin("a", 1), origin("a", 1));
    ck_assert_uint_ne(origin("a", 1), origin("a", 2));
    ck_assert_uint_ne(origin("a", 1), origin("b", 1));
}
END_TEST

static int compare_times(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

// Random order, thousands of rows: many chunks, splits in all places.
START_TEST(test_any_arrival_order_gives_time_order) {
    enum { COUNT = 5000 };
    static uint64_t times[COUNT];
    uint32_t from = origin("a", 1);
    srand((unsigned)_i + 7);
    for (int i = 0; i < COUNT; i++) {
        times[i] = _i == 0 ? (uint64_t)(COUNT - i) : (uint64_t)(rand() % (_i == 1 ? 100000 : 300));
        struct row_place place = put(times[i], i, from, false);
        ck_assert(!place.late);
    }
    qsort(times, COUNT, sizeof times[0], compare_times);
    struct series_cursor cursor = series_begin(&series);
    int64_t before = -1;
    for (int i = 0; i < COUNT; i++) {
        const struct sample *row = series_next(&store, &series, &cursor, UINT64_MAX);
        ck_assert_ptr_nonnull(row);
        ck_assert_uint_eq(row->time_ns, times[i]);
        // Arrival order among equal times: used_bytes is the arrival number.
        if (i > 0 && times[i] == times[i - 1])
            ck_assert_int_gt(row->used_bytes, before);
        before = row->used_bytes;
        const struct sample *found = series_at_or_before(&store, &series, times[i]);
        ck_assert_uint_eq(found->time_ns, times[i]);
    }
    ck_assert_uint_eq(series.sample_count, COUNT);
}
END_TEST

START_TEST(test_neighbours_and_lateness_are_told) {
    uint32_t from = origin("a", 1);
    ck_assert(!put(10, 0, from, false).has_before);
    struct row_place place = put(30, 1, from, false);
    ck_assert(place.has_before && !place.has_after);
    ck_assert_uint_eq(place.before_ns, 10);
    series.settled_any = true;
    series.settled_ns = 20;
    uint32_t revision = series.revision;
    place = put(25, 2, from, false);
    ck_assert(!place.late && place.before_ns == 10 && place.after_ns == 30);
    ck_assert_uint_eq(series.revision, revision);
    place = put(20, 3, from, false);
    ck_assert(place.late && place.before_ns == 10 && place.after_ns == 25);
    ck_assert_uint_eq(series.revision, revision + 1);
}
END_TEST

// A cursor goes on rightly while rows come in after what it has read.
START_TEST(test_cursor_holds_while_later_rows_come_in) {
    uint32_t from = origin("a", 1);
    struct series_cursor cursor = series_begin(&series);
    uint64_t next = 0;
    for (uint64_t round = 1; round <= 200; round++) {
        // Even times first, then the odd ones between them, all after what was read.
        for (uint64_t t = 0; t < 20; t += 2)
            put(round * 20 + t, 0, from, false);
        for (uint64_t t = 1; t < 20; t += 2)
            put(round * 20 + t, 0, from, false);
        const struct sample *row;
        while ((row = series_next(&store, &series, &cursor, round * 20 + 19)) != NULL) {
            ck_assert_uint_eq(row->time_ns, 20 + next);
            next++;
        }
    }
    ck_assert_uint_eq(next, 200 * 20);
}
END_TEST

START_TEST(test_expired_chunks_are_given_back_and_cursors_go_on) {
    uint32_t from = origin("a", 1);
    for (uint64_t t = 0; t < 10 * SAMPLES_PER_CHUNK; t++)
        put(t, (int64_t)t, from, false);
    struct series_cursor old = series_begin(&series);
    uint32_t live = table_live(&store.chunks);
    while (rows_expired_chunk(&store, &series, 5 * SAMPLES_PER_CHUNK) != NULL)
        rows_drop_first_chunk(&store, &series);
    ck_assert_uint_eq(table_live(&store.chunks), live - 5);
    ck_assert_uint_eq(series.sample_count, 5 * SAMPLES_PER_CHUNK);
    const struct sample *row = series_next(&store, &series, &old, UINT64_MAX);
    ck_assert_uint_eq(row->time_ns, 5 * SAMPLES_PER_CHUNK);
    // The last chunk is never given back.
    while (rows_expired_chunk(&store, &series, UINT64_MAX) != NULL)
        rows_drop_first_chunk(&store, &series);
    ck_assert_uint_eq(series.chunk_count, 1);
}
END_TEST

START_TEST(test_flagged_rows_can_be_removed) {
    uint32_t from = origin("a", 1);
    for (uint64_t t = 0; t < 1000; t++) {
        struct sample row = {.time_ns = t,
                             .used_bytes = (int64_t)t,
                             .origin = from,
                             .flags = t % 3 == 0 || t < 200 ? SAMPLE_JOB_NULL : 0};
        rows_insert(&store, &series, &row, false);
    }
    rows_remove_flagged(&store, &series, SAMPLE_JOB_NULL);
    struct series_cursor cursor = series_begin(&series);
    uint64_t count = 0;
    const struct sample *row;
    while ((row = series_next(&store, &series, &cursor, UINT64_MAX)) != NULL) {
        ck_assert(row->time_ns >= 200 && row->time_ns % 3 != 0);
        count++;
    }
    ck_assert_uint_eq(count, series.sample_count);
    ck_assert_uint_eq(count, 533);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("rank_rows");
    TCase *tests = tcase_create("rows");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_ties_go_by_pid_then_host_then_arrival);
    tcase_add_test(tests, test_by_value_order_does_not_depend_on_arrival);
    tcase_add_test(tests, test_same_origin_is_one_row);
    tcase_add_loop_test(tests, test_any_arrival_order_gives_time_order, 0, 3);
    tcase_add_test(tests, test_neighbours_and_lateness_are_told);
    tcase_add_test(tests, test_cursor_holds_while_later_rows_come_in);
    tcase_add_test(tests, test_expired_chunks_are_given_back_and_cursors_go_on);
    tcase_add_test(tests, test_flagged_rows_can_be_removed);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
