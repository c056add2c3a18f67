// SPDX-License-Identifier: Apache-2.0
#include "pipeline/component/state.h"

#include "base/memory.h"

#include <check.h>
#include <signal.h>
#include <stddef.h>

struct row {
    uint32_t next;
    uint32_t name;
    uint64_t value;
    uint32_t other_name;
};

static struct table table;
static struct row single;

static void setup(void) {
    table_init(&table, "thing.rows", sizeof(struct row), 8);
}

static void teardown(void) {
    table_release(&table);
}

START_TEST(test_entries_come_in_the_order_they_were_listed) {
    struct state_list list = {0};
    struct state_entry *rows = state_list_table(&list, &table);
    state_entry_string(rows, offsetof(struct row, name));
    state_entry_string(rows, offsetof(struct row, other_name));
    struct state_entry *kept = state_list_struct(&list, "thing.kept", &single, sizeof single);
    state_entry_string(kept, 0);
    ck_assert_uint_eq(list.count, 2);
    ck_assert_str_eq(list.entries[0].name, "thing.rows");
    ck_assert_ptr_eq(list.entries[0].table, &table);
    ck_assert_uint_eq(list.entries[0].size, sizeof(struct row));
    ck_assert_uint_eq(list.entries[0].string_count, 2);
    ck_assert_uint_eq(list.entries[0].strings[1], offsetof(struct row, other_name));
    ck_assert_str_eq(list.entries[1].name, "thing.kept");
    ck_assert_ptr_null(list.entries[1].table);
    ck_assert_ptr_eq(list.entries[1].bytes, &single);
    ck_assert_uint_eq(list.entries[1].size, sizeof single);
    ck_assert_uint_eq(list.entries[1].strings[0], 0);
}
END_TEST

// The free chain stands there: putting it right as a string would break it.
START_TEST(test_the_start_of_a_row_is_no_string) {
    struct state_list list = {0};
    state_entry_string(state_list_table(&list, &table), 0);
}
END_TEST

START_TEST(test_a_string_lies_within_the_row) {
    struct state_list list = {0};
    state_entry_string(state_list_table(&list, &table), sizeof(struct row) - 2);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("state");
    TCase *tests = tcase_create("state");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, test_entries_come_in_the_order_they_were_listed);
    tcase_add_test_raise_signal(tests, test_the_start_of_a_row_is_no_string, SIGABRT);
    tcase_add_test_raise_signal(tests, test_a_string_lies_within_the_row, SIGABRT);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
