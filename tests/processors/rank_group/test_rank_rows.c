// SPDX-License-Identifier: Apache-2.0
#include "processors/rank_group/rows.h"

#include "base/memory.h"

#include <check.h>
#include <stdlib.h>

static struct series_store store;
static const struct state_row STORE = {.name = "store", .part = &series_store_part};
static struct rank_series series;

static void setup(void) {
    memset(&store, 0, sizeof store);
    state_rows_init(&STORE, 1, &store);
    series = (struct rank_series){.last_origin = TABLE_NO_ROW};
}

static void teardown(void) {
    rows_release(&series);
    state_rows_release(&STORE, 1, &store);
    intern_release();
}

static uint32_t origin(const char *host, int64_t pid) {
    struct telemetry telemetry = {.host = intern(slice_of(host)), .pid = pid, .world_size = 4};
    struct origin_key key = {.telemetry = &telemetry};
    return rows_origin(&store, TABLE_NO_ROW, &key);
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

static enum rows_held have(uint64_t time_ns, int64_t used, uint32_t from) {
    struct sample row = {.time_ns = time_ns, .used_bytes = used, .origin = from};
    return rows_have(&store, &series, &row);
}

START_TEST(test_a_row_that_came_before_is_known) {
    uint32_t from = origin("a", 1);
    struct telemetry telemetry = {.host = intern(SLICE("a")), .pid = 1, .world_size = 4};
    struct carried carried = {.generation = 2};
    struct origin_key key = {.telemetry = &telemetry, .carried = &carried};
    uint32_t passed_on = rows_origin(&store, TABLE_NO_ROW, &key);
    ck_assert_int_eq(have(5, 1, from), ROWS_HELD_NOT);
    for (uint64_t time_ns = 1; time_ns < 100; time_ns++)
        put(time_ns, 1, from, false);
    put(50, 2, from, false);
    ck_assert_int_eq(have(50, 1, from), ROWS_HELD);
    ck_assert_int_eq(have(50, 2, from), ROWS_HELD);
    ck_assert_int_eq(have(99, 1, from), ROWS_HELD);
    ck_assert_int_eq(have(50, 3, from), ROWS_HELD_NOT);
    ck_assert_int_eq(have(100, 1, from), ROWS_HELD_NOT);
    ck_assert_int_eq(have(50, 1, origin("a", 2)), ROWS_HELD_NOT);
    ck_assert_int_eq(have(50, 1, passed_on), ROWS_HELD_OTHERWISE);
}
END_TEST

START_TEST(test_repeats_can_be_passed_over) {
    uint32_t from = origin("a", 1);
    const struct sample *rows;
    for (uint64_t time_ns = 1; time_ns <= 60; time_ns++) {
        struct sample row = {.time_ns = time_ns, .used_bytes = (int64_t)time_ns, .origin = from};
        rows_insert(&store, &series, &row, false);
        row.flags = SAMPLE_REPEATED;
        for (uint64_t more = time_ns % 3; more > 0; more--)
            rows_insert(&store, &series, &row, false);
    }
    struct series_cursor cursor = series_begin(&series);
    uint64_t next = 1;
    for (uint32_t count;
         (count = series_next_distinct_run(&store, &series, &cursor, 59, &rows)) > 0;)
        for (uint32_t i = 0; i < count; i++)
            ck_assert_uint_eq(rows[i].time_ns, next++);
    ck_assert_uint_eq(next, 60);
    ck_assert_uint_eq(series_next_distinct(&store, &series, &cursor, UINT64_MAX)->time_ns, 60);
    ck_assert_ptr_null(series_next_distinct(&store, &series, &cursor, UINT64_MAX));
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
    // Late, but behind all that was seen: nothing is void.
    place = put(20, 3, from, false);
    ck_assert(place.late && place.before_ns == 10 && place.after_ns == 25);
    ck_assert_uint_eq(series.revision, revision);
    place = put(15, 4, from, false);
    ck_assert(place.late && place.before_ns == 10 && place.after_ns == 20);
    ck_assert_uint_eq(series.revision, revision + 1);
}
END_TEST

// A rank whose sender is behind the others': each evaluation is ahead of its rows, none of which
// comes before one that was seen. What was read stays read: each row once, whatever their number.
START_TEST(test_a_rank_that_is_behind_is_read_once) {
    uint32_t from = origin("a", 1);
    struct series_cursor cursor = series_begin(&series);
    uint64_t next = 1, reads = 0;
    for (uint64_t round = 1; round <= 2000; round++) {
        for (uint64_t i = 0; i < 50; i++)
            put(next++, 0, from, true);
        series.settled_any = true;
        series.settled_ns = next + 100000;
        const struct sample *row;
        while ((row = series_next(&store, &series, &cursor, series.settled_ns)) != NULL)
            ck_assert_uint_eq(row->time_ns, ++reads);
        ck_assert_uint_eq(series.revision, 0);
    }
    ck_assert_uint_eq(reads, 100000);
    // At the same moment as one that was seen it counts as behind it only where it stands behind.
    put(reads, 1, from, true);
    ck_assert_uint_eq(series.revision, 0);
    put(reads, -1, from, true);
    ck_assert_uint_eq(series.revision, 1);
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

static uint32_t read_all(struct series_cursor *cursor, uint64_t as_of_ns) {
    uint32_t count = 0;
    while (series_next(&store, &series, cursor, as_of_ns) != NULL)
        count++;
    return count;
}

// A row that comes in out of order, after what was read, stands at the end of the chunk before: a
// cursor must not have left that chunk yet, nor begin behind it.
START_TEST(test_rows_put_into_a_gap_are_read) {
    uint32_t a = origin("a", 1);
    for (uint64_t i = 0; i < 42; i++)
        put(i * 10, 0, a, false);
    put(105, 0, a, false); // splits the first chunk
    ck_assert_uint_eq(series.chunk_count, 3);
    struct series_cursor cursor = series_begin(&series);
    const struct sample_chunk *first = series_chunk(&store, &series, 0);
    uint64_t end_ns = first->rows[first->count - 1].time_ns;
    ck_assert_uint_eq(read_all(&cursor, end_ns), first->count);
    struct series_cursor sought = series_seek(&store, &series, end_ns + 1);
    put(end_ns + 1, 0, a, false);
    ck_assert_uint_eq(first->rows[first->count - 1].time_ns, end_ns + 1);
    ck_assert_uint_eq(series_next(&store, &series, &cursor, UINT64_MAX)->time_ns, end_ns + 1);
    ck_assert_uint_eq(series_next(&store, &series, &sought, UINT64_MAX)->time_ns, end_ns + 1);
    ck_assert_uint_eq(read_all(&cursor, UINT64_MAX), read_all(&sought, UINT64_MAX));
}
END_TEST

// After a load the directory is made of the chain of chunks, whatever was done to them before.
START_TEST(test_directory_is_made_again) {
    uint32_t a = origin("a", 1);
    srand((unsigned)_i);
    for (int i = 0; i < 400; i++) {
        struct sample row = {.time_ns = (uint64_t)(i * 10 + rand() % 300),
                             .origin = a,
                             .flags = rand() % 3 == 0 ? SAMPLE_JOB_NULL : 0};
        rows_insert(&store, &series, &row, false);
        if (i % 90 == 89)
            rows_drop_first_chunk(&store, &series);
        if (i == 250)
            rows_remove_flagged(&store, &series, SAMPLE_JOB_NULL);
        if (i == 300)
            rows_remove_until(&store, &series, 2400);
    }
    struct rank_series loaded = series;
    loaded.chunks = (uint32_t *)16; // junk
    loaded.tail = loaded.tail_count = 7;
    ck_assert(rows_restore(&store, &loaded));
    ck_assert_uint_eq(loaded.chunk_count, series.chunk_count);
    ck_assert_mem_eq(loaded.chunks, series.chunks, series.chunk_count * sizeof(uint32_t));
    ck_assert_uint_eq(loaded.tail, series.tail);
    ck_assert_uint_eq(loaded.tail_count, series.tail_count);
    ck_assert_uint_eq(loaded.tail_ns, series.tail_ns);
    rows_release(&loaded);
}
END_TEST

START_TEST(test_a_broken_chain_is_refused) {
    uint32_t a = origin("a", 1);
    for (uint64_t i = 0; i < 100; i++)
        put(i, 0, a, false);
    struct sample_chunk *second = table_row(&store.chunks, series.chunks[1]);
    struct sample_chunk saved = *second;
    for (int damage = 0; damage < 6; damage++) {
        struct rank_series loaded = series;
        *second = saved;
        second->next = damage == 0 ? 4711 : damage == 1 ? TABLE_NO_ROW : saved.next;
        second->count = damage == 2 ? 22 : damage == 3 ? 0 : saved.count;
        second->rows[3].origin = damage == 4 ? 99 : saved.rows[3].origin;
        loaded.chunk_count = damage == 5 ? 1000000 : series.chunk_count;
        ck_assert_msg(!rows_restore(&store, &loaded), "damage %d", damage);
        ck_assert_ptr_null(loaded.chunks);
        ck_assert_uint_eq(loaded.chunk_count, 0);
    }
    *second = saved;
}
END_TEST

START_TEST(test_origins_of_a_job_go_together) {
    struct telemetry telemetry = {.host = intern(SLICE("h")), .pid = 1};
    uint32_t rows[2][50];
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 100; i++) {
            telemetry.pid = i / 2;
            struct origin_key key = {.telemetry = &telemetry, .job = i % 2};
            rows[i % 2][i / 2] = rows_origin(&store, TABLE_NO_ROW, &key);
        }
        ck_assert_uint_ne(rows[0][7], rows[1][7]);
        ck_assert_uint_eq(table_live(&store.origins), 100);
        for (uint32_t i = 0; i < 50; i++)
            rows_free_origin(&store, rows[0][i]);
        ck_assert_uint_eq(table_live(&store.origins), 50);
        if (round == 1)
            state_rows_restored(&STORE, 1, &store);
        telemetry.pid = 7;
        struct origin_key key = {.telemetry = &telemetry, .job = 1};
        ck_assert_uint_eq(rows_origin(&store, TABLE_NO_ROW, &key), rows[1][7]);
    }
    ck_assert_uint_eq(store.origins.used, 100);
}
END_TEST

