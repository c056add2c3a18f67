// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/memory_pages.h"
#include "base/table/keyed_rows.h"
#include "base/table/table.h"

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

static void fill(struct table *into, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        memset(table_row(into, table_add(into)), (int)(i % 251 + 1), into->row_size);
}

// Pages hold whole rows, all of them, in order, and end at the last.
START_TEST(pages_hold_all_rows) {
    static const size_t sizes[] = {4, 48, 100, 1024, 4096, 4100, 9000};
    static const uint32_t chunks[] = {1, 8, 256};
    struct table paged;
    table_init(&paged, "test.paged", sizes[_i % 7], chunks[_i / 7]);
    ck_assert_uint_eq(table_page_count(&paged), 0);
    fill(&paged, 300);
    uint32_t rows = table_rows_per_page(&paged);
    ck_assert(rows == 1 || rows * paged.row_size <= TABLE_PAGE_BYTES);
    ck_assert_uint_eq(rows & (rows - 1), 0);
    ck_assert_uint_eq(paged.rows_per_chunk % rows, 0);
    size_t total = 0;
    for (uint32_t page = 0; page < table_page_count(&paged); page++) {
        size_t size;
        ck_assert_ptr_eq(table_page(&paged, page, &size), table_row(&paged, page * rows));
        ck_assert(size == rows * paged.row_size || page + 1 == table_page_count(&paged));
        total += size;
    }
    ck_assert_uint_eq(total, 300 * paged.row_size);
    table_release(&paged);
}
END_TEST

static void copy_pages(const struct table *from, struct table *to) {
    for (uint32_t page = 0; page < table_page_count(from); page++) {
        size_t size, room;
        const void *bytes = table_page(from, page, &size);
        void *place = table_page(to, page, &room);
        ck_assert_uint_eq(size, room);
        memcpy(place, bytes, size);
    }
}

// A loaded table goes on like the one that was saved: rows, free chain, new rows.
START_TEST(loaded_table_goes_on) {
    fill(&table, 100);
    table_free(&table, 7);
    table_free(&table, 99);
    table_free(&table, 0);
    struct table loaded;
    table_init(&loaded, "test.rows", sizeof(struct row), 5);
    fill(&loaded, 3);
    table_load(&loaded, table.used, table.free_head, table.free_count);
    static const struct row zero;
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_mem_eq(table_row(&loaded, i), &zero, sizeof zero);
    ck_assert(!table_chain_is_whole(&loaded));
    copy_pages(&table, &loaded);
    ck_assert(table_chain_is_whole(&loaded));
    unsigned char is_free[100];
    table_mark_free(&loaded, is_free);
    for (uint32_t i = 0; i < 100; i++) {
        ck_assert_int_eq(is_free[i], i == 0 || i == 7 || i == 99);
        ck_assert_mem_eq(table_row(&loaded, i), table_row(&table, i), sizeof(struct row));
    }
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(table_add(&loaded), table_add(&table));
    table_release(&loaded);
}
END_TEST

START_TEST(damaged_chain_is_seen) {
    fill(&table, 20);
    table_free(&table, 3);
    table_free(&table, 5);
    ck_assert(table_chain_is_whole(&table));
    uint32_t next = 5; // a ring
    memcpy(table_row(&table, 3), &next, sizeof next);
    ck_assert(!table_chain_is_whole(&table));
    next = 20; // beyond the end
    memcpy(table_row(&table, 3), &next, sizeof next);
    ck_assert(!table_chain_is_whole(&table));
    next = TABLE_NO_ROW;
    memcpy(table_row(&table, 3), &next, sizeof next);
    ck_assert(table_chain_is_whole(&table));
    table.free_count = 1;
    ck_assert(!table_chain_is_whole(&table));
    table.free_count = 3;
    ck_assert(!table_chain_is_whole(&table));
}
END_TEST

START_TEST(loaded_empty_table) {
    fill(&table, 20);
    table_load(&table, 0, TABLE_NO_ROW, 0);
    ck_assert_uint_eq(table_page_count(&table), 0);
    ck_assert(table_chain_is_whole(&table));
    ck_assert_uint_eq(table_add(&table), 0);
}
END_TEST

START_TEST(rows_form_lists) {
    enum { NEXT = 16 };
    struct row_list list = ROW_LIST_EMPTY;
    for (uint32_t i = 0; i < 20; i++)
        table_append(&table, NEXT, &list, table_add(&table));
    uint32_t row = list.first;
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert_uint_eq(row, i);
        memcpy(&row, (char *)table_row(&table, row) + NEXT, sizeof row);
    }
    ck_assert_uint_eq(row, TABLE_NO_ROW);
    ck_assert_uint_eq(list.last, 19);
    table_free_list(&table, NEXT, &list.first);
    ck_assert_uint_eq(list.first, TABLE_NO_ROW);
    ck_assert_uint_eq(table_live(&table), 0);
    ck_assert(table_chain_is_whole(&table));
}
END_TEST

