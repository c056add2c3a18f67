// SPDX-License-Identifier: Apache-2.0
#include "processors/spans/named_rows.h"

#include "base/memory.h"

#include <check.h>

struct thing {
    struct named_row head;
    uint32_t count;
};

static const struct row_type THINGS = ROW_TYPE(struct thing, 16);
enum { OWNERS = 5, NAMES = 40 };
static struct named_rows rows;
static struct row_list lists[OWNERS];

static void setup(void) {
    rows = (struct named_rows){0};
    table_start(&rows.table, "things", &THINGS);
    for (int i = 0; i < OWNERS; i++)
        lists[i] = ROW_LIST_EMPTY;
}

static void teardown(void) {
    named_rows_release(&rows);
    table_release(&rows.table);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static struct thing *get(uint32_t owner, uint8_t kind, uint32_t name, bool *is_new) {
    struct named_row key = {.owner = owner, .kind = kind, .name = name};
    return table_row(&rows.table, named_rows_get(&rows, &lists[owner], key, is_new));
}

// How many of each of the two kinds an owner has; in all none, two, as many as are walked, two
// more, many.
static uint32_t names_of(uint32_t owner) {
    static const uint32_t COUNTS[OWNERS] = {0, 1, 4, 5, NAMES};
    return COUNTS[owner];
}

static void add_all(void) {
    bool is_new;
    for (uint32_t name = 0; name < NAMES; name++)
        for (uint32_t owner = 0; owner < OWNERS; owner++)
            for (uint8_t kind = 0; kind < 2 && name < names_of(owner); kind++) {
                struct thing *thing = get(owner, kind, name, &is_new);
                ck_assert(is_new && thing->count == 0);
                thing->count = owner * 1000 + name * 2 + kind;
            }
}

static void all_are_found(uint32_t first_owner) {
    bool is_new;
    for (uint32_t owner = first_owner; owner < OWNERS; owner++) {
        uint32_t in_list = 0, at = lists[owner].first;
        for (uint32_t i = 0; i < 2 * names_of(owner); i++) {
            const struct thing *thing = get(owner, (uint8_t)(i % 2), i / 2, &is_new);
            ck_assert(!is_new);
            ck_assert_uint_eq(thing->count, owner * 1000 + i);
        }
        // In the order in which they came.
        for (; at != TABLE_NO_ROW; at = ((struct named_row *)table_row(&rows.table, at))->next)
            ck_assert_uint_eq(((struct thing *)table_row(&rows.table, at))->count,
                              owner * 1000 + in_list++);
        ck_assert_uint_eq(in_list, 2 * names_of(owner));
    }
}

START_TEST(names_are_found_in_short_lists_and_long_ones) {
    add_all();
    all_are_found(0);
    ck_assert_uint_eq(rows.index.count, 2 + 2 * NAMES - 8);
}
END_TEST

START_TEST(lists_are_freed_and_their_rows_used_again) {
    add_all();
    uint32_t used = rows.table.used;
    for (uint32_t owner = 0; owner < OWNERS; owner++) {
        named_rows_free(&rows, &lists[owner]);
        ck_assert_uint_eq(lists[owner].first, TABLE_NO_ROW);
        all_are_found(owner + 1);
    }
    ck_assert_uint_eq(table_live(&rows.table), 0);
    ck_assert_uint_eq(rows.index.count, 0);
    add_all();
    all_are_found(0);
    ck_assert_uint_eq(rows.table.used, used);
}
END_TEST

START_TEST(the_index_is_made_again) {
    add_all();
    named_rows_free(&rows, &lists[3]); // its rows do not come back
    uint32_t count = rows.index.count;
    named_rows_restored(&rows);
    ck_assert_uint_eq(rows.index.count, count);
    all_are_found(4);
    named_rows_release(&rows); // as in a process that begins
    named_rows_restored(&rows);
    ck_assert_uint_eq(rows.index.count, count);
    all_are_found(4);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("named_rows");
    TCase *names = tcase_create("names");
    tcase_add_checked_fixture(names, setup, teardown);
    tcase_add_test(names, names_are_found_in_short_lists_and_long_ones);
    tcase_add_test(names, lists_are_freed_and_their_rows_used_again);
    tcase_add_test(names, the_index_is_made_again);
    suite_add_tcase(suite, names);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
