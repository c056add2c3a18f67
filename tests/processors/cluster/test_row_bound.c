// SPDX-License-Identifier: Apache-2.0
// row_bound, due_rows, compare: which rows go when a table is full, which are due and in what
// order.
#include "base/memory.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/due_rows.h"
#include "processors/cluster/row_bound.h"

#include <check.h>

struct row {
    struct row_head head;
    uint32_t key;
    uint64_t time_ns;
    bool in_use;
};

static const struct row_type ROWS = {
    .size = sizeof(struct row), .key_size = sizeof(uint32_t), .rows_per_chunk = 16};
enum { MAX = 32 };

static struct keyed_rows rows;
static struct row_bound bound;
static struct arena arena;

static void setup(void) {
    arena_init(&arena, 4096);
    keyed_rows_start(&rows, "rows", &ROWS);
    bound = (struct row_bound){.max = MAX};
}

static void teardown(void) {
    keyed_rows_release(&rows);
    arena_release(&arena);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static struct row *take(uint32_t key, uint64_t time_ns) {
    struct row *row = row_bound_take(&rows, &bound, &key, offsetof(struct row, time_ns), &arena);
    row->time_ns = time_ns;
    return row;
}

static bool is_there(uint32_t key) {
    return keyed_rows_find(&rows, &key) != NULL;
}

START_TEST(the_oldest_go_and_the_horizon_moves) {
    for (uint32_t i = 0; i < MAX; i++)
        take(i, 1000 - i);
    ck_assert_uint_eq(bound.evicted, 0);
    take(MAX, 5000);
    ck_assert_uint_eq(bound.evicted, MAX / 16 + 1);
    for (uint32_t i = 0; i <= MAX; i++)
        ck_assert_int_eq(is_there(i), i < MAX - 3 || i == MAX);
    ck_assert_uint_eq(bound.horizon_ns, 1000 - (MAX - 4));
    ck_assert_ptr_eq(take(0, 1000), take(0, 1000));
}
END_TEST

// Whatever the times are, as a sort of all would say; and new rows stand in order again.
START_TEST(of_equal_times_the_first_go) {
    uint32_t key = 0, at = 0, last = 0;
    for (; key < MAX; key++)
        take(key, key % 4 < 2 ? 7 : UINT64_C(1) << (8 + key % 50));
    take(key++, 9);
    ck_assert_uint_eq(bound.evicted, 3);
    for (uint32_t i = 0; i < MAX; i++)
        ck_assert_int_eq(is_there(i), i != 0 && i != 1 && i != 4);
    ck_assert_uint_eq(bound.horizon_ns, 7);
    take(key++, 10);
    take(key++, 11);
    const struct row *row;
    for (uint32_t i = 0; i < 3; last = row->key, i++) {
        while ((row = keyed_rows_next(&rows, &at))->key < MAX)
            ;
        ck_assert_uint_gt(row->key, last);
    }
}
END_TEST

START_TEST(all_go_where_the_bound_says_so) {
    bound.max = 1;
    take(1, 5);
    take(2, UINT64_MAX);
    ck_assert(!is_there(1) && is_there(2));
    ck_assert_uint_eq(bound.horizon_ns, UINT64_MAX);
}
END_TEST

START_TEST(expiry_moves_the_horizon_once) {
    for (uint32_t i = 0; i < 10; i++)
        take(i, 100 + i);
    row_bound_expire(&rows, &bound, offsetof(struct row, time_ns), 105);
    ck_assert_uint_eq(keyed_rows_count(&rows), 5);
    ck_assert_uint_eq(bound.horizon_ns, 105);
    take(50, 1);
    row_bound_expire(&rows, &bound, offsetof(struct row, time_ns), 105);
    ck_assert(is_there(50));
}
END_TEST

static bool is_idle(void *owner, const void *row) {
    (void)owner;
    return !((const struct row *)row)->in_use;
}

static void forget(void *owner, void *row) {
    keyed_rows_remove(owner, row);
}

START_TEST(rows_in_use_stay_and_there_may_be_twice_as_many) {
    uint32_t looked_at = 0, refused = 0;
    const struct idle_rows idle = {.rows = &rows,
                                   .max = MAX,
                                   .time_offset = offsetof(struct row, time_ns),
                                   .looked_at = &looked_at,
                                   .is_idle = is_idle,
                                   .forget = forget,
                                   .owner = &rows};
    bound.max = UINT32_MAX;
    for (uint32_t i = 0; i < 3 * MAX; i++) {
        if (!idle_rows_make_room(&idle, &arena)) {
            refused++;
            continue;
        }
        take(i, i)->in_use = i % 4 != 0;
    }
    ck_assert_uint_le(keyed_rows_count(&rows), 2 * MAX);
    ck_assert_uint_gt(refused, 0);
    for (uint32_t i = 0; i < MAX; i++)
        ck_assert(is_there(i) || i % 4 == 0);
}
END_TEST

struct waiting {
    uint32_t chain, live;
    uint64_t time_ns;
};

static bool is_due(const void *row, uint64_t until_ns) {
    const struct waiting *waiting = row;
    return waiting->live != 0 && waiting->time_ns <= until_ns;
}

static int by_time(const void *left, const void *right) {
    const struct waiting *a = ((const struct due_row *)left)->row;
    const struct waiting *b = ((const struct due_row *)right)->row;
    return COMPARE(a->time_ns, b->time_ns);
}

START_TEST(due_rows_come_in_order) {
    static const uint64_t times[] = {30, 10, 99, 20};
    struct table table;
    table_init(&table, "waiting", sizeof(struct waiting), 16);
    for (int i = 0; i < 4; i++)
        *(struct waiting *)table_row(&table, table_add(&table)) = (struct waiting){0, 1, times[i]};
    struct due_rows due = due_rows_sorted(&table, is_due, 30, &arena, by_time);
    ck_assert_uint_eq(due.count, 3);
    ck_assert_uint_eq(due.items[0].number, 1);
    ck_assert_uint_eq(due.items[1].number, 3);
    ck_assert_uint_eq(due.items[2].number, 0);
    table_release(&table);
}
END_TEST

START_TEST(the_first_pair_that_differs_decides) {
    ck_assert_int_eq(COMPARE_KEYS(COMPARE(1, 1), COMPARE(2, 3), COMPARE(9, 0)), -1);
    ck_assert_int_eq(COMPARE_KEYS(COMPARE(1, 1), COMPARE(UINT64_MAX, 3)), 1);
    ck_assert_int_eq(COMPARE(7, 7), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("row_bound");
    TCase *cases = tcase_create("row_bound");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_oldest_go_and_the_horizon_moves);
    tcase_add_test(cases, of_equal_times_the_first_go);
    tcase_add_test(cases, all_go_where_the_bound_says_so);
    tcase_add_test(cases, expiry_moves_the_horizon_once);
    tcase_add_test(cases, rows_in_use_stay_and_there_may_be_twice_as_many);
    tcase_add_test(cases, due_rows_come_in_order);
    tcase_add_test(cases, the_first_pair_that_differs_decides);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