START_TEST(rows_leave_lists_anywhere) {
    enum { LINK = 24 };
    struct row_list list = ROW_LIST_EMPTY;
    for (uint32_t i = 0; i < 5; i++)
        table_link(&table, LINK, &list, table_add(&table));
    static const uint32_t order[] = {2, 0, 4, 1, 3};
    for (size_t i = 0; i < 5; i++) {
        ck_assert_uint_ne(list.first, TABLE_NO_ROW);
        table_unlink(&table, LINK, &list, order[i]);
        table_free(&table, order[i]);
    }
    ck_assert(list.first == TABLE_NO_ROW && list.last == TABLE_NO_ROW);
}
END_TEST

struct keyed {
    struct row_head head;
    uint32_t key;
    uint32_t value;
};
KEYED_ROW_CHECK(struct keyed, key);

START_TEST(keyed_rows_are_made_once) {
    static const struct row_type type = KEYED_ROW_TYPE(struct keyed, key, 8);
    struct keyed_rows rows;
    bool is_new;
    keyed_rows_start(&rows, "test.keyed", &type);
    for (uint32_t key = 0; key < 100; key++) {
        struct keyed *row = keyed_rows_get(&rows, &key, &is_new);
        ck_assert(is_new && row->key == key && row->value == 0);
        row->value = key * 2;
        ck_assert_ptr_eq(keyed_rows_get(&rows, &key, &is_new), row);
        ck_assert(!is_new);
    }
    ck_assert_uint_eq(keyed_rows_count(&rows), 100);
    keyed_rows_release(&rows);
}
END_TEST

// 64 MiB in chunks of 64 KiB: the first 8 MiB one by one, then those of 2 MiB together.
START_TEST(large_table_takes_huge_pages) {
    enum { ROW = 1000, ROWS_PER_CHUNK = 64, ROWS = 64 << 10 };
    struct table large;
    table_init(&large, "test.large", ROW, ROWS_PER_CHUNK);
    struct memory_figures before = memory_figures();
    for (uint32_t i = 0; i < ROWS; i++) {
        char *row = table_row(&large, table_add(&large));
        ck_assert(row[0] == 0 && row[ROW - 1] == 0);
        memset(row, (int)(i % 251), ROW);
    }
    ck_assert_uint_eq(large.chunk_count, ROWS / ROWS_PER_CHUNK);
    uint64_t allocations = memory_figures().allocations - before.allocations;
    ck_assert_uint_le(allocations, (8 << 20) / (ROW * ROWS_PER_CHUNK) + 1 + 28 + 10);
    uint64_t held = memory_figures().live_bytes - before.live_bytes;
    ck_assert_uint_le(held, (uint64_t)ROWS * ROW + (uint64_t)ROWS * ROW / 20 + MEMORY_HUGE_PAGE);
    for (uint32_t i = 0; i < ROWS; i++) {
        const char *row = table_row(&large, i);
        ck_assert_int_eq(row[0], (char)(i % 251));
        ck_assert_int_eq(row[ROW - 1], (char)(i % 251));
    }
    // Loaded it is as large, and zero.
    table_load(&large, ROWS, TABLE_NO_ROW, 0);
    ck_assert_int_eq(*(char *)table_row(&large, ROWS - 1), 0);
    table_release(&large);
    ck_assert_uint_eq(memory_figures().live_bytes, before.live_bytes);
}
END_TEST

// A row may be larger than what chunks share.
START_TEST(large_chunks_stand_alone) {
    struct table large;
    table_init(&large, "test.large", 3 << 20, 1);
    for (uint32_t i = 0; i < 5; i++)
        memset(table_row(&large, table_add(&large)), 1, 3 << 20);
    ck_assert_int_eq(((char *)table_row(&large, 4))[(3 << 20) - 1], 1);
    table_release(&large);
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
    tcase_add_loop_test(cases, pages_hold_all_rows, 0, 21);
    tcase_add_test(cases, loaded_table_goes_on);
    tcase_add_test(cases, damaged_chain_is_seen);
    tcase_add_test(cases, loaded_empty_table);
    tcase_add_test(cases, rows_form_lists);
    tcase_add_test(cases, rows_leave_lists_anywhere);
    tcase_add_test(cases, keyed_rows_are_made_once);
    tcase_add_test(cases, large_table_takes_huge_pages);
    tcase_add_test(cases, large_chunks_stand_alone);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