// What was carried with a sample tells origins apart.
START_TEST(test_carried_is_part_of_the_origin) {
    struct telemetry telemetry = {.host = intern(SLICE("h")), .pid = 1};
    struct carried carried = {.first_sample_ns = 5, .generation = 2};
    struct origin_key plain = {.telemetry = &telemetry};
    struct origin_key told = {.telemetry = &telemetry, .carried = &carried};
    uint32_t a = rows_origin(&store, TABLE_NO_ROW, &plain);
    uint32_t b = rows_origin(&store, a, &told);
    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(rows_origin(&store, b, &plain), a);
    ck_assert_uint_eq(rows_origin(&store, a, &told), b);
    carried.generation = 3;
    uint32_t c = rows_origin(&store, b, &told);
    ck_assert_uint_ne(c, b);
    ck_assert_uint_eq(table_live(&store.carried), 2);
    rows_free_origin(&store, c);
    ck_assert_uint_eq(table_live(&store.carried), 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("rank_rows");
    TCase *tests = tcase_create("rows");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_ties_go_by_pid_then_host_then_arrival);
    tcase_add_test(tests, test_by_value_order_does_not_depend_on_arrival);
    tcase_add_test(tests, test_same_origin_is_one_row);
    tcase_add_test(tests, test_a_row_that_came_before_is_known);
    tcase_add_test(tests, test_repeats_can_be_passed_over);
    tcase_add_loop_test(tests, test_any_arrival_order_gives_time_order, 0, 3);
    tcase_add_test(tests, test_neighbours_and_lateness_are_told);
    tcase_add_test(tests, test_cursor_holds_while_later_rows_come_in);
    tcase_add_test(tests, test_a_rank_that_is_behind_is_read_once);
    tcase_add_test(tests, test_expired_chunks_are_given_back_and_cursors_go_on);
    tcase_add_test(tests, test_flagged_rows_can_be_removed);
    tcase_add_test(tests, test_rows_put_into_a_gap_are_read);
    tcase_add_loop_test(tests, test_directory_is_made_again, 0, 20);
    tcase_add_test(tests, test_a_broken_chain_is_refused);
    tcase_add_test(tests, test_origins_of_a_job_go_together);
    tcase_add_test(tests, test_carried_is_part_of_the_origin);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
