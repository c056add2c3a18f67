// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/table.h"

#include <check.h>
#include <string.h>

struct row {
    uint64_t value;
    char rest[40];
};

static struct table table;

static void setup(void) {
    table_init(&table, "test.rows", sizeof(struct row), 5);
}

static void teardown(void) {
    table_release(&table);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

START_TEST(rows_never_move) {
    ck_assert_uint_eq(table.rows_per_chunk, 8);
    struct row *first = NULL;
    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert_uint_eq(table_add(&table), i);
        struct row *row = table_row(&table, i);
        ck_assert_uint_eq(row->value, 0);
        row->value = i * 3;
        memset(row->rest, 1, sizeof row->rest);
        if (i == 0)
            first = row;
    }
    ck_assert_ptr_eq(table_row(&table, 0), first);
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(((struct row *)table_row(&table, i))->value, i * 3);
    ck_assert_uint_eq(table_live(&table), 1000);
    ck_assert_uint_eq(table.chunk_count, 125);
}
END_TEST

START_TEST(freed_rows_come_back_zeroed) {
    for (uint32_t i = 0; i < 20; i++)
        memset(table_row(&table, table_add(&table)), 0xee, sizeof(struct row));
    table_free(&table, 3);
    table_free(&table, 17);
    ck_assert_uint_eq(table_live(&table), 18);
    uint64_t before = memory_figures().allocations;
    ck_assert_uint_eq(table_add(&table), 17);
    ck_assert_uint_eq(table_add(&table), 3);
    ck_assert_uint_eq(table_add(&table), 20);
    ck_assert_uint_eq(memory_figures().allocations, before);
    static const struct row zero;
    ck_assert_mem_eq(table_row(&table, 3), &zero, sizeof zero);
    ck_assert_mem_eq(table_row(&table, 17), &zero, sizeof zero);
    ck_assert_uint_eq(table_live(&table), 21);
}
END_TEST

START_TEST(all_freed_and_used_again) {
    for (uint32_t i = 0; i < 64; i++)
        table_add(&table);
    for (uint32_t i = 0; i < 64; i++)
        table_free(&table, i);
    ck_assert_uint_eq(table_live(&table), 0);
    for (uint32_t i = 64; i > 0; i--)
        ck_assert_uint_eq(table_add(&table), i - 1);
    ck_assert_uint_eq(table_add(&table), 64);
}
END_TEST

START_TEST(released_table_is_empty) {
    table_add(&table);
    table_release(&table);
    ck_assert_uint_eq(table_live(&table), 0);
    ck_assert_uint_eq(table_add(&table), 0);
}
END_TEST

START_TEST(smallest_row) {
    struct table numbers;
    table_init(&numbers, "test.numbers", sizeof(uint32_t), 1);
    for (uint32_t i = 0; i < 100; i++)
        *(uint32_t *)table_row(&numbers, table_add(&numbers)) = i;
    table_free(&numbers, 50);
    ck_assert_uint_eq(table_add(&numbers), 50);
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_uint_eq(*(uint32_t *)table_row(&numbers, i), i == 50 ? 0 : i);
    table_release(&numbers);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("table");
    TCase *cases = tcase_create("table");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, rows_never_move);
    tcase_add_test(cases, freed_rows_come_back_zeroed);
    tcase_add_test(cases, all_freed_and_used_again);
    tcase_add_test(cases, released_table_is_empty);
    tcase_add_test(cases, smallest_row);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
